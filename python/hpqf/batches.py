"""Batches as they come from loaders, and the loss of a model's output."""
from collections.abc import Mapping

import torch

from .errors import Error


def to_device(batch, device):
    """Every tensor of a nested batch on `device`."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [to_device(value, device) for value in batch]
    return batch


def samples(batch) -> int:
    """First dimension of the first tensor; 1 when there is none."""
    if isinstance(batch, torch.Tensor):
        return batch.shape[0] if batch.dim() else 1
    for value in batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (list, tuple)) else ():
        if isinstance(value, (torch.Tensor, Mapping, list, tuple)):
            return samples(value)
    return 1


def forward(model, batch, loss_fn=None):
    """(output, target, loss) of one batch.

    (x, ..., y) gives model(x, ...) and target y; a dict gives model(**batch) and the whole dict as target. Without a loss
    function the model's own `.loss` is taken, else the cross-entropy of output and target. Losses run outside of the plan.
    """
    if isinstance(batch, Mapping):
        output, target = model(**batch), batch
    elif isinstance(batch, (list, tuple)) and len(batch) >= 2:
        output, target = model(*batch[:-1]), batch[-1]
    else:
        raise Error(f"a batch that is a {type(batch).__name__}", "(x, ..., y) tuples and dicts of keyword arguments",
                    "let the loader's collate_fn make one of these")
    loss = loss_fn(output, target) if loss_fn is not None else _default_loss(output, target)
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        raise Error(f"a loss that is a {_describe(loss)}", "a tensor with one element", "reduce it: loss.mean()")
    return output, target, loss.reshape(())


def _default_loss(output, target):
    own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if own is not None:
        return own
    if isinstance(output, torch.Tensor) and isinstance(target, torch.Tensor):
        return torch.nn.functional.cross_entropy(output, target)
    raise Error(f"the loss of a model that returns a {_describe(output)}", "outputs with a .loss, or a tensor for (x, y) batches",
                "give loss_fn=..., or labels in the batch")


def _describe(value) -> str:
    return f"tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__


def hits(output, target):
    """(right, counted) where the target is class numbers and the output one score a class; None otherwise."""
    if not (isinstance(output, torch.Tensor) and isinstance(target, torch.Tensor)):
        return None
    if target.is_floating_point() or output.dim() != target.dim() + 1:
        return None
    predicted = output.argmax(dim=1)
    return (predicted == target).sum().item(), target.numel()
