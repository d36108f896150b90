"""Public bug reports about low-precision training, each as a test: what a layer computes, and what the audit says of it.

Beside HPQF's outcome stands the wrong one of plain torch, where the installed torch still shows it. The training loop's cases are
in test_reported_cases_training.py, those of several ranks in test_reported_cases_ranks.py.
Those of integer arithmetic are in test_reported_cases_integers.py.
"""
import pathlib

import hpqf
import pytest
import torch
import torch.nn.functional as F
from hpqf.attach import Attachment
from torch import nn


def rows_of(report, **wanted):
    return [row for row in report.rows if all(getattr(row, key) == value for key, value in wanted.items())]


def test_forward_without_grad_then_training_in_one_region_gives_all_gradients():
    """pytorch #112583, #142234, #105211, #65766: the cached cast of a weight, made under no_grad, served the training forward too."""
    model, x = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)), torch.randn(4, 16)

    def gradients():
        model.zero_grad()
        model(x).sum().backward()
        return [p.grad.clone() for p in model.parameters()]

    with hpqf.precision(model, "bf16"):
        expected = gradients()
    with hpqf.precision(model, "bf16"):
        with torch.no_grad():
            model(x)
        with torch.inference_mode():
            model(x)
        got = gradients()
    assert all(g.abs().sum() > 0 and torch.equal(g, e) for g, e in zip(got, expected))


@pytest.mark.parametrize("autocast", [False, True])
def test_layer_norm_behind_a_low_linear_runs_and_stays_in_fp32(autocast):
    """piper #752, intel-extension-for-pytorch #731: Linear, then LayerNorm under CPU BF16 autocast, failed on mixed types."""
    model, x = nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16)), torch.randn(8, 16) * 30 + 1000
    with hpqf.precision(model, "bf16") as scope, torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        y = model(x)
        y.sum().backward()
    xq, wq = x.bfloat16().float(), model[0].weight.bfloat16().float()
    expected = F.layer_norm(xq @ wq.t() + model[0].bias, (16,))
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-5)
    norm = rows_of(scope.audit(), op="layer_norm")
    assert {row.pass_ for row in norm} == {"forward", "backward"} and {row.effective_a for row in norm} == {"fp32"}
    assert {row.effective_a for row in rows_of(scope.audit(), op="linear", pass_="forward")} == {"bf16"}


class Rotary(nn.Module):
    """Rotary tables the ways public models write them."""

    def __init__(self, way, dim=16):
        super().__init__()
        self.way = way
        self.register_buffer("inv_freq", 10000.0 ** (-torch.arange(0, dim, 2) / dim))
        self.register_buffer("position_ids", torch.arange(2048))

    def forward(self, length):
        t = self.position_ids[:length].to(self.inv_freq.dtype)
        if self.way == "outer":
            angles = torch.outer(t, self.inv_freq)
        elif self.way == "einsum":   # gpt-neox
            angles = torch.einsum("i,j->ij", t, self.inv_freq)
        else:                        # transformers: a product of matrices, with autocast off around it
            with torch.autocast("cpu", enabled=False):
                angles = (self.inv_freq[None, :, None] @ t[None, None, :]).transpose(1, 2)[0]
        return torch.cat((angles, angles), dim=-1)


