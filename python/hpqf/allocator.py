"""Precision that decides itself: from the sensitivity of a model and a budget to a plan. No arithmetic here."""
import os

from . import _C
from .errors import Error


def _record(sensitivity) -> str:
    """The JSON of a sensitivity: an object with to_json(), or the path of a record."""
    if hasattr(sensitivity, "to_json"):
        return sensitivity.to_json()
    if isinstance(sensitivity, (str, os.PathLike)):
        with open(sensitivity, encoding="utf-8") as file:
            return file.read()
    raise Error(f"an allocation from {type(sensitivity).__name__}", "a sensitivity, a report of hpqf.profile(), or a path",
                "measure one with hpqf.profile(model, loader)")


def _names(formats) -> list:
    return [formats] if isinstance(formats, str) else list(formats or ())


def allocate(sensitivity, budget, *, standard_errors: float = 1.0, weights=None, inputs=None, locks=None, forbid_above=None,
             training: bool = False, times=None, minimise: str = "bytes", front_points: int = 0):
    """The plan of least predicted loss within a budget.

        allocation = hpqf.allocate(report, {"bits": 4.0})
        hpqf.MixedPrecisionTrainer(model, plan=allocation.plan)

    sensitivity: what hpqf.profile() returns, or the path of a record. budget: any of bits (a weight), bytes, bops, seconds
        and loss (nats), as a dict or as text: "bytes=60k,loss=0.02". Several at once: Lagrange multipliers, see `.bound`.
    weights, inputs: formats to choose from; left out, those with scores (inputs: fp32 unless the budget counts them).
    locks: {pattern: precision} of layers that are not asked. forbid_above: no choice whose score exceeds this.
    training: only formats that the training scores admit. times: path of measured times, for a budget of seconds.
    Error when no choice fits, with the smallest budget that would.
    """
    locked = {}
    for pattern, precision in dict(locks or {}).items():
        locked[pattern] = precision if isinstance(precision, _C.LayerPrecision) else _C.LayerPrecision(precision)
    if times is not None:
        with open(times, encoding="utf-8") as file:
            times = file.read()
    budget = _C.Budget(budget)
    return _C.allocate(_record(sensitivity), budget, standard_errors=standard_errors, weights=_names(weights), inputs=_names(inputs),
                       locks=locked, forbid_above=forbid_above, training=training, times=times, minimise=minimise,
                       front_points=front_points)


def allocate_precision(sensitivity, threshold: float = 0.1, *, low: str = "int4", high: str = "fp16", measure: str = "score",
                       relative: bool = True):
    """The simple form: weights and inputs of layers above `threshold` take `high`, of the others `low`. Returns the plan.

    measure: "score" (predicted loss in the low format, nats), "eigenvalue" or "trace" of the Hessian, "omega".
    relative: the threshold is a share of the most sensitive layer.
    """
    options = _C.ThresholdOptions(measure=measure, relative=relative, low=low, high=high)
    return _C.allocate_precision(_record(sensitivity), threshold, options)


class AllocatorDecisions:
    """What DynamicPrecisionAllocator decides from what it measured (`self.report`)."""

    report = None

    def _measured(self):
        if self.report is None:
            raise Error("a decision about a model that was not measured yet", "calculate_layer_sensitivity() first",
                        "call it with a loader")
        return self.report

    def allocate_precision(self, threshold: float = 0.1, **options) -> dict:
        """{layer: 'FP16' | 'INT4'}: the layers above the threshold stay high. Sets `.plan`. Options as for
        hpqf.allocator.allocate_precision()."""
        self.plan = allocate_precision(self._measured(), threshold, **options)
        return {layer: self.plan.at(layer).weight.upper() for layer in _C.layers_of_sensitivity(_record(self.report))}

    def allocate(self, budget, **options):
        """The exact form, for a budget. Sets `.plan`; returns what hpqf.allocate() does."""
        allocation = allocate(self._measured(), budget, **options)
        self.plan = allocation.plan
        return allocation
