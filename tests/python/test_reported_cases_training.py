"""Public bug reports about low-precision training, each as a test: masters, averages, loss scale, skipped steps, resuming."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import warnings

import hpqf
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset


def trainer(model, config, **options):
    options.setdefault("optimizer", lambda p: torch.optim.SGD(p, lr=1e-3))
    return hpqf.MixedPrecisionTrainer(model, config, progress=False, **options)


def train(t, batches, **options):
    results = []
    summary = t.train(batches, on_step=results.append, **options)
    return summary, results


def batches(n, size=8, features=16, classes=4):
    return [(torch.randn(size, features), torch.randint(classes, (size,))) for _ in range(n)]


def unit_weight(dtype=torch.float32):
    layer = nn.Linear(1, 1, bias=False)
    nn.init.ones_(layer.weight)
    return layer.to(dtype)


def test_small_adamw_updates_are_not_lost():
    """OneTrainer #996, torchtune #2254, pytorch #120376: AdamW on BF16 weights, lr 1e-4, decay 0.1: the weights never move."""
    adamw = lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.1)   # noqa: E731
    plain = unit_weight(torch.bfloat16)
    optimizer = adamw(plain.parameters())
    for _ in range(500):
        optimizer.zero_grad()
        plain(torch.ones(1, 1, dtype=torch.bfloat16)).sum().backward()
        optimizer.step()
    assert plain.weight.item() == 1.0   # 1 - 1e-4 rounds to 1 in bf16

    model = unit_weight()
    t = trainer(model, {"default": "bf16"}, optimizer=adamw, loss_fn=lambda y, _: y.sum())
    train(t, [(torch.ones(1, 1), torch.zeros(1))] * 500)
    # The gradient is 1, so each step is -lr, and the decay takes 1e-5 of the weight.
    assert model.weight.item() == pytest.approx(0.945, abs=1e-3)
    assert {row.effective_b for row in t.audit().rows if row.pass_ == "forward" and row.flops} == {"bf16"}


def test_averages_of_weights_are_kept_in_fp32():
    """sd_dreambooth_extension PR #1415: an EMA of 0.9999 kept in BF16 stays where it began."""
    ema_fn = get_ema_multi_avg_fn(0.9999)
    ema = [torch.ones(1, dtype=torch.bfloat16)]
    for _ in range(1000):
        ema_fn(ema, [torch.zeros(1, dtype=torch.bfloat16)], 1)
    assert ema[0].item() == 1.0

    model = unit_weight()
    with hpqf.precision(model, "bf16") as scope:
        average = AveragedModel(model, multi_avg_fn=ema_fn)
        average.update_parameters(model)   # the first one copies
        model(torch.ones(1, 1)).sum().backward()
        model.weight.data.zero_()
        for _ in range(5000):
            average.update_parameters(model)
    assert average.module.weight.item() == pytest.approx(0.9999 ** 5000, rel=1e-3)   # 0.607
    assert {row.effective_b for row in scope.audit().rows if row.pass_ == "forward"} == {"bf16"}


@pytest.mark.parametrize("format", ["bf16", "fp16"])
def test_running_statistics_of_norms_are_averages_in_fp32(format):
    """The same report, inside the model: the running mean of a BatchNorm with momentum 1e-4."""
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.BatchNorm1d(4, momentum=1e-4))
    nn.init.eye_(model[0].weight)
    x = torch.full((8, 4), 2.0)
    with hpqf.precision(model, format):
        for _ in range(2000):
            model(x)
    torch.testing.assert_close(model[1].running_mean, torch.full((4,), 2 * (1 - 0.9999 ** 2000)), rtol=1e-3, atol=0)


def test_gradients_are_accumulated_in_fp32():
    """DeepSpeed #2768, Liger-Kernel #830: gradients accumulated in BF16 stall after a few hundred micro-batches."""
    x = torch.rand(2048, 8) + 0.5
    exact = x.double().sum(0)

    def error(model, dtype):
        for row in x.to(dtype):
            model(row).sum().backward()
        return ((model.weight.grad.double() - exact) / exact).abs().max().item()

    assert error(nn.Linear(8, 1, bias=False).bfloat16(), torch.bfloat16) > 0.5
    model = nn.Linear(8, 1, bias=False)
    with hpqf.precision(model, "bf16"):
        got = error(model, torch.float32)
    assert got < 1e-3 and model.weight.grad.dtype == torch.float32   # what is left is the rounding of each x to bf16


