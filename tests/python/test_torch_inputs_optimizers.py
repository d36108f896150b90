"""The loss scaler around every optimizer of torch's own optimizer tests, with every set of options there."""
import copy
import math

import hpqf
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_inputs import Tally, one_thread, same, thaw_flags   # noqa: F401: one_thread is a fixture

pytest.importorskip("expecttest", reason="expecttest, which torch's test inputs import, is not installed")
from torch.testing._internal.common_optimizers import _get_optim_inputs_including_global_cliquey_kwargs, optim_db   # noqa: E402

thaw_flags()
TALLY = Tally(f"torch's optimizer inputs, {len(optim_db)} optimizers")
DENSE = [info for info in optim_db if not info.only_supports_sparse_grads and not info.step_requires_closure]
SPARSE = [info for info in optim_db if info.supports_sparse or info.only_supports_sparse_grads]
name = dict(ids=lambda info: info.name)


def configurations(info):
    """Options of the optimizer, each with foreach, fused and plain loops where it has these."""
    inputs = _get_optim_inputs_including_global_cliquey_kwargs("cpu", torch.float32, info, skip=("differentiable",))
    return [(entry.desc, entry.kwargs) for entry in inputs]


def matrices():
    """Weights only: Muon takes matrices and nothing else."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8, bias=False), nn.Tanh(), nn.Linear(8, 3, bias=False))


def contents(model, optimizer):
    """Copies of every parameter and of the optimizer's whole state."""
    return copy.deepcopy(([p.detach() for p in model.parameters()], optimizer.state_dict()))


