"""What training returns: plain records, with the same names as in C++."""
from dataclasses import dataclass, field


@dataclass
class StepResult:
    step: int               # optimizer steps tried so far, this one included: the first is 1
    epoch: int              # from 0
    applied: bool
    cause: str              # why the step was skipped, naming layer and parameter; "" when applied
    loss: float             # mean over the samples, unscaled
    loss_scale: float       # that this step ran with
    lr: float               # of the first parameter group, in this step
    grad_norm: float        # after unscaling, before clipping; 0 when max_grad_norm is off
    samples: int
    seconds: float          # wall time of the step, data loading not included
    plan_epoch: int         # of the plan this step ran with
    changes: list[str] = field(default_factory=list)   # decided at the end of the step: plan and loss scale, with reasons

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.seconds if self.seconds > 0 else 0.0


@dataclass
class TrainSummary:
    steps: int              # counted from step 0, also over resumes
    applied: int
    resumed_from: int       # step; 0: not resumed
    last_loss: float
    seconds: float          # wall time of this call
    checkpoint: str         # path of the last one written; "" without a folder
    notes: list[str]        # plan changes and the like

    @property
    def skipped(self) -> int:
        return self.steps - self.applied


@dataclass
class EvalResult:
    loss: float             # mean over the samples
    accuracy: float | None  # share of targets hit by the largest output; None when targets are no class numbers
    samples: int