def test_repeated_overflow_cannot_collapse_the_scale():
    """pytorch #40497, #99640: non-finite gradients step after step drive the scale to 2^-144; then a healthy step ruins the weights."""
    p = nn.Parameter(torch.ones(1))
    sgd, scaler = torch.optim.SGD([p], lr=1.0), torch.amp.GradScaler("cpu")
    for value in [torch.inf] * 160 + [None]:
        scale = scaler.scale(torch.ones(())).item()
        p.grad = torch.tensor([scale if value is None else value])   # of a true gradient of 1
        scaler.step(sgd)
        scaler.update()
    assert 0 < scaler.get_scale() < 2.0 ** -140 and p.item() == -torch.inf

    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4))
    good, bad = batches(3), [(torch.full((8, 16), torch.inf), torch.zeros(8, dtype=torch.long))] * 160
    t = trainer(model, {"default": "fp16"})
    summary, results = train(t, bad + good)
    assert [r.applied for r in results] == [False] * 160 + [True] * 3
    assert min(r.loss_scale for r in results) == t.scaler.loss_scale == 1
    assert all("layer 1" in r.cause for r in results[:160])   # where backward met it first
    assert not t.plan.at("0").all_fp32() and not t.plan.at("1").all_fp32()   # infinite data is no layer's fault
    assert all(q.isfinite().all() for q in model.parameters()) and summary.skipped == 160


class Gain(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = gain

    def forward(self, x):
        return x * self.gain


def test_a_layer_that_keeps_overflowing_backwards_is_named_and_leaves_fp16():
    """The same reports, the cause inside the model: gradients over 65504 that no scale of 1 or more can help."""
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4), Gain(1e8), nn.LogSoftmax(dim=-1))
    t = trainer(model, {"default": "fp16"}, loss_fn=F.nll_loss, optimizer=lambda p: torch.optim.SGD(p, lr=1e-12))
    summary, results = train(t, batches(40))
    # The last layer's gradients overflow first; the first layer's do when those of the last pass.
    wait = t.rules.gradient_overflows
    assert [r.applied for r in results] == [False] * 2 * wait + [True] * (40 - 2 * wait), [r.cause for r in results]
    assert all(r.cause.startswith("layer 1: ") for r in results[:wait])
    raised = [note for note in summary.notes if "fp16 -> fp32" in note]
    assert [note.split(", ")[0] for note in raised] == [f"step {wait}: 1: fp16 -> fp32", f"step {2 * wait}: 0: fp16 -> fp32"]
    assert t.plan.at("0").wgrad == t.plan.at("1").wgrad == "fp32" and min(r.loss_scale for r in results) >= 1


def test_a_tiny_loss_cannot_drive_the_scale_up_without_bound():
    """pytorch #98828: a tiny loss, growth every step: the scale reached infinity (2^127 since it was bounded there)."""
    p = nn.Parameter(torch.ones(1))
    sgd, plain = torch.optim.SGD([p], lr=0.0), torch.amp.GradScaler("cpu", growth_interval=1)
    scaler, seen = hpqf.LossScaler(growth_interval=1), []
    for _ in range(130):
        for s in (plain, scaler):
            p.grad = None
            s.scale(p.sum() * 1e-30).backward()
            s.step(sgd)
            s.update()
        seen.append(scaler.loss_scale)
    assert plain.get_scale() >= 2.0 ** 126
    assert max(seen) == scaler.loss_scale == 2.0 ** 24 and scaler.state.skipped_total == 0
    p.grad = None
    scaler.scale(p.sum() * 1e3).backward()   # the loss is of ordinary size again
    assert scaler.step(sgd) and p.grad.item() == 1e3


def test_clipping_before_unscaling_is_impossible():
    """Lightning #9330, #9599; returnn #1590: clipped at norm 1 while still scaled, gradients end at norm 1.5e-5."""
    x = torch.tensor([[3.0, 4.0]])

    def start():
        layer = nn.Linear(2, 1, bias=False)
        nn.init.zeros_(layer.weight)
        return layer, torch.optim.SGD(layer.parameters(), lr=1.0)

    plain, sgd = start()
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(plain(x).sum()).backward()
    nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
    scaler.step(sgd)
    assert plain.weight.norm().item() == pytest.approx(1.5e-5, rel=0.02)

    model, sgd = start()
    scaler = hpqf.LossScaler()
    scaler.scale(model(x).sum()).backward()
    assert scaler.clip_grad_norm_(model.parameters(), 1.0) == pytest.approx(5.0)
    assert scaler.step(sgd)
    torch.testing.assert_close(model.weight, torch.tensor([[-0.6, -0.8]]))

    model, sgd = start()
    t = trainer(model, {"default": "fp16"}, optimizer=sgd, max_grad_norm=1.0, loss_fn=lambda y, _: y.sum(), loss_scale={"init": 1024.0})
    _, results = train(t, [(x, x)])
    assert results[0].loss_scale == 1024 and results[0].grad_norm == pytest.approx(5.0)
    torch.testing.assert_close(model.weight, torch.tensor([[-0.6, -0.8]]))


