"""Adds up the test results in a folder; the last line printed is 'N passed, N failed, N skipped'.

usage: test_summary.py FOLDER [NAME=STATUS...]

Reads GTest XML (<preset>/hpqf_<test>_test.xml), ctest's JUnit file (<preset>/ctest.junit) and pytest's (pytest.xml).
An executable counts by its GTest cases. ctest's own verdict counts where there are none (a test that is no GTest
program), or where it contradicts them (a crash leaves no XML, a leak report comes after the last case).
NAME=STATUS is the exit status of a command that is one test. Exits with 1 when anything failed or nothing ran.
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Tally:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def add(self, name: str, *, failed: bool, skipped: bool, why: str = "") -> None:
        if failed:
            self.failed.append(name)
        elif skipped:
            self.skipped.append((name, why))
        else:
            self.passed += 1


def read_cases(path: Path, tally: Tally) -> int:
    """Counts the cases of a GTest or pytest file and returns how many failed."""
    failed_before = len(tally.failed)
    for case in ElementTree.parse(path).iter("testcase"):
        skipped = case.find("skipped")
        not_run = case.get("status") == "notrun"
        why = " ".join((skipped.get("message") or skipped.text or "").split()) if skipped is not None else "disabled"
        bad = case.find("failure") is not None or case.find("error") is not None
        name = f"{path.parent.name}/{case.get('classname')}.{case.get('name')}"
        tally.add(name, failed=bad, skipped=skipped is not None or not_run, why=why)
    return len(tally.failed) - failed_before


def read_ctest(path: Path, tally: Tally) -> None:
    for case in ElementTree.parse(path).iter("testcase"):
        name = case.get("name") or ""
        status = case.get("status")
        failures = 0
        has_cases = False
        for cases in (path.parent / f"hpqf_{name}_test.xml", path.parent / f"{name}.xml"):
            if cases.exists():
                has_cases = True
                try:
                    failures += read_cases(cases, tally)
                except ElementTree.ParseError:
                    has_cases = False
        label = f"{path.parent.name}/{name}"
        if not has_cases:
            tally.add(label, failed=status == "fail", skipped=status in ("notrun", "disabled"))
        elif status == "fail" and not failures:
            tally.add(f"{label} (exit status)", failed=True, skipped=False)


def main() -> int:
    folder = Path(sys.argv[1])
    tally = Tally()
    for path in sorted(folder.glob("*/ctest.junit")):
        read_ctest(path, tally)
    pytest_failures = read_cases(folder / "pytest.xml", tally) if (folder / "pytest.xml").exists() else 0
    for outcome in sys.argv[2:]:
        name, _, status = outcome.partition("=")
        # pytest's status repeats its failed cases; it counts when there are none (collection broke, nothing ran).
        if name == "pytest_status" and pytest_failures:
            continue
        tally.add(name, failed=status != "0", skipped=False)

    # Kernel tests skip what this CPU cannot run, many cases for one reason.
    for why, count in Counter(why for _, why in tally.skipped).items():
        first = next(name for name, reason in tally.skipped if reason == why)
        print(f"skipped  {count} x {why or 'no reason given'} ({first}{', ...' if count > 1 else ''})")
    for name in tally.failed:
        print(f"FAILED   {name}")
    print(f"{tally.passed} passed, {len(tally.failed)} failed, {len(tally.skipped)} skipped")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(main())
