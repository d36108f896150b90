"""How much the loss suffers from each format in each layer: measured on an unmodified model."""
import os
import warnings
from collections.abc import Mapping

import torch

from . import _C, batches
from .allocator import AllocatorDecisions
from .attach import Attachment, check_attachable
from .describe import layer_parameters
from .errors import Error
from .untouched import Untouched


_HESSIAN_SAMPLES = 64


class SensitivityReport:
    """What profile() measured. `.sensitivity` is the value that plans are made from, `.statistics` the ranges and outliers
    of each layer's operands, `.hessian` what holds for the whole model (None unless asked for), `.training` the training
    scores (likewise), `.warnings` what to know before trusting it."""

    def __init__(self, result):
        self.sensitivity, self.statistics, self.warnings = result.sensitivity, result.statistics, result.warnings
        self.hessian, self.training = None, []

    @property
    def layers(self):
        return self.sensitivity.layers

    def table(self, max_rows: int = 0) -> str:
        """Scores in nats, most sensitive layers first; then what else was measured, and the warnings."""
        parts = [self.sensitivity.table(max_rows), self.sensitivity.hessian_table()]
        if self.training:
            parts.append(_C.training_table(self.training))
        return "\n".join(part for part in parts if part) + "".join(f"warning: {text}\n" for text in self.warnings)

    def to_json(self) -> str:
        return self.sensitivity.to_json()

    def save(self, path) -> None:
        """The value as .json, or a picture as .svg."""
        path = os.fspath(path)
        if path.endswith(".json"):
            text = self.to_json()
        elif path.endswith(".svg"):
            text = self.sensitivity.picture()
        else:
            raise Error(f"a sensitivity report saved as {path!r}", "names that end in .json or .svg", "choose one of the two")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def __str__(self) -> str:
        return self.table()


def profile(model, loader, loss_fn=None, formats=None, samples=256, *, hessian=False, training=False, labels="sampled",
            seed=0) -> SensitivityReport:
    """Measures the sensitivity of every layer of `model`, which is left exactly as it was.

        report = hpqf.profile(model, loader)
        print(report)

    loader: (x, ..., y) batches, or dicts of keyword arguments; read until `samples` samples were seen. loss_fn(output, target):
        a mean over the batch; left out, the model's own `.loss`, else the cross-entropy.
    formats: names of block formats; left out, every format in its default blocks.
    hessian: also top eigenvalues, traces and HAWQ-V2's Omega, on the first 64 samples (a number: on that many); some hundred
        times the cost of the scores. training: also the training scores of each operand and format over the whole model;
        costs a forward and backward of 16 batches for each.
    labels: "sampled" from the model's own softmax (scores are then nats of KL divergence), or "true".
    Cost: a forward and two backward passes, and for each format about two more runs of every layer. Memory: one batch.
    """
    check_attachable(model)
    if labels not in ("sampled", "true"):
        raise Error(f"labels={labels!r}", "'sampled' or 'true'", "leave it out for 'sampled'")
    if not any(p.requires_grad for p in model.parameters()):
        raise Error("sensitivity of a model without trainable parameters", "parameters that require gradients",
                    "model.requires_grad_(): nothing is written to them")
    formats = [] if formats is None else [formats] if isinstance(formats, str) else list(formats)
    if hessian is True:
        hessian = _HESSIAN_SAMPLES
    kept = []   # batches that are needed again
    needed = max(int(hessian), _C.training_batches if training else 0)
    with Untouched(model):
        attachment = Attachment(model, _C.PrecisionPlan())
        try:
            data = _keeping(loader, kept, needed) if needed else loader
            report = SensitivityReport(_measure(model, attachment, data, loss_fn, formats, samples, labels == "sampled", seed))
            if training:
                report.training = _train_scores(model, attachment, kept[:_C.training_batches], loss_fn, formats)
        finally:
            attachment.detach()
        if hessian:
            _add_hessian(report, model, kept, int(hessian), loss_fn, seed)
    for text in report.warnings:
        warnings.warn("hpqf.profile: " + text, stacklevel=2)
    return report


def _keeping(loader, kept, count):
    for batch in loader:
        if len(kept) < count:
            kept.append(batch)
        yield batch


