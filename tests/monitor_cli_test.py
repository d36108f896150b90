"""`hpqf profile --ops` and the monitors of `hpqf train`, as a user meets them."""
import json

import pytest
from cli import refused

RATES = {"schema": "hpqf.rates", "version": 1, "device": "made up",
         "peaks": {"fp32": {"per_second": 1e12, "basis": "quoted", "source": "this test"}},
         "bandwidth": {"per_second": 1e10, "basis": "quoted", "source": "this test"}}


@pytest.fixture(autouse=True)
def files(tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"line {i}: the quick brown fox jumps over the lazy dog\n" for i in range(300)))
    (tmp_path / "rates.json").write_text(json.dumps(RATES))


PROFILE = ["profile", "--ops", "--model", "lstm-lm", "--data", "text:text.txt", "--steps", 2, "--warmup", 1, "--batch-size", 2,
           "--rates", "rates.json", "--quiet"]
TRAIN = ["train", "--model", "gpt-mini", "--data", "text:text.txt", "--steps", 6, "--batch-size", 2, "--threads", 1, "--quiet"]


def test_profile_of_ops_as_json(hpqf):
    result = hpqf(*PROFILE, "--precision", "fp32", "--json")
    assert result.returncode == 0, result.stderr
    data = json.loads(result.stdout)
    assert data["schema"] == "hpqf.profile" and data["steps"] == 2
    assert data["computed_in"][0]["format"] == "fp32" and data["low_precision"] == {"flops": 0, "time": 0}
    assert data["utilisation"]["u"] == pytest.approx(data["flops"] / 1e12 / data["seconds"])
    assert {row["pass"] for row in data["rows"]} >= {"forward", "dgrad", "wgrad"}
    assert data["uncounted"] and all(0 <= op["share_of_time"] <= 1 for op in data["uncounted"])
    assert all(point["bound"] in ("memory", "compute") for point in data["roofline"])


def test_profile_of_ops_for_people_and_a_trace(hpqf, tmp_path):
    result = hpqf(*PROFILE, "--precision", "int8", "--trace", "trace.json", "--rows", 5)
    assert result.returncode == 0, result.stderr
    for word in ("computed in", "utilisation U", "not counted", "rows that took less time", "trace.json"):
        assert word in result.stdout, result.stdout
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert any("lstm" in event["name"] for event in trace["traceEvents"])
    assert sum(event["cat"] == "step" for event in trace["traceEvents"]) == 2


def test_mistakes_of_profile_are_said(hpqf, tmp_path):
    refused(hpqf(*PROFILE[:6], "--steps", 0), "--steps 0")
    refused(hpqf(*PROFILE[:6], "--hessian"), "--hessian", "--ops")
    refused(hpqf("profile", "--model", "lstm-lm", "--data", "text:text.txt", "--precision", "int8"), "--precision", "--ops")
    refused(hpqf("profile", "--ops"), "--model")
    (tmp_path / "rates.json").write_text(json.dumps({**RATES, "peaks": {"fp99": {}}}))
    refused(hpqf(*PROFILE), "fp99")


def test_train_with_monitors(hpqf, tmp_path):
    result = hpqf(*TRAIN, "--precision", "bf16", "--out", "run", "--monitor", 2, "--monitor-gradients", 3, "--price-per-hour", 1.5)
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in (tmp_path / "run" / "monitor.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [2, 4, 6]
    assert rows[-1]["metrics"]["cost/usd_total"] > 0 and "--price-per-hour" in rows[-1]["basis"]["cost/usd_total"]
    assert rows[-1]["metrics"]["tflops"] > 0
    gradients = [json.loads(line) for line in (tmp_path / "run" / "gradients.jsonl").read_text().splitlines()]
    assert {row["step"] for row in gradients} == {3, 6} and {row["subject"] for row in gradients} == {"weight", "gradient"}
    assert any(row["format"] == "bf16" and row.get("sqnr_db", 0) > 40 for row in gradients)   # bf16 keeps 8 bits


def test_rules_from_a_file_stop_a_run_that_can_be_resumed(hpqf, tmp_path):
    (tmp_path / "alerts.json").write_text(json.dumps({"schema": "hpqf.alerts", "version": 1, "rules": [
        {"rule": "mine", "metric": "precision/loss_scale", "comparison": "above", "threshold": 0, "samples": 2, "action": "stop"}]}))
    result = hpqf(*TRAIN, "--precision", "bf16", "--out", "run", "--monitor", 1, "--alerts", "alerts.json")
    assert result.returncode == 1 and "stopped after step 2" in result.stdout, result.stdout + result.stderr
    assert (tmp_path / "run" / "checkpoints" / "step-00000002.safetensors").exists()


def test_mistakes_of_train_are_said(hpqf, tmp_path):
    refused(hpqf(*TRAIN, "--out", "run", "--price-per-hour", 2), "--price-per-hour", "--monitor")
    refused(hpqf(*TRAIN, "--out", "run", "--monitor=-1"), "--monitor")
    (tmp_path / "alerts.json").write_text("{}")
    refused(hpqf(*TRAIN, "--out", "run", "--monitor", 1, "--alerts", "alerts.json"), "alerts.json")
