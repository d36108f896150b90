"""A plan attached to a model: runtime, patched forwards, and everything put back at the end."""
import threading
import weakref

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from . import _C
from .describe import layer_parameters, model_facts, parameter_slots
from .errors import Error
from .patch import computes, patch, unpatch

# The audit of the latest attachment of each model, and where each parameter was last seen (for messages).
_audits: "weakref.WeakKeyDictionary[torch.nn.Module, _C.Audit]" = weakref.WeakKeyDictionary()
_places = WeakTensorKeyDictionary()
_lock = threading.Lock()
# What is attached now, and who listens to all of it (profilers).
_attached: "weakref.WeakSet[Attachment]" = weakref.WeakSet()
_listeners: list = []


class _FastPath:
    """While anything is attached the fused attention of eval mode is off: one op for a whole layer has no single precision."""

    def __init__(self):
        self.users, self.before = 0, True

    def enter(self):
        with _lock:
            if self.users == 0:
                self.before = torch.backends.mha.get_fastpath_enabled()
                torch.backends.mha.set_fastpath_enabled(False)
            self.users += 1

    def leave(self):
        with _lock:
            self.users -= 1
            if self.users == 0:
                torch.backends.mha.set_fastpath_enabled(self.before)


_fast_path = _FastPath()


def check_attachable(model) -> None:
    if not isinstance(model, torch.nn.Module):
        raise Error(f"a precision plan for a {type(model).__name__}", "a torch.nn.Module", "give the model itself")
    for name, module in model.named_modules():
        where = f"module {name!r}" if name else "the model"
        compiled = type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None
        if compiled:
            raise Error(f"a precision plan for {where}, which is compiled already", "models that are not compiled yet",
                        "attach first, then compile: torch.compile(model) inside hpqf.precision(...)")
        if isinstance(module, torch.jit.ScriptModule):
            raise Error(f"a precision plan for {where}, a TorchScript module", "ordinary Python modules",
                        "attach the model before scripting it")
        if isinstance(module, torch.nn.DataParallel):
            raise Error(f"a precision plan for {where}, a DataParallel", "one model per process",
                        "use torch.nn.parallel.DistributedDataParallel")


class Attachment:
    """Runs the model as planned from construction until detach(). Several may live at once, also on one model: the inner
    one then decides."""

    def __init__(self, model, plan, *, strict=False, audit=None, force_implementation="", range=None):
        check_attachable(model)
        self.model, self.warned_of_compile = model, False
        self._refresh_lock = threading.Lock()
        facts = model_facts(model)
        plan.check(facts)
        self._relay = _C.Relay()
        self._relay.add(audit)
        self.runtime = _C.Runtime(facts, layer_parameters(model), plan, strict, self._relay, force_implementation,
                                  range or _C.RangeRules(enabled=False))
        self._look()
        self._entries = [
            patch(module, self.runtime.layer(name), self)
            for name, module in model.named_modules()
            if not name or computes(module)
        ]
        _fast_path.enter()
        if audit is not None:
            _audits[model] = audit
        with _lock:
            _attached.add(self)
            for sink in _listeners:
                self._relay.add(sink)

    def _look(self):
        self._watch = _C.ParameterWatch(parameter_slots(self.model))
        parameters = layer_parameters(self.model)
        for order, parameter in reversed(list(enumerate(parameters))):   # tied ones keep their first place
            _places[parameter.tensor] = (order, parameter.layer, parameter.name)

    def refresh(self):
        """Called on the way into the model: parameters that moved are looked up anew, an "auto" plan is settled,
        ranges follow their values."""
        if torch._C._current_graph_task_id() < 0:   # a recomputation in the backward must repeat its forward
            self.settle()
            self.runtime.follow_ranges()
        if self._watch.moved():
            with self._refresh_lock:
                self.runtime.rescan(layer_parameters(self.model))
                self._look()

    def settle(self) -> str:
        """Between steps: chooses the formats of an "auto" plan once its layers were seen; what was chosen, or ""."""
        if not isinstance(self.model, torch.nn.parallel.DistributedDataParallel):
            return self.runtime.settle()
        if not self.runtime.unsettled:
            return ""
        # Ranks measure different speeds, but must run one plan: that of the first.
        group = self.model.process_group
        chosen = [self.runtime.settle(), self.runtime.plan.to_json()] if torch.distributed.get_rank(group) == 0 else [None, None]
        torch.distributed.broadcast_object_list(chosen, group=group, group_src=0)
        self.runtime.apply(_C.PrecisionPlan.from_json(chosen[1]))
        return chosen[0]

    def detach(self):
        for entry in self._entries:
            unpatch(entry)
        self._entries = []
        _fast_path.leave()
        with _lock:
            _attached.discard(self)


def audit(model) -> _C.AuditReport:
    """What really ran since the plan was attached: requested and effective formats per layer, op and pass."""
    try:
        return _audits[model].report()
    except (KeyError, TypeError):
        raise Error(f"the audit of a {type(model).__name__} that never had a precision plan",
                    "a model given to hpqf.precision or hpqf.MixedPrecisionTrainer",
                    "run it inside `with hpqf.precision(model, ...)` first") from None


def listen(sink) -> None:
    """Events of every model that is attached, or will be, go to the sink too."""
    with _lock:
        _listeners.append(sink)
        for attachment in _attached:
            attachment._relay.add(sink)


def unlisten(sink) -> None:
    with _lock:
        _listeners.remove(sink)
        for attachment in _attached:
            attachment._relay.remove(sink)


def attachment_of(model):
    """A live attachment of this model, or None."""
    with _lock:
        return next((attachment for attachment in _attached if attachment.model is model), None)


def place_of(parameter):
    """(order, layer, name) of a parameter in the model it was attached with, or None."""
    return _places.get(parameter)
