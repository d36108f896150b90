"""What every benchmark shares: the build tree, the machine it ran on, and the report as text and JSON."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Flags of /proc/cpuinfo that decide which arithmetic a CPU has (x86, then Arm).
_FLAGS = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_bf16", "amx_int8",
          "amx_fp16", "asimd", "asimddp", "i8mm", "bf16", "sve")


def parser(description: str) -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build" / "release", help="build tree with the program and the package")
    p.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures there too")
    return p


def use_package(build_dir: pathlib.Path) -> None:
    """The package of the build tree, if it has one, before any that is installed. Call this before `import hpqf`."""
    package = build_dir.resolve() / "python"
    if (package / "hpqf").is_dir():
        sys.path.insert(0, str(package))


def program(build_dir: pathlib.Path) -> pathlib.Path:
    path = build_dir.resolve() / "bin" / "hpqf"
    if not path.exists():
        sys.exit(f"{path} is not built; run ./dev build, or name another build tree with --build-dir")
    return path


def _cpuinfo(*keys: str) -> str:
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in keys:
            return value.strip()
    return ""


def _of_program(build_dir: pathlib.Path) -> dict:
    path = build_dir.resolve() / "bin" / "hpqf"
    if not path.exists():
        return {}
    text = subprocess.run([path, "version"], check=True, capture_output=True, text=True).stdout
    return {key: value.strip() for key, _, value in (line.partition(" ") for line in text.splitlines())}


def machine(build_dir: pathlib.Path, threads) -> dict:
    """Facts to print before any figure. The program knows which instruction sets the library uses; without it the kernel's list does."""
    import torch   # after argparse: --help should not wait for it

    told = _of_program(build_dir)
    flags = _cpuinfo("flags", "Features").split()
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": told.get("cpu") or f"{_cpuinfo('model name') or platform.machine()}, {os.cpu_count()} logical cores",
        "isa": told.get("isa") or "+".join(flag for flag in _FLAGS if flag in flags) or platform.machine(),
        "torch": torch.__version__,
        "threads": threads or torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),
    }
    if torch.cuda.is_available():
        facts["gpu"] = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    return facts


def _plain(value) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def table(header: list[str], rows: list[list[str]]) -> str:
    """Columns as wide as their content: the first to the left, the others to the right."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    lines = [
        "  ".join(f"{cell!s:<{w}}" if i == 0 else f"{cell!s:>{w}}" for i, (cell, w) in enumerate(zip(row, widths))).rstrip()
        for row in [header, *rows]
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


class Report:
    """Prints the machine at once, tables as they come, and writes everything to --json at the end."""

    def __init__(self, name: str, arguments: argparse.Namespace):
        self.path, self.content = arguments.json, {
            "schema": "hpqf.bench",
            "version": 1,
            "benchmark": name,
            "kind": "measured",
            "machine": machine(arguments.build_dir, getattr(arguments, "threads", 0)),
            "settings": {key: str(value) if isinstance(value, pathlib.Path) else value for key, value in vars(arguments).items()},
            "rows": [],
        }
        facts = self.content["machine"]
        print(f"== {name}: measured\n" + "\n".join(f"{key:<8} {_plain(value)}" for key, value in facts.items()), flush=True)
        if facts["load"] > os.cpu_count() / 2:
            print(f"note: load {facts['load']} before the start on {os.cpu_count()} cores: times and their ratios are disturbed")

    def section(self, title: str, header: list[str], rows: list[list[str]]) -> None:
        print(f"\n{title}\n{table(header, rows)}", flush=True)

    def add(self, **row) -> None:
        self.content["rows"].append(row)

    def write(self) -> None:
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.content, indent=1) + "\n")
            print(f"\nfigures in {self.path}")
