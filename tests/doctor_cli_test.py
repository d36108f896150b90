"""hpqf doctor: recorded machines, its own recording, the libraries of GPU vendors, kept figures. Nothing here depends on how fast a machine is."""
import json
import os
import pathlib
import time

import pytest

from cli import refused

MACHINES = pathlib.Path(__file__).resolve().parent / "machines"
NAMES = sorted(path.parent.name for path in MACHINES.glob("*/machine.json"))


@pytest.fixture
def doctor(hpqf, tmp_path):
    """Runs it with a cache of its own; with --json the report."""
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*arguments, **more):
        result = hpqf("doctor", *arguments, env=environment | more)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout) if "--json" in arguments else result.stdout

    return run


def ids(report):
    return {finding["id"] for finding in report["findings"]}


@pytest.mark.parametrize("name", NAMES)
def test_recorded_machine(doctor, name):
    report = doctor("--machine", MACHINES / name, "--json")
    assert report["schema"] == "hpqf.doctor" and report["version"] == 1
    assert report["calibration"] is None and "torch" not in report
    assert all(set(finding) == {"severity", "id", "what", "why", "do"} and all(finding.values()) for finding in report["findings"])
    assert report["what_pays"][0]["worth"] == "baseline"
    assert {row["worth"] for row in report["what_pays"][1:]} <= {"unknown", "emulated"}  # nothing was measured there
    text = doctor("--machine", MACHINES / name)
    for section in ("Machine\n", "GPUs\n", "Topology\n", "What pays here", "What is set wrong"):
        assert section in text
    for finding in report["findings"]:
        assert f"[{finding['id']}]" in text and finding["do"] in text
    assert report["machine"]["cpu"]["model"] in text
    for library in report["machine"]["gpu_libraries"]:
        for gpu in library["devices"]:
            assert gpu["name"] in text and gpu["pci_id"] in text


def test_findings_of_recorded_machines(doctor):
    assert "threads-over-quota" in ids(doctor("--machine", MACHINES / "container-1.5-cpus", "--threads", 4, "--json"))
    assert "threads-over-quota" not in ids(doctor("--machine", MACHINES / "container-1.5-cpus", "--threads", 1, "--json"))
    assert "gpu-mig" in ids(doctor("--machine", MACHINES / "a100-mig", "--json"))
    assert {"gpu-power-cap", "gpu-p2p-off", "gpu-pcie-width"} <= ids(doctor("--machine", MACHINES / "two-4090", "--json"))
    assert ids(doctor("--machine", MACHINES / "dgx-h100", "--threads", 1, "--json")) == {"energy-unreadable"}


def test_a_recording_describes_this_machine(doctor, tmp_path):
    assert "machine.json" in doctor("--record", tmp_path / "box")
    there = doctor("--machine", tmp_path / "box", "--json")["machine"]
    here = doctor("--no-calibrate", "--json")["machine"]
    for report in (here, there):
        report["memory"].pop("available_bytes")  # moves
        for library in report["gpu_libraries"]:
            for gpu in library["devices"]:
                for moving in ("memory_used_bytes", "sm_mhz", "memory_mhz", "slowed_by", "uuid", "partitions", "pcie_generation"):
                    gpu.pop(moving, None)
    assert there == here
    if len(os.uname().nodename) >= 5:  # a shorter name may be part of any word
        assert os.uname().nodename not in (tmp_path / "box" / "machine.json").read_text()


def test_without_calibration_nothing_is_measured(doctor, tmp_path):
    report = doctor("--no-calibrate", "--json", "--threads", 1)
    assert report["calibration"] is None and report["calibration_note"] == "not measured: no calibration yet"
    assert report["threads"] == report["torch"]["threads"] == 1
    assert report["torch"]["version"].startswith("2.")
    assert not (tmp_path / "cache").exists()


