"""The command line as a user meets it: the built program, its exit codes, its files."""
import gzip
import json
import pathlib
import os
import pty
import resource
import select
import signal
import struct
import subprocess
import time

import pytest
from cli import refused


def idx(sizes, data):
    return bytes([0, 0, 8, len(sizes)]) + b"".join(struct.pack(">I", n) for n in sizes) + bytes(data)


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """96 training and 32 test images of 12 x 12 whose class is the row of a bright line."""
    folder = tmp_path_factory.mktemp("mnist")
    for split, count in (("train", 96), ("t10k", 32)):
        labels = [i % 10 for i in range(count)]
        pixels = bytearray()
        for i, label in enumerate(labels):
            image = [[(7 * i + 13 * x + 5 * y) % 60 for x in range(12)] for y in range(12)]
            image[label + 1] = [250] * 12
            pixels += bytes(value for row in image for value in row)
        with gzip.open(folder / f"{split}-images-idx3-ubyte.gz", "wb") as file:
            file.write(idx([count, 12, 12], pixels))
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(idx([count], labels))
    return f"mnist-idx:{folder}"


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"line {i}: the quick brown fox jumps over the lazy dog\n" for i in range(300)))
    return f"text:{path}"


def data_for(model, images, text):
    data = {"resnet20": images, "vit-tiny": images, "bert-mini": "verses"}.get(model, text)
    if data == "verses" and not pathlib.Path("/usr/lib/bible.data").exists():
        pytest.skip("Debian's package bible-kjv-text is not installed")
    return ["--model", model, "--data", data, "--batch-size", 8]


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def losses(folder):
    return [(m["step"], m["loss"], m["loss_scale"], m["lr"]) for m in metrics(folder)]


TRAIN = ["train", "--steps", 5, "--threads", 1, "--seed", 3]


@pytest.mark.parametrize("precision", ["bf16", "fp16", "int8"])
@pytest.mark.parametrize("model", ["resnet20", "vit-tiny", "bert-mini", "gpt-mini", "lstm-lm"])
def test_every_model_trains(hpqf, tmp_path, images, text, model, precision):
    run = tmp_path / "run"
    sensitive = {"resnet20": "conv1,fc", "bert-mini": "classifier"}.get(model, "head")
    result = hpqf(*TRAIN, *data_for(model, images, text), "--precision", precision, "--sensitive", sensitive, "--out", run)
    assert result.returncode == 0, result.stderr
    assert ("perplexity" if model in ("gpt-mini", "lstm-lm") else "test accuracy") in result.stdout
    assert precision in result.stdout and str(run) in result.stdout
    lines = metrics(run)
    assert [m["step"] for m in lines] == [1, 2, 3, 4, 5]
    assert all(m["loss"] > 0 for m in lines)
    for name in ("plan.json", "audit.json", "config.json", "result.json"):
        json.loads((run / name).read_text())
    assert [p.name for p in (run / "checkpoints").iterdir()] == ["step-00000005.safetensors"]
    plan = json.loads((run / "plan.json").read_text())
    formats = {layer["name"]: layer["weight"] for layer in plan["layers"]}
    name, kept = {"resnet20": ("layer1.0.conv1", "fc"), "vit-tiny": ("blocks.5.up", "head"), "bert-mini": ("pooler", "classifier"), "gpt-mini": ("blocks.0.up", "head"), "lstm-lm": ("lstm", "head")}[model]
    assert formats[name] == precision and formats[kept] == "fp32"
    audit = json.loads((run / "audit.json").read_text())
    assert any(precision in json.dumps(row) for row in audit["rows"])

    explained = hpqf("explain", run)
    assert explained.returncode == 0, explained.stderr
    assert name in explained.stdout and precision in explained.stdout


def test_fp32_plan_equals_another_run_bit_for_bit(hpqf, tmp_path, images):
    for run in ("a", "b"):
        result = hpqf(*TRAIN, *data_for("resnet20", images, ""), "--precision", "fp32", "--out", tmp_path / run)
        assert result.returncode == 0, result.stderr
    assert losses(tmp_path / "a") == losses(tmp_path / "b")
    assert hpqf(*TRAIN, *data_for("resnet20", images, ""), "--precision", "fp32", "--seed", 4, "--out", "c").returncode == 2  # --seed twice
    assert not (tmp_path / "c").exists()


