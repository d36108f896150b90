"""hpqf.devices() and hpqf.device(): thin views of the device database."""

import json
from pathlib import Path

import pytest

import hpqf

DATA = Path(__file__).resolve().parents[2] / "data" / "devices"


def test_every_file_is_a_device_with_its_facts():
    files = {path.stem: json.loads(path.read_text()) for path in DATA.glob("*/*.json")}
    devices = {device.id: device for device in hpqf.devices()}
    assert devices.keys() == files.keys()
    for name, file in files.items():
        device = devices[name]
        assert set(device.keys()) == file["facts"].keys()
        for key, entry in file["facts"].items():
            assert device[key] == entry["value"], (name, key)
            assert device.fact(key)["trust"] == file["sources"][entry["source"]]["trust"]


def test_names_find_the_device_and_errors_name_the_nearest():
    h100 = hpqf.device("NVIDIA H100 80GB HBM3")
    assert h100.id == "nvidia-h100-sxm" and h100.vendor == "nvidia"
    with pytest.raises(hpqf.Error, match="nvidia-h100-sxm"):
        hpqf.device("nvidia-h100-smx")
    with pytest.raises(hpqf.Error, match="peak.bf16.dense"):
        h100["peak.bf16.dens"]


def test_unknown_is_none_with_a_reason():
    t4 = hpqf.device("t4")
    assert t4["peak.fp8_e4m3.dense"] is None
    assert t4.fact("peak.fp8_e4m3.dense")["unknown"]


def test_resolve_and_partition():
    t4, h100 = hpqf.device("t4"), hpqf.device("nvidia-h100-sxm")
    assert t4.resolve("bf16")["kind"] == "emulated" and t4.resolve("fp16")["kind"] == "native"
    fp8 = h100.resolve("fp8")
    assert fp8["kind"] == "native" and fp8["gain"] > 1.15 and fp8["gain_over"] in ("bf16", "fp16") and fp8["rate_basis"]
    part = h100.partition("1g.10gb")
    assert part["memory.capacity_gb"] == 10 and part["peak.bf16.dense"] < h100["peak.bf16.dense"] / 7
    with pytest.raises(hpqf.Error, match="1g.10gb"):
        h100.partition("9g.1gb")


def test_overrides_win(tmp_path):
    path = tmp_path / "nvidia-t4.json"
    source = {"title": "my bench", "url": "", "date": "2026-01", "trust": "measured"}
    facts = {"calibrated.best.fp16": {"value": 31.5, "source": "mine"}}
    path.write_text(json.dumps({"schema_version": 1, "id": "nvidia-t4", "sources": {"mine": source}, "facts": facts}))
    t4 = hpqf.device("t4", overrides=[str(path)])
    assert t4.fact("calibrated.best.fp16")["user"] and not t4.fact("identity.name")["user"]
    assert t4.resolve("fp16")["rate_source"] == "calibrated" and t4.resolve("fp16")["rate_tera_ops"] == 31.5