def test_the_schedule_waits_for_applied_steps():
    """pytorch #55585, #152279; Lightning #18828: overflow in step 1, the scheduler steps all the same, the warm-up starts late."""
    warmup = lambda optimizer: torch.optim.lr_scheduler.LinearLR(optimizer, 0.25, total_iters=3)   # noqa: E731
    p = nn.Parameter(torch.ones(1))
    sgd, scaler = torch.optim.SGD([p], lr=1.0), torch.amp.GradScaler("cpu")
    schedule = warmup(sgd)
    scaler.scale(p.sum() * torch.inf).backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")   # "lr_scheduler.step() before optimizer.step()", the only hint
        assert scaler.step(sgd) is None
        schedule.step()
    assert p.item() == 1 and sgd.param_groups[0]["lr"] == 0.5   # not 0.25

    t = trainer(nn.Linear(16, 4), {"default": "fp16"}, optimizer=lambda q: torch.optim.SGD(q, lr=1.0), scheduler=warmup,
                loss_scale={"hysteresis": 1})
    data = batches(5)
    data[0] = (data[0][0] * torch.inf, data[0][1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary, results = train(t, data)
    assert [r.applied for r in results] == [False, True, True, True, True] and "gradient of" in results[0].cause
    assert [r.lr for r in results] == [0.25, 0.25, 0.5, 0.75, 1.0] and summary.applied == t.scheduler.last_epoch == 4


def fp16_run(folder, kill_at=0, resume=False):
    """Losses of about 100 overflow fp16 gradients at a scale of 65536. Gives one record a step, and one of the weights."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4))
    x = torch.randn(64, 16)
    loader = DataLoader(TensorDataset(x, x[:, :4].argmax(1)), batch_size=8, shuffle=True)
    t = trainer(model, {"default": "fp16"}, loss_fn=lambda y, target: 100 * F.cross_entropy(y, target), lr=1e-3, optimizer=None,
                loss_scale={"hysteresis": 1, "growth_interval": 9}, checkpoint_dir=folder, checkpoint_every=8, seed=11)
    records = []

    def on_step(r):
        records.append([r.step, r.applied, r.loss_scale, r.loss.hex()])
        if kill_at:
            print(json.dumps(records[-1]), flush=True)
        if r.step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
    t.train(loader, epochs=4, resume=resume, on_step=on_step)
    return records + [[p.double().abs().sum().item().hex() for p in model.parameters()]]


def in_process(build_dir, folder, **arguments):
    code = (f"import sys, json; sys.path[:0] = {[str(build_dir / 'python'), str(pathlib.Path(__file__).parent)]!r}\n"
            f"import test_reported_cases_training as t\n"
            f"for record in t.fp16_run({str(folder)!r}, **{arguments!r}): print(json.dumps(record))")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == (-signal.SIGKILL if "kill_at" in arguments else 0), result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_killed_and_resumed_fp16_run_is_bit_equal_and_keeps_its_scale(build_dir, tmp_path):
    """ultralytics PR #22189, fairseq2 #1346, torchtitan #146: the loss scale was not saved, so resumed runs began at 65536 anew."""
    whole = fp16_run(tmp_path / "whole")
    assert in_process(build_dir, tmp_path / "killed", kill_at=21) == whole[:21]
    rest = in_process(build_dir, tmp_path / "killed", resume=True)
    assert rest == whole[16:]   # steps 17 to 20, lost with the process, over again from the checkpoint of step 16
    skipped = [record[1] for record in whole[:-1]].count(False)
    assert whole[0][1:3] == [False, 65536.0] and skipped >= 4   # what a scale of 65536 costs this model
    assert rest[0][1] and rest[0][2] == whole[16][2] < 65536


class LateOverflow(nn.Module):
    """From step 3 on one output of conv1 is about -66610."""

    def __init__(self, norm):
        super().__init__()
        self.conv0, self.conv1, self.calls = nn.Conv2d(1, 2, 1), nn.Conv2d(2, 2, 1), 0
        self.norm = nn.BatchNorm2d(2) if norm else nn.Identity()
        self.conv2, self.fc = nn.Conv2d(2, 2, 1), nn.Linear(2, 4)

    def forward(self, x):
        self.calls += 1
        if self.calls >= 3:
            x = x.clone()
            x[0, 0, 0, 0] = -66610 / 8
        x = self.conv2(self.norm(self.conv1(self.conv0(x))))
        return self.fc(x.mean((2, 3)))


def late_overflow(norm):
    model = LateOverflow(norm)
    with torch.no_grad():
        for conv, gain in ((model.conv0, 1.0), (model.conv1, 8.0), (model.conv2, 1e-3)):
            conv.weight.copy_(torch.eye(2)[:, : conv.in_channels, None, None] * gain)
            conv.bias.zero_()
    return model, [(torch.randn(4, 1, 3, 3), torch.randint(4, (4,))) for _ in range(8)]


def test_one_overflowing_activation_moves_one_layer_out_of_fp16():
    """apex #180: one convolution output of -66610 late in training: -inf in fp16, NaN in the norm behind it, and the run is lost."""
    model, data = late_overflow(norm=True)
    model.half()
    for x, _ in data[:3]:
        y = model(x.half())
    assert y.isnan().any()

    model, data = late_overflow(norm=False)
    t = trainer(model, {"default": "fp16"}, optimizer=lambda p: torch.optim.SGD(p, lr=1e-9))
    summary, results = train(t, data)
    assert [r.step for r in results if not r.applied] == [3] and summary.applied == 7
    assert t.plan.at("conv2").all_fp32()
    assert all(t.plan.at(name).weight == t.plan.at(name).input == "fp16" for name in ("conv0", "conv1", "fc"))
    assert any("conv2" in note and "fp16 -> fp32" in note and "step 3" in note for note in results[2].changes), results[2].changes
    assert summary.notes[0].startswith("step 3: ") and t.scaler.loss_scale == 65536


def test_a_norm_behind_the_large_output_needs_no_fallback():
    """apex #180 as it was reported: the norm takes the fp32 sums of the convolution, so -66610 overflows nothing."""
    model, data = late_overflow(norm=True)
    t = trainer(model, {"default": "fp16"}, optimizer=lambda p: torch.optim.SGD(p, lr=1e-9))
    summary, _ = train(t, data)
    assert summary.skipped == 0 and not any("->" in note and "fp32" in note for note in summary.notes)


def test_adam_with_zero_gradients_makes_no_nan():
    """optax #1754, pytorch #8860, bitsandbytes #1756: Adam's eps of 1e-8 is zero in fp16: 0 / 0 for parameters without gradient."""
    half = nn.Parameter(torch.ones(3, dtype=torch.float16))
    half.grad = torch.zeros_like(half)
    torch.optim.Adam([half]).step()
    assert half.isnan().all()

    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))
    nn.init.constant_(model[0].bias, -1e3)   # dead units: every gradient of the first layer is zero
    before = model[0].weight.detach().clone()
    t = trainer(model, {"default": "fp16"}, optimizer=lambda p: torch.optim.Adam(p, lr=1e-3))
    summary, _ = train(t, batches(5))
    assert summary.applied == 5 and torch.equal(model[0].weight, before)
    assert all(p.isfinite().all() and p.dtype == torch.float32 for p in model.parameters())
    assert all(v.dtype == torch.float32 for state in t.optimizer.state.values() for v in state.values())


def test_an_optimizer_without_any_gradient_is_no_step_and_says_so():
    """accelerate #328, transformers #24003: an optimizer whose parameters got no gradient in this step."""
    used, unused = nn.Linear(16, 4), nn.Linear(16, 4)
    x, y = batches(1)[0]
    plain, optimizer = torch.amp.GradScaler("cpu"), torch.optim.SGD(unused.parameters(), lr=1.0)
    plain.scale(F.cross_entropy(used(x), y)).backward()
    with pytest.raises(AssertionError, match="No inf checks"):
        plain.step(optimizer)

    used.zero_grad()
    scaler, before, weights = hpqf.LossScaler(growth_interval=1), unused.weight.detach().clone(), used.weight.detach().clone()
    scaler.scale(F.cross_entropy(used(x), y)).backward()
    status = scaler.step(optimizer)
    assert not status and "gradient" in status.cause and status.nonfinite_layers == []
    assert scaler.step(torch.optim.SGD(used.parameters(), lr=1.0))
    scaler.update()
    assert scaler.loss_scale == 2 * 65536 and scaler.state.skipped_total == 0
    assert torch.equal(unused.weight, before) and not torch.equal(used.weight, weights)
