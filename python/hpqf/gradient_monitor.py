"""GradientMonitor: statistics of weights and gradients per layer, every so many steps."""
import os

import torch
from torch import nn

from . import _C
from .attach import attachment_of
from .describe import kind, layer_parameters, model_facts
from .errors import Error

_WATCHED = ("linear", "conv", "conv_transpose", "rnn", "attention")


class GradientMonitor:
    """
        monitor = hpqf.GradientMonitor(model, every=50, path="gradients.jsonl")
        for x, y in loader:
            scaler.scale(loss_fn(model(x), y)).backward()
            scaler.unscale_(optimizer)      # with a loss scale
            monitor.observe(optimizer)      # before the optimizer's step; in most steps it does nothing
            scaler.step(optimizer)
        for row in monitor: print(row)      # of the latest look

    Each look gives, per layer, a row for the weights, one for the gradient of the parameters and, if output_gradients, one for
    the gradient at the output, as backward sees it (times the loss scale; before a clip of the parameters' gradients). Recurrent
    layers also show the gradient at their input by time step. Shares of underflow and overflow and the signal-to-noise ratio
    are those of the format that the plan gives the layer: the plan in force if the model is attached, else `plan`, else fp32.

    model: the module whose parameters are watched. every: steps between two looks. quantisation: also round and compare.
    path: one JSON line a row; old ones are thinned at 64 MiB. detector: a dict of the fields of hpqf.DetectorOptions.
    Close it, or use it in a `with` block, to take its hooks off the modules.
    """

    def __init__(self, model, every=50, *, path=None, plan=None, output_gradients=True, quantisation=True, detector=None):
        if not isinstance(model, nn.Module):
            raise Error(f"a gradient monitor for a {type(model).__name__}", "a torch.nn.Module", "give the model itself")
        if not isinstance(every, int) or every < 1:
            raise Error(f"every={every!r}", "a whole number from 1", "e.g. every=50")
        options = _C.DetectorOptions()
        for name, value in (detector or {}).items():
            if name.startswith("_") or not hasattr(options, name):
                raise Error(f"detector option {name!r}", "the fields of hpqf.DetectorOptions", "see docs/monitoring.md")
            setattr(options, name, value)
        self.model, self.plan, self.every = model, plan, every
        self._core = _C.GradientMonitor(every, quantisation, "" if path is None else os.fspath(path), options)
        self._facts, self._step, self._parameters = model_facts(model), 0, None
        self._optimizer_hooks, self._notes = {}, []
        self._hooks = list(self._hook_modules()) if output_gradients else []

    # Own loops.
    def observe(self, optimizer=None) -> bool:
        """After the backward pass (and unscaling), before optimizer.step(); True when this step is looked at.

        With the optimizer, its step completes the look with the ratio of update to weight; without, there is none."""
        self._step += 1
        if not self._core.due(self._step):
            return False
        self.gradients_ready(self._step)
        if optimizer is None:
            self.stepped()
        elif optimizer not in self._optimizer_hooks:
            self._optimizer_hooks[optimizer] = optimizer.register_step_post_hook(lambda *_: self.stepped())
        return True

    # The trainer's side.
    def due(self, step) -> bool:
        return self._core.due(step)

    def next_step(self, step) -> None:
        """The forward pass of this step comes next."""
        self._step = step - 1

    def gradients_ready(self, step) -> None:
        self._step, self._parameters = step, layer_parameters(self.model)
        self._core.gradients(step, self._parameters, self._plan_now(), self._facts)

    def stepped(self) -> None:
        """The optimizer has stepped, or the step was skipped."""
        if self._parameters is not None:
            self._core.updated(self._parameters)
            self._parameters = None
            self._notes += self._core.take_notes()

    def begin(self, step) -> None:
        """The run goes on after `step`: rows of later steps leave the file."""
        self._step = step
        self._core.resume_after(step)

    @property
    def latest(self) -> list:
        """Rows (hpqf.GradientObservation) of the latest look, in definition order."""
        return self._core.latest

    @property
    def findings(self) -> list:
        """What exploded, vanished or was not finite in the latest look."""
        return self._core.findings

    @property
    def notes(self) -> list[str]:
        """What failed so far (a full disk, ...), each once: training is never stopped for it."""
        return list(self._notes)

    def __iter__(self):
        return iter(self.latest)

    def state_dict(self) -> dict:
        return {"step": self._step, "detector": self._core.state_to_json()}

    def load_state_dict(self, state: dict) -> None:
        self._core.load_state(state["detector"])
        self._step = state["step"]

    def close(self) -> None:
        for hook in [*self._hooks, *self._optimizer_hooks.values()]:
            hook.remove()
        self._hooks, self._optimizer_hooks = [], {}

    def __enter__(self) -> "GradientMonitor":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def _plan_now(self):
        attachment = attachment_of(self.model)
        return self.plan if attachment is None else attachment.runtime.plan

    def _format(self, name, layer_kind) -> str:
        plan = self._plan_now()
        return "fp32" if plan is None else plan.at(name, layer_kind).dgrad

    def _hook_modules(self):
        for name, module in self.model.named_modules():
            layer_kind = kind(module)
            if layer_kind in _WATCHED:
                yield module.register_forward_hook(self._after_forward(name, layer_kind))
            if isinstance(module, nn.RNNBase):
                yield module.register_forward_pre_hook(self._before_recurrence(name, layer_kind))

    def _watches_now(self) -> bool:
        return self._core.due(self._step + 1) and torch.is_grad_enabled()

    def _after_forward(self, name, layer_kind):
        def hook(module, inputs, output):
            if not self._watches_now():
                return
            y = output[0] if isinstance(output, tuple) and output else output
            if isinstance(y, torch.Tensor) and y.requires_grad:
                self._watch(y, name, layer_kind)
        return hook

    def _before_recurrence(self, name, layer_kind):
        def hook(module, inputs):
            x = inputs[0] if inputs else None
            if self._watches_now() and isinstance(x, torch.Tensor) and x.requires_grad and x.dim() == 3:
                self._watch(x, name, layer_kind, True, 1 if module.batch_first else 0)
        return hook

    def _watch(self, tensor, name, layer_kind, of_input=False, time_axis=None) -> None:
        step, form = self._step + 1, self._format(name, layer_kind)

        def look(gradient):
            self._core.output_gradient(step, name, gradient, form, of_input, time_axis)
        tensor.register_hook(look)
