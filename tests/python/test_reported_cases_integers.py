"""Public bug reports about integer arithmetic, each as a test with the right outcome.

Left out, as this version has no such part: packing of codes below 8 bits into bytes (auto-round PR #2273, compressed-tensors #458,
llm-compressor #1618), asymmetric zero points.
"""
import hpqf
import pytest
import torch
import torch.nn.functional as F
from hpqf.attach import Attachment
from torch import nn


@pytest.mark.parametrize("format", ["int8", "int8[1x32]", "int8[1x128]", "int12"])
@pytest.mark.parametrize("pattern", ["all", "alternating", "opposite", "one in four"])
def test_products_of_largest_codes_do_not_saturate(format, pattern):
    """pytorch #103646, #126521, #136746, ONNX Runtime #6004, #5849, #16105: unsigned x signed sums of 255 x 127 saturate in 16 bits
    on CPUs without VNNI."""
    k = 512
    signs = {"all": torch.ones(k), "alternating": torch.tensor([1., -1.] * (k // 2)), "opposite": -torch.ones(k),
             "one in four": torch.tensor([1., 0, 0, 0] * (k // 4))}[pattern]
    layer = nn.Linear(k, 48, bias=False)
    with torch.no_grad():
        layer.weight.copy_(signs.expand(48, k))
    x = signs.expand(40, k).clone().requires_grad_()
    with hpqf.precision(layer, format) as scope:
        y = layer(x)
        y.backward(torch.ones(40, 48))
    # Every value is the largest of its block. The scales leave room for the sums of four products, some 4e-4 of a code; a sum that
    # saturates would be off by a tenth and more.
    torch.testing.assert_close(y, x @ layer.weight.t(), rtol=1e-3, atol=0.05)
    torch.testing.assert_close(x.grad, torch.full((40, 48), 1.0) @ layer.weight, rtol=1e-3, atol=0.05)
    torch.testing.assert_close(layer.weight.grad, torch.full((48, 40), 1.0) @ x, rtol=1e-3, atol=0.05)
    assert {row.op for row in scope.audit().rows} == {"linear"}


def test_quantising_rounds_half_to_even_and_never_truncates():
    """ONNX Runtime #18576, PR #32452: QuantizeLinear of fp16 truncated; 0.05 / 0.09998 gave 0."""
    x = torch.tensor([[127.0, 0.50010, 0.5, 1.5, 2.5, -0.50010, -0.5, -1.5, 126.4999, 0.4999]])   # the scale is 1
    expected = torch.tensor([[127.0, 1, 0, 2, 2, -1, 0, -2, 126, 0]])
    assert torch.equal(hpqf.quantize_dequantize(x, "int8[row]"), expected)
    small = torch.tensor([[127 * 0.09998, 0.05]])
    assert hpqf.quantize_dequantize(small, "int8[row]")[0, 1].item() == pytest.approx(0.09998)


@pytest.mark.parametrize("format", ["int4[1x512]", "int4[1x32]", "int8[1x512]", "int8[1x256]", "int8", "int12"])
@pytest.mark.parametrize("rows, k", [(1, 512), (1, 64), (1, 100), (3, 512), (7, 1), (1, 1)])
def test_large_blocks_and_single_rows_equal_the_dequantised_product(format, rows, k):
    """ONNX Runtime #28551, #29853: int4 products with blocks of 512 gave zeros, products of one row an error of 46 %."""
    torch.manual_seed(k)
    layer, x = nn.Linear(k, 24), torch.randn(rows, k)
    attachment = Attachment(layer, hpqf.PrecisionPlan.uniform(format), force_implementation="emulated")
    emulated = layer(x)
    attachment.detach()
    exact = F.linear(hpqf.quantize_dequantize(x, format), hpqf.quantize_dequantize(layer.weight.detach(), format), layer.bias)
    torch.testing.assert_close(emulated, exact, rtol=1e-5, atol=1e-5)
    with hpqf.precision(layer, format):
        y = layer(x)
    # The kernel may hold one side in one bit less (int7): a step of 1/63 of the largest value of a block, of k values.
    step = {"int4": 1 / 7, "int8": 1 / 63, "int12": 1 / 2047}[format.split("[")[0]]
    bound = step * x.abs().max() * layer.weight.abs().max() * max(k, 4) ** 0.5 * 4
    assert (y - F.linear(x, layer.weight, layer.bias)).abs().max() <= bound and (y - layer.bias).abs().max() > 0


@pytest.mark.parametrize("format, largest", [("int8[row]", 127), ("int7[row]", 63), ("int4[row]", 7), ("int12[row]", 2047), ("int8[row,pow2]", 127)])
def test_quantising_what_was_dequantised_changes_no_code(format, largest):
    """LightCompress #334: symmetric requantisation drifts."""
    codes = torch.arange(-largest, largest + 1, dtype=torch.float32)
    for scale in (1.0, 0.1, 3.7e-5, 1 / 3, 2.0 ** -20, 1e20):
        x = (codes * scale)[None]
        once = hpqf.quantize_dequantize(x, format)
        unit = once.abs().max() / once.abs().max().div(scale).round()
        for _ in range(5):
            again = hpqf.quantize_dequantize(once, format)
            assert torch.equal((again / unit).round(), (once / unit).round()), scale
            once = again
        if "pow2" not in format:   # one whose scales divide the range evenly holds every code
            assert torch.equal((once / scale).round()[0], codes), scale


def test_layers_that_integers_would_slow_down_stay_in_fp32_and_say_why():
    """torchao #4365, pytorch #144434, #103802: an INT8 model slower than fp32 on CPUs, and nobody said so."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.depthwise, self.narrow = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 32, 3, groups=32), nn.Conv2d(32, 16, 1)
            self.mix, self.head = nn.Conv2d(16, 16, 3), nn.Linear(16, 4)

        def forward(self, x):
            return self.head(self.mix(self.narrow(torch.relu(self.depthwise(self.stem(x))))).mean((2, 3)))

    model, x = Net(), torch.randn(4, 3, 12, 12)
    with hpqf.precision(model, "auto") as auto:
        for _ in range(3):
            model(x).sum().backward()
    for layer in ("depthwise", "narrow", "mix"):
        precision = auto.plan.at(layer)
        assert precision.weight == "fp32" and precision.reason, precision
    assert "depthwise" in auto.plan.at("depthwise").reason or "group" in auto.plan.at("depthwise").reason, auto.plan.at("depthwise").reason
    with hpqf.precision(model, "int8") as asked:   # asked for all the same: emulated, and the audit says why
        model(x)
    rows = {row.layer: row for row in asked.audit().rows if row.flops}
    assert rows["depthwise"].implementation == "emulated" and rows["depthwise"].reason
