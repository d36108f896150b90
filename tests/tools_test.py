"""The scripts behind ./dev test and ./dev check: what they count and what they catch."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

CTEST = """<testsuite><testcase name="base" status="{base}"/><testcase name="crashed" status="fail"/>
<testcase name="consumer" status="run"/>
<testcase name="unbuilt" status="notrun"><skipped message="Unable to find executable"/></testcase></testsuite>"""
GTEST = """<testsuites><testsuite>
<testcase name="good" status="run" classname="A"/>
<testcase name="off" status="notrun" classname="A"/>
<testcase name="isa" status="run" classname="A"><skipped message="needs avx512"/></testcase>
{more}</testsuite></testsuites>"""
BAD = '<testcase name="bad" status="run" classname="A"><failure message="1 != 2"/></testcase>'
PYTEST = """<testsuites><testsuite><testcase classname="t" name="a"/>
<testcase classname="t" name="b"><error message="fixture"/></testcase></testsuite></testsuites>"""


def summarise(folder: Path, *outcomes: str) -> tuple[int, list[str]]:
    run = subprocess.run(
        [sys.executable, ROOT / "tools/test_summary.py", folder, *outcomes], capture_output=True, text=True
    )
    assert not run.stderr
    return run.returncode, run.stdout.splitlines()


def results(folder: Path, base: str, more: str) -> None:
    (folder / "release").mkdir(parents=True)
    (folder / "release/ctest.junit").write_text(CTEST.format(base=base))
    (folder / "release/hpqf_base_test.xml").write_text(GTEST.format(more=more))


def test_summary_counts_cases_and_crashes(tmp_path):
    results(tmp_path, "fail", BAD)
    (tmp_path / "pytest.xml").write_text(PYTEST)
    status, lines = summarise(tmp_path, "pip=0", "pytest=1", "release=8")
    # Passed: A.good, consumer, t.a, pip. Failed: A.bad, the crashed and the missing executable, t.b. Skipped: A.off, A.isa.
    assert lines[-1] == "4 passed, 4 failed, 2 skipped"
    assert status == 1
    assert any("needs avx512" in line for line in lines)


def test_summary_sees_a_failure_after_the_last_case(tmp_path):
    # A leak report makes the process fail although every case passed.
    results(tmp_path, "fail", "")
    assert "FAILED   release/base (exit status)" in summarise(tmp_path)[1]


def test_summary_of_nothing_fails(tmp_path):
    assert summarise(tmp_path) == (1, ["0 passed, 0 failed, 0 skipped"])


def test_summary_passes_when_all_do(tmp_path):
    assert summarise(tmp_path, "pip=0") == (0, ["1 passed, 0 failed, 0 skipped"])


def test_summary_sees_a_runner_that_ran_nothing(tmp_path):
    assert summarise(tmp_path, "pip=0", "pytest=5")[1][-1] == "1 passed, 1 failed, 0 skipped"
    (tmp_path / "pytest.xml").write_text("<testsuites/>")
    assert summarise(tmp_path, "pip=0", "pytest=5")[1][-1] == "1 passed, 1 failed, 0 skipped"


@pytest.fixture
def project(tmp_path):
    """A repository with the check script and one clean file."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/check.py", tmp_path / "tools")
    shutil.copy(ROOT / ".clang-format", tmp_path)

    def check(name: str, text: str) -> tuple[int, str]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
        run = subprocess.run([sys.executable, tmp_path / "tools/check.py"], capture_output=True, text=True)
        return run.returncode, run.stdout

    return check


def test_check_passes_a_clean_file(project):
    status, out = project("hpqf/plan/plan.cc", '#include "hpqf/formats/format.h"\n\nint f() { return 1; }\n')
    assert status == 0, out


@pytest.mark.parametrize(
    ("name", "text", "breach"),
    [
        ("hpqf/plan/a.cc", '#include "hpqf/engine/runtime.h"\n', "'plan' may not include 'engine'"),
        ("hpqf/kernels/a.h", "#include <ATen/core/Tensor.h>\n", "torch header ATen/core/Tensor.h in the torch-free"),
        ("hpqf/engine/a.cc", "#include <torch/torch.h>\n", "umbrella header"),
        ("hpqf/engine/a.cc", '#include "runtime.h"\n', "does not start at the repository root"),
        ("hpqf/misc/a.cc", "int a;\n", "no room 'misc'"),
        ("hpqf/base/a.cc", "int  a;\n", "not formatted"),
        ("hpqf/base/a.cc", "int a;\n" * 801, "801 lines"),
        ("a.py", "def f(:\n", "a.py:1:"),
        ("a.sh", "if\n", "syntax error"),
        ("a.md", "T" + "ODO: later\n", "does not belong"),
    ],
)
def test_check_catches(project, name, text, breach):
    status, out = project(name, text)
    assert status == 1
    assert breach in out, out


def test_umbrella_headers_are_allowed_in_tests_and_models(project):
    status, out = project("hpqf/engine/a_test.cc", "#include <torch/torch.h>\n")
    assert status == 0, out
