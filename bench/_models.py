"""The models of the timing benchmarks, each with one fixed batch: written as users write them, unaware of precision."""
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if stride != 1 or channels_in != channels:
            self.downsample = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet20(nn.Module):
    """16, 32 and 64 channels, three blocks each (He et al. 2015, section 4.2), in the layout of torchvision."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = nn.Sequential(Block(16, 16, 1), Block(16, 16, 1), Block(16, 16, 1))
        self.layer2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1))
        self.layer3 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        return self.fc(torch.flatten(self.avgpool(self.layer3(self.layer2(self.layer1(x)))), 1))


_WIDTH, _HEADS, _LAYERS, _VOCAB, _TIME = 256, 4, 4, 30522, 128   # BERT-mini (Turc et al. 2019)


class Encoder(nn.Module):
    """BERT-mini out of torch's own encoder layers, where the package transformers is missing."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(_VOCAB, _WIDTH), nn.Embedding(_TIME, _WIDTH)
        layer = nn.TransformerEncoderLayer(_WIDTH, _HEADS, 4 * _WIDTH, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(_WIDTH, 2)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.size(1)))
        return self.head(self.encoder(x)[:, 0])


class HfBert(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertForSequenceClassification

        self.bert = BertForSequenceClassification(BertConfig(
            vocab_size=_VOCAB, hidden_size=_WIDTH, num_hidden_layers=_LAYERS, num_attention_heads=_HEADS, intermediate_size=4 * _WIDTH,
            max_position_embeddings=_TIME))

    def forward(self, tokens):
        return self.bert(tokens).logits


def bert_mini() -> nn.Module:
    try:
        return HfBert()
    except ImportError:
        return Encoder()


class Lstm(nn.Module):
    """Byte-level language model, 2 x 256."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(256, 128)
        self.lstm = nn.LSTM(128, 256, num_layers=2, batch_first=True)
        self.head = nn.Linear(256, 256)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0]).transpose(1, 2)


def _images(scale):
    batch = max(1, int(128 * scale))
    return torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))


def _sentences(scale):
    batch = max(1, int(16 * scale))
    return torch.randint(_VOCAB, (batch, _TIME)), torch.randint(2, (batch,))


def _bytes(scale):
    batch = max(1, int(32 * scale))
    return torch.randint(256, (batch, 64)), torch.randint(256, (batch, 64))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable]] = {
    "resnet20": (ResNet20, _images),    # 128 x 3 x 32 x 32
    "bert-mini": (bert_mini, _sentences),   # 16 x 128 tokens
    "lstm": (Lstm, _bytes),   # 32 x 64 bytes
}


class Trained:
    """One copy of a model with its optimizer, and the losses of the steps it took."""

    def __init__(self, name: str, scale: float = 1.0, models=MODELS, **adamw):
        torch.manual_seed(0)
        make, batch = models[name]
        self.model = make()
        self.x, self.y = batch(scale)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, **adamw)
        self.losses = []

    def step(self) -> None:
        loss = F.cross_entropy(self.model(self.x).float(), self.y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.losses.append(loss.item())