class Attention(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.rotary, self.qk, self.embed = Rotary(way), nn.Linear(16, 32), nn.Embedding(2048, 16)
        self.register_buffer("position_ids", torch.arange(2048))
        self.angles = None

    def forward(self, x):
        self.angles = self.rotary(x.shape[-2])
        x = x + self.embed(self.position_ids[: x.shape[-2]])
        q, k = self.qk(x).chunk(2, dim=-1)
        turned = [v * self.angles.cos() + v.roll(8, -1) * self.angles.sin() for v in (q, k)]
        return torch.softmax(turned[0] @ turned[1].transpose(-1, -2), dim=-1)


@pytest.mark.parametrize("way", ["outer", "einsum", "matmul"])
def test_positions_and_rotary_tables_are_not_rounded(way):
    """transformers #25681, PR #29285; gpt-neox PR #1016; Megatron-LM #535: position ids and rotary tables cast along with the model."""
    assert torch.arange(512).bfloat16().unique().numel() == 385   # of 512 positions in bf16
    plain = Rotary(way)
    exact = plain(2048)
    assert (plain.bfloat16()(2048).float() - exact).abs().max() > 1   # radians

    model = Attention(way)
    buffers = {name: b.clone() for name, b in model.named_buffers()}
    with hpqf.precision(model, "bf16") as scope:
        model(torch.randn(2, 2048, 16)).sum().backward()
    assert all(b.dtype == buffers[name].dtype and torch.equal(b, buffers[name]) for name, b in model.named_buffers())
    assert {row.effective_b for row in rows_of(scope.audit(), layer="qk", pass_="forward")} == {"bf16"}
    error = (model.angles - exact).abs().max().item()
    assert error == 0, f"angles are off by {error} radians; {rows_of(scope.audit(), layer='rotary')}"


def cpu_has_bf16() -> bool:
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    return "avx512_bf16" in flags or "amx_bf16" in flags


@pytest.mark.skipif(cpu_has_bf16(), reason="this cpu has BF16 arithmetic")
def test_bf16_on_a_cpu_without_it_is_refused_by_auto_and_never_runs_in_torchs_slow_kernel():
    """pytorch #118499, #111456, #86270: BF16 autocast many times slower than fp32 on CPUs without BF16 arithmetic, silently."""
    model, x = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Conv1d(4, 4, 1)), torch.randn(2, 4, 32)
    with hpqf.precision(model, "auto") as auto:
        for _ in range(3):   # the first shows the shapes
            model(x).sum().backward()
    for name in ("0", "2"):
        assert "bf16: cpu has no" in auto.plan.at(name).reason, auto.plan.at(name)
    assert not {row.effective_a for row in auto.audit().rows if row.flops} & {"bf16", "fp16"}
    with hpqf.precision(model, "bf16") as asked:
        y = model(x)
        y.sum().backward()
    rows = [row for row in asked.audit().rows if row.flops]
    assert len(rows) >= 4 and {row.implementation for row in rows} == {"emulated"}
    assert all("avx512_bf16" in row.reason for row in rows)
    assert all(share.emulated for share in asked.audit().shares() if share.flops)
    assert not torch.equal(y, y.bfloat16().float())   # sums in fp32: torch's kernel hands back bf16


TINY = 2.0 ** -149   # smallest denormal of fp32


@pytest.mark.parametrize("format", ["int8[row]", "int8[1x32]", "int4[1x32]", "int12[row]", "fp8_e4m3[row]", "fp8_e5m2[row]"])
def test_zero_rows_and_denormal_rows_have_finite_scales(format):
    """torchao #3356, TransformerEngine PR #786, MS-AMP PR #131: an all-zero row gave an infinite scale and a row of NaN."""
    x = torch.randn(5, 64)
    x[1], x[2], x[3] = 0.0, TINY, torch.randn(64) * 1e-42
    naive = torch.full((5, 1), 127.0) / x.abs().amax(1, keepdim=True)
    assert (x * naive / naive).isnan().any(1).tolist() == [False, True, True, True, False]

    y = hpqf.quantize_dequantize(x, format)
    assert y.isfinite().all() and torch.equal(y[1], torch.zeros(64))
    assert (y[2:4] - x[2:4]).abs().max() <= x[2:4].abs().max()   # rounded or flushed, never blown up
    torch.testing.assert_close(y[[0, 4]], x[[0, 4]], rtol=0.13, atol=0.13 * x.abs().max().item())
    assert hpqf.quantize_dequantize(-torch.zeros(2, 64), format).abs().max() == 0


@pytest.mark.parametrize("format", ["int8[row]", "int8[1x32]", "int8", "fp8"])
@pytest.mark.parametrize("force", ["emulated", "torch._int_mm", "torch._scaled_mm"])
def test_layers_with_dead_rows_stay_finite(format, force):
    """The same reports: empty samples, dead units and vanished gradients, through a layer and back."""
    layer, x, g = nn.Linear(32, 16), torch.randn(16, 32), torch.randn(16, 16)
    with torch.no_grad():
        layer.weight[3], layer.weight[4], x[5], x[6], g[7] = 0.0, TINY, 0.0, TINY, 0.0
    for xs, gs in ((x, g), (x * 0, g * 0), (x * TINY, g * TINY)):
        layer.zero_grad()
        xs = xs.clone().requires_grad_()
        attachment = Attachment(layer, hpqf.PrecisionPlan.uniform(format), force_implementation=force)
        y = layer(xs)
        y.backward(gs)
        attachment.detach()
        assert all(t.isfinite().all() for t in (y, xs.grad, layer.weight.grad))
        assert torch.equal(y[5], layer.bias) and torch.equal(xs.grad[7], torch.zeros(32))


