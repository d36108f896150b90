"""MixedPrecisionTrainer: trains a model under a precision plan; the two lines most users need."""
import os
import time

import torch

from . import _C, batches, checkpoint, random_state
from .attach import Attachment, check_attachable
from .errors import Error
from .gradient_monitor import GradientMonitor
from .loss_scaler import LossScaler
from .options import check_parameters, has_narrow_gradients, optimizer_of, plan_of, positive, scheduler_of
from .position import Epochs
from .precision import range_rules
from .progress import Progress
from .results import EvalResult, TrainSummary
from .step import TrainStep


class MixedPrecisionTrainer:
    """
        trainer = hpqf.MixedPrecisionTrainer(model, precision_config={
            "default": "fp16", "sensitive_layers": [model.lstm, "head.*"], "optimizer_precision": "fp32"})
        trainer.train(loader, epochs=2)
        print(trainer.audit())

    model: any torch.nn.Module with fp32 (or fp64) parameters: the plan decides what they are rounded to when used. It is
        touched only while train() or evaluate() runs, except for its parameters. Its mode (train/eval) stays the user's.
    precision_config: "default" is a format name or "auto" (the fastest format this machine runs natively);
        "sensitive_layers" are modules, names or patterns kept in fp32; "optimizer_precision" is "fp32" in this version.
        Left out, mixed_precision=True means bf16: it has the range of fp32, so that no loss scale is needed anywhere.
        mixed_precision=False trains in fp32. plan=PrecisionPlan(...) says everything at once instead.
    data: the loader, if it is not given to train(). Batches are (x, ..., y) tuples or dicts of keyword arguments.
    loss_fn(output, target): left out, the model's own `.loss`, else the cross-entropy. Runs outside of the plan, in fp32.
    optimizer: a torch.optim.Optimizer over parameters of the model, or a function from parameters to one; AdamW(lr) if left out.
    scheduler: stepped after every applied step, and not after skipped ones; or a function from the optimizer to one.
    loss_scale: None: dynamic when the plan has fp16 or fp8 gradients, else off; or a dict of LossScaler's options.
    accumulate_steps: micro-batches per optimizer step. max_grad_norm: clips the joint 2-norm of the unscaled gradients.
    fallback: hpqf.FallbackRules: when a layer that overflows leaves its format.
    range_compensation: True or hpqf.RangeRules, as for hpqf.precision.
    checkpoint_dir, checkpoint_every (steps; 0: only at the end), keep_checkpoints: where train() saves and resumes.
    monitor_gradients: steps between looks at the gradients (hpqf.GradientMonitor, at `gradients`); 0: none. With
        checkpoint_dir they go to its gradients.jsonl. monitor: an hpqf.Monitor, told of every step; its alerts may stop train().
    seed: seeds torch when train() starts from step 0. progress: True, False, or None: only on a terminal.
    """

    def __init__(self, model, precision_config=None, *, mixed_precision=True, plan=None, data=None, loss_fn=None, optimizer=None,
                 lr=1e-3, scheduler=None, loss_scale=None, accumulate_steps=1, max_grad_norm=None, fallback=None,
                 range_compensation=False, strict=False, checkpoint_dir=None, checkpoint_every=0, keep_checkpoints=2, seed=None,
                 progress=None, monitor_gradients=0, monitor=None):
        check_attachable(model)
        check_parameters(model)
        self.model, self.data, self.loss_fn, self.strict, self.seed = model, data, loss_fn, strict, seed
        self._plan = self._requested = plan_of(model, precision_config, mixed_precision, plan)
        self.optimizer = optimizer_of(model, optimizer, lr)
        self.scheduler = scheduler_of(self.optimizer, scheduler)
        if loss_scale is None:
            loss_scale = {"enabled": has_narrow_gradients(self._plan, model)}
        self.scaler = LossScaler(**loss_scale)
        self.accumulate_steps = positive("accumulate_steps", accumulate_steps)
        self.max_grad_norm, self.rules = max_grad_norm, fallback or _C.FallbackRules()
        self._range, self._ranges = range_rules(range_compensation), None
        self.checkpoint_dir = None if checkpoint_dir is None else checkpoint.prepare(checkpoint_dir)
        self.checkpoint_every, self.keep_checkpoints = checkpoint_every, positive("keep_checkpoints", keep_checkpoints)
        self.progress = progress
        if not isinstance(monitor_gradients, int) or monitor_gradients < 0:
            raise Error(f"monitor_gradients={monitor_gradients!r}", "a whole number from 0", "use 0 for none")
        self.monitor_gradients, self.monitor, self.gradients = monitor_gradients, monitor, None
        self._audit, self._attachment = _C.Audit(), None

    @property
    def plan(self) -> _C.PrecisionPlan:
        """In force; differs from the one asked for after a fallback."""
        return self._plan if self._attachment is None else self._attachment.runtime.plan

    def audit(self) -> _C.AuditReport:
        """What really ran in the training steps so far; evaluation is not included."""
        return self._audit.report()

    def train(self, data=None, epochs=None, *, steps=None, resume=False, on_step=None) -> TrainSummary:
        """Trains for `epochs` (1 if nothing is given) or `steps` optimizer steps in total, whichever ends first.

        resume: go on bit-equal from the newest checkpoint in checkpoint_dir. on_step(StepResult) is called after each step.
        """
        loader = self.data if data is None else data
        if loader is None:
            raise Error("train() without data", "a loader at construction or in train()", "trainer.train(loader)")
        if epochs is None and steps is None:
            epochs = 1
        if resume and self.checkpoint_dir is None:
            raise Error("resume=True without a folder", "a trainer with checkpoint_dir=...", "give the folder of the run to go on with")
        position, begin = Epochs(loader), time.perf_counter()
        attachment = self._attach(audit=self._audit)
        self._attachment = attachment
        try:
            step = TrainStep(self.model, self.optimizer, self.scaler, attachment, self._audit, self.loss_fn, self.scheduler,
                             self.max_grad_norm, self._watch(), self.rules)
            if resume:
                self._resume(step, position)
            elif self.seed is not None:
                torch.manual_seed(self.seed)
            resumed_from, loss, path, notes = step.step, float("nan"), "", []
            for monitor in (self.gradients, self.monitor):
                if monitor is not None:
                    monitor.begin(step.step)
            with Progress(self.progress, loader, self.accumulate_steps, epochs, steps, step.step) as bar:
                for result in self._steps(step, position, epochs, steps):
                    loss = result.loss
                    notes += [f"step {result.step}: {text}" for text in result.changes]
                    bar.show(result, self.scaler.state.skipped_total)
                    if self.checkpoint_dir and self.checkpoint_every and step.step % self.checkpoint_every == 0:
                        path = self._save(step, position)
                    notes += self._observe(result)
                    if on_step is not None:
                        on_step(result)
                    if self.monitor is not None and self.monitor.stop:
                        break
            if self.checkpoint_dir and step.step > resumed_from:
                path = self._save(step, position)
        finally:
            self._plan, self._ranges, self._attachment = attachment.runtime.plan, attachment.runtime.ranges(), None
            attachment.detach()
            if self.gradients is not None:
                self.gradients.close()
        return TrainSummary(step.step, step.applied, resumed_from, loss, time.perf_counter() - begin, str(path), notes)

    def _attach(self, audit=None) -> Attachment:
        ranges = self._ranges if self._attachment is None else self._attachment.runtime.ranges()
        attachment = Attachment(self.model, self.plan, strict=self.strict, audit=audit, range=self._range)
        if ranges is not None:
            attachment.runtime.set_ranges(ranges)
        return attachment

    def _watch(self):
        path = None if self.checkpoint_dir is None else os.path.join(self.checkpoint_dir, "gradients.jsonl")
        if self.monitor_gradients:
            self.gradients = GradientMonitor(self.model, self.monitor_gradients, path=path)
        return self.gradients

    def _observe(self, result) -> list[str]:
        looked = self.gradients is not None and self.gradients.due(result.step)
        notes = [f"step {result.step}: {finding}" for finding in self.gradients.findings] if looked else []
        if self.monitor is not None:
            audit = self._audit.report() if self.monitor.due(result.step) else None
            self.monitor.observe(
                step=result.step, loss=result.loss, samples=result.samples, seconds=result.seconds, epoch=result.epoch,
                applied=result.applied, loss_scale=result.loss_scale, audit=audit,
                grad_norm=None if self.max_grad_norm is None else result.grad_norm, gradients=self.gradients if looked else None)
            notes += [f"step {result.step}: alert {alert}" for alert in self.monitor.alerts if alert.action != "log"]
        return notes

    def _steps(self, step, position, epochs, steps):
        device = next((p.device for p in self.model.parameters()), torch.device("cpu"))
        while (epochs is None or position.epoch < epochs) and (steps is None or step.step < steps):
            epoch = position.epoch
            for window in position.windows(self.accumulate_steps):
                yield step.run([batches.to_device(batch, device) for batch in window], epoch)
                if step.step == steps:
                    return   # before the next window is read: the position counts what was read as used

    @torch.no_grad()
    def evaluate(self, data, loss_fn=None) -> EvalResult:
        """One pass in eval mode without gradients, under the plan in force."""
        training = [module for module in self.model.modules() if module.training]
        device = next((p.device for p in self.model.parameters()), torch.device("cpu"))
        total, seen, right, counted = 0.0, 0, 0, 0
        attachment = self._attach()
        self.model.eval()
        try:
            for batch in data:
                batch = batches.to_device(batch, device)
                output, target, loss = batches.forward(self.model, batch, loss_fn or self.loss_fn)
                size = batches.samples(batch)
                total, seen = total + loss.item() * size, seen + size
                hit = batches.hits(output, target)
                if hit is not None:
                    right, counted = right + hit[0], counted + hit[1]
        finally:
            attachment.detach()
            for module in training:
                module.training = True
        if seen == 0:
            raise Error("evaluate() over no batch", "loaders that give at least one batch", "check the data set")
        return EvalResult(total / seen, right / counted if counted else None, seen)

    def _save(self, step, position):
        return checkpoint.save(self.checkpoint_dir, step.step, {
            "model": self.model.state_dict(),
            "optimizer": {"type": type(self.optimizer).__name__, "state": self.optimizer.state_dict()},
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "loss_scale": self.scaler.state_dict(),
            "plan": {"requested": self._requested.to_json(), "now": self.plan.to_json()},
            "fallback": step.fallback.to_json(),
            "counters": {"step": step.step, "applied": step.applied},
            "gradients": None if self.gradients is None else self.gradients.state_dict(),
            "position": position.state_dict(),
            "random": random_state.capture(),
            "audit": self.audit().to_json(-1),
            "ranges": self._attachment.runtime.ranges(),
        }, self.keep_checkpoints)

    def _resume(self, step, position):
        parts = checkpoint.load_newest(self.checkpoint_dir)
        checkpoint.check_model(self.model, parts["model"])
        if _C.PrecisionPlan.from_json(parts["plan"]["requested"]) != self._requested:
            raise Error("resume with another plan than the run began with", "the same precision_config or plan",
                        "start a new run in another checkpoint_dir")
        if parts["optimizer"]["type"] != type(self.optimizer).__name__:
            raise Error(f"resume with {type(self.optimizer).__name__}", f"{parts['optimizer']['type']}, as in the checkpoint",
                        "give the optimizer of the run")
        self.model.load_state_dict(parts["model"])
        self.optimizer.load_state_dict(parts["optimizer"]["state"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(parts["scheduler"])
        self.scaler.load_state_dict(parts["loss_scale"])
        step.attachment.runtime.apply(_C.PrecisionPlan.from_json(parts["plan"]["now"]))
        step.fallback = _C.FallbackState.from_json(parts["fallback"])
        step.step, step.applied = parts["counters"]["step"], parts["counters"]["applied"]
        if self.gradients is not None and parts.get("gradients"):
            self.gradients.load_state_dict(parts["gradients"])
        position.load_state_dict(parts["position"])
        random_state.restore(parts["random"])
        if "ranges" in parts:
            step.attachment.runtime.set_ranges(parts["ranges"])
        if "audit" in parts:   # checkpoints of before it was kept have none
            self._audit.restore(_C.AuditReport.from_json(parts["audit"], "the checkpoint's audit"))
