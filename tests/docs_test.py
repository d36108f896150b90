"""The facts in the documents against the library, and the links between the documents."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


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


@pytest.mark.parametrize("page", sorted(p.relative_to(ROOT).as_posix() for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]))
def test_links_lead_somewhere(page):
    path = ROOT / page
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text())
    broken = [t for t in targets if "://" not in t and not (path.parent / t).exists()]
    assert not broken
