"""hpqf cost as a user meets it: what it counts against torch's own counter, its money, and runs that were interrupted."""
import json
import subprocess

import pytest
import torch
from cli import refused
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

H100, A100, T4 = "nvidia-h100-sxm", "nvidia-a100-sxm-80gb", "nvidia-t4"


@pytest.fixture
def cost(hpqf):
    """The JSON of a call that must succeed."""

    def run(*arguments):
        result = hpqf("cost", *arguments, "--json", "-")
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return run


# --- FLOPs against torch.utils.flop_counter -----------------------------------------------------------------------------


class Block(nn.Module):
    """Basic (two 3x3) or bottleneck (1x1, 3x3, 1x1) block; `project` makes a shortcut of another size a 1x1 convolution."""

    def __init__(self, fan_in, width, stride, bottleneck, project):
        super().__init__()
        fan_out = 4 * width if bottleneck else width
        shapes = [(fan_in, width, 1, 1), (width, width, 3, stride), (width, fan_out, 1, 1)]
        if not bottleneck:
            shapes = [(fan_in, width, 3, stride), (width, width, 3, 1)]
        self.convs = nn.ModuleList(nn.Conv2d(i, o, k, s, k // 2, bias=False) for i, o, k, s in shapes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(o) for _, o, _, _ in shapes)
        self.shortcut = None
        if project and (stride != 1 or fan_in != fan_out):
            self.shortcut = nn.Sequential(nn.Conv2d(fan_in, fan_out, 1, stride, bias=False), nn.BatchNorm2d(fan_out))

    def forward(self, x):
        y = x
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            y = norm(conv(y))
            y = y if i + 1 == len(self.convs) else y.relu()
        if self.shortcut is not None:
            return (y + self.shortcut(x)).relu()
        return y.relu() if y.shape != x.shape else (y + x).relu()


def resnet(bottleneck, blocks):
    layers, width = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate(blocks):
        for i in range(count):
            layers.append(Block(width, 64 << stage, 2 if stage and not i else 1, bottleneck, True))
            width = (64 << stage) * (4 if bottleneck else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))


def resnet20():
    layers, width = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for stage in range(3):
        for i in range(3):
            layers.append(Block(width, 16 << stage, 2 if stage and not i else 1, False, False))
            width = 16 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = (q @ k.transpose(-1, -2)).softmax(-1) @ v  # written out: the counter gives fused attention on a CPU 0 FLOPs
        return self.proj(y.transpose(1, 2).reshape(b, t, w))


class Transformer(nn.Module):
    def __init__(self, vocab, seq, width, heads, layers, head):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Parameter(torch.zeros(seq, width))
        self.blocks = nn.ModuleList(
            nn.ModuleList([Attention(width, heads), nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)])
            for _ in range(layers)
        )
        self.head = head

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        for attention, norm, up, down in self.blocks:
            x = x + attention(x)
            x = x + down(nn.functional.gelu(up(norm(x))))
        return self.head(x)


class Lstm(nn.Module):
    """Two layers of cells, spelled out: the counter does not see inside torch's fused recurrent ops."""

    def __init__(self):
        super().__init__()
        self.embedding, self.cells = nn.Embedding(256, 128), nn.ModuleList([nn.LSTMCell(128, 256), nn.LSTMCell(256, 256)])
        self.head = nn.Linear(256, 256)

    def forward(self, ids):
        x = self.embedding(ids).unbind(1)
        for cell in self.cells:
            outputs, state = [], None
            for step in x:
                state = self.step(cell, step, state)
                outputs.append(state[0])
            x = outputs
        return self.head(torch.stack(x, 1))

    @staticmethod
    def step(cell, x, state):
        h, c = state or (x.new_zeros(len(x), 256), x.new_zeros(len(x), 256))
        gates = nn.functional.linear(x, cell.weight_ih, cell.bias_ih) + nn.functional.linear(h, cell.weight_hh, cell.bias_hh)
        i, f, g, o = gates.chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


def pooled(width):
    class Pooled(nn.Module):
        def __init__(self):
            super().__init__()
            self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)

        def forward(self, x):
            return self.classifier(self.pooler(x[:, 0]).tanh())

    return Pooled()


def ids(batch, seq):
    return torch.zeros(batch, seq, dtype=torch.long, device="meta")


