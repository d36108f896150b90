"""Training runs of the command line, each in a folder of its own: a run that is done is not repeated, one that was cut off goes on."""
import json
import math
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

_CHECKPOINT_EVERY = 50   # steps that a killed run loses at most


@dataclass(frozen=True)
class Result:
    loss: float           # mean cross-entropy on the held-out data, nats
    quality: float        # accuracy (images) or perplexity (text)
    skipped: int          # steps
    training: list[float]   # loss of each step that was applied; NaN where it was not finite
    low: float            # share of GEMM FLOPs in a format below fp32
    emulated: bool        # any of these were


class OutOfTime(Exception):
    pass


class Runs:
    def __init__(self, program: pathlib.Path, folder: pathlib.Path, minutes: float):
        self.program, self.folder = program, folder.resolve()
        self.end = time.monotonic() + 60 * minutes if minutes else None
        self.folder.mkdir(parents=True, exist_ok=True)

    def result(self, name: str, arguments: list[str]) -> Result | None:
        """Of the run `name`, which is trained first if it must be; None: time was up. The name says all that the arguments say."""
        out = self.folder / name
        if not (out / "result.json").exists():
            try:
                self._train(out, arguments)
            except OutOfTime:
                return None
        return _read(out)

    def _train(self, out: pathlib.Path, arguments: list[str]) -> None:
        left = None if self.end is None else self.end - time.monotonic()
        if left is not None and left <= 0:
            raise OutOfTime
        if any((out / "checkpoints").glob("*")):
            how = ["--resume"]
        else:
            shutil.rmtree(out, ignore_errors=True)   # killed before its first checkpoint: it begins again
            how = [*arguments, "--checkpoint-every", str(_CHECKPOINT_EVERY)]
        command = [str(self.program), "train", *how, "--out", str(out), "--quiet"]
        print("$ " + " ".join(command), file=sys.stderr, flush=True)
        # Beside the folder, which must be empty when the run begins.
        with open(out.with_suffix(".log"), "a") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                code = process.wait(left)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)   # it ends its step, writes a checkpoint and says how to go on
                process.wait()
                raise OutOfTime from None
            except BaseException:
                process.send_signal(signal.SIGTERM)
                process.wait()
                raise
        if code:
            sys.exit(f"{' '.join(command)}\nended with {code}:\n" + out.with_suffix(".log").read_text()[-2000:])


def _number(value: float | None) -> float:
    return math.nan if value is None else value   # JSON has no NaN


def _read(out: pathlib.Path) -> Result:
    result = json.loads((out / "result.json").read_text())
    shares = json.loads((out / "audit.json").read_text())["shares"]
    steps = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    low = [share for share in shares if share["format"] != "fp32"]
    return Result(
        loss=_number(result["loss"]),
        quality=_number(result["accuracy"] if "accuracy" in result else result["perplexity"]),
        skipped=result["skipped"],
        training=[_number(step["loss"]) for step in steps if not step["skipped"]],
        low=sum(share["flops"] for share in low),
        emulated=any(share["emulated"] for share in low),
    )


def add_options(parser, out: str, formats: list[str], seeds: list[int]) -> None:
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(out), help="folder of the runs; done ones are not repeated")
    parser.add_argument("--formats", nargs="+", default=formats)
    parser.add_argument("--seeds", type=int, nargs="+", default=seeds)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as torch chooses")
    parser.add_argument("--minutes", type=float, default=0, help="stop then, at a checkpoint; the next call goes on. 0: no limit")


def mean_spread(values: list[float], digits: int, unit: str = "") -> str:
    """Mean and sample standard deviation over the seeds."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}{unit}, one seed"
    return f"{statistics.mean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}{unit}"


def share_text(results: list[Result]) -> str:
    """Share of GEMM FLOPs below fp32, the least over the runs, and how they ran."""
    least = min(r.low for r in results)
    if least == 0:
        return "-"
    kind = "emulated" if all(r.emulated for r in results) else "native" if not any(r.emulated for r in results) else "partly emulated"
    return f"{100 * least:.1f} %, {kind}"
