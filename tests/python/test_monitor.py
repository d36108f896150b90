"""The three-tier monitor from Python: rows, alerts, callbacks; and that it never stops a training by failing."""
import json
import logging
import types

import hpqf
import pytest
import torch
from torch import nn

DATA = [(torch.randn(5, 8), torch.randint(4, (5,))) for _ in range(6)]


def network():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_trainer_writes_rows_of_three_tiers(tmp_path):
    monitor = hpqf.Monitor(every=2, path=tmp_path / "monitor.jsonl", price_per_hour=2.0, price_source="a list",
                           rates={"fp32": 1e12}, samples_per_epoch=30)
    trainer = hpqf.MixedPrecisionTrainer(network(), {"default": "fp32"}, progress=False, monitor=monitor, monitor_gradients=2)
    trainer.train(DATA, epochs=2)
    rows = rows_of(tmp_path / "monitor.jsonl")
    assert [row["step"] for row in rows] == [2, 4, 6, 8, 10, 12] and rows[-1]["epoch"] == 1
    last = rows[-1]["metrics"]
    for name in ("loss_metrics/global_avg_loss", "throughput(samples/s)", "time_metrics/end_to_end(s)", "memory/rss(GiB)",
                 "cpu/utilisation(%)", "tflops", "mfu(%)", "precision/share_fp32", "cost/usd_total", "cost/usd_per_epoch",
                 "quant/underflow_rate", "update/ratio_max"):
        assert last[name] is not None and last[name] >= 0, name
    assert last["memory/rss(GiB)"] > 0.05 and last["precision/share_fp32"] == 1
    assert last["cost/usd_total"] > rows[0]["metrics"]["cost/usd_total"] > 0
    assert "a list" in rows[-1]["basis"]["cost/usd_total"] and "given by the user" in rows[-1]["basis"]["mfu(%)"]
    assert any("cpu/utilisation(%) is of" in note for note in rows[0]["notes"]) and "notes" not in rows[-1]
    assert "energy/kwh" in last or "energy/kwh" in rows[-1]["unknown"]   # a counter, or the truth


def test_rules_reach_the_log_the_callback_and_stop_the_trainer(caplog):
    heard = []
    monitor = hpqf.Monitor(every=1, on_alert=heard.append, rules=[
        {"rule": "always", "metric": "throughput(samples/s)", "comparison": "above", "threshold": 0, "samples": 3, "action": "stop"},
        {"rule": "quiet", "metric": "precision/loss_scale", "comparison": "above", "threshold": 0, "action": "log"}])
    trainer = hpqf.MixedPrecisionTrainer(network(), progress=False, monitor=monitor)
    with caplog.at_level(logging.WARNING, logger="hpqf"):
        summary = trainer.train(DATA)
    assert summary.steps == 3 and monitor.stop
    assert [(alert.rule, alert.action) for alert in heard] == [("quiet", "log"), ("always", "stop")]
    assert [record.message for record in caplog.records] == [f"step 3: {heard[1].text}"]
    assert [note for note in summary.notes if "alert" in note] == [f"step 3: alert {heard[1].text}"]


def test_default_rules_are_data():
    rules = json.loads(hpqf.default_alert_rules())["rules"]
    assert {"loss-nonfinite", "memory", "loss-decay"} <= {rule["rule"] for rule in rules}
    hpqf.Monitor(rules=rules)
    with pytest.raises(hpqf.Error, match="above, below, nonfinite"):
        hpqf.Monitor(rules=[{**rules[0], "comparison": "over"}])


def test_a_reference_run_is_compared(tmp_path):
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps({"step": n, "loss": 2.0}) + "\n" for n in range(1, 9)))
    monitor = hpqf.Monitor(every=1, reference=tmp_path / "metrics.jsonl")
    row = monitor.observe(step=1, loss=2.2, samples=4, seconds=0.1)
    assert row["metrics"]["loss_metrics/decay"] == pytest.approx(0.1)
    assert monitor.observe(step=9, loss=2.2, samples=4, seconds=0.1)["unknown"][0] == "loss_metrics/decay"


def test_a_full_disk_is_said_once_and_training_goes_on(caplog):
    monitor = hpqf.Monitor(every=1, path="/dev/full")
    with caplog.at_level(logging.INFO, logger="hpqf"):
        summary = hpqf.MixedPrecisionTrainer(network(), progress=False, monitor=monitor).train(DATA)
    assert summary.steps == 6
    assert sum("cannot be written" in record.message for record in caplog.records) == 1