def _measure(model, attachment, loader, loss_fn, formats, samples, sampled, seed):
    measured = _C.SensitivityProfile(attachment.runtime, formats, samples, seed, sampled)
    device = next(model.parameters()).device
    with torch.enable_grad():
        for batch in loader:
            batch = batches.to_device(batch, device)
            output, target, loss = batches.forward(model, batch, loss_fn)
            measured.add(loss, _scores(output), _classes(target), batches.samples(batch))
            if measured.enough:
                break
        return measured.finish()


def _train_scores(model, attachment, data, loss_fn, formats):
    weights = [p for p in model.parameters() if p.requires_grad and p.dim() > 1]
    device = next(model.parameters()).device

    def step(i):
        loss = batches.forward(model, batches.to_device(data[i], device), loss_fn)[2]
        return list(torch.autograd.grad(loss, weights, allow_unused=True)), loss.item()

    scores = []
    with torch.enable_grad():
        fp32 = _C.mean_gradient(step, len(data))
        for role in ("weight", "input", "dgrad", "wgrad"):
            for format in formats or _C.all_block_formats():
                attachment.runtime.apply(_C.single_operand_plan(role, format))
                scores.append(_C.training_score(role, format, _C.mean_gradient(step, len(data)), fp32))
    return scores


def _add_hessian(report, model, data, samples, loss_fn, seed):
    device, taken, sizes = next(model.parameters()).device, [], []
    for batch in data:
        if sum(sizes) >= samples:
            break
        taken.append(batches.to_device(batch, device))
        sizes.append(batches.samples(batch))

    def loss(i):
        with torch.enable_grad():
            return batches.forward(model, taken[i], loss_fn)[2]

    report.sensitivity, report.hessian = _C.add_hessian(
        report.sensitivity, layer_parameters(model), loss, [size / sum(sizes) for size in sizes], 2, 100, 0.05, seed)


def _scores(output):
    """The tensor that labels are drawn from, as models return it."""
    if isinstance(output, Mapping):
        output = output.get("logits")
    elif not isinstance(output, torch.Tensor):
        output = getattr(output, "logits", output[0] if isinstance(output, (list, tuple)) and output else None)
    return output if isinstance(output, torch.Tensor) else None


def _classes(target):
    if isinstance(target, Mapping):
        target = target.get("labels")
    return target if isinstance(target, torch.Tensor) else None


class DynamicPrecisionAllocator(AllocatorDecisions):
    """Measures the sensitivity of a model's layers, and makes plans from it.

        allocator = hpqf.DynamicPrecisionAllocator(model, loader)
        allocator.calculate_layer_sensitivity()
        print(allocator.sensitivity_map["conv1"]["weight"]["int4"])
        formats = allocator.allocate_precision(threshold=0.1)       # {layer: 'FP16' | 'INT4'}
        plan = allocator.allocate({"bits": 4.0}).plan               # the least predicted loss within a budget

    Arguments as for hpqf.profile().
    """

    def __init__(self, model, data=None, loss_fn=None, formats=None, samples=256):
        check_attachable(model)
        self.model, self.data, self.loss_fn, self.formats, self.samples = model, data, loss_fn, formats, samples
        self.report = None

    def calculate_layer_sensitivity(self, data=None, **options) -> dict:
        """Measures anew and returns sensitivity_map. `options` as for hpqf.profile()."""
        data = self.data if data is None else data
        if data is None:
            raise Error("sensitivity without data", "a loader at construction or here", "allocator.calculate_layer_sensitivity(loader)")
        options = {"loss_fn": self.loss_fn, "formats": self.formats, "samples": self.samples, **options}
        self.report = profile(self.model, data, **options)
        return self.sensitivity_map

    @property
    def sensitivity_map(self) -> dict:
        """{layer: {role: {format: score in nats}}} of the last measurement."""
        if self.report is None:
            raise Error("the sensitivity of a model that was not measured yet", "calculate_layer_sensitivity() first",
                        "call it with a loader")
        scores = {}
        for layer in self.report.layers:
            for s in layer.scores:
                scores.setdefault(layer.name, {}).setdefault(s.role, {})[s.format] = s.score
        return scores
