"""The trainer: what a user writes, and that a run can be killed and resumed to the last bit."""
import json
import math
import subprocess
import sys
import types

import hpqf
import models
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def data(n=32, classes=4, features=16):
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(n, features, generator=generator)
    return TensorDataset(x, (x[:, :classes]).argmax(1))


def loader(n=32, size=8, shuffle=True):
    return DataLoader(data(n), batch_size=size, shuffle=shuffle)


def trainer(model, precision_config=None, **options):
    return hpqf.MixedPrecisionTrainer(model, precision_config, progress=False, **options)


def test_two_lines_train_and_the_audit_says_bf16():
    model = models.mlp()
    t = trainer(model, lr=1e-2)
    losses = []
    summary = t.train(loader(), epochs=20, on_step=lambda r: losses.append(r.loss))
    assert summary.steps == summary.applied == 80 and summary.skipped == 0 and losses[-1] < 0.5 * losses[0]
    assert {share.format for share in t.audit().shares()} == {"bf16"} and t.audit().steps == 80
    assert t.plan.at("0").weight == "bf16" and t.scaler.loss_scale == 1   # bf16 needs no loss scale
    result = t.evaluate(loader())
    assert result.accuracy > 0.8 and result.samples == 32 and model.training
    assert "forward" not in model.__dict__


def test_the_config_of_the_readme():
    model = models.LstmTagger()
    x, y = models.batch(model, 8)
    t = trainer(model, {"default": "fp16", "sensitive_layers": [model.lstm, "head.*"], "optimizer_precision": "fp32"},
                data=[(x, y)] * 3)
    t.train(epochs=2)
    assert t.plan.at("lstm").all_fp32() and t.plan.at("head").all_fp32() and t.plan.at("embedding").weight == "fp16"
    assert t.scaler.loss_scale == 65536


@pytest.mark.parametrize("arguments, match", [
    (dict(precision_config={"defualt": "fp16"}), "defualt"), (dict(precision_config={"default": "fp17"}), "fp17"),
    (dict(precision_config={"optimizer_precision": "bf16"}), "optimizer_precision"),
    (dict(precision_config={"sensitive_layers": ["nothing"]}), "nothing"),
    (dict(precision_config={"default": "bf16"}, plan=hpqf.PrecisionPlan()), "both"), (dict(mixed_precision=False, plan=hpqf.PrecisionPlan()), "mixed"),
    (dict(optimizer="adam"), "optimizer"), (dict(optimizer=torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)), "no parameter"),
    (dict(accumulate_steps=0), "accumulate_steps"), (dict(checkpoint_dir="/dev/null/x"), "checkpoints"),
    (dict(scheduler=lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o)), "Plateau")])
def test_mistakes_are_refused_at_the_door(arguments, match):
    with pytest.raises(hpqf.Error, match=match):
        trainer(models.mlp(), **arguments)


def test_half_precision_parameters_single_use_data_and_missing_data_are_refused():
    with pytest.raises(hpqf.Error, match="bfloat16"):
        trainer(models.mlp().bfloat16())
    t = trainer(models.mlp())
    for wrong in (None, iter(loader()), []):
        with pytest.raises(hpqf.Error):
            t.train(wrong)
    with pytest.raises(hpqf.Error, match="batch"):
        t.train([torch.ones(2, 16)])


def test_mixed_precision_false_is_the_plain_loop():
    a, b = models.mlp(), models.mlp()
    b.load_state_dict(a.state_dict())
    batches = list(loader(shuffle=False))
    trainer(a, mixed_precision=False).train(batches, epochs=2)
    optimizer = torch.optim.AdamW(b.parameters(), lr=1e-3)
    for x, y in batches * 2:
        optimizer.zero_grad()
        F.cross_entropy(b(x), y).backward()
        optimizer.step()
    assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters()))


class HuggingFaceStyle(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 4)

    def forward(self, inputs, labels=None):
        logits = self.fc(inputs)
        return types.SimpleNamespace(logits=logits, loss=None if labels is None else F.cross_entropy(logits, labels))


def test_dictionaries_and_models_with_a_loss_of_their_own():
    batches = [{"inputs": x, "labels": y} for x, y in loader()]
    t = trainer(HuggingFaceStyle(), lr=1e-2)
    first = t.train(batches).last_loss
    assert t.train(batches, epochs=20).last_loss < first
    assert t.evaluate(batches).accuracy is None and t.evaluate(batches).loss < first
    with pytest.raises(hpqf.Error, match="loss"):
        trainer(HuggingFaceStyle()).train([{"inputs": torch.ones(2, 16)}])


