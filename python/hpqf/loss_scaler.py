"""LossScaler: keeps small gradients representable in fp16 and fp8, and skips steps whose gradients are not finite."""
import json
from dataclasses import dataclass, field

import torch

from . import _C
from .attach import place_of
from .errors import Error


@dataclass(frozen=True)
class StepStatus:
    """What became of an optimizer step. True when it was applied."""

    applied: bool
    cause: str = ""   # why not, naming layer and parameter; "" when applied
    nonfinite_layers: list = field(default_factory=list)   # definition order

    def __bool__(self) -> bool:
        return self.applied


class LossScaler:
    """
        scaler = hpqf.LossScaler()
        scaler.scale(loss).backward()
        scaler.clip_grad_norm_(model.parameters(), 1.0)   # optional
        status = scaler.step(optimizer)
        if not status: print(status.cause)

    Whatever comes first (unscale_, clip_grad_norm_, step) divides the gradients by the scale; nothing is divided twice.
    The scale moves at the end of a step: at update(), or at the next scale() when update() is left out. Optimizers that
    share one backward pass may be stepped one after the other before that.

    Options: init, growth, backoff, floor, cap, growth_interval, recovery_interval, hysteresis (see plan/loss_scale.h), and
    enabled=False for a scale of 1 for ever; steps with non-finite gradients are skipped all the same.
    """

    def __init__(self, **options):
        try:
            self._options = _C.LossScaleOptions(**options)
        except TypeError:
            raise Error(f"LossScaler({', '.join(f'{k}={v!r}' for k, v in options.items())})",
                        "numbers for init, growth, backoff, floor, cap, growth_interval, recovery_interval, hysteresis; enabled",
                        "use these names") from None
        self._core = _C.LossScaler(self._options)
        self._begin()

    def _begin(self):
        self._stepped, self._finite, self._gradients = set(), True, 0

    def scale(self, loss):
        """loss * scale; a list or tuple of losses gives the same of its entries."""
        if self._stepped:
            self.update()
        if isinstance(loss, (list, tuple)):
            return type(loss)(self._core.scale(entry) for entry in loss)
        return self._core.scale(loss)

    def unscale_(self, optimizer) -> _C.GradientHealth:
        """Divides the gradients of this optimizer by the scale; says whether they are finite and where not."""
        if id(optimizer) in self._stepped:
            self.update()   # the next step has begun without a scale(), as with enabled=False
        return self._unscale(_named(optimizer))

    def _unscale(self, parameters):
        health = self._core.unscale_and_check(parameters)
        self._finite &= health.finite
        self._gradients += health.gradients
        return health

    def clip_grad_norm_(self, parameters, max_norm: float) -> float:
        """Clips the joint 2-norm of the unscaled gradients; the norm before. Non-finite gradients are left alone."""
        parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        parameters = _place(parameters, [("", f"parameter {i}") for i in range(len(parameters))])
        self._unscale(parameters)
        return self._core.clip_grad_norm(parameters, max_norm)

    def step(self, optimizer, *args, **kwargs) -> StepStatus:
        """optimizer.step(*args, **kwargs), unless a gradient is not finite or there is none."""
        closure = kwargs.get("closure", args[0] if args else None)
        if closure is not None and self._options.enabled:
            # It would compute its gradients after the check, and hand them to the optimizer as scaled as they came.
            raise Error("LossScaler.step with a closure", "step(optimizer) after scaler.scale(loss).backward()",
                        "leave the closure out, or use LossScaler(enabled=False) for optimizers that need one (LBFGS)")
        health = self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        if health.gradients == 0 and closure is None:
            return StepStatus(False, "no parameter of the optimizer has a gradient")
        if not health.finite:
            return StepStatus(False, str(health), health.layers)
        optimizer.step(*args, **kwargs)
        return StepStatus(True)

    def update(self) -> str:
        """Ends the step: the scale grows, backs off or stays. The reason of a change, "" otherwise."""
        self._begin()
        return self._core.update()

    @property
    def state(self) -> _C.LossScaleState:
        """After the steps so far, whether update() has run or not."""
        if self._stepped and self._gradients:
            return _C.loss_scale_update(self._core.state, self._finite, self._options).state
        return self._core.state

    @property
    def loss_scale(self) -> float:
        return self.state.scale

    def state_dict(self) -> dict:
        return json.loads(self.state.to_json())

    def load_state_dict(self, state: dict) -> None:
        """Exact: what follows equals the run that was saved. hpqf.Error on anything that is no such state."""
        loaded = _C.LossScaleState.from_json(json.dumps(state))
        self._core = _C.LossScaler(self._options)
        self._core.state = loaded
        self._begin()


def _place(parameters, names):
    """LayerParameters in definition order: by the model they were last attached with, else by the names given."""
    found = [(place_of(p) or (len(parameters) + i, *names[i]), p) for i, p in enumerate(parameters)]
    return [_C.LayerParameter(layer, name, p) for (_, layer, name), p in sorted(found, key=lambda entry: entry[0][0])]


def _named(optimizer):
    parameters, names = [], []
    for g, group in enumerate(optimizer.param_groups):
        given = group.get("param_names") or [f"parameter {i} of group {g}" for i in range(len(group["params"]))]
        for parameter, name in zip(group["params"], given):
            layer, _, last = name.rpartition(".")
            parameters.append(parameter)
            names.append((layer, last))
    return _place(parameters, names)
