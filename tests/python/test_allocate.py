"""Allocation from Python: a record of sensitivity and a budget give a plan that the trainer takes."""
import json

import hpqf
import pytest
import torch
from hpqf.allocator import AllocatorDecisions, allocate_precision
from torch import nn


def record(**scores):
    """Three linear layers; b is the most fragile, c the largest."""
    layers = []
    for name, weights, int8, int4 in (("a", 1000, 0.001, 0.10), ("b", 1000, 0.002, 0.50), ("c", 2000, 0.001, 0.12)):
        int4 = scores.get(name, int4)
        layers.append({"name": name, "kind": "linear", "weights": weights, "inputs": 50, "macs": weights, "scores": [
            {"role": "weight", "format": "int8", "score": int8, "stderr": 0.0},
            {"role": "weight", "format": "int4", "score": int4, "stderr": 0.0}]})
    return json.dumps({"schema": "hpqf.sensitivity", "version": 1, "model": "Net", "layers": layers})


class Report:
    def __init__(self, text):
        self.text = text

    def to_json(self):
        return self.text


def test_bits_go_where_they_are_worth_most(tmp_path):
    a = hpqf.allocate(Report(record()), {"bits": 5})
    assert [a.plan.at(layer).weight for layer in "abc"] == ["int4", "int8", "int4"]
    assert a.exact and a.loss == pytest.approx(0.222) and a.amounts == {"bits": 5.0}
    (tmp_path / "s.json").write_text(record())
    assert hpqf.allocate(tmp_path / "s.json", "bits=5").plan == a.plan
    with pytest.raises(hpqf.Error, match="smallest possible: bits 4"):
        hpqf.allocate(Report(record()), {"bits": 3})
    with pytest.raises(hpqf.Error, match="bits, bytes"):
        hpqf.allocate(Report(record()), {"size": 3})
    with pytest.raises(hpqf.Error):
        hpqf.allocate(42, {"bits": 5})


def test_locks_menus_and_limits():
    a = hpqf.allocate(Report(record()), {"bits": 20}, locks={"c": hpqf.LayerPrecision("fp16", reason="head")})
    assert a.plan.at("c").weight == "fp16" and a.plan.at("c").reason == "locked: head"
    assert hpqf.allocate(Report(record()), {"bits": 20}, locks={"c": "bf16"}).plan.at("c").input == "bf16"
    assert hpqf.allocate(Report(record()), {"bits": 20}, weights="int4").plan.at("a").weight == "int4"
    assert hpqf.allocate(Report(record()), {"bits": 40}, forbid_above=0.0015).plan.at("b").weight == "fp32"


def test_front_and_measured_final():
    a = hpqf.allocate(Report(record()), {"bits": 5}, front_points=10)
    assert [p.cost for p in a.front] == [4, 5, 6, 7, 8] and a.front_kind == "bits"
    assert [(c.layer, c.after) for c in a.front[1].changes] == [("b", "int8")]
    assert [c.name for c in a.candidates] == ["exact", "greedy", "uniform int4"]
    chosen, reason = a.choose_final([0.3, 0.3, 0.2])
    assert chosen.name == "uniform int4" and "measured 0.2" in reason
    assert json.loads(a.to_json())["schema"] == "hpqf.allocation"


def test_the_allocator_by_threshold():
    class Allocator(AllocatorDecisions):
        pass

    allocator = Allocator()
    with pytest.raises(hpqf.Error, match="not measured"):
        allocator.allocate_precision()
    allocator.report = Report(record())
    assert allocator.allocate_precision(threshold=0.21) == {"a": "INT4", "b": "FP16", "c": "FP16"}
    assert allocator.plan.at("a").input == "int4"
    assert allocator.allocate({"bits": 5}).plan == allocator.plan
    with pytest.raises(hpqf.Error, match="eigenvalue"):
        allocate_precision(Report(record()), measure="eigenvalue")


def test_a_model_trains_in_the_allocated_plan():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(20, 50), nn.Linear(50, 20), nn.Linear(20, 100)

        def forward(self, x):
            return self.c(torch.relu(self.b(torch.relu(self.a(x)))))

    torch.manual_seed(0)
    plan = hpqf.allocate(Report(record()), {"bits": 5}).plan
    data = [(torch.randn(8, 20), torch.randint(0, 100, (8,))) for _ in range(2)]
    trainer = hpqf.MixedPrecisionTrainer(Net(), plan=plan, loss_fn=nn.CrossEntropyLoss())
    trainer.train(data, epochs=1)
    weights = {row.layer: row for row in trainer.audit().rows if row.op == "linear"}
    assert set(weights) == {"a", "b", "c"}