def test_accumulation_is_the_gradient_of_the_mean():
    a, b = models.mlp(), models.mlp()
    b.load_state_dict(a.state_dict())
    x, y = data(24)[:]
    sgd = lambda p: torch.optim.SGD(p, lr=0.1)   # noqa: E731
    pieces = [(x[:8], y[:8]), (x[8:12], y[8:12]), (x[12:24], y[12:24])]   # of unequal size
    summary = trainer(a, mixed_precision=False, optimizer=sgd, accumulate_steps=4).train(pieces)
    trainer(b, mixed_precision=False, optimizer=sgd).train([(x, y)])
    assert summary.steps == 1   # a last window that is not full is a step too
    for p, q in zip(a.parameters(), b.parameters()):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-7)


def test_clipping_limits_the_update():
    model = models.mlp()
    before = [p.detach().clone() for p in model.parameters()]
    t = trainer(model, {"default": "fp16"}, optimizer=lambda p: torch.optim.SGD(p, lr=1.0), max_grad_norm=0.01)
    results = []
    t.train(loader(8), on_step=results.append)
    moved = math.sqrt(sum((p - b).square().sum().item() for p, b in zip(model.parameters(), before)))
    assert moved == pytest.approx(0.01, rel=1e-3) and results[0].grad_norm > 0.01


class OverflowsOnce(nn.Module):
    """Its second layer's activations leave the range of fp16 from step `at` on."""

    def __init__(self, at=3):
        super().__init__()
        self.first, self.second, self.calls, self.at = nn.Linear(16, 16), nn.Linear(16, 4), 0, at

    def forward(self, x):
        self.calls += 1
        x = self.first(x)
        if self.calls == self.at:
            x = x * 1e6
        return self.second(x)


def test_an_overflowing_layer_leaves_its_format_and_the_scheduler_waits():
    model = OverflowsOnce()
    t = trainer(model, {"default": "fp16"}, optimizer=lambda p: torch.optim.SGD(p, lr=0.1),
                scheduler=lambda o: torch.optim.lr_scheduler.StepLR(o, 1, 0.5))
    results = []
    summary = t.train(loader(64), on_step=results.append)
    skipped = [r for r in results if not r.applied]
    assert [r.step for r in skipped] == [3] and summary.skipped == 1 and summary.applied == 7
    assert "second" in skipped[0].cause
    assert t.plan.at("second").all_fp32() and t.plan.at("first").weight == "fp16"
    assert any("second" in note for note in summary.notes)
    lrs = [r.lr for r in results]
    assert lrs[3] == lrs[2] and lrs[4] == lrs[3] / 2   # no advance in the skipped step
    assert t.scheduler.last_epoch == 7


class WithDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.body(x))


RUN = """
import json, os, signal, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import torch, hpqf, test_trainer as t
folder, steps, every, kill_at, resume = sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]), sys.argv[7] == "resume"
torch.manual_seed(3)
model = t.WithDropout()
trainer = t.trainer(model, {"default": "fp16", "sensitive_layers": ["head"]},
    optimizer=lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9), loss_scale={"init": 2.0 ** 15, "growth_interval": 5},
    scheduler=lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 50), checkpoint_dir=folder, checkpoint_every=every,
    accumulate_steps=2, max_grad_norm=1.0, seed=11)
def show(r):
    print(json.dumps([r.step, r.epoch, r.loss.hex(), r.loss_scale, r.lr, r.grad_norm.hex()]), flush=True)
    if r.step == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
loader = t.DataLoader(t.data(64), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(5) if len(sys.argv) > 8 else None)
trainer.train(loader, epochs=100, steps=steps, resume=resume, on_step=show)
print(json.dumps([p.double().sum().item().hex() for p in model.parameters()]))
"""


def run(build_dir, folder, steps, every, kill_at=0, resume="", generator=False):
    here = str(__file__).rpartition("/")[0]
    result = subprocess.run([sys.executable, "-c", RUN, str(build_dir / "python"), here, str(folder), str(steps), str(every), str(kill_at), resume,
                             *(["generator"] if generator else [])], capture_output=True, text=True, timeout=300)
    if kill_at == 0:
        assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


