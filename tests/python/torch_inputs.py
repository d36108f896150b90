"""Runs a module on one of torch's own test inputs, with and without a precision plan, and judges the difference.

torch's wheel carries its lists of modules, ops and optimizers with inputs for each (torch.testing._internal).
"""
import collections
from dataclasses import dataclass, field

import hpqf
import pytest
import torch
from hpqf.attach import Attachment
from hpqf.errors import from_torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

LOW = ("bf16", "fp16", "int8")
# Relative rounding error of one operand: half a unit in the last place; int8: half a step of 1/127 of the block's maximum.
UNIT = {"bf16": 2.0 ** -8, "fp16": 2.0 ** -11, "int8": 1 / 254}
DENORMAL = {"bf16": 0.0, "fp16": 2.0 ** -25, "int8": 0.0}   # absolute error among fp16's denormals

# A result may be off by so many times what it would be off with every input, parameter and output gradient disturbed by at
# most one rounding. One product has two or three such roundings; the deepest input (a Transformer) has about thirty products in
# a row, whose independent errors add up to sqrt(30) = 5.5 of one; one draw of the disturbance is off by a factor of two or three.
# Further draws are made only where the first leaves a result above half the margin: a ReLU whose input is closer to zero than a
# rounding turns over in some draws and not in others, and a gradient jumps with it.
MARGIN, DRAWS = 16, 24


@pytest.fixture(autouse=True)
def one_thread():
    """Inputs are tiny; sums then have one order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def thaw_flags() -> None:
    """Importing torch.testing._internal freezes torch.backends.* for the whole process, other tests included."""
    torch.backends.__allow_nonbracketed_mutation_flag = True


class Tally(collections.Counter):
    """Counts of one file, printed when the session ends."""

    def __init__(self, title: str):
        super().__init__()
        self.title, self.largest = title, {}

    def pytest_terminal_summary(self, terminalreporter):
        counts = ", ".join(f"{what} {count}" for what, count in self.items())
        margins = ", ".join(f"{format} {ratio:.1f}" for format, ratio in sorted(self.largest.items()))
        terminalreporter.write_line(f"{self.title}: {counts}" + (f"; largest error in roundings: {margins}" if margins else ""))

    def print_at_end(self, config) -> None:
        if not config.pluginmanager.is_registered(self):
            config.pluginmanager.register(self)


def mapped(function, value):
    """`value` with each tensor in it replaced; knows the containers of torch's inputs and outputs."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, PackedSequence):
        return PackedSequence(function(value.data), *value[1:])
    if isinstance(value, dict):
        return type(value)((key, mapped(function, entry)) for key, entry in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(function, entry) for entry in value))
    if isinstance(value, (list, tuple)):
        return type(value)([mapped(function, entry) for entry in value])
    return value


def copy_of(t: torch.Tensor) -> torch.Tensor:
    """A leaf over memory of its own, with the strides of `t` even where these overlap."""
    if t.layout != torch.strided or t.is_nested:
        copy = t.detach().clone()
    else:
        copy = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage().clone(), t.storage_offset(), t.size(), t.stride())
        copy = copy.conj() if t.is_conj() else copy
        copy = torch._neg_view(copy) if t.is_neg() else copy
    return copy.detach().requires_grad_(t.requires_grad)


@dataclass
class Outcome:
    """What a run left behind; `error` when it raised instead."""

    outputs: list = field(default_factory=list)
    structure: str = ""                             # of the result, tensors left out
    gradients: list = field(default_factory=list)   # of every input and parameter that requires one; None: unused
    state: list = field(default_factory=list)       # parameters and buffers afterwards
    rows: list = field(default_factory=list)        # of the audit
    casts: dict = field(default_factory=dict)       # of forward and backward, that met or made values not finite or too large
    error: Exception | None = None

    @property
    def low_rows(self) -> list:
        return [row for row in self.rows if {row.effective_a, row.effective_b} != {"fp32"}]

    def tensors(self):
        for what in ("outputs", "gradients", "state"):
            yield from ((f"{what}[{i}]", t) for i, t in enumerate(getattr(self, what)))


def _disturb(t, format, generator):
    """Moves every value in place by at most one rounding to `format`."""
    if format is None or not t.is_floating_point() or t.layout != torch.strided or t.numel() == 0:
        return t
    with torch.no_grad():
        if t._is_view() or torch._debug_has_internal_overlap(t) != 0:
            return t   # one element behind several: cannot be moved independently
        size = t.abs()
        step = (size.max() if format == "int8" else size) * UNIT[format] + DENORMAL[format]
        t.add_((torch.rand(t.shape, generator=generator, dtype=t.dtype) * 2 - 1) * step)
    return t


