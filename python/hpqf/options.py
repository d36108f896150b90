"""What users may give the trainer, checked at the door."""
import inspect

import torch

from . import _C
from .describe import model_facts
from .errors import Error
from .precision import make_plan

_CONFIG = ("default", "sensitive_layers", "optimizer_precision")


def check_parameters(model) -> None:
    for name, parameter in model.named_parameters():
        if parameter.is_floating_point() and parameter.dtype not in (torch.float32, torch.float64):
            raise Error(f"training {name}, which is stored in {parameter.dtype}".replace("torch.", ""), "fp32 (or fp64) parameters",
                        "give the model in fp32 (model.float()): the plan rounds weights when they are used")


def plan_of(model, config, mixed_precision, plan) -> _C.PrecisionPlan:
    config = dict(config or {})
    unknown = [key for key in config if key not in _CONFIG]
    if unknown:
        raise Error(f"precision_config key {unknown[0]!r}", ", ".join(_CONFIG), "use one of these")
    if config.get("optimizer_precision", "fp32") != "fp32":
        raise Error(f"optimizer_precision {config['optimizer_precision']!r}", "'fp32' in this version", "leave it out")
    if plan is not None and config:
        raise Error("both plan= and precision_config=", "one of them", "put everything into the plan")
    if not mixed_precision and (plan is not None or config):
        raise Error("mixed_precision=False and a precision", "one of them", "leave mixed_precision out, or the precision")
    if plan is not None:
        return make_plan(model, plan)
    return make_plan(model, config.get("default", "bf16" if mixed_precision else "fp32"), config.get("sensitive_layers", ()))


def has_narrow_gradients(plan, model) -> bool:
    """Does any layer round output gradients to a floating-point format with less range than fp32, without block scales?"""
    narrow = {f.name for f in _C.formats() if not f.is_integer and f.exponent_bits < 8}
    layers = (plan.at(layer.name, layer.kind) for layer in model_facts(model).layers)
    return any(text.partition("[")[0] in narrow for p in layers for text in (p.dgrad, p.wgrad))


def optimizer_of(model, optimizer, lr):
    if optimizer is None:
        return torch.optim.AdamW(model.named_parameters(), lr=lr)
    if not isinstance(optimizer, torch.optim.Optimizer):
        optimizer = optimizer(model.parameters()) if callable(optimizer) else optimizer
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise Error(f"optimizer {type(optimizer).__name__}", "a torch.optim.Optimizer, or a function from parameters to one",
                    "e.g. torch.optim.SGD(model.parameters(), lr=0.1)")
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    if closure is not None and closure.default is closure.empty:
        raise Error(f"{type(optimizer).__name__}, whose step needs a closure", "optimizers that step on gradients already computed",
                    "use it in your own loop inside hpqf.precision(...), with LossScaler(enabled=False)")
    own = {id(p) for p in model.parameters()}
    if not any(id(p) in own for group in optimizer.param_groups for p in group["params"]):
        raise Error("an optimizer that holds no parameter of the model", "one made from this model's parameters",
                    "make it after the model was moved or rebuilt")
    return optimizer


def scheduler_of(optimizer, scheduler):
    if scheduler is None or hasattr(scheduler, "step"):
        made = scheduler
    else:
        made = scheduler(optimizer)
    if isinstance(made, torch.optim.lr_scheduler.ReduceLROnPlateau):
        raise Error("ReduceLROnPlateau as scheduler", "schedulers that are stepped without a metric", "step it yourself in on_step")
    return made


def positive(name, value) -> int:
    if not isinstance(value, int) or value < 1:
        raise Error(f"{name}={value!r}", "a whole number from 1", f"e.g. {name}=1")
    return value