def test_fp8_that_was_asked_for_is_reported_as_what_it_is():
    """LLaMA-Factory #9500, trl #3860: FP8 asked for, BF16 executed, and nobody said so."""
    model, x = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16)), torch.randn(4, 32)
    with hpqf.precision(model, "fp8") as scope:
        model(x).sum().backward()
    rows = rows_of(scope.audit(), op="linear")
    assert len(rows) == 5 and all((r.effective_a, r.effective_b) == (r.requested_a, r.requested_b) for r in rows)
    assert {r.effective_b for r in rows} == {"fp8_e4m3"} and {r.implementation for r in rows} == {"emulated"}
    assert all(r.reason for r in rows)
    assert {(s.format, s.emulated) for s in scope.audit().shares() if s.flops} == {("fp8_e4m3", True), ("fp8_e5m2", True)}
    with hpqf.precision(model, "fp8", strict=True):   # the formats are the ones planned
        model(x)
    with hpqf.precision(model, "fp8", strict="native", sensitive_layers=["0"]), pytest.raises(hpqf.Error, match="layer '2'"):
        model(x)
    with pytest.raises(hpqf.Error, match="layer '2'"):
        hpqf.MixedPrecisionTrainer(model, {"default": "fp8", "sensitive_layers": ["0"]}, strict="native", progress=False).train(
            [(x, torch.zeros(4, dtype=torch.long))])


def counted(profile, op):
    return sum(event.count for event in profile.key_averages() if event.key == op)


@pytest.mark.parametrize("format, implementation, op", [
    ("fp8", "torch._scaled_mm", "aten::_scaled_mm"), ("int8[row]", "torch._int_mm", "aten::_int_mm"),
    ("int8[tensor]", "torch._int_mm", "aten::_int_mm")])
@pytest.mark.parametrize("last", [16, 7, 1])
def test_a_last_batch_of_odd_size_runs_emulated_and_the_audit_counts_it(format, implementation, op, last):
    """torchao #571, #3111; TransformerEngine #1422: a last batch whose size is not a multiple of 16 crashed the low-precision GEMM."""
    layer, audit, batches = nn.Linear(32, 16), hpqf._C.Audit(), []
    attachment = Attachment(layer, hpqf.PrecisionPlan.uniform(format), audit=audit, force_implementation=implementation)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for size in (16, last):
            layer.zero_grad()
            x, g = torch.randn(size, 32).requires_grad_(), torch.randn(size, 16)
            y = layer(x)
            y.backward(g)
            batches.append((x, g, y, layer.weight.grad.clone()))
    attachment.detach()

    def q(tensor, axis, gradient=False):   # each product rounds its operands along its own contraction
        return hpqf.quantize_dequantize(tensor.detach(), "fp8_e5m2" if gradient and format == "fp8" else format, axis)
    w = layer.weight
    for x, g, y, wgrad in batches:
        for got, expected in ((y, q(x, 1) @ q(w, 1).t() + layer.bias), (x.grad, q(g, 1, True) @ q(w, 0)),
                              (wgrad, q(g, 0, True).t() @ q(x, 0))):
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    rows = audit.report().rows
    said, ran = sum(row.calls for row in rows if row.implementation == implementation), counted(profile, op)
    assert said == ran, f"the audit says {said} calls of {implementation}, torch ran {ran}: {rows}"
    assert ran == 6 if last == 16 else 3 <= ran < 6
    emulated = rows_of(audit.report(), implementation="emulated")
    assert sum(row.calls for row in emulated) == 6 - ran, f"{6 - ran} products ran emulated: {[(r, r.calls) for r in emulated]}"
    assert all(str(last) in row.reason for row in emulated)