def run(build, args, kwargs, plan=None, disturbance=None, draw=0) -> Outcome:
    """Forward and backward of build() on copies of the arguments, under `plan` (a format; None: hpqf is not there).

    Random numbers, those of the module and those that serve as output gradients, are the same in every run.
    `disturbance`: a format; inputs, parameters and output gradients are moved as rounding to it could.
    """
    generator, outcome, leaves = torch.Generator().manual_seed(draw), Outcome(), []

    def leaf(t):
        leaves.append(_disturb(copy_of(t), disturbance, generator))
        return leaves[-1]

    module, args, kwargs = build(), mapped(leaf, args), mapped(leaf, kwargs)
    for p in module.parameters():
        if not nn.parameter.is_lazy(p):
            _disturb(p, disturbance, generator)
    # The fused attention of eval mode is off while a plan is attached: its sums have another order.
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    audit = hpqf._C.Audit()
    attachment = None if plan is None else Attachment(module, hpqf.PrecisionPlan.uniform(plan), audit=audit)
    torch.manual_seed(7)
    try:
        result = module(*args, **kwargs)
        outcome.casts["forward"] = audit.take_observations(0).casts
        mapped(outcome.outputs.append, result)
        outcome.structure = repr(mapped(lambda t: "tensor", result))
        sources = [t for t in outcome.outputs if t.requires_grad]
        wanted = [t for t in (*leaves, *module.parameters()) if t.requires_grad]
        if sources and wanted:
            numbers = torch.Generator().manual_seed(11)
            given = [_disturb(_random_like(t, numbers), disturbance, generator) for t in sources]
            outcome.gradients = list(torch.autograd.grad(sources, wanted, given, allow_unused=True))
        outcome.outputs = [t.detach() for t in outcome.outputs]
        outcome.state = [t.detach() for t in (*module.parameters(), *module.buffers())]
    except Exception as error:   # noqa: BLE001: torch refuses with exceptions of every type
        outcome.error = from_torch(error) if isinstance(error, RuntimeError) else error
    finally:
        if attachment is not None:
            attachment.detach()
        torch.backends.mha.set_fastpath_enabled(fast_path)
    outcome.rows, outcome.casts["backward"] = audit.report().rows, audit.take_observations(0).casts
    return outcome


def _random_like(t, generator):
    values = torch.randn(t.shape, dtype=t.dtype, generator=generator)
    return values if t.layout == torch.strided else values.to_sparse(layout=t.layout)


def _dense(t):
    t = t.to_dense() if t.layout != torch.strided else t
    return t.resolve_conj().resolve_neg()


def same(a, b, bits=True) -> bool:
    """Shape, type, strides and every bit, signs of zeros and NaN payloads too."""
    if a is None or b is None:
        return a is b
    if (a.shape, a.dtype, a.layout) != (b.shape, b.dtype, b.layout):
        return False
    if a.is_nested:
        return all(same(x, y, bits) for x, y in zip(a.unbind(), b.unbind(), strict=True))
    if a.layout == torch.strided and a.stride() != b.stride():
        return False
    if not bits or a.numel() == 0:
        return True
    a, b = (_dense(t).reshape(-1).clone(memory_format=torch.contiguous_format) for t in (a, b))
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8))


def different(a: Outcome, b: Outcome, bits=True) -> list[str]:
    """Where the second run left other bits than the first; without `bits`: other shapes, types or strides."""
    if a.structure != b.structure:
        return [f"result {b.structure} instead of {a.structure}"]
    return [name for (name, x), (_, y) in zip(a.tensors(), b.tensors(), strict=True) if not same(x, y, bits)]


def _distance(a, b) -> float:
    """Frobenius norm of the difference where both are finite."""
    a, b = (t.to(torch.complex128 if t.is_complex() else torch.float64) for t in (a, b))
    both = torch.isfinite(a) & torch.isfinite(b)
    return float((a[both] - b[both]).norm())


def _size(t) -> float:
    t = _dense(t)
    return float(t[torch.isfinite(t)].to(torch.complex128).norm())


