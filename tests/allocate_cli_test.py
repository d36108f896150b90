"""hpqf plan allocate, hpqf plan replay and hpqf explain --history: from records to plans, and what they refuse."""
import json
import xml.etree.ElementTree

import pytest

from cli import refused

LAYERS = (("a", 1000, 0.001, 0.10), ("b", 1000, 0.002, 0.50), ("c", 2000, 0.001, 0.12))


@pytest.fixture
def record(tmp_path):
    """Three linear layers; b is the most fragile, c the largest."""
    layers = [
        {"name": name, "kind": "linear", "weights": weights, "inputs": 10, "macs": weights, "scores": [
            {"role": role, "format": format, "score": score, "stderr": 0.0}
            for role in ("weight", "input") for format, score in (("int8", int8), ("int4", int4))]}
        for name, weights, int8, int4 in LAYERS
    ]
    path = tmp_path / "sensitivity.json"
    path.write_text(json.dumps({"schema": "hpqf.sensitivity", "version": 1, "model": "Net", "layers": layers}))
    return path


def weights(path):
    return {layer["name"]: layer["weight"] for layer in json.loads(path.read_text())["layers"]}


def test_a_budget_gives_a_plan(hpqf, record, tmp_path):
    result = hpqf("plan", "allocate", record, "--budget", "bits=5", "--out", "plan.json", "--front", "front.json", "--plot", "front.svg")
    assert result.returncode == 0, result.stderr
    assert weights(tmp_path / "plan.json") == {"a": "int4", "b": "int8", "c": "int4"}
    for words in ("bits 5 of 5", "0.222 nats (modelled", "exact", "greedy", "uniform int4"):
        assert words in result.stdout
    front = json.loads((tmp_path / "front.json").read_text())
    assert [p["cost"] for p in front["front"]["points"]] == [4, 5, 6, 7, 8]
    assert front["front"]["points"][1]["changes"] == [{"layer": "b", "role": "weight", "from": "int4", "to": "int8"}]
    svg = xml.etree.ElementTree.parse(tmp_path / "front.svg").getroot()
    assert len(svg.findall("{http://www.w3.org/2000/svg}circle")) == 5


def test_locks_menus_and_json(hpqf, record, tmp_path):
    result = hpqf("plan", "allocate", "--lock", "c=fp16", record, "--budget", "bits=11", "--json")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["amounts"]["bits"] == {"value": 11.0, "limit": 11.0} and told["exact"] is True
    rules = {rule["layers"]: rule for rule in told["candidates"][0]["plan"]["rules"]}
    assert rules["=c"]["weight"] == "fp16" and rules["=c"]["reason"] == "locked: --lock c=fp16"
    assert rules["=b"]["weight"] == "int8" and rules["=a"]["weight"] == "int4"
    hpqf("plan", "allocate", record, "--budget", "bits=8", "--weights", "int4", "--out", "four.json")
    assert set(weights(tmp_path / "four.json").values()) == {"int4"}
    inputs = hpqf("plan", "allocate", record, "--budget", "bops=200k")
    assert inputs.returncode == 0 and "int8    int8" in inputs.stdout


def test_a_threshold_gives_a_plan(hpqf, record, tmp_path):
    result = hpqf("plan", "allocate", record, "--threshold", 0.21, "--out", "plan.json")
    assert result.returncode == 0, result.stderr
    assert weights(tmp_path / "plan.json") == {"a": "int4", "b": "fp16", "c": "fp16"}


def test_allocate_refuses(hpqf, record, tmp_path):
    (tmp_path / "torn.json").write_text(record.read_text()[:100])
    refused(hpqf("plan", "allocate", record, "--budget", "bits=3.9"), "smallest possible: bits 4")
    refused(hpqf("plan", "allocate", record, "--budget", "size=4"), "size=4", "bits")
    refused(hpqf("plan", "allocate", record), "--budget")
    refused(hpqf("plan", "allocate", record, "--budget", "bits=5", "--threshold", 0.1), "--threshold")
    refused(hpqf("plan", "allocate", record, "--budget", "bits=5", "--lock", "d=fp16"), '"d"')
    refused(hpqf("plan", "allocate", record, "--budget", "bits=5", "--plot", "front.png"), "front.png")
    refused(hpqf("plan", "allocate", record, "--budget", "seconds=5"), "measured times")
    refused(hpqf("plan", "allocate", "torn.json", "--budget", "bits=5"), "torn.json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sensitivity.json", "torn.json"]


@pytest.fixture
def history(tmp_path):
    """A run in which a user's policy raised a layer and the ladder another."""
    rule = {"layers": "*", "precision": "int8"}
    ladder = {"enabled": True, "scope": "operand", "patience": 3, "gradient_patience": 8, "cool_down": 20, "calm": 200, "release": 0.5,
              "calm_most": 1000, "ladder": {"int8": "bf16"}}
    for name, soft, hard in (("saturation", 0.01, 0.1), ("underflow", 0.3, 0.8), ("sqnr_db", 10, 3), ("drift", 0.5, 2)):
        ladder[name] = {"soft": soft, "hard": hard}
    lines = [
        {"schema": "hpqf.history", "version": 1, "plan": {"schema": "hpqf.plan", "version": 1, "rules": [rule]}, "model": "Net",
         "layers": [{"name": "a", "kind": "linear"}, {"name": "b", "kind": "linear"}],
         "policies": [{"name": "mine", "options": {}}, {"name": "ladder", "options": ladder}]},
        {"step": 3, "epoch": 1, "policy": "mine", "inputs": {"state": {}}, "changes": [
            {"layer": "a", "role": "weight", "from": "int8", "to": "fp32", "cause": "mine", "numbers": {}, "reason": "because"}]},
        {"step": 7, "epoch": 2, "policy": "ladder", "inputs": {"state": {"tracks": {}}, "health": [
            {"layer": "b", "role": "input", "elements": 1000, "nonfinite": 0, "saturated": 250, "underflow": 0}]}, "changes": [
            {"layer": "b", "role": "input", "from": "int8", "to": "bf16", "cause": "saturation", "numbers": {"limit": 0.1, "seen": 0.25},
             "reason": "saturation 0.25 above 0.1 at step 7"}]},
    ]

    def write(name, change=lambda text: text):
        (tmp_path / name).mkdir()
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / name / "history.jsonl").write_text(change(text))
        return tmp_path / name

    return write


def test_replay_decides_again(hpqf, history):
    run = history("run")
    result = hpqf("plan", "replay", run)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 decisions: 1 decided again from the log and the same, 1 of users' policies applied, 0 wrong" in result.stdout
    assert "b: input int8 -> bf16, saturation 0.25 above 0.1 at step 7" in hpqf("explain", run, "--history").stdout
    wrong = hpqf("plan", "replay", history("wrong", lambda text: text.replace('"saturated": 250', '"saturated": 5')))
    assert wrong.returncode == 1 and "WRONG" in wrong.stdout and "1 wrong" in wrong.stdout
    refused(hpqf("plan", "replay", history("torn", lambda text: text.replace('"step": 7', '"step": '))), "line 3")
    (run / "history.jsonl").unlink()
    refused(hpqf("plan", "replay", run), "history.jsonl")
