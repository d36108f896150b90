"""The judge of torch's test inputs finds what it is there to find."""
import pytest
import torch
from torch import nn
from torch_inputs import Judge, Tally, copy_of, one_thread, run, same   # noqa: F401: one_thread is a fixture


class Suspect(nn.Module):
    """A linear layer, and something done to its result once a plan is attached (its forward is then an instance's own) and,
    where `low` is set, only if that plan rounds."""

    def __init__(self, fault, low):
        super().__init__()
        self.linear, self.fault, self.low = nn.Linear(40, 8), fault, low

    def forward(self, x):
        y = self.linear(x)
        exact = torch.from_numpy(x.detach().numpy() @ self.linear.weight.detach().numpy().T) + self.linear.bias.detach()
        rounded = bool(((y.detach() - exact).abs() > 1e-4).any())
        return self.fault(y) if "forward" in self.__dict__ and (rounded or not self.low) else y


def judge(fault, low=True, x=None):
    torch.manual_seed(3)
    x = torch.randn(6, 40) if x is None else x

    def build():
        torch.manual_seed(4)
        return Suspect(fault, low)

    tally = Tally("")
    Judge(tally, "suspect", build, (x.requires_grad_(),), {})()
    return tally


def test_a_sound_layer_passes():
    assert judge(lambda y: y) == {"bit-identical under fp32": 1, "low within the bound": 3}


@pytest.mark.parametrize("fault, low, message", [
    (lambda y: y + 1e-7, False, "fp32 plan changes"),
    (lambda y: y * 1.25, True, "times"),
    (lambda y: y.detach(), True, "gradients|zip"),
    (lambda y: y.double(), True, "float64"),
    (lambda y: y / 0, True, "not finite, and no cast says so"),
    (lambda y: (y, y), True, "suspect"),
    (lambda y: y.no_such_method(), True, "no_such_method"),
])
def test_a_fault_is_found(fault, low, message):
    with pytest.raises((AssertionError, ValueError), match=message):
        judge(fault, low)


def test_a_hidden_nan_is_found():
    x = torch.randn(6, 40)
    x[2, 3] = torch.nan
    judge(lambda y: y, x=x)
    with pytest.raises(AssertionError, match="hides"):
        judge(lambda y: y.nan_to_num(), x=x)


def test_bits_are_compared_not_values():
    zero, nan = torch.zeros(2), torch.full((2,), torch.nan)
    assert same(nan, nan) and same(zero, zero) and not same(zero, -zero)
    assert not same(torch.zeros(2, 3), torch.zeros(3, 2).t()) and not same(zero, None)
    assert same(zero, torch.ones(2), bits=False)


def test_copies_keep_strides_and_are_apart():
    for t in (torch.randn(3, 4).t(), torch.randn(3, 1).expand(3, 4), torch.randn(10)[::3], torch.zeros(0, 3)):
        copy = copy_of(t)
        assert same(copy, t) and (t.numel() == 0 or copy.data_ptr() != t.data_ptr())


def test_disturbed_inputs_move_by_at_most_one_rounding():
    x = torch.rand(1000) + 1

    for format, most in (("bf16", 2.0 ** -8), ("fp16", 2.0 ** -11)):
        moved = (run(nn.Identity, (x,), {}, disturbance=format).outputs[0] / x - 1).abs()
        assert most / 2 < moved.max() <= most * 1.001