def test_gpus_are_read_through_the_library_by_its_name(doctor, build_dir, tmp_path):
    """The program loads libnvidia-ml.so.1 wherever the loader finds it: here a stand-in."""
    fake = build_dir / "fake_nvml.so"
    if not fake.exists():
        pytest.skip(f"{fake} is not built")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libnvidia-ml.so.1").symlink_to(fake)
    report = doctor("--no-calibrate", "--json", LD_LIBRARY_PATH=str(tmp_path / "lib"))
    library = report["machine"]["gpu_libraries"][0]
    assert library["library"] == "NVML" and library["driver"] == "550.54.15"
    assert [gpu["pci_id"] for gpu in library["devices"]] == ["10de:20b0"] * 2
    found = {"gpu-power-cap", "gpu-mig", "gpu-slowed", "gpu-nvlink-down", "gpu-p2p-off", "gpu-ecc-off", "gpu-pcie-width", "gpu-unreadable"}
    assert found <= ids(report)
    if not report["torch"]["cuda"]:
        assert "torch-without-gpu" in ids(report)
    # A recording keeps them, with ids cut.
    doctor("--record", tmp_path / "box", LD_LIBRARY_PATH=str(tmp_path / "lib"))
    kept = json.loads((tmp_path / "box" / "machine.json").read_text())
    assert kept["gpu_libraries"][0]["devices"][0]["uuid"] == "GPU-11111111"


def test_quick_calibration_is_measured_once_and_kept(doctor, tmp_path):
    start = time.monotonic()
    first = doctor("--quick", "--json", "--quiet", "--threads", 1)
    assert time.monotonic() - start < 60
    assert first["calibration_note"].startswith("measured now")
    calibration = first["calibration"]
    assert calibration["identity"]["threads"] == 1 and calibration["quick"]
    done = {product["format"] for product in calibration["products"]}
    assert {"fp32", "int8", "int12"} <= done or calibration["left_out"]
    for product in calibration["products"]:
        for figure in (product["gflops"], product["ratio"]):
            if not product["left_out"]:
                assert figure["runs"] >= 3 and 0 < figure["q1"] <= figure["median"] <= figure["q3"]
    for layer in calibration["layers"]:
        assert bool(layer["left_out"]) != (layer["ratio"] > 0)
    for bandwidth in calibration["bandwidths"]:
        assert bandwidth["gigabytes"]["median"] > 0 and bandwidth["counted"]

    again = doctor("--quick", "--json", "--threads", 1)
    assert again["calibration"] == calibration and "kept in" in again["calibration_note"]
    assert doctor("--no-calibrate", "--json", "--threads", 1)["calibration"] == calibration
    text = doctor("--no-calibrate", "--threads", 1)
    for bandwidth in calibration["bandwidths"]:
        assert bandwidth["what"] in text and "GB/s" in text
    for product in calibration["products"]:
        assert product["shape"] in text
    for work in calibration["left_out"]:  # a machine with much other work: what did not fit is named
        assert work in text

    # Figures of another number of threads are not used.
    other = doctor("--no-calibrate", "--json", "--threads", 2)
    assert other["calibration"] is None and "for 1 thread" in other["calibration_note"]

    # Neither is a damaged file.
    file = tmp_path / "cache" / "hpqf" / "calibration.json"
    file.write_text(file.read_text()[:100])
    damaged = doctor("--no-calibrate", "--json", "--threads", 1)
    assert damaged["calibration"] is None and "damaged" in damaged["calibration_note"]


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["--threads", -1], "--threads -1"),
        (["--machine", "nowhere"], "--machine nowhere"),
        (["--machine", MACHINES / "epyc-vm", "--record", "x"], "--machine together with --record"),
        (["--machine", MACHINES / "epyc-vm", "--quick"], "--quick for a recorded machine"),
        (["--again", "--no-calibrate"], "--again"),
        (["--record", "/proc/nothing"], "--record /proc/nothing"),
    ],
)
def test_mistakes(hpqf, arguments, word):
    result = hpqf("doctor", *arguments)
    refused(result)
    assert word in result.stderr


def test_a_damaged_recording_is_named(hpqf, tmp_path):
    (tmp_path / "machine.json").write_text((MACHINES / "epyc-vm" / "machine.json").read_text()[:200])
    result = hpqf("doctor", "--machine", tmp_path)
    refused(result)
    assert str(tmp_path / "machine.json") in result.stderr
