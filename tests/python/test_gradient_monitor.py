"""The gradient monitor, against numpy-like sums of torch in fp64."""
import json
import math

import hpqf
import pytest
import torch
from torch import nn


def model_and_batch():
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
    return model, torch.randn(8, 16), torch.randint(4, (8,))


def step(model, x, y, optimizer, monitor, scale=1.0):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    (loss * scale).backward()
    return monitor.observe(optimizer), loss


def row_of(monitor, layer, subject):
    return next(row for row in monitor if row.layer == layer and row.subject == subject)


def test_statistics_equal_those_of_fp64():
    model, x, y = model_and_batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = hpqf.GradientMonitor(model, every=1)
    assert step(model, x, y, optimizer, monitor)[0]
    values = torch.cat([p.grad.flatten() for p in model[0].parameters()]).double()
    before = [p.detach().clone() for p in model[0].parameters()]
    optimizer.step()
    row = row_of(monitor, "0", "gradient")
    assert row.elements == 16 * 32 + 32 and row.step == 1 and row.format == "fp32"
    centred = values - values.mean()
    for ours, theirs in ((row.norm, values.norm()), (row.max_abs, values.abs().max()), (row.mean, values.mean()),
                         (row.deviation, values.std(correction=0)),
                         (row.kurtosis, centred.pow(4).mean() / centred.pow(2).mean().square())):
        assert math.isclose(ours, theirs.item(), rel_tol=1e-9, abs_tol=1e-15)
    moved = math.sqrt(sum((a - p.detach()).double().square().sum().item() for a, p in zip(before, model[0].parameters())))
    size = math.sqrt(sum(a.double().square().sum().item() for a in before))
    assert row_of(monitor, "0", "weight").update_ratio == pytest.approx(moved / size, rel=1e-6)


def test_underflow_and_noise_are_those_of_the_plans_format():
    model, x, y = model_and_batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hpqf.precision(model, "fp16"):
        monitor = hpqf.GradientMonitor(model, every=1)
        optimizer.zero_grad()
        (nn.functional.cross_entropy(model(x), y) * 1e-6).backward()
        monitor.observe(optimizer)
        gradient = model[0].weight.grad.clone()
        optimizer.step()
    row = row_of(monitor, "0", "gradient")
    lost = ((gradient.half() == 0) & (gradient != 0)).sum().item()
    assert row.format == "fp16" and 0 < lost and row.underflow == pytest.approx(lost / (gradient != 0).sum().item(), rel=1e-9)
    weight = model[0].weight.detach().double() + 0.1 * gradient.double()   # before the step
    noise = (weight.float() - weight.float().half().float()).double().square().sum()
    assert row_of(monitor, "0", "weight").sqnr_db == pytest.approx(10 * math.log10(weight.square().sum() / noise), abs=0.1)
    assert row_of(monitor, "0", "output_grad").format == "fp16"


def test_it_looks_every_so_many_steps_only():
    model, x, y = model_and_batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = hpqf.GradientMonitor(model, every=3)
    looked = []
    for _ in range(7):
        looked.append(step(model, x, y, optimizer, monitor)[0])
        optimizer.step()
    assert looked == [False, False, True, False, False, True, False]
    assert {row.step for row in monitor} == {6} and {row.subject for row in monitor} == {"weight", "gradient", "output_grad"}


def test_values_that_are_not_finite_are_counted_apart_and_found():
    model, x, y = model_and_batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = hpqf.GradientMonitor(model, every=1)
    step(model, x, y, optimizer, monitor)
    monitor._core.updated(monitor._parameters)   # ends the look without stepping
    model[2].weight.grad[0, 0], model[2].weight.grad[1, 1] = float("nan"), float("inf")
    monitor.observe()
    row = row_of(monitor, "2", "gradient")
    assert (row.nan, row.infinite) == (1, 1) and math.isfinite(row.norm) and row.norm > 0
    assert [finding.layer for finding in monitor.findings if finding.trouble == "nonfinite"] == ["2"]


def test_an_explosion_is_found_once():
    model, x, y = model_and_batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    monitor = hpqf.GradientMonitor(model, every=1, detector={"cool_down": 100})
    found = []
    for n in range(20):
        step(model, x, y, optimizer, monitor, scale=1e4 if n >= 12 else 1.0)
        optimizer.step()
        found += [(n, finding.trouble) for finding in monitor.findings if finding.subject == "gradient"]
    assert found == [(12, "explosion"), (12, "explosion")]   # two layers, each once


