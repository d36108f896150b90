"""hpqf bench: its JSON, its errors and what it refuses. Nothing here depends on how fast a machine is."""
import json
import statistics

import pytest

from cli import refused

GEMM = ["bench", "gemm", "--quiet"]
TINY = [*GEMM, "--shapes", "48x96x40", "--rounds", 3]
# Of normal operands quantised to nearest: the width of the grids, with room for both int7 and int8 on the unsigned side.
BANDS = {"int8": (3e-3, 3e-2), "int12": (1e-4, 2e-3)}


@pytest.fixture
def bench(hpqf, tmp_path):
    """Runs it and returns the JSON it wrote."""

    def run(*arguments):
        file = tmp_path / "bench.json"
        result = hpqf(*arguments, "--json", file)
        assert result.returncode == 0, result.stderr
        assert [p.name for p in tmp_path.iterdir()] == ["bench.json"]  # no temporary file beside it
        return json.loads(file.read_text())

    return run


def check_times(row, base, rounds):
    """The figures of a row are those of its rounds: medians and quartiles."""
    assert len(row["rounds_ms"]) == rounds and min(row["rounds_ms"]) > 0
    assert row["ms"] == pytest.approx(statistics.median(row["rounds_ms"]))
    ratios = [b / own for b, own in zip(base["rounds_ms"], row["rounds_ms"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if rounds > 1 else ratios * 3
    assert [row["ratio_q1"], row["ratio"], row["ratio_q3"]] == pytest.approx([low, middle, high])
    if rounds == 1:
        assert row["ratio"] == pytest.approx(base["ms"] / row["ms"])


def check_head(report, benchmark, rounds):
    assert (report["schema"], report["version"], report["benchmark"]) == ("hpqf.bench", 1, benchmark)
    assert set(report["machine"]) == {"cpu", "isa", "threads", "torch"}
    assert report["machine"]["threads"] == 1 and report["clock"] == "process CPU time" and report["rounds"] == rounds
    assert isinstance(report["notes"], list)


@pytest.mark.parametrize("rounds", [1, 5])
def test_gemm_json(bench, rounds):
    report = bench(*GEMM, "--shapes", "48x96x40,33x17x65", "--rounds", rounds)
    check_head(report, "gemm", rounds)
    rows = report["rows"]
    fields = {"form", "m", "k", "n", "format", "implementation", "packed", "ms", "gflops", "ratio", "ratio_q1", "ratio_q3", "error", "rounds_ms"}
    assert all(set(row) == fields for row in rows)
    cases = {}
    for row in rows:
        cases.setdefault((row["form"], row["m"], row["k"], row["n"]), {})[row["format"], row["packed"]] = row
    assert list(cases) == [(form, *shape) for shape in [(48, 96, 40), (33, 17, 65)] for form in ("nt", "nn", "tn")]
    for (form, m, k, n), variants in cases.items():
        ours = {(f, packed) for f in BANDS for packed in (False, True) if form != "tn" or not packed}
        assert set(variants) - {("bf16", False)} == {("fp32", False)} | ours
        for (name, _), row in variants.items():
            check_times(row, variants["fp32", False], rounds)
            assert row["gflops"] == pytest.approx(2e-6 * m * k * n / row["ms"])
            if name in BANDS:
                low, high = BANDS[name]
                assert low < row["error"] < high, row
                assert row["implementation"] != "torch"
            else:
                assert row["implementation"] == "torch"
                assert row["error"] < (1e-5 if name == "fp32" else 2e-2)
        for name in BANDS:  # packing beforehand changes when the work is done, not the result
            if form != "tn":
                assert variants[name, True]["error"] == variants[name, False]["error"]


def test_the_reference_path_equals_the_fast_one(bench, hpqf):
    known = hpqf(*TINY, "--path", "none").stderr
    fast = [name for name in ("avx512-vnni", "avx2") if name in known]
    reference = bench(*TINY, "--path", "reference")["rows"]
    assert {row["implementation"] for row in reference} == {"torch", "reference"}
    for path in fast:
        rows = bench(*TINY, "--path", path)["rows"]
        assert {row["implementation"] for row in rows} == {"torch", path}
        # The int12 grid is one for all paths; int8 has a narrower unsigned side where the CPU has no VNNI.
        names = ("int8", "int12") if path == "avx2" else ("int12",)

        def errors(rows):
            return [(row["form"], row["packed"], row["format"], row["error"]) for row in rows if row["format"] in names]

        assert errors(rows) == errors(reference) and errors(rows)


def test_blocks_are_measured_as_asked(bench):
    rows = bench(*TINY, "--formats", "int8[1x32],INT8[1x256]", "--forms", "nn")["rows"]
    errors = {row["format"]: row["error"] for row in rows if row["implementation"] != "torch"}
    assert set(errors) == {"int8[1x32]", "int8[1x256]"}
    assert errors["int8[1x32]"] < errors["int8[1x256]"]  # a smaller block has a smaller scale


def test_gemm_takes_the_shapes_of_a_model(bench):
    rows = bench(*GEMM, "--model", "gpt-mini", "--batch-size", 1, "--rounds", 1, "--forms", "nt", "--formats", "int8")["rows"]
    shapes = {(row["m"], row["k"], row["n"]) for row in rows}
    assert shapes == {(128, 128, 384), (128, 128, 128), (128, 128, 512), (128, 512, 128), (128, 128, 256)}


CONV = ["bench", "conv", "--quiet"]
TINY_CONV = [*CONV, "--shapes", "2x32x7x40", "--rounds", 3]


def test_conv_json(bench):
    shapes = {"2x32x7x40:k3s1g1": (2, 32, 7, 7, 40, 3, 1), "1x64x9x64:k5s2g2": (1, 64, 9, 5, 64, 5, 2)}   # ..., kernel, groups
    report = bench(*CONV, "--shapes", "2x32x7x40,1x64x9x64:k5s2g2", "--rounds", 3)
    check_head(report, "conv", 3)
    fields = {"form", "shape", "format", "implementation", "layout", "ms", "gflops", "ratio", "ratio_q1", "ratio_q3", "error", "rounds_ms"}
    cases = {}
    for row in report["rows"]:
        assert set(row) == fields
        cases.setdefault((row["shape"], row["form"]), {})[row["format"], row["layout"]] = row
    assert list(cases) == [(shape, form) for shape in shapes for form in ("forward", "dgrad", "wgrad")]
    layouts = ("channels first", "channels last")
    for (shape, _), variants in cases.items():
        images, channels, _, out_size, outputs, kernel, groups = shapes[shape]
        assert {key for key in variants if key[0] != "bf16"} == {(f, layout) for f in ("fp32", *BANDS) for layout in layouts}
        base = min((variants["fp32", layout] for layout in layouts), key=lambda row: row["ms"])
        for (name, _), row in variants.items():
            check_times(row, base, 3)
            flops = 2 * images * outputs * out_size ** 2 * channels // groups * kernel ** 2
            assert row["gflops"] == pytest.approx(1e-6 * flops / row["ms"])
            if name in BANDS:
                low, high = BANDS[name]
                assert low < row["error"] < high and row["implementation"] != "torch", row
            else:
                assert row["error"] < (1e-5 if name == "fp32" else 2e-2) and row["implementation"] == "torch", row


def test_conv_takes_the_shapes_of_a_model(bench):
    rows = bench(*CONV, "--model", "resnet20", "--batch-size", 1, "--rounds", 1, "--forms", "forward", "--formats", "int8")["rows"]
    shapes = {row["shape"] for row in rows}
    assert {"1x1x28x16:k3s1g1", "1x16x28x16:k3s1g1", "1x16x28x32:k3s2g1", "1x64x7x64:k3s1g1"} <= shapes


def test_conv_table(hpqf, tmp_path):
    table = hpqf(*TINY_CONV)
    assert table.returncode == 0 and table.stderr == ""
    for word in ("2x32x7x40:k3s1g1 forward", "wgrad", "int12", "channels last", "ratio", "process CPU time"):
        assert word in table.stdout
    assert list(tmp_path.iterdir()) == []


def test_table_and_json_on_stdout(hpqf, tmp_path):
    table = hpqf(*TINY)
    assert table.returncode == 0 and table.stderr == ""
    for word in ("48x96x40 nt", "48x96x40 tn", "int12", "packed once", "ratio", "process CPU time", "1 thread"):
        assert word in table.stdout
    both = hpqf(*TINY, "--json", "-", "--threads", 2)
    report = json.loads(both.stdout)  # nothing but the JSON
    assert report["clock"] == "wall time" and report["machine"]["threads"] == 2
    assert list(tmp_path.iterdir()) == []


def test_model_json(bench):
    report = bench("bench", "model", "--quiet", "--model", "gpt-mini", "--formats", "int8,int12,bf16", "--batch-size", 2, "--rounds", 2)
    check_head(report, "model", 2)
    assert (report["model"], report["batch_size"]) == ("gpt-mini", 2)
    rows = {row["precision"]: row for row in report["rows"]}
    assert set(rows) - {"torch autocast bf16"} == {"torch fp32", "int8", "int12", "bf16"}
    fp32 = rows["torch fp32"]
    for row in rows.values():
        check_times(row, fp32, 2)
    assert "low_precision_flops" not in fp32
    for name in ("int8", "int12", "bf16"):
        row = rows[name]
        assert 0.5 < row["low_precision_flops"] <= 1.000001 and 0 <= row["emulated_flops"] <= row["low_precision_flops"]
        assert sum(part["flops"] for part in row["formats"]) == pytest.approx(1)
        # The same weights, data and number of steps: near fp32, but in other numbers.
        assert row["loss"] == pytest.approx(fp32["loss"], rel=0.02) and row["loss"] != fp32["loss"]


@pytest.mark.parametrize("model", ["resnet20", "lstm-lm"])
def test_every_model_is_measured(bench, model):
    rows = bench("bench", "model", "--quiet", "--model", model, "--formats", "int8,fp32", "--batch-size", 2, "--rounds", 1)["rows"]
    loss = {row["precision"]: row["loss"] for row in rows}
    assert loss["fp32"] == loss["torch fp32"] != loss["int8"]  # a plan of fp32 is torch, bit by bit


def test_auto_says_what_it_chose(bench, monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))  # measured here, not read
    report = bench("bench", "model", "--quiet", "--model", "gpt-mini", "--formats", "auto", "--batch-size", 1, "--rounds", 1)
    assert any(note.startswith("auto: ") for note in report["notes"])
    assert report["rows"][-1]["precision"] == "auto" and "formats" in report["rows"][-1]


BAD = {
    "no benchmark": (["bench"], []),
    "unknown benchmark": (["bench", "gem"], ["gem", "gemm"]),
    "unknown format": ([*TINY, "--formats", "int9"], ["--formats int9", "int8, int12"]),
    "format the integer GEMM has not": ([*TINY, "--formats", "bf16"], ["--formats bf16", "int8, int12"]),
    "block it has not": ([*TINY, "--formats", "int8[1x48]"], ["int8[1x48]", "256"]),
    "empty format": ([*TINY, "--formats", ""], ["--formats"]),
    "half a shape": ([*GEMM, "--shapes", "12x"], ["--shapes 12x", "MxKxN"]),
    "two sizes": ([*GEMM, "--shapes", "12x4"], ["--shapes 12x4", "MxKxN"]),
    "four sizes": ([*GEMM, "--shapes", "1x2x3x4"], ["1x2x3x4", "MxKxN"]),
    "zero size": ([*GEMM, "--shapes", "12x0x4"], ["12x0x4", "from 1"]),
    "negative size": ([*GEMM, "--shapes=12x-1x4"], ["12x-1x4", "from 1"]),
    "size that is no number": ([*GEMM, "--shapes", "12xax4"], ["12xax4"]),
    "size beyond 64 bits": ([*GEMM, "--shapes", "99999999999999999999x1x1"], ["from 1"]),
    "more than memory": ([*GEMM, "--shapes", "16777216x16777216x1"], ["16777216x16777216x1", "memory"]),
    "second shape bad": ([*GEMM, "--shapes", "8x8x8,8x8"], ["--shapes 8x8"]),
    "unknown form": ([*TINY, "--forms", "tt"], ["--forms tt", "nt"]),
    "unknown path": ([*TINY, "--path", "sse2"], ["--path sse2", "reference"]),
    "no threads": ([*TINY, "--threads", "0"], ["--threads 0"]),
    "negative threads": ([*TINY, "--threads=-1"], ["--threads -1"]),
    "too many threads": ([*TINY, "--threads", "1000000"], ["--threads 1000000"]),
    "no rounds": ([*GEMM, "--shapes", "8x8x8", "--rounds", "0"], ["--rounds 0"]),
    "rounds that are no number": ([*GEMM, "--rounds", "many"], ["rounds"]),
    "unknown model for gemm": ([*GEMM, "--model", "t5"], ["t5", "resnet20, vit-tiny, bert-mini, gpt-mini, lstm-lm"]),
    "half a convolution": ([*CONV, "--shapes", "2x32x7"], ["--shapes 2x32x7", "IMAGESxCHANNELSxSIZExOUTPUTS"]),
    "even kernel": ([*CONV, "--shapes", "2x32x7x32:k2"], ["2x32x7x32:k2", "odd kernel"]),
    "stride of nothing": ([*CONV, "--shapes", "2x32x7x32:k3s0"], ["2x32x7x32:k3s0", "stride"]),
    "groups that do not divide": ([*CONV, "--shapes", "2x32x7x40:k3s1g3"], ["groups that divide"]),
    "images beyond memory": ([*CONV, "--shapes", "65536x65536x65536x1"], ["memory"]),
    "unknown product of a convolution": ([*TINY_CONV, "--forms", "nt"], ["--forms nt", "forward", "wgrad"]),
    "model without convolution": ([*CONV, "--model", "gpt-mini"], ["gpt-mini", "a model with a convolution"]),
    "convolutions of both": ([*TINY_CONV, "--model", "resnet20"], ["--shapes", "--model"]),
    "shapes and model": ([*TINY, "--model", "gpt-mini"], ["--shapes", "--model"]),
    "batch without model": ([*TINY, "--batch-size", "4"], ["--batch-size", "--model"]),
    "json into nothing": ([*TINY, "--json", "nowhere/a.json"], ["nowhere/a.json"]),
    "json into a folder": ([*TINY, "--json", "."], ["--json ."]),
    "model without model": (["bench", "model"], ["--model"]),
    "unknown model": (["bench", "model", "--model", "t5"], ["t5", "resnet20, vit-tiny, bert-mini, gpt-mini, lstm-lm"]),
    "unknown precision": (["bench", "model", "--model", "resnet20", "--formats", "int8,fp12"], ["fp12", "bf16"]),
    "no threads for a model": (["bench", "model", "--model", "resnet20", "--threads", "0"], ["--threads 0"]),
    "negative batch": (["bench", "model", "--model", "resnet20", "--batch-size=-2"], ["--batch-size -2"]),
    "unknown option": ([*GEMM, "--shape", "8x8x8"], ["--shape", "--shapes"]),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_refused_in_three_parts(hpqf, tmp_path, case):
    arguments, words = BAD[case]
    result = hpqf(*arguments)
    refused(result, *words)
    assert result.stdout == "" and list(tmp_path.iterdir()) == []


def test_a_path_this_cpu_cannot_run_says_what_it_needs(hpqf):
    allowed = hpqf(*TINY, "--path", "none").stderr
    for path, needs in {"avx512-vnni": "VNNI", "avx2": "AVX2"}.items():
        if path not in allowed:
            result = hpqf(*TINY, "--path", path)
            assert result.returncode == 2 and (needs in result.stderr or "none" not in allowed)


def test_help(hpqf):
    for command in ([], ["gemm"], ["model"]):
        shown = hpqf("bench", *command, "--help")
        assert shown.returncode == 0 and "Example" in shown.stdout
