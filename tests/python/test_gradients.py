"""Forward and backward against oracles that round every operand by hand."""
import hpqf
import ml_dtypes
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hpqf.attach import Attachment
from torch import nn


def rounded(t, format):
    """Independent of HPQF: numpy with ml_dtypes."""
    dtype = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp32": np.float32}[format]
    return torch.from_numpy(t.detach().numpy().astype(dtype).astype(np.float32))


def emulated(model, plan):
    # Forced, so that a machine with native bf16 compares the same numbers.
    return Attachment(model, plan, force_implementation="emulated")


@pytest.mark.parametrize("format", ["bf16", "fp16"])
def test_linear_rounds_every_operand_of_all_three_products(format):
    layer = nn.Linear(24, 8)
    x = torch.randn(6, 24, requires_grad=True)
    g = torch.randn(6, 8)
    attachment = emulated(layer, hpqf.PrecisionPlan.uniform(format))
    y = layer(x)
    y.backward(g)
    attachment.detach()
    xq, wq, gq = rounded(x, format), rounded(layer.weight, format), rounded(g, format)
    torch.testing.assert_close(y, xq @ wq.t() + layer.bias, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(x.grad, gq @ wq, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(layer.weight.grad, gq.t() @ xq, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(layer.bias.grad, g.sum(0), rtol=1e-6, atol=1e-6)   # no product: not rounded
    assert not torch.allclose(layer.weight.grad, g.t() @ x, rtol=1e-6, atol=1e-6)   # the oracle can tell them apart


@pytest.mark.parametrize("dgrad, wgrad", [("fp32", "bf16"), ("bf16", "fp32"), ("fp32", "fp32"), ("fp16", "bf16")])
def test_the_two_gradient_products_follow_their_own_formats(dgrad, wgrad):
    layer = nn.Linear(16, 12)
    x, g = torch.randn(5, 16, requires_grad=True), torch.randn(5, 12)
    precision = hpqf.LayerPrecision("bf16", dgrad=dgrad, wgrad=wgrad)
    attachment = emulated(layer, hpqf.PrecisionPlan([hpqf.Rule("*", precision)]))
    layer(x).backward(g)
    attachment.detach()

    def operand(t, format):   # fp32 makes the whole product run on unrounded operands
        return t.detach() if format == "fp32" else rounded(t, "bf16")

    torch.testing.assert_close(x.grad, rounded(g, dgrad) @ operand(layer.weight, dgrad), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(layer.weight.grad, rounded(g, wgrad).t() @ operand(x, wgrad), rtol=1e-6, atol=1e-6)


def test_convolution_rounds_its_operands():
    layer = nn.Conv2d(3, 5, 3, padding=1, bias=False)
    x, g = torch.randn(2, 3, 6, 6, requires_grad=True), torch.randn(2, 5, 6, 6)
    attachment = emulated(layer, hpqf.PrecisionPlan.uniform("bf16"))
    y = layer(x)
    y.backward(g)
    attachment.detach()
    xq, wq = rounded(x, "bf16").requires_grad_(), rounded(layer.weight, "bf16").requires_grad_()
    expected = F.conv2d(xq, wq, padding=1)
    expected.backward(rounded(g, "bf16"))
    torch.testing.assert_close(y, expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(x.grad, xq.grad, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(layer.weight.grad, wq.grad, rtol=1e-6, atol=1e-5)


def test_lstm_gradients_stay_close_to_fp32():
    lstm = nn.LSTM(8, 16, batch_first=True)
    x = torch.randn(3, 9, 8)

    def gradients(plan):
        lstm.zero_grad()
        with hpqf.precision(lstm, plan):
            lstm(x)[0].square().sum().backward()
        return torch.cat([p.grad.flatten() for p in lstm.parameters()])

    exact, low = gradients("fp32"), gradients("bf16")
    error = (low - exact).norm() / exact.norm()
    assert 1e-5 < error < 2e-2   # bf16 keeps 8 bits of each operand: 2^-9 each, a little more after 9 steps


def test_functional_products_take_the_enclosing_module():
    import models
    model = models.FunctionalAttention()
    with hpqf.precision(model, "bf16", sensitive_layers=["qkv"]):
        model(torch.randn(2, 5, 16)).sum().backward()
    rows = {(row.layer, row.op) for row in hpqf.audit(model).rows if row.effective_a == "bf16"}
    assert ("", "matmul") in rows and ("out", "linear") in rows and ("", "attention") in rows
    assert all(row.effective_a == "fp32" for row in hpqf.audit(model).rows if row.layer == "qkv")


def test_projections_inside_attention_have_names_of_their_own():
    model = nn.MultiheadAttention(16, 4, batch_first=True)
    x = torch.randn(2, 5, 16)
    with hpqf.precision(model, "bf16", sensitive_layers=["out_proj"]):
        model(x, x, x)[0].sum().backward()
    rows = {row.layer: row.effective_b for row in hpqf.audit(model).rows if row.op == "linear" and row.pass_ == "forward"}
    assert rows == {"": "bf16", "out_proj": "fp32"}


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_reads_a_rounded_table_and_its_gradient_stays_fp32(mode):
    torch.manual_seed(0)
    model = nn.EmbeddingBag(20, 8, mode=mode, padding_idx=3)
    tokens, offsets = torch.randint(0, 20, (13,)), torch.tensor([0, 5, 5, 9])   # the second bag is empty
    rounded = nn.EmbeddingBag(20, 8, mode=mode, padding_idx=3)
    with torch.no_grad():
        rounded.weight.copy_(model.weight.bfloat16().float())
    upstream = torch.randn(4, 8)
    with hpqf.precision(model, "bf16") as scope:
        y = model(tokens, offsets)
        y.backward(upstream)
    expected = rounded(tokens, offsets)
    expected.backward(upstream)
    assert torch.equal(y, expected) and torch.equal(model.weight.grad, rounded.weight.grad)
    assert [(row.op, row.pass_, row.effective_b) for row in scope.audit().rows][0] == ("embedding_bag", "forward", "bf16")
    with hpqf.precision(model, "bf16", strict="native"), pytest.raises(hpqf.Error, match="embedding_bag"):
        model(tokens, offsets)


def test_tied_weights_follow_the_layer_that_uses_them():
    import models
    model = models.TiedLm()
    x, y = models.batch(model)
    with hpqf.precision(model, hpqf.PrecisionPlan.uniform("bf16").with_rule("embedding", "fp32")):
        F.cross_entropy(model(x), y).backward()
    forward = {row.layer: row.effective_b for row in hpqf.audit(model).rows if row.pass_ == "forward" and row.op != "cross_entropy_loss"}
    assert forward["embedding"] == "fp32" and forward["head"] == "bf16"
    hidden = torch.tanh(model.body(model.embedding(x)))
    assert torch.isfinite(hidden).all() and model.embedding.weight.grad is model.head.weight.grad
