"""Every operator of torch's own operator tests, called from a module, under every plan."""
import itertools
import warnings

import pytest
import torch
from torch import nn
from torch_inputs import LOW, MARGIN, Judge, Tally, one_thread, thaw_flags   # noqa: F401: one_thread is a fixture

pytest.importorskip("expecttest", reason="expecttest, which torch's test inputs import, is not installed")
from torch.testing._internal.common_methods_invocations import op_db   # noqa: E402

thaw_flags()
OPS = [op for op in op_db if torch.float32 in op.supported_dtypes("cpu")]
TALLY = Tally(f"torch's operator inputs, {len(OPS)} operators")
SAMPLES, OUT_OF = 6, 36   # so many of each operator, evenly out of its first so many; --all-samples takes all 18,800

# What they return is whatever the memory held before.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}

# Power iterations multiply by the input and by its transpose in turn: roundings in between count with the square of the
# condition number, of which disturbing the input shows one power. Measured: 17 for int8.
MARGINS = {"pca_lowrank": 64, "svd_lowrank": 64}

# Products, and what torch makes of products: these must not stay in fp32.
PRODUCTS = {
    "__rmatmul__", "addbmm", "addmm", "addmv", "baddbmm", "bmm", "dot", "einsum", "inner", "linalg_multi_dot", "matmul", "mm", "mv",
    "tensordot", "vdot",
    "nn_functional_bilinear", "nn_functional_conv1d", "nn_functional_conv2d", "nn_functional_conv3d",
    "nn_functional_conv_transpose1d", "nn_functional_conv_transpose2d", "nn_functional_conv_transpose3d",
    "nn_functional_embedding", "nn_functional_embedding_bag", "nn_functional_linear", "nn_functional_multi_head_attention_forward",
    "nn_functional_scaled_dot_product_attention",
}


class Calls(nn.Module):
    """A module that calls an operator: functional operators belong to the module that calls them."""

    def __init__(self, op):
        super().__init__()
        self.op = op

    def forward(self, *args, **kwargs):
        return self.op(*args, **kwargs)


def samples(op, every):
    torch.manual_seed(0)
    inputs = op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)
    if every:
        return list(inputs)
    first = list(itertools.islice(inputs, OUT_OF))
    return first if len(first) <= SAMPLES else [first[i * (len(first) - 1) // (SAMPLES - 1)] for i in range(SAMPLES)]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.formatted_name)
def test_operator(op, request):
    TALLY.print_at_end(request.config)
    warnings.simplefilter("ignore")   # torch's, on deprecated operators and beta layouts; pytest puts the filters back
    low, moved = set(), set()
    for i, sample in enumerate(samples(op, request.config.getoption("--all-samples"))):
        judge = Judge(TALLY, f"{op.full_name} {i}", lambda: Calls(op), (sample.input, *sample.args), sample.kwargs,
                      margin=MARGINS.get(op.name, MARGIN), bits=op.name not in UNINITIALISED)()
        low |= {row.effective_b for row in judge.low_rows} - {"fp32"}
        moved |= judge.moved
    assert moved >= low, "the audit tells of low precision, but no number moved"
    assert low == set(LOW) or op.formatted_name not in PRODUCTS, "a product stayed in fp32"
