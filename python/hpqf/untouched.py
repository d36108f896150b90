"""A model that is measured must not notice: everything a forward and backward may change is put back."""
import torch

from . import random_state


class Untouched:
    """Eval mode inside `with`; afterwards each module's mode, every buffer, every .grad and requires_grad, and all random
    number generators are what they were, also after an exception."""

    def __init__(self, model: torch.nn.Module):
        self.model = model

    def __enter__(self):
        self.random = random_state.capture()
        self.modes = [(module, module.training) for module in self.model.modules()]
        self.buffers = [(module, key, buffer, None if buffer is None else buffer.detach().clone())
                        for module in self.model.modules() for key, buffer in module._buffers.items()]
        self.parameters = [(p, p.requires_grad, p.grad) for p in self.model.parameters()]
        self.model.eval()
        return self

    def __exit__(self, *exception) -> None:
        for module, training in self.modes:
            module.training = training
        with torch.no_grad():
            for module, key, buffer, content in self.buffers:
                module._buffers[key] = buffer
                if buffer is not None and not torch.equal(buffer, content):
                    buffer.copy_(content)
        for p, requires_grad, grad in self.parameters:
            if p.requires_grad != requires_grad:
                p.requires_grad_(requires_grad)
            if p.grad is not grad:
                p.grad = grad
        random_state.restore(self.random)