# 4 steps an epoch and a checkpoint every 4: 18 dies two steps after the end of an epoch, with its checkpoint on that end.
@pytest.mark.parametrize("generator, every, kill_at", [(False, 4, 18), (True, 3, 14)])
def test_killed_and_resumed_is_bit_equal(build_dir, tmp_path, generator, every, kill_at):
    whole = run(build_dir, tmp_path / "whole", 22, every, generator=generator)
    killed = run(build_dir, tmp_path / "killed", 22, every, kill_at, generator=generator)
    assert killed == whole[:kill_at]
    assert run(build_dir, tmp_path / "killed", 22, every, resume="resume", generator=generator) == whole[kill_at // every * every:]
    assert [p.name for p in sorted((tmp_path / "whole").iterdir())] == [f"step-{22 // every * every:08d}.pt", "step-00000022.pt"]


def test_resume_inside_an_epoch_is_bit_equal(tmp_path):
    def losses(resume, steps):
        torch.manual_seed(3)
        seen = []
        t = trainer(WithDropout(), checkpoint_dir=tmp_path, checkpoint_every=3, lr=0.01)
        t.train(loader(64), epochs=3, steps=steps, resume=resume, on_step=lambda r: seen.append(r.loss))
        assert t.audit().steps == (steps or 24), "the audit covers the steps before the resume too"
        return seen
    first = losses(False, 11)   # 8 steps an epoch: stops inside the second
    torch.manual_seed(99)
    second = losses(True, None)
    for file in tmp_path.iterdir():
        file.unlink()
    assert first + second == losses(False, None) and len(second) == 13


def checkpointed(folder):
    t = trainer(models.mlp(), checkpoint_dir=folder, checkpoint_every=1)
    t.train(loader(), steps=3)
    return sorted(folder.glob("step-*.pt"))


@pytest.mark.parametrize("damage", ["truncated", "edited", "empty", "foreign"])
def test_damaged_checkpoints_are_refused_and_whole_ones_named(tmp_path, damage):
    older, newest = checkpointed(tmp_path)
    content = bytearray(newest.read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "edited":
        content[len(content) // 3] ^= 0x40
    elif damage == "empty":
        content = b""
    if damage == "foreign":
        torch.save({"weights": torch.ones(2)}, newest)
    else:
        newest.write_bytes(content)
    model = models.mlp()
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(hpqf.Error) as caught:
        trainer(model, checkpoint_dir=tmp_path).train(loader(), steps=9, resume=True)
    assert newest.name in caught.value.asked and older.name in caught.value.todo
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before))
    newest.unlink()
    assert trainer(model, checkpoint_dir=tmp_path).train(loader(), steps=9, epochs=9, resume=True).resumed_from == 2


def test_resume_with_something_else_is_refused(tmp_path):
    checkpointed(tmp_path)
    with pytest.raises(hpqf.Error, match="another model"):
        trainer(nn.Sequential(nn.Linear(16, 31), nn.ReLU(), nn.Linear(31, 4)), checkpoint_dir=tmp_path).train(loader(), resume=True)
    with pytest.raises(hpqf.Error, match="another plan"):
        trainer(models.mlp(), {"default": "fp16"}, checkpoint_dir=tmp_path).train(loader(), resume=True)
    with pytest.raises(hpqf.Error, match="SGD"):
        trainer(models.mlp(), optimizer=lambda p: torch.optim.SGD(p, lr=1.0), checkpoint_dir=tmp_path).train(loader(), resume=True)
    with pytest.raises(hpqf.Error, match="step-"):
        trainer(models.mlp(), checkpoint_dir=tmp_path / "none").train(loader(), resume=True)
    with pytest.raises(hpqf.Error, match="folder"):
        trainer(models.mlp()).train(loader(), resume=True)


def test_evaluation_inside_training_leaves_the_audit_alone():
    model = models.mlp()
    t = trainer(model)
    calls = []
    t.train(loader(), on_step=lambda r: calls.append(t.evaluate(loader(8)).samples))
    assert calls == [8] * 4
    assert [row.calls for row in t.audit().rows if row.layer == "0" and row.pass_ == "forward"] == [4]


def test_the_progress_bar_shows_what_matters(capsys):
    hpqf.MixedPrecisionTrainer(models.mlp(), progress=True).train(loader(), epochs=1)
    text = capsys.readouterr().err
    assert "4/4" in text and all(word in text for word in ("loss=", "scale=1", "skipped=0", "samples_s="))


def test_an_exception_in_training_leaves_the_model_as_it_was():
    model = models.mlp()
    with pytest.raises(ZeroDivisionError):
        trainer(model).train(loader(), on_step=lambda r: 1 // 0)
    assert all("forward" not in m.__dict__ for m in model.modules())