CASES = {
    "resnet18": (lambda: resnet(False, [2, 2, 2, 2]), lambda b: torch.empty(b, 3, 224, 224, device="meta")),
    "resnet50": (lambda: resnet(True, [3, 4, 6, 3]), lambda b: torch.empty(b, 3, 224, 224, device="meta")),
    "resnet20": (resnet20, lambda b: torch.empty(b, 3, 32, 32, device="meta")),
    "bert-base": (lambda: Transformer(30522, 128, 768, 12, 12, pooled(768)), lambda b: ids(b, 128)),
    "bert-large": (lambda: Transformer(30522, 128, 1024, 16, 24, pooled(1024)), lambda b: ids(b, 128)),
    "gpt2": (lambda: Transformer(50257, 1024, 768, 12, 12, nn.Linear(768, 50257, bias=False)), lambda b: ids(b, 1024)),
    "gpt-mini": (lambda: Transformer(256, 128, 128, 4, 4, nn.Linear(128, 256, bias=False)), lambda b: ids(b, 128)),
    "lstm-lm": (Lstm, lambda b: ids(b, 128)),
}


@pytest.mark.parametrize("name", CASES)
def test_flops_agree_with_torchs_counter(cost, name):
    make, inputs = CASES[name]
    batch = 2
    with torch.device("meta"):
        model = make()
    forward, training = FlopCounterMode(display=False), FlopCounterMode(display=False)
    with forward:
        model(inputs(batch))
    with training:
        model(inputs(batch)).sum().backward()
    counted = cost("--model", name, "--device", H100, "--samples", 1000)["workload"]
    assert counted["forward_flops"] == pytest.approx(forward.get_total_flops() / batch, rel=1e-3)
    whole = counted["forward_flops"] + counted["dgrad_flops"] + counted["wgrad_flops"]
    assert whole == pytest.approx(training.get_total_flops() / batch, rel=1e-2)


def test_parameters_agree_with_torch(cost):
    for name, ours in (("resnet50", CASES["resnet50"]), ("resnet18", CASES["resnet18"]), ("resnet20", CASES["resnet20"])):
        with torch.device("meta"):
            model = ours[0]()
        counted = cost("--model", name, "--device", H100, "--samples", 1000)["workload"]["parameters"]
        assert counted == sum(p.numel() for p in model.parameters())


def test_causal_attention_is_counted_as_asked(cost):
    model = ["--model", "gpt:layers=2,hidden=64,heads=4,vocab=100,seq=32", "--device", H100, "--samples", 10]
    full, exact = (cost(*model, *flag)["workload"]["forward_flops"] for flag in ([], ["--causal-exact"]))
    assert full - exact == 2 * 2 * 2 * 64 * (32 * 32 - 32 * 33 / 2)


# --- models -------------------------------------------------------------------------------------------------------------


def test_table_says_modelled_and_what_it_rests_on(hpqf):
    result = hpqf(
        "cost", "--model", "resnet50", "--device", f"{H100},{T4}", "--gpus", 8, "--precision", "fp32,bf16,fp8,int8", "--epochs", 90,
        "--price", "2.10", "--batch-size", 64,
    )
    assert result.returncode == 0, result.stderr
    for word in ("(modelled)", H100, T4, "break-even", "kWh", "given: 2.1 USD", "emulated", "ImageNet-1k", "tf32 off", "PUE"):
        assert word in result.stdout, word
    # fp8 and bf16 have no units on a T4.
    assert f"fp8 on {T4}: " in result.stdout and f"bf16 on {T4}: " in result.stdout


def test_time_energy_and_money_multiply_out(cost):
    out = cost("--model", "resnet18", "--device", H100, "--gpus", 4, "--precision", "bf16", "--samples", 1_000_001, "--batch-size", 50,
               "--price", 3, "--pue", 1.5, "--utilisation", 0.5, "--host-factor", 1.1, "--co2", 400)  # fmt: skip
    row = out["rows"][0]
    steps = 5001  # ceil(1000001 / 200)
    assert row["seconds"] == pytest.approx(steps * row["step_seconds"])
    assert row["device_hours"] == pytest.approx(row["seconds"] * 4 / 3600)
    assert row["cost"]["mid"] == pytest.approx(3 * row["device_hours"])
    assert row["energy_kwh"] == pytest.approx(0.7 * 0.5 * 1.1 * 1.5 * row["device_hours"])
    assert row["co2_kg"] == pytest.approx(0.4 * row["energy_kwh"])
    parts = row["step"]
    whole = parts["products"] + parts["other_ops"] + parts["casts"] + parts["optimizer"] + parts["launches"] + parts["communication_exposed"]
    whole += parts["left_out"]["mid"]
    assert row["step_seconds"] == pytest.approx(whole)
    assert sum(row["flops_by_arithmetic"].values()) == pytest.approx(row["flops_per_step_and_device"])


