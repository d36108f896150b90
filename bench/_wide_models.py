"""Models of the sizes at which integer arithmetic pays, each with one fixed batch: written as users write them."""
import torch
import torch.nn.functional as F
from torch import nn

from _models import Block


class Bert(nn.Module):
    """4 layers of 512, 2048 tokens a batch, no dropout (its random numbers would be timed too); predicts one token in seven."""

    def __init__(self, width=512, layers=4, vocabulary=4096, time=128):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(time, width)
        layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.size(1)))
        return self.head(self.encoder(x)[:, ::7]).transpose(1, 2)


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.qkv, self.proj = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ln2, self.fc1, self.fc2 = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """Byte-level, 4 layers of 256, context of 256 bytes."""

    def __init__(self, width=256, layers=4, time=256):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(256, width), nn.Embedding(time, width)
        self.blocks = nn.Sequential(*(GptBlock(width, 4) for _ in range(layers)))
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, 256)

    def forward(self, x):
        x = self.tokens(x) + self.positions(torch.arange(x.size(1)))
        return self.head(self.ln(self.blocks(x))).transpose(1, 2)


class ResNet18(nn.Module):
    """He et al. 2015 for 32 x 32 images: a 3 x 3 stem without pooling, 64 to 512 channels."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        widths = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.layers = nn.Sequential(*(nn.Sequential(Block(i, o, s), Block(o, o, 1)) for i, o, s in widths))
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        return self.fc(self.layers(F.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


class Lstm(nn.Module):
    """Byte-level, 2 x 256."""

    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.head = nn.Embedding(256, 256), nn.LSTM(256, 256, num_layers=2, batch_first=True), nn.Linear(256, 256)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0]).transpose(1, 2)


MODELS = {
    "bert": (Bert, lambda _scale: (torch.randint(4096, (16, 128)), torch.randint(4096, (16, 19)))),
    "gpt": (Gpt, lambda _scale: (torch.randint(256, (8, 256)), torch.randint(256, (8, 256)))),
    "resnet18": (ResNet18, lambda _scale: (torch.randn(32, 3, 32, 32), torch.randint(10, (32,)))),
    "lstm": (Lstm, lambda _scale: (torch.randint(256, (64, 64)), torch.randint(256, (64, 64)))),
}
