"""A plan that is fp32 everywhere changes no bit of any model, in training and in evaluation."""
import hpqf
import models
import pytest
import torch
import torch.nn.functional as F


def run(model, attach, plan="fp32"):
    """Loss of three SGD steps, gradients of the last, and an evaluation."""
    torch.manual_seed(1)
    x, y = models.batch(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scope = hpqf.precision(model, plan)
    if attach:
        scope.attach()
    try:
        out = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            out.append(loss.detach())
        out += [p.grad.clone() for p in model.parameters()]
        model.eval()
        with torch.no_grad():
            out.append(model(x))
        return out
    finally:
        scope.detach()


def build(name):
    torch.manual_seed(0)
    return models.ALL[name]()


@pytest.mark.parametrize("name", models.ALL)
def test_fp32_plan_is_bit_identical(name):
    torch.backends.mha.set_fastpath_enabled(False)   # the reference without the fused op, whose sums have another order
    try:
        plain, attached = run(build(name), False), run(build(name), True)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    for a, b in zip(plain, attached, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", models.ALL)
def test_a_low_plan_changes_numbers_and_is_reported(name):
    plain, low = run(build(name), False), run(build(name), True, "fp8")
    assert any(not torch.equal(a, b) for a, b in zip(plain, low, strict=True))
    model = build(name)
    with hpqf.precision(model, "bf16"):
        x, y = models.batch(model)
        F.cross_entropy(model(x), y).backward()
    shares = {share.format: share.flops for share in hpqf.audit(model).shares()}
    assert shares["bf16"] > 0.9, hpqf.audit(model).table()


def test_hugging_face_bert_fp32_is_bit_identical():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: BERT from its config is not tested")
    config = transformers.BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                     intermediate_size=64, max_position_embeddings=16, num_labels=3)
    tokens, labels = torch.randint(100, (4, 9)), torch.randint(3, (4,))

    def step(plan):
        torch.manual_seed(0)
        model = transformers.BertForSequenceClassification(config)
        torch.manual_seed(1)
        if plan is None:
            loss = model(input_ids=tokens, labels=labels).loss
            loss.backward()
        else:
            with hpqf.precision(model, plan):
                loss = model(input_ids=tokens, labels=labels).loss
                loss.backward()
        return model, [loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]

    _, plain = step(None)
    _, fp32 = step("fp32")
    assert all(torch.equal(a, b) for a, b in zip(plain, fp32, strict=True))
    model, _ = step("bf16")
    layers = {row.layer for row in hpqf.audit(model).rows if row.effective_a == "bf16"}
    assert "bert.encoder.layer.0.attention.self.query" in layers and "classifier" in layers