def test_lower_precision_is_never_modelled_beyond_its_peak(cost):
    out = cost("--model", "gpt:layers=24,hidden=4096,heads=32", "--device", H100, "--precision", "fp32,tf32,bf16,fp8", "--tokens", "1e9",
               "--batch-size", 8)  # fmt: skip
    fp32, tf32, bf16, fp8 = out["rows"]
    assert fp32["step_seconds"] > tf32["step_seconds"] > bf16["step_seconds"] > fp8["step_seconds"]
    for row, peak in ((fp32, 67e12), (tf32, 494.5e12), (bf16, 989.4e12), (fp8, 1979e12)):
        assert row["flops_per_step_and_device"] / row["step_seconds"] < peak


def test_break_even_is_where_the_saving_pays_the_effort(cost):
    common = ["--model", "bert-base", "--device", A100, "--precision", "fp32,bf16", "--samples", "1e6", "--price", 4]
    row = cost(*common, "--conversion-hours", 40, "--hourly-wage", 100, "--profiling-gpu-hours", 10)["rows"][1]
    assert row["break_even_device_hours"]["mid"] * 4 * row["saved_share"] == pytest.approx(4000 + 10 * 4)
    even = row["break_even_device_hours"]
    assert even["best"] <= even["mid"] <= even["worst"]
    never = cost(*common[:4], "--precision", "bf16,fp32", *common[6:])["rows"][1]
    assert never["break_even_device_hours"]["mid"] == "never" and never["saved_share"] < 0


def test_plans_are_modelled_layer_by_layer(cost, hpqf, tmp_path):
    rules = [{"layers": "conv1", "precision": "fp32"}, {"layers": "fc", "precision": "fp32"}, {"layers": "*", "precision": "bf16"}]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"schema": "hpqf.plan", "version": 1, "rules": rules}))
    out = cost("--model", "resnet20", "--device", A100, "--precision", "fp32,bf16", "--plan", plan, "--epochs", 1)
    fp32, bf16, mixed = (row["flops_by_arithmetic"] for row in out["rows"])
    assert set(fp32) == {"fp32"} and set(bf16) == {"bf16"} and set(mixed) == {"bf16", "fp32"}
    first_and_last = 2 * (2 * 16 * 27 * 1024) + 3 * 2 * 64 * 10  # no input gradient of the first
    assert mixed["fp32"] == 32 * first_and_last
    rules[0]["layers"] = "encoder"
    plan.write_text(json.dumps({"schema": "hpqf.plan", "version": 1, "rules": rules}))
    refused(hpqf("cost", "--model", "resnet20", "--device", A100, "--plan", plan, "--epochs", 1), "encoder")


def test_prices_come_from_tables_with_their_source(hpqf, cost, tmp_path):
    call = ["--model", "resnet18", "--device", H100, "--precision", "bf16", "--epochs", 1]
    published = cost(*call)
    assert published["rows"][0]["cost"]["low"] < published["rows"][0]["cost"]["high"]
    assert any("skypilot-catalog" in line for line in published["prices"])
    assert any("no date" in line for line in published["prices"])
    spot = cost(*call, "--spot")
    assert spot["rows"][0]["cost"]["high"] < published["rows"][0]["cost"]["low"]

    def price(amount, currency, date):
        return {"provider": f"P{amount}", "device": H100, "kind": "on_demand", "per_hour": amount, "currency": currency, "date": date, "source": "x"}

    own = tmp_path / "prices.json"
    table = {"schema": "hpqf.prices", "version": 1}
    own.write_text(json.dumps(table | {"prices": [price(5, "CNY", "2020-01-01"), price(7, "CNY", "2999-01-01"), price(1, "USD", "2020-01-01")]}))
    out = cost(*call, "--prices", own)
    row = out["rows"][0]
    assert row["currency"] == "CNY" and row["cost"]["mid"] == pytest.approx(6 * row["device_hours"])
    notes = "\n".join(out["prices"])
    assert "days old (2020-01-01)" in notes and "after today" in notes and "left out: nothing here converts currencies" in notes
    own.write_text(json.dumps(table | {"prices": [price(0, "USD", "2020-01-01")]}))
    refused(hpqf("cost", *call, "--prices", own), "prices.json: price 0", "above 0")
    refused(hpqf("cost", *call, "--reserved"), "reserved", "--price")


