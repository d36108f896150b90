"""Profiler: what ran in which format, how fast against what the machine can do, and a trace."""
import os
import time

from . import _C
from .attach import attachment_of, listen, unlisten
from .errors import Error
from .precision import precision


def rate_table(rates) -> _C.RateTable:
    """A RateTable from itself, from {"fp32": FLOP/s, ...}, from "measure" (this machine, now) or from None: nothing is known."""
    if rates is None:
        return _C.RateTable()
    if isinstance(rates, _C.RateTable):
        return rates
    if isinstance(rates, str) and rates == "measure":
        return _C.measure_peaks()
    if isinstance(rates, dict):
        table = _C.RateTable()
        for name, value in rates.items():
            if name == "bandwidth":
                table.set_bandwidth(value, "quoted", "given by the user")
            else:
                table.set(name, value, "quoted", "given by the user")
        return table
    raise Error(f"rates={rates!r}", "None, \"measure\", {'fp32': FLOP/s, ..., 'bandwidth': bytes/s} or an hpqf.RateTable",
                "give one of these")


class Profiler:
    """Profiles everything that runs under a plan inside the `with` block, in this process and on any thread.

        with hpqf.Profiler(rates="measure") as p:
            for x, y in loader:
                train_step(x, y)
                p.step()             # optional: marks steps in the trace
        print(p.table())
        p.trace("trace.json")        # for ui.perfetto.dev; at most 64 MB whatever the length

    model: one that has no plan is put under an fp32 plan for the block, so that its ops are seen.
    rates: peaks to compare with (see rate_table); what is unknown is shown as unknown.
    census: ops outside of the plan (add, relu, the optimizer) are timed as well, about 0.2 us an op.
    trace_events: the newest events are kept for the trace; 0: none.
    """

    def __init__(self, model=None, *, rates=None, census=True, trace_events=250_000):
        if not isinstance(trace_events, int) or trace_events < 0:
            raise Error(f"trace_events={trace_events!r}", "a whole number from 0", "use 0 for no trace")
        self._core = _C.Profiler(rate_table(rates), trace_events)
        self._model, self._wants_census = model, census
        self._own = self._census = None
        self._began = 0.0
        self._running = False

    def __enter__(self) -> "Profiler":
        if self._running:
            raise Error("the same hpqf.Profiler entered twice", "one block at a time", "make a second hpqf.Profiler()")
        listen(self._core)
        if self._model is not None and attachment_of(self._model) is None:
            self._own = precision(self._model, "fp32").attach()
        self._running, self._began = True, time.perf_counter()
        self._census = _C.OpCensus() if self._wants_census else None
        self._core.start()
        return self

    def __exit__(self, *exception) -> None:
        self._core.stop()
        if self._census is not None:
            self._census.finish(self._core, time.perf_counter() - self._began)
        self._running = False
        unlisten(self._core)
        if self._own is not None:
            self._own.detach()
        self._own = self._census = None

    def step(self) -> None:
        """An optimizer step ended here."""
        self._core.step()

    def report(self) -> _C.ProfileReport:
        return self._core.report()

    def table(self, max_rows: int = 0) -> str:
        return self.report().table(max_rows)

    def summary(self) -> str:
        return self.report().summary()

    def roofline(self) -> list[dict]:
        """A point for each layer, op and pass: FLOP per byte, FLOP/s, and what the machine would allow."""
        return self.report().roofline()

    def trace(self, path, max_bytes: int = 64 << 20) -> None:
        """Writes the newest events in Chrome's trace format, whole or not at all. Its "otherData" says what was left out."""
        self._core.write_trace(os.fspath(path), max_bytes)