def equal(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and same(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


def batches(count):
    torch.manual_seed(1)
    return [(torch.randn(5, 6), torch.randint(3, (5,))) for _ in range(count)]


@pytest.mark.parametrize("info", DENSE, **name)
def test_scaled_steps_equal_unscaled_ones_and_skipped_ones_change_nothing(info, request):
    TALLY.print_at_end(request.config)
    for what, options in configurations(info):
        plain, scaled = matrices(), matrices()
        a = info.optim_cls(plain.parameters(), **copy.deepcopy(options))
        b = info.optim_cls(scaled.parameters(), **copy.deepcopy(options))
        scaler = hpqf.LossScaler(init=2.0 ** 14, hysteresis=1)   # powers of two: scaling back is exact
        for step, (x, y) in enumerate(batches(6)):
            a.zero_grad()
            b.zero_grad()
            scaler.scale(F.cross_entropy(scaled(x), y)).backward()
            if step in (0, 3):   # before there is a state, and after
                scaled[0].weight.grad[1, 2] = math.inf if step else math.nan
                before = contents(scaled, b)
                status = scaler.step(b)
                assert not status and "parameter 0" in status.cause, status   # this model was never attached: no layer names
                assert equal(contents(scaled, b), before), f"{info.name} {what}: a skipped step moved something"
            else:
                F.cross_entropy(plain(x), y).backward()
                a.step()
                assert scaler.step(b), f"{info.name} {what}"
                assert equal(contents(scaled, b), contents(plain, a)), f"{info.name} {what}: step {step} differs"
            scaler.update()
        assert scaler.loss_scale == 2.0 ** 12 and scaler.state.skipped_total == 2
        TALLY["option sets bit-identical"] += 1


def sparse_model():
    torch.manual_seed(0)
    return nn.Embedding(9, 4, sparse=True)


@pytest.mark.parametrize("info", SPARSE, **name)
@pytest.mark.parametrize("tokens", [[[1, 4], [7, 2]], [[1, 4, 1], [4, 4, 8]]], ids=["distinct", "repeated"])
def test_sparse_gradients(info, tokens, request):
    """Repeated rows are summed before or after the division by a power of two, in another order: equal to rounding then."""
    TALLY.print_at_end(request.config)
    tokens = torch.tensor(tokens)
    for options, _ in [info.metadata_for_sparse] if isinstance(info.metadata_for_sparse[0], dict) else [({}, [])]:
        plain, scaled = sparse_model(), sparse_model()
        a, b = (info.optim_cls(m.parameters(), **copy.deepcopy(options)) for m in (plain, scaled))
        scaler = hpqf.LossScaler(init=2.0 ** 14, hysteresis=1)
        for step in range(4):
            a.zero_grad()
            b.zero_grad()
            scaler.scale(scaled(tokens).square().sum()).backward()
            assert scaled.weight.grad.is_sparse
            if step == 1:
                scaled.weight.grad._values()[0, 0] = math.nan
                before = contents(scaled, b)
                assert not scaler.step(b)
                assert equal(contents(scaled, b), before)
            else:
                plain(tokens).square().sum().backward()
                a.step()
                assert scaler.step(b)
                if tokens.unique().numel() == tokens.numel():
                    assert equal(contents(scaled, b), contents(plain, a)), f"{info.name}: step {step} differs"
                else:
                    torch.testing.assert_close(scaled.weight, plain.weight, rtol=1e-6, atol=1e-7)
            scaler.update()
        TALLY["with sparse gradients"] += 1


WITH_CLOSURE = [info for info in optim_db if not info.only_supports_sparse_grads]


@pytest.mark.parametrize("info", WITH_CLOSURE, **name)
@pytest.mark.parametrize("by", ["position", "keyword"])
def test_a_closure_is_scaled_rightly_or_refused(info, by, request):
    """optimizer.step(closure) computes gradients itself, after the scaler has looked: they would be used as they come."""
    TALLY.print_at_end(request.config)
    plain, scaled = matrices(), matrices()
    a, b = info.optim_cls(plain.parameters()), info.optim_cls(scaled.parameters())
    scaler = hpqf.LossScaler(init=2.0 ** 14)
    (x, y), = batches(1)

    def closure(model, optimizer, scale):
        def compute():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            scale(loss).backward()
            return loss
        return compute

    scaled_closure = closure(scaled, b, scaler.scale)
    before = contents(scaled, b)
    scaled_closure()
    try:
        status = scaler.step(b, scaled_closure) if by == "position" else scaler.step(b, closure=scaled_closure)
    except hpqf.Error as error:
        assert "closure" in str(error)
        assert equal(contents(scaled, b), before), "refused, yet something moved"
        TALLY["closures refused with a reason"] += 1
        return
    a.step(closure(plain, a, lambda loss: loss))
    assert status
    assert equal(contents(scaled, b), contents(plain, a)), f"{info.name}: the closure's gradients were taken as scaled as they came"
    TALLY["closures bit-identical"] += 1


def test_a_closure_is_not_dropped_when_no_gradient_came_before_it():
    model = matrices()
    optimizer = torch.optim.LBFGS(model.parameters())
    scaler = hpqf.LossScaler()
    with pytest.raises(hpqf.Error, match="closure"):
        scaler.step(optimizer, lambda: scaler.scale(model(torch.randn(2, 6)).sum()))


@pytest.mark.parametrize("info", [info for info in optim_db if info.step_requires_closure], **name)
def test_closures_pass_through_a_scaler_that_is_off(info, request):
    TALLY.print_at_end(request.config)
    for what, options in configurations(info):
        plain, scaled = matrices(), matrices()
        a, b = (info.optim_cls(m.parameters(), **copy.deepcopy(options)) for m in (plain, scaled))
        scaler = hpqf.LossScaler(enabled=False)
        for x, y in batches(3):
            def closure(model, optimizer, scale):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                scale(loss).backward()
                return loss
            a.step(lambda: closure(plain, a, lambda loss: loss))
            assert scaler.step(b, lambda: closure(scaled, b, scaler.scale)), f"{info.name} {what}"
            scaler.update()
            assert equal(contents(scaled, b), contents(plain, a)), f"{info.name} {what} differs"
        TALLY["option sets bit-identical"] += 1