def test_mistakes_are_refused_in_three_parts(hpqf):
    fine = ["cost", "--model", "resnet50", "--device", H100, "--epochs", 1]
    refused(hpqf("cost"), "exactly one of the three")
    refused(hpqf("cost", "--model", "resnet49", "--device", H100, "--epochs", 1), "resnet50")
    refused(hpqf("cost", "--model", "resnet50", "--epochs", 1), "--device")
    refused(hpqf("cost", "--model", "resnet50", "--device", "nvidia-h200000", "--epochs", 1), "nvidia-")
    refused(hpqf("cost", "--model", "resnet50", "--device", H100), "--samples")
    refused(hpqf(*fine, "--samples", 5), "one of")
    refused(hpqf("cost", "--model", "resnet50", "--device", H100, "--tokens", 5), "text")
    refused(hpqf("cost", "--model", "gpt2", "--device", H100, "--epochs", 5), "--dataset-size")
    refused(hpqf(*fine, "--precision", "bf17"), "bf17")
    refused(hpqf(*fine, "--gpus", 0), "gpus")
    refused(hpqf(*fine, "--optimizer", "lion"), "adamw")
    refused(hpqf(*fine, "--price", 1, "--spot"), "--spot")
    refused(hpqf(*fine, "--overlap", 2), "overlap")
    refused(hpqf(*fine, "--left-out", -1), "left-out")
    refused(hpqf(*fine, "--pue", 0.5), "PUE")
    refused(hpqf(*fine, "--rerun-risk", 2), "risk")
    refused(hpqf("cost", "--example", "gpt-200b"), "gpt-100b")


def test_this_machine_is_measured(cost):
    out = cost("--model", "gpt-mini", "--device", "this", "--precision", "fp32,int8", "--steps", 10, "--price", "0.05")
    fp32, int8 = out["rows"]
    assert 0 < int8["step_seconds"] and 0 < fp32["step_seconds"] < 60
    assert "energy_kwh" not in fp32  # the power of this machine is unknown, and not 0
    assert any(a["basis"] == "measured" and "timed here" in a["text"] for a in out["assumptions"])


# --- the worked example -------------------------------------------------------------------------------------------------


def test_example_shows_every_assumption_and_speaks_plainly(hpqf, cost):
    text = hpqf("cost", "--example", "gpt-100b").stdout
    assert "1.2 M to 480 k USD" in text and "720 k and not 480 k" in text and "only against true fp32" in text
    out = cost("--example", "gpt-100b", "--price", 2)
    figures = {f["what"]: f["value"] for f in out["figures"]}
    assert figures["money before over after"] == pytest.approx(2.5)
    assert figures["devices before over after"] == pytest.approx(1.5)
    assert figures["device-hours before"] == pytest.approx(600_000)
    assert figures["effort that pays back in 1000 device-hours"] == pytest.approx(1200)
    for t in out["transitions"]:
        assert t["reaches"] == (t["ratio"] >= 2.5)
        if (t["from"], t["to"]) == ("bf16", "fp8"):
            assert 1 < t["ratio"] < 2
    assert all(f["basis"] in ("measured", "quoted", "modelled", "assumed", "given") for f in out["figures"])


# --- runs ---------------------------------------------------------------------------------------------------------------


def run_folder(folder, steps, seconds=1.0, wall=1.5, samples=8, loss=lambda n: 1 + 8 / n**0.5, tail=""):
    folder.mkdir()
    lines = [
        json.dumps({"step": n, "epoch": (n - 1) // 50, "loss": loss(n), "skipped": False, "samples": samples, "seconds": seconds,
                    "wall_seconds": wall, "samples_per_second": samples / seconds})
        for n in range(1, steps + 1)
    ]  # fmt: skip
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n" + tail)
    (folder / "config.json").write_text(
        json.dumps({"schema": "hpqf.run", "version": 1, "model": "resnet20", "precision": "bf16", "batch-size": samples, "accumulate": 1})
    )
    return folder


def figures(out):
    return {f["what"].strip(): f for f in out["figures"]}


def test_a_killed_run_has_a_cost(cost, tmp_path):
    run = run_folder(tmp_path / "run", 120, tail='{"step":121,"epo')
    out = cost("--run", run, "--price", 2, "--gpus", 4)
    found = figures(out)
    assert found["wall time of all parts"] == {"what": "wall time of all parts", "value": 180.0, "basis": "measured"}
    assert found["device-hours"]["value"] == pytest.approx(0.2)
    assert found["cost so far"]["value"] == pytest.approx(0.4)
    assert found["per 1,000 samples"]["value"] == pytest.approx(0.4 / 0.96)
    assert found["per epoch"]["value"] == pytest.approx(0.4 / 120 * 50)
    notes = "\n".join(out["notes"])
    assert "is cut" in notes and "has not come to its end" in notes