def test_loss_falls(hpqf, tmp_path, images):
    result = hpqf("train", *data_for("resnet20", images, ""), "--batch-size=16", "--steps", 30, "--lr", 0.05, "--precision", "bf16", "--out", "run")
    assert result.returncode == 2  # --batch-size twice
    result = hpqf("train", "--model", "resnet20", "--data", images, "--batch-size=16", "--steps", 30, "--lr", 0.05, "--threads", 1, "--out", "run")
    assert result.returncode == 0, result.stderr
    values = [m["loss"] for m in metrics(tmp_path / "run")]
    assert sum(values[-5:]) < 0.5 * sum(values[:5])


BAD = {
    "unknown model": (["train", "--model", "resnet99"], ["resnet99", "resnet20, vit-tiny, bert-mini, gpt-mini, lstm-lm"]),
    "no model": (["train"], ["resnet20, vit-tiny, bert-mini, gpt-mini, lstm-lm"]),
    "unknown data": (["train", "--model", "resnet20", "--data", "cifar"], ["cifar", "fashion-mnist"]),
    "missing folder": (["train", "--model", "resnet20", "--data", "mnist-idx:/nowhere"], ["/nowhere"]),
    "missing text": (["train", "--model", "gpt-mini", "--data", "text:/nowhere"], ["/nowhere"]),
    "text for an image model": (["train", "--model", "resnet20", "--data", "TEXT"], ["images", "text"]),
    "unknown format": (["train", "--model", "resnet20", "--data", "IMAGES", "--precision", "fp12"], ["fp12", "bf16"]),
    "unknown layer": (["train", "--model", "resnet20", "--data", "IMAGES", "--sensitive", "con1"], ["con1", "conv1"]),
    "unknown optimizer": (["train", "--model", "resnet20", "--data", "IMAGES", "--optimizer", "lion"], ["lion", "sgd"]),
    "unknown schedule": (["train", "--model", "resnet20", "--data", "IMAGES", "--schedule", "linear"], ["linear", "cosine"]),
    "negative lr": (["train", "--model", "resnet20", "--data", "IMAGES", "--lr=-1"], ["--lr -1"]),
    "nan lr": (["train", "--model", "resnet20", "--data", "IMAGES", "--lr", "nan"], ["--lr nan"]),
    "lr that is no number": (["train", "--model", "resnet20", "--lr", "fast"], ["lr"]),
    "zero batch": (["train", "--model", "resnet20", "--data", "IMAGES", "--batch-size", "0"], ["--batch-size 0"]),
    "negative steps": (["train", "--model", "resnet20", "--data", "IMAGES", "--steps=-5"], ["--steps -5"]),
    "negative limit": (["train", "--model", "resnet20", "--data", "IMAGES", "--limit=-5"], ["--limit -5"]),
    "too many threads": (["train", "--model", "resnet20", "--data", "IMAGES", "--threads", "1000000"], ["--threads"]),
    "bad loss scale": (["train", "--model", "resnet20", "--data", "IMAGES", "--loss-scale", "big"], ["big", "dynamic"]),
    "bad strict": (["train", "--model", "resnet20", "--data", "IMAGES", "--strict=always"], ["always", "native"]),
    "plan and precision": (["train", "--model", "resnet20", "--data", "IMAGES", "--plan", "x.json", "--sensitive", "fc"], ["--plan"]),
    "missing plan": (["train", "--model", "resnet20", "--data", "IMAGES", "--plan", "nowhere.json"], ["nowhere.json"]),
    "missing config": (["train", "--config", "nowhere.toml"], ["nowhere.toml"]),
    "resume without out": (["train", "--resume"], ["--out"]),
    "resume of nothing": (["train", "--resume", "--out", "nowhere"], ["nowhere"]),
    "unknown option": (["train", "--modle", "resnet20"], ["--modle", "--model"]),
    "unknown command": (["trian"], ["trian", "train"]),
    "no command": ([], []),
    "explain without path": (["explain"], ["PATH"]),
    "explain of nothing": (["explain", "nowhere"], ["nowhere"]),
    "plan without verb": (["plan"], []),
    "plan check without model": (["plan", "check", "x.json"], ["--model"]),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_refused_in_three_parts(hpqf, tmp_path, images, text, case):
    arguments, words = BAD[case]
    arguments = [{"IMAGES": images, "TEXT": text}.get(a, a) for a in arguments]
    refused(hpqf(*arguments), *words)
    assert list(tmp_path.iterdir()) == []  # nothing half-written, no runs/


def test_out_folder_that_cannot_be_used(hpqf, tmp_path, images):
    file = tmp_path / "file"
    file.write_text("mine")
    arguments = [*TRAIN, *data_for("resnet20", images, "")]
    refused(hpqf(*arguments, "--out", file), "file")
    refused(hpqf(*arguments, "--out", file / "below"), "below")
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("mine")
    refused(hpqf(*arguments, "--out", full), "full", "--resume")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "full", "mine"]
    assert file.read_text() == "mine"