def test_vanishing_over_the_time_steps_of_a_recurrent_layer():
    torch.manual_seed(1)
    rnn = nn.RNN(4, 8, batch_first=True)
    with torch.no_grad():
        rnn.weight_hh_l0.mul_(0.05)   # each step back multiplies by little
    model = nn.Sequential(rnn)
    monitor = hpqf.GradientMonitor(model, every=1)
    x = torch.randn(3, 12, 4, requires_grad=True)
    y, _ = model(x)
    y[:, -1].sum().backward()
    monitor.observe()
    row = row_of(monitor, "0", "input_grad")
    assert len(row.time_norms) == 12
    expected = [x.grad[:, t].double().norm().item() for t in range(12)]
    assert row.time_norms == pytest.approx(expected, rel=1e-6)
    assert [f.trouble for f in monitor.findings if f.subject == "input_grad"] == ["vanishing"]


def test_rows_go_to_a_file_and_a_full_disk_stops_nothing(tmp_path):
    model, x, y = model_and_batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    path = tmp_path / "gradients.jsonl"
    with hpqf.GradientMonitor(model, every=1, path=path) as monitor:
        step(model, x, y, optimizer, monitor)
        optimizer.step()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [json.loads(row.to_json()) for row in monitor] == rows and rows
    full = hpqf.GradientMonitor(model, every=1, path="/dev/full")
    for _ in range(3):
        step(model, x, y, optimizer, full)
        optimizer.step()
    assert len(full.notes) == 1 and "training goes on" in full.notes[0]


def test_hooks_leave_the_model_when_it_closes_and_training_is_the_same():
    def train(watch):
        torch.manual_seed(0)
        model, x, y = model_and_batch()
        optimizer = torch.optim.Adam(model.parameters())
        monitor = hpqf.GradientMonitor(model, every=2) if watch else None
        for _ in range(6):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            if watch:
                monitor.observe(optimizer)
            optimizer.step()
        if watch:
            monitor.close()
            assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
        return torch.cat([p.detach().flatten() for p in model.parameters()])
    assert torch.equal(train(False), train(True))


def test_sparse_gradients_and_half_parameters_are_read():
    model = nn.Sequential(nn.Embedding(10, 4, sparse=True))
    monitor = hpqf.GradientMonitor(model, every=1)
    model(torch.tensor([1, 1, 2])).sum().backward()
    monitor.observe()
    assert row_of(monitor, "0", "gradient").norm == pytest.approx(math.sqrt(4 * 4 + 4))   # row 1 twice
    half = nn.Sequential(nn.Linear(4, 4)).to(torch.bfloat16)
    watch = hpqf.GradientMonitor(half, every=1)
    half(torch.randn(2, 4, dtype=torch.bfloat16)).sum().backward()
    watch.observe()
    assert row_of(watch, "0", "gradient").norm > 0 and watch.notes == []


def test_the_trainer_writes_gradients_and_resumes_them(tmp_path):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    data = [(torch.randn(5, 8), torch.randint(4, (5,))) for _ in range(6)]
    trainer = hpqf.MixedPrecisionTrainer(model, progress=False, monitor_gradients=2, checkpoint_dir=tmp_path, max_grad_norm=1e-3)
    trainer.train(data, epochs=1)
    rows = [json.loads(line) for line in (tmp_path / "gradients.jsonl").read_text().splitlines()]
    assert {row["step"] for row in rows} == {2, 4, 6}
    assert {row["subject"] for row in rows} == {"weight", "gradient", "output_grad"}
    assert max(row["norm"] for row in rows if row["subject"] == "gradient") > 1e-3   # before clipping
    again = hpqf.MixedPrecisionTrainer(model, progress=False, monitor_gradients=2, checkpoint_dir=tmp_path, max_grad_norm=1e-3)
    again.train(data, epochs=2, resume=True)
    assert len(json.loads(again.gradients.state_dict()["detector"])["gradient:0"]["norms"]) == 6   # three are the first run's
    rows = [json.loads(line) for line in (tmp_path / "gradients.jsonl").read_text().splitlines()]
    assert sorted({row["step"] for row in rows}) == [2, 4, 6, 8, 10, 12]


@pytest.mark.parametrize("arguments, match", [
    (dict(every=0), "every"), (dict(detector={"explod": 3}), "explod"), (dict(detector={"explode": 0.5}), "explode"),
    (dict(path="x", detector={"window": 1}), "window"),
])
def test_mistakes_are_said(arguments, match):
    with pytest.raises(hpqf.Error, match=match):
        hpqf.GradientMonitor(nn.Linear(2, 2), **arguments)
