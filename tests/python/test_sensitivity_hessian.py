"""Hessian diagnostics and training scores against dense Hessians and plain training steps."""
import os

import hpqf
import models
import pytest
import torch
import torch.nn.functional as F
from hpqf import _C
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore:hpqf.profile")


def dense(model, x, y, loss=F.cross_entropy):
    """The whole Hessian, parameter by parameter, from torch.func."""
    parameters = {k: v.detach() for k, v in model.named_parameters()}
    sizes = [p.numel() for p in parameters.values()]

    def f(flat):
        p = {k: part.view_as(v) for (k, v), part in zip(parameters.items(), flat.split(sizes))}
        return loss(torch.func.functional_call(model, p, (x,)), y)

    return torch.autograd.functional.hessian(f, torch.cat([p.flatten() for p in parameters.values()])), sizes


def curvature(model, x, y, loss=F.cross_entropy):
    return _C.Curvature(list(model.parameters()), lambda i: loss(model(x), y))


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc(torch.tanh(self.conv(x)).flatten(1))


def small():
    model = Small()
    return model, torch.randn(12, 1, 4, 4), torch.randint(3, (12,))


def test_products_are_those_of_the_dense_hessian():
    model, x, y = small()
    full, sizes = dense(model, x, y)
    v = torch.randn(full.shape[0])
    parts = [part.view_as(p) for part, p in zip(v.split(sizes), model.parameters())]
    h = torch.cat([t.flatten() for t in curvature(model, x, y).product(parts, list(range(len(sizes))))])
    assert torch.allclose(h, full @ v, rtol=1e-4, atol=1e-5)
    first = sum(sizes[:2])   # a block: rows and columns of the last two parameters alone
    h = torch.cat([t.flatten() for t in curvature(model, x, y).product(parts[2:], [2, 3])])
    assert torch.allclose(h, full[first:, first:] @ v[first:], rtol=1e-4, atol=1e-5)


def test_eigenvalues_are_exact_and_signed():
    model, x, y = small()
    full, sizes = dense(model, x, y)
    exact = torch.linalg.eigvalsh(full)
    exact = exact[exact.abs().argsort(descending=True)][:3]
    found = _C.top_eigenvalues(curvature(model, x, y), list(range(4)), 3, 500, 1e-7)
    assert found == pytest.approx(exact.tolist(), rel=1e-3)
    # Minus the loss: the same values with the other sign.
    negative = _C.Curvature(list(model.parameters()), lambda i: -F.cross_entropy(model(x), y))
    assert _C.top_eigenvalues(negative, list(range(4)), 1, 500, 1e-7)[0] == pytest.approx(-exact[0].item(), rel=1e-3)


def test_traces_within_two_standard_errors():
    model, x, y = small()
    full, sizes = dense(model, x, y)
    diagonals = [part.sum().item() for part in full.diagonal().split(sizes)]
    inside = 0
    for seed in range(5):
        (mean, error), blocks, probes = _C.traces(curvature(model, x, y), [[0], [2]], 400, 0.01, seed)
        assert 10 <= probes <= 400 and error > 0
        for (m, e), exact in zip([(mean, error), *blocks], [sum(diagonals), diagonals[0], diagonals[2]]):
            assert abs(m - exact) < 4.5 * e
            inside += abs(m - exact) < 2 * e
    assert inside >= 11   # of 15; 95 % each in the mean


def test_a_trace_stops_at_its_error():
    model, x, y = small()
    (mean, error), _, probes = _C.traces(curvature(model, x, y), [], 2000, 0.1, 0)
    assert error <= 0.1 * abs(mean) and probes < 2000
    (_, tighter), _, more = _C.traces(curvature(model, x, y), [], 2000, 0.05, 0)
    assert tighter < error and more > probes


def test_several_batches_are_their_mean():
    model, x, y = small()
    full, sizes = dense(model, x, y)
    parts = [torch.randn_like(p) for p in model.parameters()]
    split = _C.Curvature(list(model.parameters()), lambda i: F.cross_entropy(model(x[8 * i:8 * i + 8]), y[8 * i:8 * i + 8]),
                         [8 / 12, 4 / 12])
    h = torch.cat([t.flatten() for t in split.product(parts, [0, 1, 2, 3])])
    assert torch.allclose(h, full @ torch.cat([t.flatten() for t in parts]), rtol=1e-4, atol=1e-5)


def test_profile_fills_the_columns():
    model, x, y = small()
    before = [p.clone() for p in model.parameters()]
    report = hpqf.profile(model, [(x, y)], formats=["int8", "int4"], hessian=True)
    full, sizes = dense(model, x, y)
    diagonals = [part.sum().item() for part in full.diagonal().split(sizes)]
    assert abs(report.hessian.trace - sum(diagonals)) < 4 * report.hessian.trace_stderr
    # Power iteration stops when a step changes little: never above the true value, and below it where the next one is close.
    exact = torch.linalg.eigvalsh(full).abs().max().item()
    assert 0.9 * exact < abs(report.hessian.eigenvalues[0]) < 1.001 * exact
    for layer, i in zip(report.layers, (0, 2)):
        block = slice(sum(sizes[:i]), sum(sizes[:i + 1]))
        exact = torch.linalg.eigvalsh(full[block, block]).abs().max().item()
        assert 0.9 * exact < abs(layer.hessian.top_eigenvalue) < 1.001 * exact
        weight = model.get_submodule(layer.name).weight.detach()
        error = hpqf.quantize_dequantize(weight, "int4", 1) - weight
        omega = max(layer.hessian.trace, 0) / weight.numel() * error.square().sum().item()
        assert layer.score("weight", "int4").omega == pytest.approx(omega, rel=1e-4)
        assert layer.score("input", "int4").omega is None
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    assert all(p.grad is None for p in model.parameters())
    assert "top eigenvalue" in report.table()
    assert hpqf.Sensitivity.from_json(report.to_json()) == report.sensitivity


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.head = nn.Linear(8, 24), nn.Linear(8, 3)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.head(F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0].mean(1))


