"""Monitors and profiler for training loops that others own: Hugging Face's Trainer, and one's own."""
import time

from .errors import Error


class LoopCallback:
    """Two calls in one's own loop:

        callback = hpqf.integrations.LoopCallback(optimizer, gradients=hpqf.GradientMonitor(model), monitor=hpqf.Monitor())
        for x, y in loader:
            loss = loss_fn(model(x), y); loss.backward()
            callback.before_step()
            optimizer.step(); optimizer.zero_grad()
            if callback.after_step(loss.item(), samples=len(x)).stop: break

    audit: a function that gives the AuditReport, e.g. `lambda: hpqf.audit(model)`; asked only when a row is due.
    """

    def __init__(self, optimizer=None, *, gradients=None, monitor=None, profiler=None, audit=None):
        self.optimizer, self.gradients, self.monitor, self.profiler, self.audit = optimizer, gradients, monitor, profiler, audit
        self.step, self.stop, self._looked, self._last = 0, False, False, time.perf_counter()

    def before_step(self) -> None:
        """Gradients are complete and unscaled; the optimizer has not stepped."""
        if self.gradients is not None:
            self._looked = self.gradients.observe(self.optimizer)

    def after_step(self, loss, *, samples=0, epoch=0, applied=True, loss_scale=1.0, grad_norm=None, seconds=None) -> "LoopCallback":
        """The optimizer has stepped. seconds: of the step; left out, all the time since the last call counts as the step's."""
        self.step += 1
        now = time.perf_counter()
        seconds, self._last = now - self._last if seconds is None else seconds, now
        if self.profiler is not None:
            self.profiler.step()
        if self.gradients is not None and self._looked and not applied:
            self.gradients.stepped()   # the optimizer's hook has not run
        if self.monitor is not None:
            audit = self.audit() if self.audit is not None and self.monitor.due(self.step) else None
            self.monitor.observe(step=self.step, loss=loss, samples=samples, seconds=seconds, epoch=epoch, applied=applied,
                                 loss_scale=loss_scale, grad_norm=grad_norm, audit=audit,
                                 gradients=self.gradients if self._looked else None)
            self.stop = self.monitor.stop
        self._looked = False
        return self


class HuggingFaceEvents:
    """What the callback does in each event of transformers.TrainerCallback; see hf_callback."""

    def __init__(self, gradients_every=0, monitor=None, profiler=None, audit=None):
        self._every, self._monitor, self._profiler, self._audit = gradients_every, monitor, profiler, audit
        self.gradients, self._loop, self._loss = None, None, float("nan")

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
        from .gradient_monitor import GradientMonitor
        if self._every:
            self.gradients = GradientMonitor(model, self._every)
            self.gradients.begin(state.global_step)
        self._loop = LoopCallback(optimizer, gradients=self.gradients, monitor=self._monitor, profiler=self._profiler,
                                  audit=self._audit)
        self._loop.step = state.global_step
        if self._profiler is not None:
            self._profiler.__enter__()

    def on_pre_optimizer_step(self, args, state, control, optimizer=None, **kwargs):
        if optimizer is not None:
            self._loop.optimizer = getattr(optimizer, "optimizer", optimizer)   # accelerate wraps it
        self._loop.before_step()

    def on_step_end(self, args, state, control, **kwargs):
        samples = args.per_device_train_batch_size * args.gradient_accumulation_steps
        self._loop.after_step(self._loss, samples=samples, epoch=int(state.epoch or 0))
        if self._loop.stop:
            control.should_training_stop = True
        return control

    def on_log(self, args, state, control, logs=None, **kwargs):
        self._loss = (logs or {}).get("loss", self._loss)   # a mean over logging_steps; there is no other here

    def on_train_end(self, args, state, control, **kwargs):
        if self._profiler is not None:
            self._profiler.__exit__(None, None, None)
        if self.gradients is not None:
            self.gradients.close()


def hf_callback(*, gradients_every=0, monitor=None, profiler=None, audit=None):
    """A callback for transformers.Trainer: `Trainer(..., callbacks=[hpqf.integrations.hf_callback(gradients_every=50)])`.

    The loss is the one that the Trainer logs, so set logging_steps no larger than the monitor's `every`. The Trainer clips before
    it tells its callbacks: gradients are seen after clipping (max_grad_norm=0 switches it off).
    """
    try:
        from transformers import TrainerCallback
    except ImportError as error:
        raise Error("a callback for Hugging Face's Trainer", "an environment with the package transformers",
                    "pip install transformers") from error
    return type("HpqfCallback", (HuggingFaceEvents, TrainerCallback), {})(gradients_every, monitor, profiler, audit)
