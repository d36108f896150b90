"""The loss scale around any torch optimizer."""
import math

import hpqf
import models
import pytest
import torch
import torch.nn.functional as F
from torch import nn


def model_with_gradient(values):
    model = nn.Linear(len(values), 1, bias=False)
    model.weight.data.zero_()
    return model, torch.tensor([values])


def test_gradients_come_out_unscaled():
    a, b = models.mlp(), models.mlp()
    b.load_state_dict(a.state_dict())
    x, y = models.batch(a)
    scaler = hpqf.LossScaler(init=1024)
    optimizer = torch.optim.SGD(a.parameters(), lr=0.1)
    scaler.scale(F.cross_entropy(a(x), y)).backward()
    status = scaler.step(optimizer)
    F.cross_entropy(b(x), y).backward()
    torch.optim.SGD(b.parameters(), lr=0.1).step()
    assert status and status.applied and status.cause == ""
    for p, q in zip(a.parameters(), b.parameters()):   # a power of two: exact
        assert torch.equal(p, q) and torch.equal(p.grad, q.grad)


def test_a_non_finite_gradient_skips_the_step_and_names_the_layer():
    model = models.mlp()
    before = [p.clone() for p in model.parameters()]
    scaler = hpqf.LossScaler(init=8, hysteresis=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hpqf.precision(model, "fp16"):
        scaler.scale(model(torch.randn(3, 16)).sum()).backward()
        model[2].weight.grad[1, 5] = math.nan
        status = scaler.step(optimizer)
    assert not status and "2" in status.cause and "weight" in status.cause and status.nonfinite_layers == ["2"]
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before))
    assert scaler.update() != "" and scaler.loss_scale == 4 and scaler.state.skipped_total == 1


def test_scaled_finite_but_unscaled_infinite_is_caught():
    # 1e38 / 2^-4 overflows: a check before the division would let it pass (pytorch #96755). The floor allows such scales.
    model, x = model_with_gradient([3e38])
    scaler = hpqf.LossScaler(init=0.0625, floor=0.0625)
    scaler.scale(model(x).sum()).backward()
    model.weight.grad.fill_(3e38)
    assert not scaler.step(torch.optim.SGD(model.parameters(), lr=1.0))


@pytest.mark.parametrize("order", ["clip", "unscale, clip", "clip, unscale", "clip twice"])
def test_clipping_sees_unscaled_gradients_whatever_the_order(order):
    model, x = model_with_gradient([3.0, 4.0])
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler = hpqf.LossScaler(init=65536)
    scaler.scale(model(x).sum()).backward()
    if order == "unscale, clip":
        scaler.unscale_(optimizer)
    norm = scaler.clip_grad_norm_(model.parameters(), 1.0)
    assert norm == pytest.approx(5.0)
    if order == "clip, unscale":
        assert scaler.unscale_(optimizer).repeated
    if order == "clip twice":
        assert scaler.clip_grad_norm_(model.parameters(), 1.0) == pytest.approx(1.0)
    scaler.step(optimizer)
    torch.testing.assert_close(model.weight, torch.tensor([[-0.6, -0.8]]))


def test_sparse_expanded_shared_empty_and_low_precision_gradients():
    scaler, optimizers = hpqf.LossScaler(init=4, hysteresis=1), []

    def check(parameters, expected):
        optimizer = torch.optim.SGD(parameters, lr=1.0)
        scaler.scale(torch.ones(())).item()
        assert scaler.unscale_(optimizer).finite
        for p, e in zip(parameters, expected):
            grad = p.grad.to_dense() if p.grad.is_sparse else p.grad
            assert torch.equal(grad, e), grad
        assert scaler.step(optimizer)
        scaler.update()

    embedding = nn.Embedding(5, 2, sparse=True)
    (embedding(torch.tensor([1, 1, 3])).sum() * 4).backward()
    check([embedding.weight], [torch.tensor([[0., 0], [2, 2], [0, 0], [1, 1], [0, 0]])])

    p = nn.Parameter(torch.zeros(3, 4))
    p.grad = torch.full((1, 1), 8.0).expand(3, 4)     # one element stands for all: must not be divided twelve times
    check([p], [torch.full((3, 4), 2.0)])

    a, b = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))
    a.grad = b.grad = torch.full((4,), 8.0)
    check([a, b], [torch.full((4,), 2.0)] * 2)

    p = nn.Parameter(torch.zeros(0))
    p.grad = torch.zeros(0)
    check([p], [torch.zeros(0)])

    p = nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))
    p.grad = torch.full((3,), 8.0, dtype=torch.bfloat16)
    check([p], [torch.full((3,), 2.0, dtype=torch.bfloat16)])

    p = nn.Parameter(torch.zeros(4, 3))
    p.grad = torch.arange(12.0).reshape(3, 4).t() * 4   # dense, but not contiguous
    check([p], [torch.arange(12.0).reshape(3, 4).t()])


