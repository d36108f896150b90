"""`with hpqf.precision(model, ...)`: a plan for one's own training loop."""
from torch import nn

from . import _C
from .attach import Attachment, check_attachable
from .describe import model_facts
from .errors import Error


def layer_names(model: nn.Module, sensitive_layers) -> list[str]:
    """Patterns as they are; modules by their qualified name in the model."""
    names = {module: name for name, module in model.named_modules()}
    patterns = []
    for layer in [sensitive_layers] if isinstance(sensitive_layers, (str, nn.Module)) else sensitive_layers:
        if isinstance(layer, nn.Module):
            if layer not in names:
                raise Error(f"sensitive layer {type(layer).__name__}", f"modules of the {type(model).__name__} and name patterns",
                            "give a module of this model, or a pattern such as 'head.*'")
            patterns.append(names[layer] or "*")
        elif isinstance(layer, str):
            patterns.append(layer)
        else:
            raise Error(f"sensitive layer {layer!r}", "module names, patterns and modules", "give 'head.*' or model.head")
    return patterns


def range_rules(wanted) -> _C.RangeRules:
    if isinstance(wanted, _C.RangeRules):
        return wanted
    if isinstance(wanted, bool):
        return _C.RangeRules(enabled=wanted)
    raise Error(f"range_compensation={wanted!r}", "True, False or hpqf.RangeRules(...)", "True is usual")


def make_plan(model: nn.Module, plan, sensitive_layers=()) -> _C.PrecisionPlan:
    """A plan from a format name, "auto", or a plan; the sensitive layers stay in fp32. Checked against the model."""
    facts = model_facts(model)
    patterns = layer_names(model, sensitive_layers)
    if isinstance(plan, str):
        plan = _C.requested_plan(plan, patterns)
    elif not isinstance(plan, _C.PrecisionPlan):
        raise Error(f"precision {plan!r}", "a format name such as 'bf16', 'auto', or an hpqf.PrecisionPlan",
                    "see hpqf.formats() for the names")
    else:
        for pattern in reversed(patterns):
            plan = plan.with_rule(pattern, "fp32", "sensitive layer")
    plan.check(facts)
    return plan


class precision:
    """Runs `model` under a plan, forward and backward, inside the `with` block; afterwards the model is as it was.

        with hpqf.precision(model, "bf16", sensitive_layers=[model.head]):
            loss = loss_fn(model(x), y)
            loss.backward()
        print(hpqf.audit(model))

    plan: a format name ("bf16", "fp16", "fp8", "int8[1x128]", ...), a PrecisionPlan, or "auto": the first step runs in fp32 and
      shows what each layer computes, then each takes the format that was measured fastest on this machine. Keep the object (or
      one block around the loop) for all steps.
    sensitive_layers: modules, names or patterns that stay in fp32.
    strict: True or "formats": an op that would run in another format than planned raises hpqf.Error; "native": also one
      whose low-precision arithmetic would be emulated.
    range_compensation: True or hpqf.RangeRules: fp16 and unscaled fp8 follow the largest values of each layer and role with a
      power of two, so that these neither overflow nor sink below the format's smallest.

    Blocks may be nested and used for several models at once; on one model the inner block decides. A block may be entered
    again after it was left, and its audit goes on. Outside of `with`, attach() and detach() do the same. Copies made while
    attached (copy.deepcopy, torch.save) are not attached. Modules added to the model later are not seen until the next
    attach. Threads may run the model.
    """

    def __init__(self, model, plan="bf16", sensitive_layers=(), *, strict=False, range_compensation=False):
        check_attachable(model)
        self.model, self.strict, self._range = model, strict, range_rules(range_compensation)
        self._ranges = None   # of an earlier attachment
        self._plan = make_plan(model, plan, sensitive_layers)
        self._audit, self._attachment = _C.Audit(), None

    def attach(self) -> "precision":
        if self._attachment is not None:
            raise Error("the same hpqf.precision object attached twice", "one attachment at a time",
                        "detach it first, or make a second hpqf.precision(model, ...)")
        self._attachment = Attachment(self.model, self._plan, strict=self.strict, audit=self._audit, range=self._range)
        if self._ranges is not None:
            self._attachment.runtime.set_ranges(self._ranges)
        return self

    def detach(self) -> None:
        if self._attachment is not None:
            self._attachment.settle()
            self._plan = self._attachment.runtime.plan   # what apply() and settle() made of it
            self._attachment.runtime.follow_ranges()
            self._ranges = self._attachment.runtime.ranges()
            self._attachment.detach()
            self._attachment = None

    def __enter__(self) -> "precision":
        return self.attach()

    def __exit__(self, *exception) -> None:
        self.detach()

    @property
    def plan(self) -> _C.PrecisionPlan:
        return self._plan if self._attachment is None else self._attachment.runtime.plan

    def apply(self, plan, sensitive_layers=()) -> None:
        """Another plan from here on. Between optimizer steps only: a backward must follow the plan of its forward."""
        self._plan = make_plan(self.model, plan, sensitive_layers)
        if self._attachment is not None:
            self._attachment.runtime.apply(self._plan)

    def audit(self) -> _C.AuditReport:
        return self._audit.report()