def test_a_run_that_cannot_start_leaves_no_folder(hpqf, tmp_path, images):
    # An emulated format under --strict=native fails in the first step, when the folder exists already.
    arguments = [*TRAIN, *data_for("resnet20", images, ""), "--precision", "fp8", "--strict=native"]
    refused(hpqf(*arguments, "--out", "new/run"))
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    refused(hpqf(*arguments, "--out", "empty"))
    assert list((tmp_path / "empty").iterdir()) == []


def start_and_kill(program, arguments, run, lines, kill):
    """Kills the program as soon as its metrics have `lines` lines. Returns its exit code and output."""
    process = subprocess.Popen([program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 240
    file = run / "metrics.jsonl"
    while process.poll() is None and time.monotonic() < deadline:
        if file.exists() and file.read_bytes().count(b"\n") >= lines:
            break
        time.sleep(0.005)
    process.send_signal(kill)
    output, errors = process.communicate(timeout=120)
    return process.returncode, output + errors


@pytest.mark.parametrize("model,precision", [("resnet20", "fp16"), ("lstm-lm", "bf16"), ("gpt-mini", "int8")])
def test_a_killed_run_resumes_equal(program, hpqf, tmp_path, images, text, model, precision):
    settings = [*data_for(model, images, text), "--precision", precision, "--steps", 40, "--threads", 1, "--schedule", "cosine"]
    settings += ["--checkpoint-every", 4]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert hpqf("train", *settings, "--out", whole).returncode == 0
    code, _ = start_and_kill(program, ["train", *settings, "--out", killed], killed, 9, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert len(metrics_lines_whole(killed)) < 40
    result = hpqf("train", "--resume", "--out", killed)
    assert result.returncode == 0, result.stderr
    assert losses(killed) == losses(whole)
    assert json.loads((killed / "result.json").read_text())["loss"] == json.loads((whole / "result.json").read_text())["loss"]


def metrics_lines_whole(folder):
    return (folder / "metrics.jsonl").read_bytes().split(b"\n")[:-1]


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_says_how_to_go_on(program, hpqf, tmp_path, images, kill):
    settings = [*data_for("resnet20", images, ""), "--precision", "bf16", "--threads", 1]
    run, whole = tmp_path / "run", tmp_path / "whole"
    code, output = start_and_kill(program, ["train", *settings, "--steps", 400, "--out", run], run, 3, kill)
    assert code == 128 + kill
    assert f"hpqf train --resume --out {run}" in output
    done = len(metrics(run))
    assert 3 <= done < 400 and (run / "checkpoints" / f"step-{done:08d}.safetensors").exists()
    assert hpqf("train", "--resume", "--out", run, "--steps", done + 5).returncode == 0
    assert hpqf("train", *settings, "--steps", done + 5, "--out", whole).returncode == 0
    assert losses(run) == losses(whole)


def test_resume_refuses_another_run(hpqf, tmp_path, images, text):
    run = tmp_path / "run"
    assert hpqf(*TRAIN, *data_for("resnet20", images, ""), "--precision", "bf16", "--out", run).returncode == 0
    before = (run / "metrics.jsonl").read_text(), (run / "config.json").read_text(), (run / "plan.json").read_text()
    refused(hpqf("train", "--resume", "--out", run, "--model", "gpt-mini", "--data", text), "gpt-mini", "resnet20")
    refused(hpqf("train", "--resume", "--out", run, "--precision", "fp16", "--steps", 9), "plan")
    refused(hpqf("train", "--resume", "--out", run, "--sensitive", "fc", "--steps", 9), "plan")
    refused(hpqf(*TRAIN, *data_for("resnet20", images, ""), "--out", run), "not empty")
    checkpoint = next((run / "checkpoints").iterdir())
    content = bytearray(checkpoint.read_bytes())
    content[len(content) // 2] ^= 1
    checkpoint.write_bytes(content)
    refused(hpqf("train", "--resume", "--out", run, "--steps", 9), checkpoint.name)
    assert before == ((run / "metrics.jsonl").read_text(), (run / "config.json").read_text(), (run / "plan.json").read_text())


def test_disk_full_in_a_checkpoint(hpqf, tmp_path, images):
    """A size limit below that of a checkpoint: an error from write(2) in the middle of the file, as on a full disk."""
    run = tmp_path / "run"
    settings = [*data_for("resnet20", images, ""), "--steps", 4, "--threads", 1, "--precision", "bf16"]

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    refused(hpqf("train", *settings, "--checkpoint-every", 2, "--out", run, preexec_fn=limit), "step-00000002")
    assert list((run / "checkpoints").iterdir()) == []  # no torn file under any name
    assert [m["step"] for m in metrics(run)] == [1, 2]


def test_settings_from_files_and_who_wins(hpqf, tmp_path, images):
    (tmp_path / "a.toml").write_text(f'model = "resnet20"\ndata = "{images}"\nsteps = 2\nlr = 0.5  # high\nsensitive = ["conv1", "fc"]\n')
    (tmp_path / "b.ini").write_text(f"[train]\nmodel=resnet20\ndata={images}\nsteps=2\nlr=0.5\nsensitive=conv1,fc\n")
    (tmp_path / "c.json").write_text(json.dumps({"model": "resnet20", "data": images, "steps": 2, "lr": 0.5, "sensitive": ["conv1", "fc"]}))
    for name in ("a.toml", "b.ini", "c.json"):
        result = hpqf("train", "--config", name, "--batch-size", 8, "--lr", 0.25, "--threads", 1, "--out", f"run-{name}")
        assert result.returncode == 0, result.stderr
        config = json.loads((tmp_path / f"run-{name}" / "config.json").read_text())
        assert (config["lr"], config["steps"], config["batch-size"], config["momentum"]) == (0.25, 2, 8, 0.9)
        assert config["sensitive"] == ["conv1", "fc"]
        assert "epochs" not in config  # steps keep the model's default epochs out
    # The file of a run is a file of settings: the same run again.
    assert hpqf("train", "--config", "run-c.json/config.json", "--out", "again").returncode == 0
    assert losses(tmp_path / "again") == losses(tmp_path / "run-c.json")
    for name, text, words in (
        ("bad.json", '{"model": "resnet20", ', ["bad.json"]),
        ("key.json", '{"modle": "resnet20"}', ["modle", "model"]),
        ("key.toml", "momentun = 0.9\n", ["momentun", "momentum"]),
        ("type.json", '{"model": "resnet20", "lr": "fast"}', ["lr", "fast"]),
        ("nested.json", '{"model": {"name": "resnet20"}}', ["model"]),
        ("list.json", "[1]", ["object"]),
    ):
        (tmp_path / name).write_text(text)
        refused(hpqf("train", "--config", name), name, *words)


def test_plan_files(hpqf, tmp_path, images):
    (tmp_path / "a.json").write_text(json.dumps(
        {"schema": "hpqf.plan", "version": 1, "rules": [{"layers": "conv1", "precision": "fp32"}, {"layers": "*", "precision": "bf16"}]}))
    (tmp_path / "b.json").write_text(json.dumps({"schema": "hpqf.plan", "version": 1, "rules": [{"layers": "*", "precision": "bf16"}]}))
    (tmp_path / "c.json").write_text(json.dumps(
        {"schema": "hpqf.plan", "version": 1, "rules": [{"layers": "layr1", "precision": "fp32"}, {"layers": "*", "precision": "bf16"}]}))
    shown = hpqf("plan", "show", "a.json", "--model", "resnet20")
    assert shown.returncode == 0 and "layer1.0.conv1" in shown.stdout
    assert "conv1" in hpqf("plan", "show", "a.json").stdout
    changes = hpqf("plan", "diff", "a.json", "b.json", "--model", "resnet20")
    assert changes.returncode == 0 and "conv1" in changes.stdout and "layer1" not in changes.stdout
    assert "no difference" in hpqf("plan", "diff", "a.json", "a.json", "--model", "resnet20").stdout
    refused(hpqf("plan", "diff", "a.json", "b.json"), "--model")
    assert hpqf("plan", "check", "a.json", "--model", "resnet20").returncode == 0
    refused(hpqf("plan", "check", "c.json", "--model", "resnet20"), "layr1", "layer1")
    (tmp_path / "torn.json").write_text((tmp_path / "a.json").read_text()[:40])
    refused(hpqf("plan", "show", "torn.json"), "torn.json")

    result = hpqf(*TRAIN, *data_for("resnet20", images, ""), "--plan", "a.json", "--out", "run")
    assert result.returncode == 0, result.stderr
    assert "conv1" in hpqf("plan", "diff", "run", "b.json").stdout
    refused(hpqf(*TRAIN, *data_for("resnet20", images, ""), "--plan", "c.json", "--out", "other"), "layr1")
    # The plan of a run does not follow the file it came from.
    (tmp_path / "a.json").write_text((tmp_path / "b.json").read_text())
    assert hpqf("train", "--resume", "--out", "run", "--steps", 6).returncode == 0


def test_damaged_data(hpqf, tmp_path, images):
    folder = tmp_path / "data"
    folder.mkdir()
    source = images.removeprefix("mnist-idx:")
    for name in os.listdir(source):
        content = open(os.path.join(source, name), "rb").read()
        (folder / name).write_bytes(content[: len(content) // 2] if name.startswith("train-images") else content)
    refused(hpqf(*TRAIN, "--model", "resnet20", "--data", f"mnist-idx:{folder}"), "train-images-idx3-ubyte.gz", "damaged")
    (tmp_path / "empty.txt").write_text("")
    refused(hpqf(*TRAIN, "--model", "gpt-mini", "--data", "text:empty.txt"), "empty.txt", "at least")


def test_version_and_help(hpqf):
    version = hpqf("version")
    assert version.returncode == 0
    for word in ("hpqf", "torch", "isa", "threads"):
        assert word in version.stdout
    for command in ([], ["train"], ["explain"], ["plan"], ["plan", "show"], ["plan", "diff"], ["plan", "check"], ["version"]):
        shown = hpqf(*command, "--help")
        assert shown.returncode == 0 and "Example" in shown.stdout


def test_quiet_and_plain_progress(hpqf, images):
    plain = hpqf(*TRAIN, *data_for("resnet20", images, ""), "--out", "a")
    assert "step 1/5" in plain.stderr and "step 5/5" in plain.stderr and "samples/s" in plain.stderr
    assert "\r" not in plain.stderr and "\x1b" not in plain.stderr
    quiet = hpqf(*TRAIN, *data_for("resnet20", images, ""), "--quiet", "--out", "b")
    assert quiet.stderr == "" and "test accuracy" in quiet.stdout
    assert len(quiet.stdout) < len(plain.stdout)


def test_live_line_on_a_terminal(program, tmp_path, images):
    terminal, side = pty.openpty()
    process = subprocess.Popen(
        [program, *map(str, TRAIN), *map(str, data_for("resnet20", images, "")), "--precision", "fp16", "--out", str(tmp_path / "run")],
        stdout=subprocess.DEVNULL, stderr=side, stdin=subprocess.DEVNULL)
    os.close(side)
    shown = b""
    while True:
        if select.select([terminal], [], [], 240)[0]:
            try:
                piece = os.read(terminal, 4096)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            shown += piece
    assert process.wait(timeout=60) == 0
    frames = shown.decode().split("\r")
    assert any("step 5/5" in frame and "ETA 0:00" in frame and "scale 65536" in frame for frame in frames)
    assert all(len(frame.replace("\x1b[K", "").strip()) < 80 for frame in frames)


def test_accumulation_and_limit(hpqf, tmp_path, images):
    result = hpqf("train", "--model", "resnet20", "--data", images, "--batch-size", 8, "--limit", 40, "--accumulate", 2, "--epochs", 2,
                  "--threads", 1, "--out", "run")
    assert result.returncode == 0, result.stderr
    lines = metrics(tmp_path / "run")
    assert [m["step"] for m in lines] == [1, 2, 3, 4, 5, 6]  # 40 samples: 5 batches, 3 steps an epoch
    assert [m["epoch"] for m in lines] == [0, 0, 0, 1, 1, 1]