def test_no_gradient_at_all_is_no_step_and_no_crash():
    model = models.mlp()
    scaler = hpqf.LossScaler()
    state = scaler.state_dict()
    status = scaler.step(torch.optim.Adam(model.parameters()))
    assert not status and "gradient" in status.cause
    scaler.update()
    assert scaler.state_dict() == state


def test_update_may_be_left_out():
    def run(explicit):
        model, x = model_with_gradient([1.0])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        scaler, seen = hpqf.LossScaler(init=1024, growth_interval=2, hysteresis=1), []
        for step in range(9):
            optimizer.zero_grad()
            scaler.scale(model(x).sum()).backward()
            if step == 4:
                model.weight.grad.fill_(math.inf)
            scaler.step(optimizer)
            if explicit:
                scaler.update()
            seen.append(scaler.state_dict())
        return seen
    assert run(True) == run(False)
    assert {state["scale"] for state in run(True)} >= {1024.0, 2048.0}


def test_two_optimizers_of_one_backward_are_unscaled_alike():
    model = models.mlp()
    first = torch.optim.SGD(model[0].parameters(), lr=0.1)
    second = torch.optim.SGD(model[2].parameters(), lr=0.1)
    scaler = hpqf.LossScaler(init=1024, growth_interval=1)   # the scale would double between the two steps
    loss = model(torch.randn(3, 16)).sum()
    expected = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    scaler.scale(loss).backward()
    assert scaler.step(first) and scaler.step(second)
    for p, e in zip(model.parameters(), expected):
        assert torch.equal(p.grad, e)
    scaler.update()
    assert scaler.loss_scale == 2048


def test_scale_stays_between_floor_and_cap():
    model, x = model_with_gradient([1.0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    down, up = hpqf.LossScaler(init=4, hysteresis=1), hpqf.LossScaler(init=2 ** 23, growth_interval=1)
    for _ in range(10):
        for scaler, gradient in ((down, math.nan), (up, 1.0)):
            optimizer.zero_grad()
            scaler.scale(model(x).sum() * 0).backward()
            model.weight.grad.fill_(gradient)
            scaler.step(optimizer)
            scaler.update()
    assert down.loss_scale == 1 and up.loss_scale == 2 ** 24


def test_state_round_trip_is_exact():
    model, x = model_with_gradient([1.0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    a = hpqf.LossScaler(init=3.3, growth=1.7, growth_interval=3, recovery_interval=2)
    b = hpqf.LossScaler(init=1.0, growth=1.7, growth_interval=3, recovery_interval=2)
    for step in range(20):
        if step == 11:
            b.load_state_dict(a.state_dict())
        for scaler in (a, b):
            optimizer.zero_grad()
            scaler.scale(model(x).sum()).backward()
            if step in (5, 6, 14):
                model.weight.grad.fill_(math.inf)
            scaler.step(optimizer)
            scaler.update()
    assert a.state_dict() == b.state_dict()


def test_disabled_scales_by_one_and_still_skips():
    model, x = model_with_gradient([1.0])
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler = hpqf.LossScaler(enabled=False)
    loss = model(x).sum()
    assert torch.equal(scaler.scale(loss), loss)
    loss.backward()
    model.weight.grad.fill_(math.nan)
    assert not scaler.step(optimizer)
    optimizer.zero_grad()
    model(x).sum().backward()   # without scale(): nothing to scale
    assert scaler.step(optimizer) and scaler.loss_scale == 1


def test_impossible_options_and_states_are_refused():
    for options in ({"init": -1.0}, {"growth": 0.5}, {"no_such": 1}):
        with pytest.raises(hpqf.Error):
            hpqf.LossScaler(**options)
    scaler = hpqf.LossScaler()
    for state in ({}, {"scale": "big"}, {**scaler.state_dict(), "scale": 0.0}):
        with pytest.raises(hpqf.Error):
            scaler.load_state_dict(state)


def test_scaling_after_unscaling_is_refused():
    model, x = model_with_gradient([1.0])
    scaler = hpqf.LossScaler()
    scaler.scale(model(x).sum()).backward()
    scaler.unscale_(torch.optim.SGD(model.parameters(), lr=1.0))
    with pytest.raises(hpqf.Error, match="unscaled"):
        scaler.scale(model(x).sum())
