"""The facts in the documents against the library, and the links between the documents."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def hpqf():
    # Not at the top: the links can be checked where nothing is built.
    import hpqf

    return hpqf


def format_rows() -> dict[str, list[str]]:
    rows = {}
    for line in (ROOT / "docs/formats.md").read_text().splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if len(cells) == 10 and re.fullmatch(r"[a-z]+\d+(_e\dm\d)?", cells[0]):
            rows[cells[0]] = cells[1:]
    return rows


def test_format_table_is_that_of_the_library(hpqf):
    documented = format_rows()
    assert list(documented) == [f.name for f in hpqf.formats()]
    for f in hpqf.formats():
        bits, exponent, fraction, largest, normal, smallest, overflow, infinity, nan = documented[f.name]
        assert [int(bits), int(exponent), int(fraction)] == [f.bits, f.exponent_bits, f.mantissa_bits], f.name
        # Eight digits are what fp32 carries.
        written = [float(largest), float(normal), float(smallest)]
        assert written == pytest.approx([f.largest, f.smallest_normal, f.smallest], rel=5e-8, abs=0), f.name
        assert overflow == ("saturates" if f.saturates else "infinity"), f.name
        assert [infinity, nan] == ["yes" if f.has_infinity else "no", "yes" if f.has_nan else "no"], f.name


PRELUDE = """
x, y = torch.randn(64, 64), torch.randint(10, (64,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_python_examples_of_the_readme_run(hpqf):
    first, second = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    package = Path(hpqf.__file__).parent.parent
    code = f"import sys; sys.path.insert(0, {str(package)!r})\n" + first + PRELUDE + second + "assert loss.isfinite()\n"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "fp16" in run.stdout, "the audit names what ran"


def test_cpp_example_of_the_readme_is_one_that_is_built():
    (example,) = re.findall(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    built = (ROOT / "examples/trainer.cc").read_text()
    assert example[example.index("int main") :] == built[built.index("int main") :]


PAGES = sorted(p.relative_to(ROOT).as_posix() for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = ROOT / page
    prose = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(), flags=re.S)
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", prose)
    broken = [t for t in targets if "://" not in t and not (path.parent / t).exists()]
    assert not broken
