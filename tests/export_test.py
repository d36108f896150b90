"""hpqf export and the exporters of hpqf train, read back by programs that are not ours where there are any."""
import csv
import json
import math
import os
import re
import shutil
import socket
import stat
import struct
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from conftest import ROOT
from report_runs import make_run

FULL = os.path.exists("/dev/full") and stat.S_ISCHR(os.stat("/dev/full").st_mode)
NAMES = "tensorboard,csv,jsonl,prometheus-textfile,mlperf,perfetto"


@pytest.fixture(scope="session")
def exported(program, tmp_path_factory):
    """A made-up run of 2,000 steps in every form: (its folder, the folder of the exports)."""
    run = make_run(tmp_path_factory.mktemp("exported") / "run")
    result = subprocess.run([program, "export", str(run), "--to", NAMES], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert "2000 steps, 8 evaluations, the audit" in result.stdout
    return run, run / "export"


@pytest.fixture(scope="session")
def text_data(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"line {i}: the quick brown fox jumps over the lazy dog\n" for i in range(300)))
    return f"text:{path}"


def steps_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


# --- TensorBoard ---

def crc32c(data, table=[]):
    if not table:
        for i in range(256):
            for _ in range(8):
                i = i >> 1 ^ 0x82F63B78 if i & 1 else i >> 1
            table.append(i)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    data, at = path.read_bytes(), 0
    while at < len(data):
        (size,), (check,) = struct.unpack_from("<Q", data, at), struct.unpack_from("<I", data, at + 8)
        body = data[at + 12:at + 12 + size]
        assert check == masked(data[at:at + 8])
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(body)
        yield body
        at += size + 16


