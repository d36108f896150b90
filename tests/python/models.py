"""Small models of every family, with inputs; written as users write them, unaware of HPQF."""
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


class ResNet(nn.Module):
    """The layout of torchvision's ResNet, two stages of 8 and 16 channels."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = nn.Sequential(Block(8, 8, 1))
        self.layer2 = nn.Sequential(Block(8, 16, 2))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        return self.fc(torch.flatten(self.avgpool(self.layer2(self.layer1(x))), 1))


class LstmTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 12)
        self.lstm = nn.LSTM(12, 16, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 5)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0]).transpose(1, 2)


class Encoder(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


class FunctionalAttention(nn.Module):
    """Attention written out: products without any module of their own."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 4.0, dim=-1)
        return self.out(weights @ v + F.scaled_dot_product_attention(q, k, v))


class TiedLm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.body(self.embedding(tokens)))).transpose(1, 2)


def mlp():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def batch(model, size=4):
    """(x, y) for cross-entropy."""
    if isinstance(model, ResNet):
        return torch.randn(size, 3, 12, 12), torch.randint(10, (size,))
    if isinstance(model, LstmTagger):
        return torch.randint(50, (size, 7)), torch.randint(5, (size, 7))
    if isinstance(model, TiedLm):
        return torch.randint(20, (size, 6)), torch.randint(20, (size, 6))
    if isinstance(model, Encoder):
        return torch.randn(size, 5, 16), torch.randint(4, (size,))
    if isinstance(model, FunctionalAttention):
        return torch.randn(size, 5, 16), torch.rand(size, 5, 16)
    return torch.randn(size, 16), torch.randint(4, (size,))


ALL = {"resnet": ResNet, "lstm": LstmTagger, "encoder": Encoder, "attention": FunctionalAttention, "tied": TiedLm, "mlp": mlp}
