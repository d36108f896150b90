"""Sensitivity against its definition: gradients of single samples, all labels in turn, models put back."""
import copy
import gc
import json
import math
import os
import random

import hpqf
import models
import pytest
import torch
import torch.nn.functional as F
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore:hpqf.profile")
FORMATS = ["bf16", "fp8_e4m3", "int8", "int4", "int4[row]"]


class ConvNet(nn.Module):
    """Convolution, transposed convolution, in-place activations, a strided and a grouped one."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 8, 3, stride=2, padding="valid", groups=2, bias=False)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        x = F.relu(self.conv1(x), inplace=True)
        x = torch.tanh_(self.conv2(x))
        return self.fc(self.up(x).mean((2, 3)))


AXES = {nn.Linear: -1, nn.Conv2d: 1, nn.ConvTranspose2d: 0}


def weight_error(weight, format, axis=-1):
    return hpqf.quantize_dequantize(weight.detach(), format, axis) - weight.detach()


def input_error(x, format):
    return hpqf.quantize_dequantize(x.detach(), format, 1 if x.dim() == 4 else -1) - x.detach()


def moments(e):
    half = e.double() ** 2 / 2
    return half.mean().item(), half.std().item() / math.sqrt(len(e)), e.double().mean().item()


def inner(a, b):
    return (a.double() * b.double()).sum()


def expect(score, e, tolerance=1e-5):
    """The score of terms `e`. Both sides are fp32: the smaller the error against what it is added to, the more cancels in its terms."""
    mean, stderr, first = moments(e)
    assert score.score == pytest.approx(mean, rel=tolerance)
    assert score.standard_error == pytest.approx(stderr, rel=10 * tolerance)
    assert score.first_order == pytest.approx(first, rel=tolerance, abs=tolerance * e.abs().mean().item())
    assert score.terms == len(e)


def one_by_one(model, layer, x, y):
    """For each sample: gradients of the weight and of the input of one layer, and that input."""
    seen = []

    def fork(module, args):   # a tensor of its own: a residual connection reads the same input, and is not rounded
        seen.append(args[0].clone())
        return (seen[-1],)

    handle = model.get_submodule(layer).register_forward_pre_hook(fork)
    out = []
    for i in range(len(x)):
        seen.clear()
        data = x[i:i + 1].clone().requires_grad_(x.is_floating_point())
        loss = F.cross_entropy(model(data), y[i:i + 1])
        weight = model.get_submodule(layer).weight
        gradients = torch.autograd.grad(loss, [weight, seen[0]] if seen[0].requires_grad else [weight])
        out.append((gradients[0], gradients[1] if len(gradients) > 1 else None, seen[0].detach()))
    handle.remove()
    return out


@pytest.mark.parametrize("make", [models.mlp, ConvNet, models.ResNet])
def test_scores_are_the_squares_of_single_gradients(make):
    model = make().eval()
    x, y = (torch.randn(12, 3, 8, 8), torch.randint(5, (12,))) if make is ConvNet else models.batch(model, 12)
    report = hpqf.profile(model, [(x[:7], y[:7]), (x[7:], y[7:])], formats=FORMATS, samples=12, labels="true")
    assert report.sensitivity.samples == 12 and report.sensitivity.labels == "true"
    names = {name for name, m in model.named_modules() if type(m) in AXES}
    assert {layer.name for layer in report.layers} == names
    for layer in report.layers:
        module = model.get_submodule(layer.name)
        single = one_by_one(model, layer.name, x, y)
        for format, tolerance in (("int4[row]", 1e-5), ("int4", 1e-5), ("bf16", 1e-3)):
            error = weight_error(module.weight, format, AXES[type(module)])
            expect(layer.score("weight", format), torch.stack([inner(g, error) for g, _, _ in single]), tolerance)
            e = torch.stack([inner(g, input_error(u, format)) for _, g, u in single])
            expect(layer.score("input", format), e, tolerance)
        wanted = weight_error(module.weight, "int4", AXES[type(module)]).square().sum() / module.weight.square().sum()
        assert layer.score("weight", "int4").error == pytest.approx(wanted.item(), rel=1e-5)


def test_per_sample_gradients_of_torch_func_agree():
    model = models.mlp()
    x, y = models.batch(model, 20)
    report = hpqf.profile(model, [(x, y)], formats="int4", labels="true")
    parameters = {k: v.detach() for k, v in model.named_parameters()}

    def loss(p, a, b):
        return F.cross_entropy(torch.func.functional_call(model, p, (a[None],)), b[None])

    gradients = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(parameters, x, y)
    for layer in report.layers:
        g, w = gradients[layer.name + ".weight"], parameters[layer.name + ".weight"]
        expect(layer.score("weight", "int4"), (g * weight_error(w, "int4")).sum((1, 2)))


@pytest.mark.parametrize("make", [models.mlp, ConvNet])
def test_drawn_labels_give_the_fisher_information(make):
    """Against the expectation over all classes, which needs no draw: within four standard errors."""
    model, size = make(), 150
    x = torch.randn(size, 3, 6, 6) if make is ConvNet else torch.randn(size, 16)
    with torch.no_grad():
        probabilities = model(x).softmax(-1).double()
    y = torch.zeros(size, dtype=torch.long)   # what the true labels are must not matter
    report = hpqf.profile(model, torch.utils.data.DataLoader(list(zip(x, y)), 50), formats="int4", samples=size, seed=3)
    assert report.sensitivity.labels == "sampled" and len(report.layers) >= 2
    modules = [model.get_submodule(layer.name) for layer in report.layers]
    errors = [weight_error(m.weight, "int4", AXES[type(m)]) for m in modules]
    exact = [0.0] * len(modules)
    for i in range(size):
        logs = model(x[i:i + 1]).log_softmax(-1)[0]
        for c, p in enumerate(probabilities[i]):
            gradients = torch.autograd.grad(-logs[c], [m.weight for m in modules], retain_graph=True)
            exact = [a + p.item() * inner(g, d).item() ** 2 / 2 / size for a, g, d in zip(exact, gradients, errors)]
    for layer, want in zip(report.layers, exact):
        score = layer.score("weight", "int4")
        assert abs(score.score - want) < 4 * score.standard_error
        assert score.standard_error < 0.5 * want


def test_same_seed_same_labels_for_any_batch_size():
    model = models.mlp()
    x, y = models.batch(model, 60)

    def scores(seed, size):
        loader = [(x[i:i + size], y[i:i + size]) for i in range(0, 60, size)]
        return [s.score for layer in hpqf.profile(model, loader, formats="int4", seed=seed).layers for s in layer.scores]

    assert scores(1, 60) == pytest.approx(scores(1, 7), rel=1e-5)
    assert scores(1, 60) != pytest.approx(scores(2, 60), rel=1e-3)


class Lm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))
        self.head = nn.Linear(16, 20, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        q, k, v = (f(x).unflatten(-1, (4, 4)).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return self.head(x + self.out(a)).transpose(1, 2)


def test_tokens_are_the_terms_of_a_language_model():
    model = Lm()
    tokens, labels = torch.randint(20, (6, 9)), torch.randint(20, (6, 9))
    labels[2, 5] = -100   # ignored by the loss, and so not counted
    report = hpqf.profile(model, [(tokens, labels)], formats=["int4"], labels="true")
    seen = {}
    for name in ("q", "out", "head", "embedding"):
        model.get_submodule(name).register_forward_hook(lambda m, a, y, name=name: seen.__setitem__(name, (a[0].detach(), y)))
    loss = F.cross_entropy(model(tokens), labels, reduction="sum")
    names = list(seen)
    gradients = dict(zip(names, torch.autograd.grad(loss, [seen[n][1] for n in names])))
    by_name = {layer.name: layer for layer in report.layers}
    for name in ("q", "out", "head"):
        x, module = seen[name][0], model.get_submodule(name)
        for role, change in (("weight", F.linear(x, weight_error(module.weight, "int4"))),
                             ("input", F.linear(input_error(x, "int4"), module.weight.detach()))):
            e = (gradients[name] * change).sum(-1).flatten().double()
            score = by_name[name].score(role, "int4")
            assert score.terms == 54
            assert score.score == pytest.approx((e ** 2).sum().item() / 2 / 53, rel=1e-5)   # per label that counts
            assert score.first_order == pytest.approx(e.sum().item() / 53, rel=1e-4, abs=1e-6)
    change = F.embedding(tokens, weight_error(model.embedding.weight, "int4"))
    e = (gradients["embedding"] * change).sum(-1).double()
    assert by_name["embedding"].score("weight", "int4").score == pytest.approx((e ** 2).sum().item() / 2 / 53, rel=1e-5)
    with pytest.raises(hpqf.Error):
        by_name["embedding"].score("input", "int4")   # indices have no format
    assert ["q", "k", "v"] in report.sensitivity.ties


def test_attention_products_are_measured_as_they_run():
    """scaled_dot_product_attention is not linear in its operands: the change of its output is that of rounded operands."""
    model = models.FunctionalAttention()
    x, y = models.batch(model, 6)
    report = hpqf.profile(model, [(x, y)], loss_fn=F.mse_loss, formats="int4")
    assert report.sensitivity.labels == "true" and any("drawn" in text for text in report.warnings)
    q, k, v = model.qkv(x).chunk(3, -1)
    a = torch.softmax(q @ k.transpose(-1, -2) / 4.0, -1)
    rounded = lambda t, axis=-1: hpqf.quantize_dequantize(t.detach(), "int4", axis)
    scores, mixed, fused = q @ k.transpose(-1, -2), a @ v, F.scaled_dot_product_attention(q, k, v)
    scores_used, mixed_used = scores.detach().requires_grad_(), None
    a2 = torch.softmax(scores_used / 4.0, -1)
    mixed_used = a2 @ v.detach()
    fused_used = fused.detach().requires_grad_()
    loss = F.mse_loss(model.out(mixed_used + fused_used), y) * len(x)
    g_scores, g_mixed, g_fused = torch.autograd.grad(loss, [scores_used, mixed_used, fused_used])
    kt = k.transpose(-1, -2)
    changes = [(g_scores, rounded(q) @ rounded(kt, -2) - q @ kt), (g_mixed, rounded(a) @ rounded(v, -2) - a @ v),
               (g_fused, F.scaled_dot_product_attention(rounded(q), rounded(k), rounded(v, -2)) - fused)]
    e = sum((g * c).sum((1, 2)) for g, c in changes).detach()
    root = next(layer for layer in report.layers if layer.name == "")
    assert root.score("input", "int4").score == pytest.approx(moments(e)[0], rel=1e-4)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_recurrent_layers(kind, batch_first):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = getattr(nn, kind)(6, 8, num_layers=2, bidirectional=True, batch_first=batch_first)
            self.fc = nn.Linear(16, 3)

        def forward(self, x):
            return self.fc(self.rnn(x if batch_first else x.transpose(0, 1))[0].mean(1 if batch_first else 0))

    model = Net().eval()
    x, y = torch.randn(10, 7, 6), torch.randint(3, (10,))
    report = hpqf.profile(model, [(x, y)], formats=["int4", "fp8_e4m3"], labels="true")
    layer = report.layers[0]
    assert layer.name == "rnn"
    weights = {n: p for n, p in model.rnn.named_parameters() if "weight" in n}
    e = []
    for i in range(10):
        gradients = torch.autograd.grad(F.cross_entropy(model(x[i:i + 1]), y[i:i + 1]), list(weights.values()))
        e.append(sum((g * weight_error(w, "int4")).sum() for g, w in zip(gradients, weights.values())))
    expect(layer.score("weight", "int4"), torch.stack(e))
    assert layer.weights == sum(w.numel() for w in weights.values())

    # Inputs: a small change of them, as the engine makes it, changes the loss by what the first order says.
    role = layer.score("input", "fp8_e4m3")
    assert role.score > 0 and math.isfinite(role.first_order)


def test_a_packed_sequence_is_its_sequences():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 6, bidirectional=True)
            self.fc = nn.Linear(12, 3)

        def forward(self, x):
            packed = nn.utils.rnn.pack_padded_sequence(x, [5, 3, 2], batch_first=True)
            return self.fc(torch.cat(list(self.lstm(packed)[1][0]), -1))

    model = Net()
    x, y = torch.randn(3, 5, 4), torch.randint(3, (3,))
    report = hpqf.profile(model, [(x, y)], formats=["int4"], labels="true")
    loss = F.cross_entropy(model(x), y)
    weights = [p for n, p in model.lstm.named_parameters() if "weight" in n]
    e = sum((g * weight_error(w, "int4")).sum() for g, w in zip(torch.autograd.grad(loss, weights), weights))
    assert report.layers[0].score("weight", "int4").first_order == pytest.approx(e.item(), rel=1e-4)


def test_a_weight_used_twice_makes_one_error():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, x):
            return self.head(torch.tanh(self.body(torch.tanh(self.body(x)))))

    model = Twice()
    x, y = torch.randn(9, 8), torch.randint(3, (9,))
    report = hpqf.profile(model, [(x, y)], formats="int4", labels="true")
    error = weight_error(model.body.weight, "int4")
    e = [(torch.autograd.grad(F.cross_entropy(model(x[i:i + 1]), y[i:i + 1]), model.body.weight)[0] * error).sum()
         for i in range(9)]
    expect(report.layers[0].score("weight", "int4"), torch.stack(e))
    assert report.layers[0].weights == 64

    tied = models.TiedLm()
    report = hpqf.profile(tied, [models.batch(tied)], formats="int4")
    assert ["embedding", "head"] in report.sensitivity.ties


def state(model):
    return {
        "values": {k: v.clone() for k, v in model.state_dict().items()},
        "gradients": [None if p.grad is None else p.grad.clone() for p in model.parameters()],
        "requires": [p.requires_grad for p in model.parameters()],
        "modes": [m.training for m in model.modules()],
        "forwards": ["forward" in m.__dict__ for m in model.modules()],
        "torch": torch.get_rng_state(), "python": random.getstate(),
    }


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.parametrize("name", models.ALL)
def test_the_model_is_left_as_it_was(name):
    model = models.ALL[name]()
    model.train()
    list(model.modules())[-1].eval()   # one module the user froze
    next(model.parameters()).requires_grad_(False)
    data = [models.batch(model), models.batch(model)]
    loss_fn = F.mse_loss if name == "attention" else None
    (loss_fn or F.cross_entropy)(model(data[0][0]), data[0][1]).backward()
    before = state(model)
    report = hpqf.profile(model, data, loss_fn, formats=["int8", "bf16"], samples=8)
    assert same(before, state(model))
    assert report.layers and all(math.isfinite(s.score) for layer in report.layers for s in layer.scores)

    def breaks(output, target):
        torch.rand(1)
        raise KeyError("from the user's own code")

    with pytest.raises(KeyError):
        hpqf.profile(model, data, breaks)
    assert same(before, state(model))


def test_a_forward_that_writes_buffers_leaves_them_alone():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)
            self.register_buffer("calls", torch.zeros(1))
            self.register_buffer("last", torch.zeros(4))

        def forward(self, x):
            self.calls += 1
            self.last = x[0].detach()
            return self.fc(x)

    model = Counting()
    last = model.last
    hpqf.profile(model, [(torch.randn(8, 4), torch.randint(3, (8,)))], formats="int8")
    assert model.calls.item() == 0 and model.last is last


@pytest.mark.parametrize("change, asked", [
    (lambda m, d: hpqf.profile(m, []), "without data"),
    (lambda m, d: hpqf.profile(m, d, lambda o, t: F.cross_entropy(o, t, reduction="none")), "tensor of shape"),
    (lambda m, d: hpqf.profile(m.requires_grad_(False), d), "without trainable parameters"),
    (lambda m, d: hpqf.profile(m, d, lambda o, t: o.sum() * float("nan")), "NaN or infinity in the loss"),
    (lambda m, d: hpqf.profile(m, d, formats=["int5"]), "int5"),
    (lambda m, d: hpqf.profile(m, d, formats=["fp32"]), "fp32"),
    (lambda m, d: hpqf.profile(m, d, samples=0), "0 samples"),
    (lambda m, d: hpqf.profile(m, d, labels="guessed"), "guessed"),
    (lambda m, d: hpqf.profile("model", d), "str"),
])
def test_mistakes_are_named(change, asked):
    model = models.mlp()
    with pytest.raises(hpqf.Error) as error:
        change(model, [models.batch(model)])
    assert asked in error.value.asked
    assert not any("forward" in m.__dict__ for m in model.modules())


def test_gradients_that_are_not_finite_are_an_error():
    class Root(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)

        def forward(self, x):
            return torch.sqrt(self.fc(x) * 0)   # the root of zero has an infinite slope, times zero

    with pytest.raises(hpqf.Error, match="gradient of layer 'fc'"):
        hpqf.profile(Root(), [(torch.randn(8, 4), torch.randint(3, (8,)))], formats="int8")


def test_an_overflowing_format_is_infinite_not_an_error():
    model = models.mlp()
    with torch.no_grad():
        model[0].weight[0, 0] = 1e6
    report = hpqf.profile(model, [models.batch(model, 20)], formats=["fp16", "bf16"])
    assert report.layers[0].score("weight", "fp16").score == math.inf
    assert math.isfinite(report.layers[0].score("weight", "bf16").score)
    assert any("infinite" in text for text in report.warnings)
    assert hpqf.Sensitivity.from_json(report.to_json()) == report.sensitivity


def test_layers_without_gradient_are_named_and_not_scored():
    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.features, self.frozen, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
            self.frozen.requires_grad_(False)

        def forward(self, x):
            with torch.no_grad():
                x = self.features(x)
            return self.head(F.relu(self.frozen(x), inplace=True))

    report = hpqf.profile(Frozen(), [(torch.randn(20, 6), torch.randint(3, (20,)))], formats="int4")
    assert [layer.name for layer in report.layers] == ["frozen", "head"]   # a frozen weight is rounded like any other
    assert report.layers[0].score("weight", "int4").score > 0
    assert any("no gradient reaches features" in text for text in report.warnings)


def test_few_samples_and_a_model_far_from_its_minimum_are_said():
    model = models.mlp()
    x = torch.randn(400, 16) + 1   # not about zero: there the parts of a first-order term cancel
    with pytest.warns(UserWarning, match="independent terms only"):
        hpqf.profile(model, [(x[:50], torch.zeros(50, dtype=torch.long))], formats="int8")
    with torch.no_grad():
        model[2].bias[1] += 5
    report = hpqf.profile(model, [(x, torch.zeros(400, dtype=torch.long))], formats=["int8", "int4", "bf16"])
    assert any("far from a minimum" in text for text in report.warnings)


def test_statistics_of_every_operand():
    model = models.mlp()
    x, y = models.batch(model, 50)
    x[3, 5] = 1000.0
    report = hpqf.profile(model, [(x[:20], y[:20]), (x[20:], y[20:])], formats="int8", samples=50)
    seen = {(s.layer, s.role): s for s in report.statistics}
    assert set(seen) == {(layer, role) for layer in ("0", "2") for role in ("weight", "input", "output_grad")}
    s, v = seen["0", "input"], x.double()
    assert s.elements == 800 and s.absmax == 1000.0
    assert s.rms == pytest.approx(v.square().mean().sqrt().item(), rel=1e-6)
    centred = v - v.mean()
    assert s.kurtosis == pytest.approx((centred ** 4).mean().item() / (centred ** 2).mean().item() ** 2, rel=1e-5)
    assert s.beyond_six_sigma == pytest.approx(1 / 800)


def test_report_is_text_json_and_picture(tmp_path):
    model = models.ResNet()
    report = hpqf.profile(model, [models.batch(model, 8)], formats=["int8", "int4"])
    text = report.table()
    assert "layer1.0.conv1" in text and "int4" in text and "warning: " in text
    for layer in report.layers:   # fewer bits, more harm; also on random weights
        assert layer.score("weight", "int4").score > layer.score("weight", "int8").score
    report.save(tmp_path / "s.json")
    assert hpqf.Sensitivity.load(str(tmp_path / "s.json")) == report.sensitivity
    assert json.loads((tmp_path / "s.json").read_text())["schema"] == "hpqf.sensitivity"
    report.save(tmp_path / "s.svg")
    import xml.etree.ElementTree
    root = xml.etree.ElementTree.parse(tmp_path / "s.svg").getroot()
    assert root.tag.endswith("svg") and len(root.findall(".//{*}rect")) == 1 + 4 * len(report.layers)
    with pytest.raises(hpqf.Error):
        report.save(tmp_path / "s.png")
    assert not os.path.exists(tmp_path / "s.png")


def test_dictionaries_and_outputs_of_libraries():
    class Output(dict):
        logits = property(lambda self: self["logits"])

    class Lib(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 3)

        def forward(self, x, labels):
            z = self.fc(x)
            return Output(loss=F.cross_entropy(z, labels), logits=z)

    data = [{"x": torch.randn(30, 6), "labels": torch.randint(3, (30,))}]
    report = hpqf.profile(Lib(), data, formats="int8")
    assert report.sensitivity.labels == "sampled" and report.sensitivity.samples == 30


def test_recomputation_in_the_backward_is_not_seen_twice():
    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, x):
            return self.b(torch.utils.checkpoint.checkpoint(lambda t: torch.tanh(self.a(t)), x, use_reentrant=False))

    import torch.utils.checkpoint
    model = Checkpointed()
    x, y = torch.randn(20, 8), torch.randint(3, (20,))
    ours = hpqf.profile(model, [(x, y)], formats="int4", labels="true")
    plain = copy.deepcopy(model)
    plain.forward = lambda t: plain.b(torch.tanh(plain.a(t)))
    want = hpqf.profile(plain, [(x, y)], formats="int4", labels="true")
    assert [s.score for layer in ours.layers for s in layer.scores] == [s.score for layer in want.layers for s in layer.scores]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_is_that_of_one_batch():
    model = nn.Sequential(nn.Linear(16, 1024), nn.Tanh(), nn.Linear(1024, 16), nn.Tanh(), nn.Linear(16, 10))
    size = 1024   # 8 MB of activations a batch, and their gradients

    def loader(count):
        for _ in range(count):
            yield torch.randn(size, 16), torch.randint(10, (size,))

    hpqf.profile(model, loader(3), formats="int8", samples=3 * size)
    gc.collect()
    before = resident()
    hpqf.profile(model, loader(20), formats="int8", samples=20 * size)
    gc.collect()
    assert resident() - before < 60e6   # 20 batches kept would be over 300 MB


def test_allocator_measures():
    model = models.mlp()
    allocator = hpqf.DynamicPrecisionAllocator(model, [models.batch(model, 30)], formats=["int8", "int4"])
    with pytest.raises(hpqf.Error):
        allocator.sensitivity_map
    scores = allocator.calculate_layer_sensitivity()
    assert scores is not None and scores == allocator.sensitivity_map
    assert set(scores) == {"0", "2"} and set(scores["0"]) == {"weight", "input"} and set(scores["0"]["weight"]) == {"int8", "int4"}
    assert scores["2"]["weight"]["int4"] > scores["2"]["weight"]["int8"]
