"""Monitor: what the machine does, what the training costs, and what its numbers look like; alerts by rules."""
import json
import logging
import os

from . import _C
from .errors import Error
from .profiler import rate_table

_log = logging.getLogger("hpqf")


def _rules_text(rules) -> str:
    if rules is None:
        return ""   # the defaults
    if isinstance(rules, (str, os.PathLike)):
        with open(rules, encoding="utf-8") as file:
            return file.read()
    return json.dumps({"schema": "hpqf.alerts", "version": 1, "rules": list(rules)})


class Monitor:
    """
        monitor = hpqf.Monitor(every=10, path="monitor.jsonl", price_per_hour=2.5, price_source="cloud list, 2026-11")
        trainer = hpqf.MixedPrecisionTrainer(model, monitor=monitor)

    In one's own loop: `monitor.observe(step=n, loss=loss.item(), samples=len(x), seconds=t)` after each step. A row is a dict
    with "metrics" and, for what was not measured, its "basis". Every name is in docs/monitoring.md.

    rules: a list of dicts or the path of a rule file; None: hpqf.default_alert_rules(). Actions: "log" (into the row), "warn"
    (also to the logger "hpqf"), "stop" (the trainer ends after the step; `stop` is True), "callback". on_alert(alert) is called
    for every alert.
    reference: metrics.jsonl of another run: the loss is compared with its loss. rates: see hpqf.Profiler.
    price_per_hour, fp32_ratio (time of fp32 over time of this precision), watts (where no counter can be read): with *_source,
    what the numbers rest on. A failure of monitoring becomes a note in the next row; it never stops a training.
    """

    def __init__(self, every=10, *, path=None, rules=None, rates=None, reference=None, price_per_hour=None, price_source="given",
                 fp32_ratio=None, ratio_source="given", samples_per_epoch=0, watts=None, watts_source="given", on_alert=None):
        if not isinstance(every, int):
            raise Error(f"every={every!r}", "a whole number from 1", "e.g. every=10")
        self.every, self.on_alert, self.stop = every, on_alert, False
        self.latest, self.alerts = None, []   # the newest row; the alerts of the last observe()
        self._core = _C.Monitor(every, "" if path is None else os.fspath(path), _rules_text(rules), rate_table(rates),
                                "" if reference is None else os.fspath(reference), price_per_hour, price_source, fp32_ratio,
                                ratio_source, samples_per_epoch, watts, watts_source)

    def due(self, step) -> bool:
        """Will a row be written after this step? Then observe() can use the audit."""
        return self._core.due(step)

    def begin(self, step) -> None:
        """The run goes on after `step`: rows of later steps leave the file."""
        self._core.resume_after(step)

    def observe(self, *, step, loss, samples=0, seconds=0.0, epoch=0, applied=True, loss_scale=1.0, grad_norm=None, accuracy=None,
                audit=None, gradients=None):
        """After each step; the row when one was due, else None. audit: an AuditReport. gradients: a GradientMonitor."""
        rows, findings = ([], []) if gradients is None else (gradients.latest, gradients.findings)
        row, alerts, stop = self._core.observe(step, epoch, samples, loss, seconds, applied, loss_scale, grad_norm, accuracy, audit,
                                               rows, findings)
        for alert in alerts:
            if alert.action != "log":
                _log.warning("step %d: %s", step, alert.text)
            if self.on_alert is not None:
                self.on_alert(alert)
        self.alerts, self.stop = alerts, self.stop or stop
        if row is not None:
            for note in row["notes"]:
                _log.info("step %d: %s", step, note)
            self.latest = row
        return row
