"""Times of variants that take turns in one process, and their ratios with spread."""
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Median of the ratios of one round each, with the quartiles of these."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f}-{self.high:.3f})"

    def as_json(self) -> dict:
        return {"median": self.median, "quartiles": [self.low, self.high]}


def quartiles(values: list[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def interleaved(
    variants: dict[str, Callable[[], object]],
    rounds: int,
    warmup: int,
    prepare: Callable[[int], object] = lambda _: None,
    synchronize: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each variant in each round. `prepare(round)` runs before every call, outside of its time.

    Within a round the variants run one after the other, so that a slow minute of the machine hits all of them; the first one changes from
    round to round, so that none always inherits the caches of the same neighbour. `clock` is in seconds; `time.process_time` leaves out what
    other processes take, for variants with one thread.
    """
    names, times = list(variants), {name: [] for name in variants}
    for index in range(warmup + rounds):
        start = index % len(names)
        for name in names[start:] + names[:start]:
            prepare(index)
            synchronize()
            begin = clock()
            variants[name]()
            synchronize()
            seconds = clock() - begin
            if index >= warmup:
                times[name].append(seconds)
    return times


def ratio(times: list[float], base: list[float]) -> Ratio:
    low, median, high = quartiles([t / b for t, b in zip(times, base, strict=True)])
    return Ratio(median, low, high)


def milliseconds(times: list[float]) -> str:
    low, median, high = (1000 * t for t in quartiles(times))
    return f"{median:.1f} ({low:.1f}-{high:.1f})"
