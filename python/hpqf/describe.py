"""What the engine must know of a model: its modules, what each computes, and whose parameters are whose."""
from torch import nn

from . import _C

# The first match decides: ConvTranspose2d is a _ConvNd too.
_KINDS = (
    ("attention", (nn.MultiheadAttention,)),
    ("linear", (nn.Linear, nn.Bilinear)),
    ("conv_transpose", (nn.modules.conv._ConvTransposeNd,)),
    ("conv", (nn.modules.conv._ConvNd,)),
    ("rnn", (nn.RNNBase, nn.RNNCellBase)),
    ("embedding", (nn.Embedding, nn.EmbeddingBag)),
    ("norm", (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.LocalResponseNorm)),
    ("softmax", (nn.Softmax, nn.LogSoftmax, nn.Softmax2d, nn.Softmin)),
    ("loss", (nn.modules.loss._Loss,)),
)


def kind(module: nn.Module) -> str:
    """The layer kind of a module; "other" for containers and for what is not known by type."""
    for name, types in _KINDS:
        if isinstance(module, types):
            return name
    cls = type(module)
    if cls.__module__ == nn.modules.activation.__name__:
        return "activation"
    # Norms that libraries write themselves (LlamaRMSNorm, T5LayerNorm): a leaf with vectors only.
    if "Norm" in cls.__name__ and not module._modules and all(p.dim() <= 1 for p in _own_parameters(module)):
        return "norm"
    if _C.computes_positions(cls.__name__) and not module._modules and not _own_parameters(module):
        return "position"
    return "other"


def _own_parameters(module: nn.Module):
    lazy = nn.parameter.is_lazy
    return [p for p in module._parameters.values() if p is not None and not lazy(p)]


def model_facts(model: nn.Module) -> _C.ModelFacts:
    """Every module once, under its first name, in the order of named_modules()."""
    layers = [
        _C.LayerFacts(name, type(module).__name__, kind(module), sum(p.numel() for p in _own_parameters(module)))
        for name, module in model.named_modules()
    ]
    return _C.ModelFacts(type(model).__name__, layers)


def layer_parameters(model: nn.Module) -> list:
    """One LayerParameter for each module and parameter; tied parameters appear under each of their modules."""
    return [
        _C.LayerParameter(name, key, p)
        for name, module in model.named_modules()
        for key, p in module._parameters.items()
        if p is not None and not nn.parameter.is_lazy(p)
    ]


def parameter_slots(model: nn.Module) -> list:
    return [(module._parameters, key) for module in model.modules() for key in module._parameters]