def test_the_loop_callback():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = hpqf.Monitor(every=2)
    with hpqf.precision(model, "bf16"), hpqf.Profiler(census=False) as profiler:
        callback = hpqf.integrations.LoopCallback(optimizer, gradients=hpqf.GradientMonitor(model, every=2), monitor=monitor,
                                                  profiler=profiler, audit=lambda: hpqf.audit(model))
        for x, y in DATA:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            callback.before_step()
            optimizer.step()
            assert not callback.after_step(loss.item(), samples=len(x)).stop
    assert monitor.latest["step"] == 6 and profiler.report().audit.steps == 6
    assert "tflops" in monitor.latest["metrics"] and "update/ratio_max" in monitor.latest["metrics"]


class TrainerOfAnotherHouse:
    """Calls the events in the order in which transformers.Trainer does."""

    def __init__(self, model, callback):
        self.model, self.callback = model, callback

    def train(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        args = types.SimpleNamespace(per_device_train_batch_size=5, gradient_accumulation_steps=1)
        state, control = types.SimpleNamespace(global_step=0, epoch=0.0), types.SimpleNamespace(should_training_stop=False)
        call = lambda event, **more: getattr(self.callback, event)(args, state, control, model=self.model, optimizer=optimizer, **more)
        call("on_train_begin")
        for x, y in DATA:
            nn.functional.cross_entropy(self.model(x), y).backward()
            call("on_pre_optimizer_step")
            optimizer.step()
            optimizer.zero_grad()
            state.global_step += 1
            call("on_step_end")
            call("on_log", logs={"loss": 1.5})
            if control.should_training_stop:
                break
        call("on_train_end")
        return state.global_step


def test_the_events_of_hugging_face_on_a_trainer_with_its_shape():
    model, monitor, profiler = network(), hpqf.Monitor(every=2), hpqf.Profiler(census=False)
    events = hpqf.integrations.HuggingFaceEvents(gradients_every=2, monitor=monitor, profiler=profiler)
    with hpqf.precision(model, "bf16"):
        assert TrainerOfAnotherHouse(model, events).train() == 6
    assert monitor.latest["metrics"]["loss_metrics/global_avg_loss"] == 1.5 and profiler.report().audit.steps == 6
    assert {row.step for row in events.gradients} == {6}
    assert not any(module._forward_hooks for module in model.modules())
    stop = hpqf.Monitor(every=1, rules=[{"rule": "r", "metric": "precision/loss_scale", "comparison": "above", "threshold": 0,
                                         "action": "stop"}])
    assert TrainerOfAnotherHouse(network(), hpqf.integrations.HuggingFaceEvents(monitor=stop)).train() == 1


def test_the_callback_inside_hugging_faces_trainer(tmp_path):
    transformers = pytest.importorskip("transformers", reason="NOT TESTED with the real Trainer: transformers is not installed")
    pytest.importorskip("accelerate", reason="NOT TESTED with the real Trainer: accelerate is not installed")
    config = transformers.BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    model = transformers.BertForSequenceClassification(config)
    data = [{"input_ids": torch.randint(50, (6,)), "labels": torch.tensor(n % 2)} for n in range(16)]
    monitor = hpqf.Monitor(every=2)
    trainer = transformers.Trainer(
        model, transformers.TrainingArguments(str(tmp_path), max_steps=4, logging_steps=1, report_to=[], use_cpu=True),
        train_dataset=data, callbacks=[hpqf.integrations.hf_callback(gradients_every=2, monitor=monitor)])
    trainer.train()
    assert monitor.latest["step"] == 4 and monitor.latest["metrics"]["loss_metrics/global_avg_loss"] > 0


def test_without_transformers_the_callback_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(hpqf.Error, match="pip install transformers"):
        hpqf.integrations.hf_callback()


@pytest.mark.parametrize("arguments, match", [
    (dict(every=0), "every"), (dict(price_per_hour=-1.0), "price_per_hour"), (dict(reference="/no/such/file"), "no/such"),
    (dict(rates="fast"), "rates"), (dict(every="often"), "every"),
])
def test_mistakes_are_said(arguments, match):
    with pytest.raises(hpqf.Error, match=match):
        hpqf.Monitor(**arguments)