def test_comparison_with_a_measured_run(hpqf, cost, tmp_path):
    low, fp32 = run_folder(tmp_path / "low", 60, wall=1.0), run_folder(tmp_path / "fp32", 60, wall=2.5)
    found = figures(cost("--run", low, "--against", fp32, "--price", 36))
    speed = next(f for what, f in found.items() if what.startswith("speed against"))
    assert speed["value"] == pytest.approx(2.5) and speed["basis"] == "measured"
    assert found["saved so far"]["value"] == pytest.approx(36 * 60 / 3600 * 1.5)
    found = figures(cost("--run", fp32, "--against", low, "--price", 36))
    assert found["lost so far"]["value"] < 0
    (fp32 / "config.json").write_text(json.dumps({"model": "gpt-mini", "batch-size": 8}))
    refused(hpqf("cost", "--run", low, "--against", fp32), "one model")


def test_projection_to_a_target(cost, tmp_path):
    run = run_folder(tmp_path / "run", 500)
    out = cost("--run", run, "--price", 3600 / 1.5, "--target", 1.2)  # one unit of money a step; 1 + 8 / sqrt(n) is 1.2 at 1600
    assert out["projection"]["outlook"] == "projected"
    assert out["projection"]["steps"]["mid"] == pytest.approx(1600, rel=0.05)
    assert figures(out)["cost until then"]["value"] == pytest.approx(out["projection"]["steps"]["mid"])
    assert cost("--run", run, "--target", 0.9)["projection"]["outlook"] == "cannot tell"
    assert cost("--run", run, "--target", 2.0)["projection"]["outlook"] == "reached"


def test_a_run_without_money_or_folder(hpqf, tmp_path):
    run = run_folder(tmp_path / "run", 20)
    result = hpqf("cost", "--run", run)
    assert result.returncode == 0 and "no price: give --price" in result.stdout
    assert "no epoch is known" in hpqf("cost", "--run", run, "--price", 1).stdout
    refused(hpqf("cost", "--run", tmp_path / "nothing"), "metrics.jsonl")
    text = (run / "metrics.jsonl").read_text().splitlines()
    (run / "metrics.jsonl").write_text("\n".join([*text[:5], "damage", *text[5:]]) + "\n")
    refused(hpqf("cost", "--run", run), "line 6")


@pytest.fixture(scope="session")
def trained(program, tmp_path_factory):
    """A run in bf16, stopped and resumed; its own data."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "text.txt").write_text("".join(f"line {i}: the quick brown fox\n" for i in range(600)))

    def call(*arguments):
        done = subprocess.run([program, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr

    call("train", "--model", "gpt-mini", "--data", "text:text.txt", "--precision", "int8", "--batch-size", 8, "--steps", 6,
         "--checkpoint-every", 4, "--out", "run", "--quiet")  # fmt: skip
    # As if it had been killed after step 6 with a checkpoint at step 4.
    (folder / "run" / "checkpoints" / "step-00000006.safetensors").unlink()
    call("train", "--resume", "--out", "run", "--steps", 10, "--quiet")
    return folder / "run"


def test_a_resumed_run_pays_for_all_its_parts(cost, trained):
    lines = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 11))
    assert [("repeated_seconds" in line) for line in lines] == [n == 4 for n in range(1, 11)]
    found = figures(cost("--run", trained, "--price", 0.5))
    repeated = lines[3]["repeated_seconds"]
    assert found["of it steps taken again"]["value"] == pytest.approx(repeated)
    assert found["wall time of all parts"]["value"] == pytest.approx(sum(line["wall_seconds"] for line in lines) + repeated)
    assert found["wall time of all parts"]["value"] >= found["inside steps"]["value"] - 1e-6
    assert found["samples"]["value"] == 80


def test_a_run_against_fp32_by_the_model(cost, trained):
    out = cost("--run", trained, "--device", "this", "--price", 0.5)
    speed = next(f for f in out["figures"] if f["what"].startswith("speed of the plan against fp32"))
    assert speed["basis"] == "modelled" and speed["value"] > 0
    assert any("FLOPs from the audit" in a["text"] for a in out["assumptions"])
    # The work a run's audit shows is that of the model it trained.
    planned = cost("--model", trained, "--device", A100, "--samples", 100)["workload"]
    known = cost("--model", "gpt-mini", "--device", A100, "--samples", 100)["workload"]
    assert planned["forward_flops"] == pytest.approx(known["forward_flops"], rel=0.01)
    assert planned["parameters"] == known["parameters"]
