"""Adds up the test results in a folder; the last line printed is 'N passed, N failed, N skipped'.

usage: test_summary.py FOLDER [NAME=STATUS...]

Reads GTest XML (<preset>/hpqf_<test>_test.xml), ctest's JUnit file (<preset>/ctest.junit) and pytest's (pytest.xml).
An executable counts by its GTest cases. ctest's own verdict counts where there are none (a test that is no GTest
program), or where it contradicts them (a crash leaves no XML, a leak report comes after the last case).
NAME=STATUS is the exit status of a command. Where NAME is one of the sources above ("dev", "release", "pytest") it counts
only if it contradicts their cases; any other command is one test. Exits with 1 when anything failed or nothing ran.
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


def read_ctest(path: Path, tally: Tally) -> int:
    """Counts what ctest ran: the cases of GTest programs, other programs as one test each. Returns how many failed."""
    failed_before = len(tally.failed)
    for case in ElementTree.parse(path).iter("testcase"):
        name = case.get("name") or ""
        label = f"{path.parent.name}/{name}"
        skipped = case.find("skipped")
        why = skipped.get("message", "") if skipped is not None else ""
        # Not run without having asked for it: no executable, or the fixture failed.
        skip = case.get("status") == "disabled" or why.startswith("SKIP_")
        bad = case.get("status") != "run" and not skip
        cases = path.parent / f"hpqf_{name}_test.xml"
        if not is_whole(cases):
            tally.add(label, failed=bad, skipped=skip, why=why)
        elif not read_cases(cases, tally) and bad:
            tally.add(f"{label} (exit status)", failed=True, skipped=False)
    return len(tally.failed) - failed_before


def is_whole(path: Path) -> bool:
    """A program that was killed leaves no XML, or a torn one."""
    try:
        ElementTree.parse(path)
    except (OSError, ElementTree.ParseError):
        return False
    return True


def main() -> int:
    folder = Path(sys.argv[1])
    tally = Tally()
    failures = {path.parent.name: read_ctest(path, tally) for path in sorted(folder.glob("*/ctest.junit"))}
    if is_whole(folder / "pytest.xml"):
        failures["pytest"] = read_cases(folder / "pytest.xml", tally)
    for outcome in sys.argv[2:]:
        name, _, status = outcome.partition("=")
        if name not in failures:
            tally.add(name, failed=status != "0", skipped=False)
        elif status != "0" and not failures[name]:
            tally.add(f"{name} (exit status {status})", failed=True, skipped=False)

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