class Judge:
    """Compares runs of one sample under every plan with the run without; fails on what is silently different."""

    def __init__(self, tally: Tally, title: str, build, args, kwargs, *, margin=MARGIN, bits=True):
        """`bits` False: results are uninitialised memory, of which only shape and type are compared."""
        self.tally, self.title, self.sample = tally, title, (build, args, kwargs)
        self.margin, self.bits = margin, bits
        self._disturbed = {}
        self.low_rows = []     # of the audit, all plans
        self.moved = set()     # formats in which numbers did change

    def __call__(self) -> "Judge":
        plain, fp32 = run(*self.sample), run(*self.sample, "fp32")
        if plain.error is not None:
            assert type(fp32.error) is type(plain.error), f"{self.title}: {plain.error!r} without a plan, {fp32.error!r} with fp32"
            self.tally["refused by torch itself"] += 1
            return self
        assert fp32.error is None, f"{self.title}: fp32 plan: {fp32.error!r}"
        wrong = different(plain, fp32, self.bits)
        assert not wrong, f"{self.title}: fp32 plan changes {wrong}"
        self.tally["bit-identical under fp32" if self.bits else "of uninitialised memory"] += 1
        for format in LOW:
            self._under(format, plain)
        return self

    def _under(self, format: str, plain: Outcome) -> None:
        low = run(*self.sample, format)
        where = f"{self.title} under {format}"
        if isinstance(low.error, hpqf.Error):
            assert low.error.asked and low.error.allowed and low.error.todo
            self.tally["refused with a reason"] += 1
            return
        assert low.error is None, f"{where}: {low.error!r}"
        for row in low.rows:
            as_asked = (row.requested_a, row.requested_b) == (row.effective_a, row.effective_b)
            assert as_asked or row.reason, f"{where}: no reason why {row}"
        wrong = different(plain, low, self.bits)
        if any(row.implementation == "hpqf.elementwise" for row in low.rows) and not low.low_rows:
            self._in_fp32(plain, low, where)
            self.tally["fp32 on loops of our own, within its roundings"] += 1
            return
        if not low.low_rows:
            assert not wrong, f"{where}: audit says fp32, yet {wrong} differ"
            self.tally["fp32 by rule or nature and bit-identical under a low plan"] += 1
            return
        self._bounded(format, plain, low, where)
        self.tally["low within the bound"] += 1
        self.low_rows += low.low_rows
        if wrong:
            self.moved.add(format)

    def _in_fp32(self, plain, low, where):
        """Another order of fp32's roundings, no more, beside the largest tensor of the run: 16 of them; where a variance is zero, layer
        norm magnifies those of the mean by 1 / sqrt(eps) = 316."""
        assert not different(plain, low, bits=False), where
        largest = max((_size(t) for _, t in plain.tensors() if t is not None), default=0.0)
        for (name, a), (_, b) in zip(plain.tensors(), low.tensors(), strict=True):
            if a is None or not a.is_floating_point():
                continue
            assert torch.equal(torch.isfinite(_dense(a)), torch.isfinite(_dense(b))), f"{where}: {name} is finite elsewhere"
            assert _distance(a, b) <= 2.0 ** -15 * largest, f"{where}: {name} is off by {_distance(a, b):.3g} beside {largest:.3g}"

    def _bounded(self, format, plain, low, where):
        assert plain.structure == low.structure, where
        # A value too large for the format; a block with a NaN in it, which is NaN as a whole.
        excused = {when: any(cast.overflow or cast.nonfinite_in for cast in casts) for when, casts in low.casts.items()}
        # What is zero by cancellation is off by fp32's own roundings of its terms.
        floor = 2.0 ** -20 * max((_size(t) for _, t in plain.tensors() if t is not None), default=0.0)
        for index, ((name, a), (_, b)) in enumerate(zip(plain.tensors(), low.tensors(), strict=True)):
            assert (a is None) == (b is None), f"{where}: {name} is {b} instead of {a}"
            if a is None:
                continue
            a, b = _dense(a), _dense(b)
            assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{where}: {name} is {b.dtype} {tuple(b.shape)}"
            if not a.is_floating_point() and not a.is_complex():
                assert torch.equal(a, b), f"{where}: {name} differs"
                continue
            hidden = ~torch.isfinite(a) & torch.isfinite(b)
            assert not hidden.any(), f"{where}: {name} hides a value that is not finite"
            if not (excused["forward"] or (excused["backward"] and name.startswith("gradients"))):
                assert torch.isfinite(b)[torch.isfinite(a)].all(), f"{where}: {name} is not finite, and no cast says so"
            error, size = _distance(a, b), _size(a)
            if error <= max(UNIT[format] * size, floor):
                continue   # within one rounding: no need to ask how the module magnifies errors
            one = self._one_rounding(format, index, a, UNIT[format] * size, error)
            self.tally.largest[format] = max(self.tally.largest.get(format, 0.0), error / one if one else 0.0)
            assert error <= self.margin * one, f"{where}: {name} is off by {error:.3g}, {error / one if one else 0:.1f} times {one:.3g}"

    def _one_rounding(self, format, index, a, least, error) -> float:
        """How far tensor `index` moves when every input does; further draws only while `error` seems too large for it."""
        one = least
        for draw in range(DRAWS):
            one = max(one, _distance(a, self._moved(format, draw, index)))
            if error <= self.margin / 2 * one:
                break
        return one

    def _moved(self, format, draw, index):
        """The tensor `index` of a plain run with disturbed inputs."""
        if (format, draw) not in self._disturbed:
            run_ = run(*self.sample, disturbance=format, draw=draw + 1)
            self._disturbed[format, draw] = [t for _, t in run_.tensors()]
        return _dense(self._disturbed[format, draw][index])
