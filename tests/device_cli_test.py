"""hpqf device: the database as a user meets it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from cli import refused

DATA = Path(__file__).resolve().parent.parent / "data" / "devices"
FILES = {path.stem: path for path in DATA.glob("*/*.json")}
FIELDS = {field["key"]: field for field in json.loads((DATA / "fields.json").read_text())["fields"]}


def facts_of(device):
    return json.loads(FILES[device].read_text())["facts"]


@pytest.fixture
def ask(hpqf):
    def run(*arguments):
        result = hpqf("device", *arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


def device_file(path, facts, trust="measured"):
    source = {"title": "my own bench", "url": "", "date": "2026-01-31", "trust": trust}
    entries = {key: {"value": value, "source": "mine"} for key, value in facts.items()}
    path.write_text(json.dumps({"schema_version": 1, "id": path.stem, "sources": {"mine": source}, "facts": entries}))
    return path


def test_list(ask):
    listed = json.loads(ask("list", "--json"))
    assert listed["fields_defined"] == len(FIELDS)
    assert {d["id"]: d["fields_known"] for d in listed["devices"]} == {name: len(facts_of(name)) for name in FILES}
    assert [d["id"] for d in listed["devices"]] == sorted(FILES)
    table = ask("list", "--vendor", "NVIDIA")
    assert "nvidia-h100-sxm" in table and "amd-" not in table


def test_show_gives_value_unit_source_date_and_trust(ask):
    shown = json.loads(ask("show", "h100", "--json"))
    file = json.loads(FILES["nvidia-h100-sxm"].read_text())
    assert shown["id"] == "nvidia-h100-sxm" and "unknown" not in shown
    assert shown["facts"].keys() == file["facts"].keys()
    for key, entry in file["facts"].items():
        source = file["sources"][entry["source"]]
        assert shown["facts"][key]["value"] == entry["value"]
        assert shown["facts"][key]["unit"] == FIELDS[key]["unit"]
        assert shown["facts"][key]["trust"] == source["trust"]
        assert shown["facts"][key]["source"] == {"title": source["title"], "url": source["url"], "date": source["date"]}
    text = ask("show", "h100")
    assert "memory.bandwidth_gbs" in text and "GB/s" in text and "TFLOP/s" in text and "native" in text
    assert "peak.int4.dense" not in text


def test_show_all_gives_the_reason_for_what_is_not_known(ask):
    shown = json.loads(ask("show", "t4", "--all", "--json"))
    assert set(shown["facts"]) | set(shown["unknown"]) == set(FIELDS)
    assert not set(shown["facts"]) & set(shown["unknown"])
    assert all(shown["unknown"].values())
    assert "unknown" in ask("show", "t4", "--all", "--group", "peak")
    assert "memory." not in ask("show", "t4", "--group", "peak")


def test_show_resolves_formats(ask):
    def formats(*arguments):
        return {r["format"]: r for r in json.loads(ask("show", *arguments, "--json"))["formats"]}

    t4, h100 = formats("t4"), formats("nvidia-h100-sxm")
    assert t4["bf16"]["kind"] == "emulated" and t4["fp16"]["kind"] == "native"
    assert h100["fp8_e4m3"]["kind"] == "native" and h100["fp8_e4m3"]["gain"] >= 1.15
    part = formats("nvidia-h100-sxm", "--partition", "1g.10gb")
    assert part["bf16"]["rate_tera_ops"] < h100["bf16"]["rate_tera_ops"] / 6
    capped = formats("nvidia-h100-sxm", "--power-cap", "350")
    assert capped["bf16"]["rate_tera_ops"] < 0.6 * h100["bf16"]["rate_tera_ops"]


def test_compare(ask):
    both = json.loads(ask("compare", "t4", "l4", "--fields", "memory.capacity_gb,peak.*.dense", "--json"))
    assert both["devices"] == ["nvidia-t4", "nvidia-l4"]
    assert [f["value"] for f in both["fields"]["memory.capacity_gb"]] == [16, 24]
    assert both["fields"]["peak.bf16.dense"][0] is None and both["fields"]["peak.bf16.dense"][1]["value"] > 0
    assert all(key.startswith("peak.") or key == "memory.capacity_gb" for key in both["fields"])
    different = ask("compare", "t4", "l4")
    assert "memory.capacity_gb" in different and "identity.vendor" not in different
    assert "identity.vendor" in ask("compare", "t4", "l4", "--same")


def test_choose_ranks_and_says_why_others_are_left_out(ask):
    choice = json.loads(ask("choose", "--format", "fp8", "--min-memory", "40", "--vendor", "nvidia", "--torch", "2.13", "--json"))
    ranked, refused_ones = choice["ranked"], {c["id"]: c["refused"] for c in choice["refused"]}
    rates = [c["resolution"]["rate_tera_ops"] for c in ranked]
    assert rates and rates == sorted(rates, reverse=True)
    assert all(c["memory_gb"] >= 40 and c["resolution"]["kind"] == "native" for c in ranked)
    assert "emulated" in refused_ones["nvidia-a100-sxm-80gb"]
    assert "24 GB of memory" in refused_ones["nvidia-l4"]
    assert {c["id"] for c in ranked} | set(refused_ones) == {name for name in FILES if name.startswith("nvidia")}
    cheap = json.loads(ask("choose", "--format", "bf16", "--max-price", "1000", "--sort", "price", "--json"))
    prices = [c["price_usd"] for c in cheap["ranked"]]
    assert prices and prices == sorted(prices) and prices[-1] <= 1000
    text = ask("choose", "--format", "int8")
    assert "TOP/s" in text and "left out" in text and "quoted" in text


def test_override_wins_and_is_marked(ask, tmp_path):
    mine = device_file(tmp_path / "nvidia-t4.json", {"calibrated.best.fp16": 31.5})
    shown = json.loads(ask("show", "t4", "--override", mine, "--json"))
    assert shown["facts"]["calibrated.best.fp16"]["user"] and not shown["facts"]["identity.name"]["user"]
    fp16 = next(r for r in shown["formats"] if r["format"] == "fp16")
    assert (fp16["rate_source"], fp16["rate_tera_ops"]) == ("calibrated", 31.5)
    assert "user, measured" in ask("show", "t4", "--override", mine)


def test_check(hpqf, ask, tmp_path):
    assert "0 mistakes in files, 0 facts that disagree" in ask("check")
    good = device_file(tmp_path / "mine.json", {"memory.bus_bits": 512, "memory.data_rate_gbps": 28, "memory.bandwidth_gbs": 1792})
    assert "1 devices with 3 facts" in ask("check", good)
    wrong = device_file(tmp_path / "wrong.json", {"memory.bus_bits": 512, "memory.data_rate_gbps": 28, "memory.bandwidth_gbs": 1792e3})
    result = hpqf("device", "check", wrong)
    assert result.returncode == 1 and "wrong: memory.bandwidth_gbs is 1.792e+06" in result.stdout
    # A fact of the user against one of the database: twice the memory bandwidth of the bus.
    override = device_file(tmp_path / "nvidia-l4.json", {"peak.bf16.dense": facts_of("nvidia-l4")["peak.bf16.dense"]["value"] * 2})
    result = hpqf("device", "check", override)
    assert result.returncode == 1 and "rule units" in result.stdout
    broken = device_file(tmp_path / "broken.json", {"memory.bus_bit": 1, "memory.bus_bits": "wide"})
    result = hpqf("device", "check", broken)
    assert result.returncode == 1 and "memory.bus_bits" in result.stdout and "2 mistakes in files" in result.stdout


def test_every_mistake_of_a_database_is_listed(hpqf, tmp_path):
    shutil.copy(DATA / "fields.json", tmp_path)
    whole = FILES["nvidia-t4"].read_text()
    (tmp_path / "nvidia-t4.json").write_text(whole[: len(whole) // 2])
    device_file(tmp_path / "b.json", {"memory.bus_bits": 1.5})
    refused(hpqf("device", "list", "--database", tmp_path), "2 mistakes", "nvidia-t4.json", "b.json", "memory.bus_bits")


BAD = {
    "unknown device": (["show", "h10"], ["h10", "nearest", "h100"]),
    "unknown group": (["show", "t4", "--group", "speed"], ["speed", "memory"]),
    "unknown partition": (["show", "nvidia-h100-sxm", "--partition", "9g"], ["9g", "1g.10gb"]),
    "power cap that is none": (["show", "t4", "--power-cap", "-5"], ["-5 W"]),
    "power cap of zero": (["show", "t4", "--power-cap", "0"], ["0 W"]),
    "one device to compare": (["compare", "t4"], ["compare"]),
    "unknown field": (["compare", "t4", "l4", "--fields", "memory.size"], ["memory.size", "memory."]),
    "unknown format": (["choose", "--format", "fp12"], ["fp12", "bf16"]),
    "no format": (["choose"], ["--format"]),
    "unknown order": (["choose", "--format", "bf16", "--sort", "cost"], ["cost", "rate-per-dollar"]),
    "negative memory": (["choose", "--format", "bf16", "--min-memory=-4"], ["-4"]),
    "unknown vendor": (["list", "--vendor", "nvidai"], ["nvidai", "nvidia"]),
    "no database": (["list", "--database", "/nowhere"], ["/nowhere", "fields.json"]),
    "no override": (["list", "--override", "/nowhere.json"], ["/nowhere.json"]),
    "no command": ([], ["device"]),
}


@pytest.mark.parametrize("case", BAD, ids=lambda name: name.replace(" ", "_"))
def test_mistakes_are_refused(hpqf, case):
    arguments, words = BAD[case]
    refused(hpqf("device", *arguments), *words)


def test_installed_program_finds_the_installed_database(build_dir, tmp_path):
    if not (build_dir / "bin" / "hpqf").exists():
        pytest.skip("not built")
    run = subprocess.run(["cmake", "--install", build_dir, "--prefix", tmp_path / "tree"], capture_output=True, text=True)
    if run.returncode:
        pytest.skip(f"this build tree is not complete enough to install: {run.stderr[-200:]}")
    moved = (tmp_path / "tree").rename(tmp_path / "moved")
    moved_one = subprocess.run([moved / "bin" / "hpqf", "device", "check"], capture_output=True, text=True, cwd=tmp_path)
    assert moved_one.returncode == 0, moved_one.stderr
    # It is that copy, not the one of the sources.
    (next(moved.glob("share/hpqf/devices/*/nvidia-t4.json"))).write_text("{")
    broken = subprocess.run([moved / "bin" / "hpqf", "device", "list"], capture_output=True, text=True, cwd=tmp_path)
    assert broken.returncode == 2 and str(moved) in broken.stderr