def fields(message):
    """The (number, value) pairs of a protobuf message."""
    def varint(at):
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at
    at = 0
    while at < len(message):
        key, at = varint(at)
        if key & 7 == 0:
            value, at = varint(at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<d", message, at)[0], at + 8
        elif key & 7 == 5:
            value, at = struct.unpack_from("<f", message, at)[0], at + 4
        else:
            assert key & 7 == 2
            size, at = varint(at)
            value, at = message[at:at + size], at + size
        yield key >> 3, value


def scalars(folder):
    """tag -> [(step, value)], by a reader of our own that knows only the specification."""
    (file,) = folder.iterdir()
    out, version = {}, None
    for record in records(file):
        event = dict(fields(record))
        version = version or event.get(3)
        for number, value in fields(event.get(5, b"")):
            entry = dict(fields(value))
            if 2 in entry:
                out.setdefault(entry[1].decode(), []).append((event[2], entry[2]))
    assert version == b"brain.Event:2"
    return out


def test_tensorboard_file_holds_every_step(exported):
    run, out = exported
    steps, seen = steps_of(run), scalars(out / "tensorboard")
    loss = seen["loss_metrics/global_avg_loss"]
    assert [step for step, _ in loss] == [s["step"] for s in steps]
    for (_, got), s in zip(loss, steps):
        assert math.isnan(got) if s["loss"] is None else got == struct.unpack("<f", struct.pack("<f", s["loss"]))[0]
    assert {"throughput(samples/s)", "time_metrics/end_to_end(s)", "grad_norm", "lr", "validation_metrics/accuracy",
            "precision/share_int8", "precision/share_bf16_emulated", "precision/requested_vs_run"} <= set(seen)
    assert sum(value for tag, ((_, value),) in ((t, v) for t, v in seen.items() if t.startswith("precision/share_"))) == pytest.approx(1)


def test_tensorboard_itself_reads_it(exported):
    pytest.importorskip("tensorboard", reason="TENSORBOARD NOT INSTALLED: read back only by our own reader (pip install tensorboard)")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    run, out = exported
    events = EventAccumulator(str(out / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    steps = steps_of(run)
    loss = events.Scalars("loss_metrics/global_avg_loss")
    assert [e.step for e in loss] == [s["step"] for s in steps]
    assert loss[6].value == pytest.approx(steps[6]["loss"], rel=1e-6)
    assert loss[6].wall_time == pytest.approx(steps[6]["time"])
    settings = events.Tensors("settings")[0].tensor_proto.string_val[0].decode()
    assert "| model | gpt-mini |" in settings
    assert events.summary_metadata["settings"].plugin_data.plugin_name == "text"


def test_the_document_names_every_number():
    table = (ROOT / "docs" / "exporters.md").read_text()
    source = (ROOT / "hpqf" / "observe" / "export" / "names.cc").read_text()
    entries = re.findall(r'MetricName\{\s*\w+::\w+,\s*"([^"]+)",\s*"([^"]+)",\s*(?:"([^"]+)"|nullptr)', source)
    assert len(entries) == source.count("MetricName{") - source.count("MetricName{}")
    for tag, prometheus, column in entries:
        row = next((line for line in table.splitlines() if line.startswith("|") and f"`{prometheus}" in line), None)
        assert row, prometheus
        assert f"`{tag}" in row and (not column or f"| `{column}` |" in row), row


# --- CSV, JSON lines, MLPerf, Perfetto ---

def test_csv(exported):
    run, out = exported
    with open(out / "metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    steps = steps_of(run)
    training = [row for row in rows if row["loss"]]
    assert [int(row["step"]) for row in training] == [s["step"] for s in steps]
    for row, s in zip(training, steps):
        assert math.isnan(float(row["loss"])) if s["loss"] is None else float(row["loss"]) == s["loss"]
        assert row["cause"] == s.get("cause", "") and float(row["time"]) == s["time"]
    assert [float(row["validation_accuracy"]) for row in rows if row["validation_accuracy"]][-1] == pytest.approx(0.92 - 0.5 * 0.6**8)
    assert b"\r\n" in (out / "metrics.csv").read_bytes()


def test_pandas_reads_the_csv(exported):
    pandas = pytest.importorskip("pandas", reason="PANDAS NOT INSTALLED: the CSV was read by the csv module alone")
    frame = pandas.read_csv(exported[1] / "metrics.csv")
    assert len(frame) == 2008 and frame["loss"].dtype == float and frame["skipped"].sum() == 7


def test_json_lines_have_the_names_of_tensorboard(exported):
    run, out = exported
    lines = [json.loads(line) for line in (out / "metrics.named.jsonl").read_text().splitlines()]
    tags = {key for line in lines for key in line} - {"step", "time", "cause"}
    assert tags == set(scalars(out / "tensorboard"))
    assert lines[0]["loss_metrics/global_avg_loss"] == steps_of(run)[0]["loss"]


def test_mlperf_lines(exported):
    run, out = exported
    lines = []
    for line in (out / "mllog.txt").read_text().splitlines():
        assert line.startswith(":::MLLOG ")
        lines.append(json.loads(line[9:]))
    keys = [line["key"] for line in lines]
    assert keys.count("run_start") == keys.count("run_stop") == 1 and keys.index("run_start") < keys.index("tracked_stats")
    assert lines[-1]["key"] == "run_stop" and lines[-1]["metadata"]["status"] == "success"
    assert keys.count("tracked_stats") == 2000 and keys.count("eval_accuracy") == 8
    times = [line["time_ms"] for line in lines if line["key"] == "tracked_stats"]
    assert times == sorted(times)
    assert next(line["value"] for line in lines if line["key"] == "opt_name") == "adamw"


def test_perfetto_trace(exported):
    run, out = exported
    events = json.loads((out / "steps.trace.json").read_text())
    steps = [e for e in events if e["ph"] == "X"]
    assert len(steps) == 2000
    for e, s in zip(steps, steps_of(run)):
        assert e["dur"] == pytest.approx(s["seconds"] * 1e6, abs=0.01) and e["args"]["step"] == s["step"]
    assert all(a["ts"] + a["dur"] <= b["ts"] + 1 for a, b in zip(steps, steps[1:])), "steps do not overlap"
    assert sum(e["name"].startswith("skipped: ") for e in events) == 7


# --- Prometheus ---

def families(text):
    parser = pytest.importorskip("prometheus_client.parser", reason="PROMETHEUS_CLIENT NOT INSTALLED (pip install prometheus_client)")
    return {f.name: f for f in parser.text_string_to_metric_families(text)}


def test_prometheus_file(exported):
    run, out = exported
    seen = families((out / "hpqf.prom").read_text())
    assert seen["hpqf_steps"].samples[0].value == 2000 and seen["hpqf_steps"].type == "counter"
    assert seen["hpqf_skipped_steps"].samples[0].value == 7
    assert seen["hpqf_loss"].samples[0].value == steps_of(run)[-1]["loss"]
    assert seen["hpqf_run_info"].samples[0].labels["model"] == "gpt-mini"
    assert sum(s.value for s in seen["hpqf_precision_flops_ratio"].samples) == pytest.approx(1)
    assert all(f.documentation for f in seen.values())


def metric_names(text):
    return set(re.findall(r"^(hpqf_\w+)", text, re.M))


def test_every_metric_of_the_board_exists(exported, live):
    board = json.loads((ROOT / "data" / "grafana" / "hpqf.json").read_text())
    wanted = {name for panel in board["panels"] for target in panel["targets"] for name in re.findall(r"hpqf_\w+", target["expr"])}
    wanted |= {name for variable in board["templating"]["list"] if isinstance(variable["query"], str) for name in re.findall(r"hpqf_\w+", variable["query"])}
    there = metric_names((exported[1] / "hpqf.prom").read_text()) | metric_names(live["metrics"])
    assert len(wanted) >= 18 and wanted <= there, wanted - there
    assert there - wanted == set(), "what is exported and not on the board"
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


TRAIN = ["train", "--model", "lstm-lm", "--batch-size", "4", "--threads", "1", "--seed", "3"]


@pytest.fixture(scope="session")
def live(program, text_data, tmp_path_factory):
    """A run that is scraped while it trains and exports: its folder and what the endpoint said."""
    run, port = tmp_path_factory.mktemp("live") / "run", free_port()
    process = subprocess.Popen([program, *TRAIN, "--data", text_data, "--steps", "60", "--eval-every", "20", "--out", str(run), "--export", NAMES,
                                "--prometheus", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    url, text = f"http://127.0.0.1:{port}/metrics", ""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                got = reply.read().decode()
            text = got if "hpqf_loss " in got else text
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.02)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    return {"run": run, "metrics": text, "stdout": stdout, "stderr": stderr, "port": port}


def test_a_live_run_is_scraped(live):
    seen = families(live["metrics"])
    assert 1 <= seen["hpqf_steps"].samples[0].value <= 60
    assert seen["hpqf_tokens_per_second"].samples[0].value == pytest.approx(128 * seen["hpqf_samples_per_second"].samples[0].value)
    assert f"http://127.0.0.1:{live['port']}/metrics" in live["stdout"]
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", live["port"]), timeout=2)


def test_live_and_replayed_files_say_the_same(live, hpqf, tmp_path):
    result = hpqf("export", live["run"], "--to", NAMES, "--out", tmp_path / "again")
    assert result.returncode == 0, result.stderr
    now, then = live["run"] / "export", tmp_path / "again"
    for name in ("metrics.csv", "metrics.named.jsonl"):
        a, b = (now / name).read_text().splitlines(), (then / name).read_text().splitlines()
        if name == "metrics.named.jsonl":   # tokens per second: the run folder does not say what a sample is made of
            a, b = ([{k: v for k, v in json.loads(line).items() if "tps" not in k and k != "time"} for line in lines] for lines in (a, b))
            a, b = ([line for line in lines if "precision/requested_vs_run" not in line] for lines in (a, b))
        assert a == b, name
    loss = "loss_metrics/global_avg_loss"
    assert scalars(now / "tensorboard")[loss] == scalars(then / "tensorboard")[loss]
    assert [e["validation_loss"] for e in csv.DictReader(open(now / "metrics.csv")) if e["validation_loss"]] and len((live["run"] / "evaluations.jsonl").read_text().splitlines()) == 4


def test_a_taken_port_is_one_warning(program, text_data, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = subprocess.run([program, *TRAIN, "--data", text_data, "--steps", "2", "--out", str(tmp_path / "run"), "--prometheus", str(port), "--quiet"],
                                capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count(str(port)) == 1 and "the run goes on" in result.stderr


def test_a_full_disk_is_one_warning(program, text_data, tmp_path):
    if not FULL:
        pytest.skip("/dev/full IS NO DEVICE HERE: a full disk was not tested")
    result = subprocess.run([program, *TRAIN, "--data", text_data, "--steps", "3", "--out", str(tmp_path / "run"), "--export", "csv=/dev/full,jsonl", "--quiet"],
                            capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("/dev/full") >= 1 and result.stderr.count("ends here") == 1 and "No space left" in result.stderr
    assert (tmp_path / "run" / "export" / "metrics.named.jsonl").read_text().count('"loss_metrics/global_avg_loss"') == 3


def test_mistakes_are_refused_before_the_run(program, text_data, tmp_path):
    (tmp_path / "file").write_text("")
    for option, word in ((["--export", "tensorbord"], "perhaps tensorboard"), (["--export", f"csv={tmp_path}/file/x.csv"], "folder"),
                         (["--eval-every", "-1"], "--eval-every")):
        run = tmp_path / "run"
        result = subprocess.run([program, *TRAIN, "--data", text_data, "--steps", "1", "--out", str(run), *option], capture_output=True, text=True, timeout=300)
        assert result.returncode == 2 and word in result.stderr, result.stderr
        assert not run.exists(), "nothing stays behind"


def test_a_resumed_run_goes_on_in_its_files(program, text_data, tmp_path):
    run = tmp_path / "run"
    train = lambda *more: subprocess.run([program, "train", "--data", text_data, "--out", str(run), "--export", NAMES, "--quiet", *more], capture_output=True, text=True, timeout=300)
    assert train(*TRAIN[1:], "--steps", "4").returncode == 0
    result = train("--resume", "--steps", "7")
    assert result.returncode == 0, result.stderr
    with open(run / "export" / "metrics.csv", newline="") as file:
        rows = [int(row["step"]) for row in csv.DictReader(file) if row["loss"]]
    assert rows == [1, 2, 3, 4, 5, 6, 7]
    assert len(list((run / "export" / "tensorboard").iterdir())) == 2
    assert (run / "export" / "mllog.txt").read_text().count('"run_start"') == 2


def test_export_refuses_what_is_no_run(hpqf, tmp_path):
    (tmp_path / "empty").mkdir()
    result = hpqf("export", tmp_path / "empty", "--to", "csv")
    assert result.returncode == 2 and "holds no run" in result.stderr
    assert not (tmp_path / "empty" / "export").exists()
    run = make_run(tmp_path / "run", steps=50)
    if FULL:
        result = hpqf("export", run, "--to", "csv=/dev/full,jsonl")
        assert result.returncode != 0 and "/dev/full" in result.stderr
    assert hpqf("export", run, "--to", "nothing").returncode == 2
    if os.geteuid() != 0:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        assert hpqf("export", run, "--to", "csv", "--out", locked).returncode == 2


def test_a_small_disk(hpqf, tmp_path):
    """A disk of 64 KiB: the export says so and leaves the run alone."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if not shutil.which("mount") or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True).returncode != 0:
        pytest.skip("NO RIGHT TO MOUNT: /dev/full stands in for a full disk")
    try:
        run = make_run(tmp_path / "run")
        result = hpqf("export", run, "--to", "tensorboard,csv,prometheus-textfile", "--out", disk)
        assert result.returncode != 0 and "No space left" in result.stderr
        assert len(steps_of(run)) == 2000
        result = hpqf("report", run, "--open", "no", "--out", disk / "report.html")
        assert result.returncode == 2 and not (disk / "report.html").exists()
    finally:
        subprocess.run(["umount", str(disk)], check=True)
