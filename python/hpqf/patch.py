"""One instance-level `forward` per module: it names the layer while the module runs, and calls what was there before.

A module-level function with try/finally costs about 2 us a call against 6 us for a pair of hooks, covers every exception,
and needs no change of the module's class.
"""
import copy
import functools
import operator
import types
import warnings

import torch

from . import _C
from .errors import from_torch


class Entry:
    """One module under one attachment. `layer` is None once detached: the patch then passes through."""

    __slots__ = ("layer", "owner", "module", "below")

    def __init__(self, layer, owner, module, below):
        self.layer, self.owner, self.module, self.below = layer, owner, module, below

    def original(self):
        """What stood in the module's __dict__ before anything was attached; None: nothing, the class decides."""
        below = self.below
        return below.entry.original() if isinstance(below, PatchedForward) else below


def _original(entry):
    return entry.original() or types.MethodType(type(entry.module).forward, entry.module)


def _forward(entry, *args, **kwargs):
    if torch.compiler.is_dynamo_compiling():
        return _run_eagerly(entry, args, kwargs)
    layer = entry.layer   # held here: another thread may detach while this one is inside
    if layer is None:
        return _original(entry)(*args, **kwargs)
    outermost = _C.push_layer(layer)
    try:
        if outermost:
            entry.owner.refresh()
        forward = entry.original()
        if forward is None:
            return type(entry.module).forward(entry.module, *args, **kwargs)
        return forward(*args, **kwargs)
    except RuntimeError as error:
        better = from_torch(error)
        if better is error:
            raise
        raise better from None
    finally:
        _C.pop_layer()


# Dynamo traces with fake weights, which no plan can be looked up for: the op would silently run in fp32. A disabled
# function is a graph break, so an attached model computes under torch.compile exactly what it computes without.
# (torch._disable_dynamo imports dynamo at the first call, torch.compiler.disable here: over a second at every import.)
@torch._disable_dynamo
def _run_eagerly(entry, args, kwargs):
    if entry.owner is not None and not entry.owner.warned_of_compile:
        entry.owner.warned_of_compile = True
        warnings.warn("hpqf: a model under a precision plan runs eagerly inside torch.compile: same numbers, no speed-up "
                      "from compiling it", stacklevel=2)
    return _forward(entry, *args, **kwargs)


class PatchedForward(functools.partial):
    """The `forward` in a module's __dict__. Copies and pickles of the module get its own forward back: they are not attached."""

    @property
    def entry(self) -> Entry:
        return self.args[0]

    def __deepcopy__(self, memo):
        original = self.entry.original()
        if original is not None:
            return copy.deepcopy(original, memo)
        module = copy.deepcopy(self.entry.module, memo)
        return types.MethodType(type(module).forward, module)

    def __reduce__(self):   # names no class of ours, so that torch.load needs no hpqf
        original = self.entry.original()
        return (getattr, (self.entry.module, "forward")) if original is None else (operator.getitem, ([original], 0))


def computes(module) -> bool:
    """Containers that run no op themselves stay as they are."""
    forward = type(module).forward
    return forward is not torch.nn.Module.forward and forward is not torch.nn.Sequential.forward


def patch(module, layer, owner) -> Entry:
    entry = Entry(layer, owner, module, module.__dict__.get("forward"))
    patched = PatchedForward(_forward, entry)
    functools.update_wrapper(patched, _original(entry))   # inspect.signature(model.forward) stays what it was
    module.__dict__["forward"] = patched
    return entry


def unpatch(entry: Entry) -> None:
    """Takes the patch out of the chain wherever it stands; attachments may end in any order."""
    entry.layer = entry.owner = None
    names = entry.module.__dict__
    top = names.get("forward")
    if not isinstance(top, PatchedForward):
        return   # replaced by the user meanwhile: theirs stays, and if it still calls ours, ours passes through
    if top.entry is entry:
        if entry.below is None:
            del names["forward"]
        else:
            names["forward"] = entry.below
        return
    while isinstance(top, PatchedForward):
        if isinstance(top.entry.below, PatchedForward) and top.entry.below.entry is entry:
            top.entry.below = entry.below
            return
        top = top.entry.below
