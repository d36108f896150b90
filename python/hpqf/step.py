"""One training step as a list of phases."""
import time
from dataclasses import dataclass, field

import torch

from . import _C, batches
from .errors import from_torch
from .loss_scaler import LossScaler
from .results import StepResult


@dataclass
class TrainStep:
    """What a step works with, and what it counts. `fallback` and the counters go into checkpoints."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    scaler: LossScaler
    attachment: object
    audit: _C.Audit
    loss_fn: object = None
    scheduler: object = None
    max_grad_norm: float | None = None
    gradients: object = None   # a GradientMonitor, or None
    rules: _C.FallbackRules = field(default_factory=_C.FallbackRules)
    fallback: _C.FallbackState = field(default_factory=_C.FallbackState)
    step: int = 0      # tried
    applied: int = 0   # drives the scheduler

    def run(self, window: list, epoch: int) -> StepResult:
        """One optimizer step over the micro-batches; the gradient is that of the mean over all their samples."""
        begin, self.step = time.perf_counter(), self.step + 1
        lr, scale = self.optimizer.param_groups[0]["lr"], self.scaler.loss_scale
        plan = self.attachment.runtime.plan
        census = _C.OpCensus() if self.step % 500 == 3 else None   # times what the engine does not count, now and then
        if self.gradients is not None:
            self.gradients.next_step(self.step)
        loss, samples = self._forward_backward(window)
        watched = self.gradients is not None and self.gradients.due(self.step)
        if watched:
            self.scaler.unscale_(self.optimizer)
            self.gradients.gradients_ready(self.step)
        norm = self._clip()
        status = self.scaler.step(self.optimizer)
        if watched:
            self.gradients.stepped()
        changes = [text for text in (self.scaler.update(), *self._react(plan, status)) if text]
        if status:
            self.applied += 1
            if self.scheduler is not None:
                self.scheduler.step()
        self.optimizer.zero_grad(set_to_none=True)
        seconds = time.perf_counter() - begin
        self.audit.add_step(seconds)
        if census is not None:
            census.finish(self.audit)
        return StepResult(self.step, epoch, status.applied, status.cause, loss, scale, float(lr), norm, samples, seconds,
                          plan.epoch, changes)

    def _forward_backward(self, window):
        sizes = [batches.samples(batch) for batch in window]
        total = sum(sizes) or 1
        mean = 0.0
        for batch, size in zip(window, sizes):
            _, _, loss = batches.forward(self.model, batch, self.loss_fn)
            share = size / total
            try:
                self.scaler.scale(loss if share == 1 else loss * share).backward()
            except RuntimeError as error:
                raise from_torch(error)
            mean += loss.item() * share
        return mean, total

    def _clip(self) -> float:
        if self.max_grad_norm is None:
            return 0.0
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        return float(self.scaler.clip_grad_norm_(parameters, self.max_grad_norm))

    def _react(self, plan, status) -> list[str]:
        """The plan for the next step: a layer whose format overflowed leaves that format."""
        seen = self.audit.take_observations(self.step)
        seen.skipped, seen.nonfinite_gradients = not status.applied, status.nonfinite_layers
        self._agree(seen)
        decision = _C.fallback_react(plan, self.fallback, seen, self.rules)
        self.fallback = decision.state
        if decision.reasons:
            self.attachment.runtime.apply(decision.plan)
        chosen = self.attachment.settle()
        self.attachment.runtime.follow_ranges()
        return decision.reasons + [chosen] if chosen else decision.reasons

    def _agree(self, seen) -> None:
        """Ranks of one DDP model skip together (its all-reduce carries the NaN), but the cast that overflowed may be one
        rank's alone. In a skipped step all of them see what any saw, in rank order, so that their plans stay equal."""
        if not seen.skipped or not isinstance(self.model, torch.nn.parallel.DistributedDataParallel):
            return
        group = self.model.process_group
        everywhere = [None] * torch.distributed.get_world_size(group)
        torch.distributed.all_gather_object(everywhere, (seen.casts, seen.nonfinite_gradients), group=group)
        seen.casts = [cast for casts, _ in everywhere for cast in casts]
        seen.nonfinite_gradients = list(dict.fromkeys(name for _, names in everywhere for name in names))
