"""The house rules that a machine can check, over the files git tracks. Prints every breach; exits with 1 on any."""

import ast
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The include law: a room may include only rooms before it. Those of CORE never include torch.
CORE = ["base", "formats", "kernels", "device", "plan", "cost", "observe", "comm"]
ROOMS = CORE + ["engine", "optim", "zero", "train", "qat", "deploy"]

CXX = {".h", ".cc", ".cpp"}
CODE = CXX | {".py", ".sh", ".cmake"}
MOST_LINES = 800
MEDIAN_LINES = 200

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
# Each costs 10 to 40 s in every file that includes it; per-operator headers cost 3.
UMBRELLA = {"torch/torch.h", "torch/extension.h", "torch/all.h", "ATen/ATen.h"}
UMBRELLA_ALLOWED = ("models/", "apps/", "examples/", "tests/")

# The files speak of the project alone: no paths of a machine, nothing unfinished. (The brackets keep this file clean.)
WORDS = re.compile(
    r"/w[o]rk/|\.libr[a]ry/|\bshared/(?:research|spikes|DESIGN)|\bthis s[e]ssion\b|\bsub-?ag[e]nt|\bthe h[e]lper\b"
    r"|\bcl[a]ude\b|\b(?-i:T[O]DO|FIX[M]E|X[X]X)\b",
    re.IGNORECASE,
)

Breaches = Iterator[str]


def tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for name in names.split("\0") if name and (path := ROOT / name).is_file()]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


def check_format(files: list[Path]) -> Breaches:
    sources = [str(path) for path in files if path.suffix in CXX]
    # Versions differ in what they print; 14 is the one the files are formatted with.
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    if program is None:
        yield "clang-format is not installed; ./dev setup installs it"
    elif sources:
        run = subprocess.run([program, "--dry-run", "-Werror", *sources], cwd=ROOT, capture_output=True, text=True)
        places = sorted({":".join(m.groups()) for m in re.finditer(r"^(.+?):(\d+):\d+: error", run.stderr, re.M)})
        by_file: dict[str, str] = {}
        for place in places:
            name, _, line = place.rpartition(":")
            by_file.setdefault(relative(Path(name)), line)
        for name, line in by_file.items():
            yield f"{name}:{line}: not formatted (clang-format -i {name})"
        if run.returncode and not places:
            yield f"clang-format failed: {run.stderr.strip()}"


def check_includes(files: list[Path]) -> Breaches:
    for path in files:
        name = relative(path)
        if path.suffix not in CXX:
            continue
        parts = name.split("/")
        room = parts[1] if parts[0] == "hpqf" and len(parts) > 2 else None
        if room is not None and room not in ROOMS:
            yield f"{name}: no room '{room}' in the include law (tools/check.py, docs/architecture.md)"
            continue
        umbrella_allowed = name.startswith(UMBRELLA_ALLOWED) or name.endswith("_test.cc")
        for number, line in enumerate(lines_of(path), 1):
            match = INCLUDE.match(line)
            if match is None:
                continue
            quote, header = match.groups()
            where = f"{name}:{number}"
            if header in UMBRELLA and not umbrella_allowed:
                yield f"{where}: umbrella header {header}; include the headers of the operators used"
            if room is None:
                continue
            if room in CORE and TORCH.match(header):
                yield f"{where}: torch header {header} in the torch-free room '{room}'"
            if quote == '"' and "/" not in header:
                yield f"{where}: include path of '{header}' does not start at the repository root"
            if header.startswith("hpqf/"):
                other = header.split("/")[1]
                if other not in ROOMS:
                    yield f"{where}: {header} is in no room"
                elif ROOMS.index(other) > ROOMS.index(room):
                    yield f"{where}: '{room}' may not include '{other}' ({header}), which comes after it"


def check_sizes(files: list[Path]) -> Breaches:
    sizes = {relative(path): len(lines_of(path)) for path in files if path.suffix in CODE}
    for name, size in sizes.items():
        if size > MOST_LINES:
            yield f"{name}: {size} lines, {MOST_LINES} are allowed; split it along an idea"
    if sizes and (median := statistics.median(sizes.values())) >= MEDIAN_LINES:
        yield f"the median file has {median:.0f} lines, under {MEDIAN_LINES} are asked for"


def check_words(files: list[Path]) -> Breaches:
    for path in files:
        if b"\0" in path.read_bytes()[:4096]:
            continue
        for number, line in enumerate(lines_of(path), 1):
            if match := WORDS.search(line):
                yield f"{relative(path)}:{number}: '{match.group()}' does not belong in a file of the project"


def check_syntax(files: list[Path]) -> Breaches:
    for path in files:
        if path.suffix == ".py":
            try:
                ast.parse(path.read_bytes(), filename=relative(path))
            except SyntaxError as error:
                yield f"{relative(path)}:{error.lineno}: {error.msg}"
        elif path.suffix == ".sh" or path.read_bytes()[:19] == b"#!/usr/bin/env bash":
            run = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True)
            if run.returncode:
                yield f"{relative(path)}: {run.stderr.strip()}"


def main() -> int:
    files = tracked()
    count = 0
    for title, rule in [
        ("formatting", check_format),
        ("include law and headers", check_includes),
        ("file sizes", check_sizes),
        ("words", check_words),
        ("syntax of scripts", check_syntax),
    ]:
        breaches = list(rule(files))
        print(f"{title}: {'ok' if not breaches else f'{len(breaches)} breaches'}")
        for breach in breaches:
            print(f"  {breach}")
        count += len(breaches)
    print(f"check: {len(files)} files, {count} breaches")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