def test_fused_attention_has_a_hessian_too():
    model = Attention()
    x, y = torch.randn(5, 6, 8), torch.randint(3, (5,))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        full, sizes = dense(model, x, y)
    parts = [torch.randn_like(p) for p in model.parameters()]
    flags = torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()
    c = curvature(model, x, y)
    h = torch.cat([t.flatten() for t in c.product(parts, [0, 1, 2, 3])])
    assert not c.by_differences
    assert torch.allclose(h, full @ torch.cat([t.flatten() for t in parts]), rtol=1e-3, atol=1e-5)
    assert flags == (torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled())


class Once(torch.autograd.Function):
    """An op without second derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return grad * torch.cos(ctx.saved_tensors[0])


def test_differences_serve_smooth_networks_only():
    smooth = nn.Sequential(nn.Linear(6, 8), nn.SiLU(), nn.Linear(8, 3))
    x, y = torch.randn(10, 6), torch.randint(3, (10,))
    full, sizes = dense(nn.Sequential(smooth, Sine()), x, y)
    before = [p.clone() for p in smooth.parameters()]
    c = _C.Curvature(list(smooth.parameters()), lambda i: F.cross_entropy(Once.apply(smooth(x)), y))
    parts = [torch.randn_like(p) for p in smooth.parameters()]
    h = torch.cat([t.flatten() for t in c.product(parts, [0, 1, 2, 3])])
    exact = full @ torch.cat([t.flatten() for t in parts])
    assert c.by_differences and "differentia" in c.reason
    assert (h - exact).norm() < 0.02 * exact.norm()
    assert all(torch.equal(a, b) for a, b in zip(before, smooth.parameters()))

    kinked = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    c = _C.Curvature(list(kinked.parameters()), lambda i: F.cross_entropy(Once.apply(kinked(x)), y))
    with pytest.raises(hpqf.Error) as error:
        c.product([torch.randn_like(p) for p in kinked.parameters()], [0, 1, 2, 3])
    assert "Relu" in error.value.allowed and "Once" in error.value.asked or "differentia" in error.value.asked


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


def test_memory_is_flat_over_two_hundred_products():
    model = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 10))
    x, y = torch.randn(256, 64), torch.randint(10, (256,))
    for weights in ([1.0], [0.5, 0.5]):
        c = _C.Curvature(list(model.parameters()), lambda i: F.cross_entropy(model(x), y), weights)
        v, only = [torch.randn_like(p) for p in model.parameters()], list(range(6))

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        for _ in range(20):
            c.product(v, only)
        before = resident()
        for _ in range(200):
            c.product(v, only)
        assert resident() - before < 16e6   # one kept graph more a step would be over 500 MB


def test_training_scores_are_those_of_plain_training_steps():
    model = models.mlp()
    data = [models.batch(model, 12) for _ in range(20)]
    before = [p.clone() for p in model.parameters()]
    report = hpqf.profile(model, data, formats=["int4", "fp8_e5m2"], training=True, samples=240)
    assert {(s.role, s.format) for s in report.training} == {(r, f) for r in ("weight", "input", "dgrad", "wgrad")
                                                             for f in ("int4", "fp8_e5m2")}
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))

    def mean(plan):
        total, loss_sum = [0, 0], 0.0
        with hpqf.precision(model, plan):
            for x, y in data[:16]:
                loss = F.cross_entropy(model(x), y)
                gradients = torch.autograd.grad(loss, [model[0].weight, model[2].weight])
                total, loss_sum = [t + g.double() / 16 for t, g in zip(total, gradients)], loss_sum + loss.item() / 16
        return torch.cat([t.flatten() for t in total]), loss_sum

    exact, loss = mean("fp32")
    for s in report.training:
        precision = hpqf.LayerPrecision("fp32", **{s.role: s.format})
        low, low_loss = mean(hpqf.PrecisionPlan([hpqf.Rule("*", precision)]))
        assert s.bias == pytest.approx(((low - exact).norm() / exact.norm()).item(), rel=1e-4)
        assert s.loss_change == pytest.approx(low_loss - loss, rel=1e-3, abs=1e-6)
        assert s.score == s.bias + max(s.loss_change, 0)
    by = {(s.role, s.format): s for s in report.training}
    assert by["dgrad", "int4"].loss_change == 0 and by["weight", "int4"].bias > by["weight", "fp8_e5m2"].bias
    assert "bias" in report.table()
