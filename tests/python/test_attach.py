"""Attaching leaves no trace, whatever happens in between."""
import copy
import inspect
import io
import pickle
import threading

import hpqf
import models
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def forwards(model):
    return {name: module.__dict__.get("forward") for name, module in model.named_modules()}


def low(model):
    """Layers whose forward ran in bf16."""
    return {row.layer for row in hpqf.audit(model).rows if row.effective_b == "bf16" and row.pass_ == "forward"}


def differs(model, x, plain):
    return not torch.equal(model(x), plain)


def test_detach_puts_everything_back():
    model = models.Encoder()
    torch.backends.mha.set_fastpath_enabled(True)
    before, keys = forwards(model), {name: set(m.__dict__) for name, m in model.named_modules()}
    with hpqf.precision(model, "bf16"):
        assert not torch.backends.mha.get_fastpath_enabled()
        assert forwards(model) != before
    assert forwards(model) == before and {name: set(m.__dict__) for name, m in model.named_modules()} == keys
    assert torch.backends.mha.get_fastpath_enabled()


def test_attach_detach_attach_again_and_the_audit_goes_on():
    model, x = models.mlp(), torch.randn(3, 16)
    plain = model(x)
    scope = hpqf.precision(model, "bf16")
    for calls in (1, 2):
        with scope:
            assert differs(model, x, plain)
        assert torch.equal(model(x), plain)
        assert [row.calls for row in scope.audit().rows if row.layer == "0"] == [calls]


def test_a_forward_of_the_users_own_is_called_and_kept():
    model, x = nn.Linear(4, 4), torch.randn(2, 4)
    own = lambda value: nn.Linear.forward(model, value) + 100   # noqa: E731
    model.forward = own
    with hpqf.precision(model, "bf16"):
        assert (model(x) > 50).all()
        assert low(model) == {""}
    assert model.forward is own


def test_a_forward_set_while_attached_stays_and_the_inner_patch_passes_through():
    model, x = nn.Linear(4, 4), torch.randn(2, 4)
    plain = model(x)
    with hpqf.precision(model, "bf16"):
        inner = model.forward
        wrapper = lambda value: inner(value)   # noqa: E731
        model.forward = wrapper
        assert differs(model, x, plain)
    assert model.forward is wrapper and torch.equal(model(x), plain)


def test_nested_blocks_the_inner_one_decides():
    model, x = models.mlp(), torch.randn(3, 16)
    plain = model(x)
    with hpqf.precision(model, "bf16") as outer:
        with hpqf.precision(model, "fp32"):
            assert torch.equal(model(x), plain)
        assert not outer.audit().rows
        assert differs(model, x, plain)
        with hpqf.precision(model[2], "fp32"):   # a part of it
            model(x)
        assert [row.layer for row in outer.audit().rows if row.calls == 1] == ["2"]
    assert torch.equal(model(x), plain) and "forward" not in model.__dict__


def test_attachments_may_end_in_any_order():
    model, x = models.mlp(), torch.randn(3, 16)
    plain = model(x)
    first, second, third = (hpqf.precision(model, format).attach() for format in ("bf16", "fp16", "fp8"))
    low = {format: hpqf_run(format, model, x) for format in ("bf16", "fp16", "fp8")}
    assert torch.equal(model(x), low["fp8"])
    second.detach()
    assert torch.equal(model(x), low["fp8"])
    third.detach()
    assert torch.equal(model(x), low["bf16"])
    first.detach()
    assert torch.equal(model(x), plain) and forwards(model) == dict.fromkeys(forwards(model))


def hpqf_run(format, model, x):
    with hpqf.precision(model, format):
        return model(x)


def test_the_same_object_twice_is_refused():
    scope = hpqf.precision(models.mlp(), "bf16").attach()
    with pytest.raises(hpqf.Error, match="attached twice"):
        scope.attach()
    scope.detach()


def test_two_models_at_once_each_by_its_plan():
    a, b, x = models.mlp(), models.mlp(), torch.randn(3, 16)
    with hpqf.precision(a, "bf16"), hpqf.precision(b, "fp16"):
        (a(x) + b(x)).sum().backward()
    assert {row.effective_b for row in hpqf.audit(a).rows if row.flops} == {"bf16"}
    assert {row.effective_b for row in hpqf.audit(b).rows if row.flops} == {"fp16"}


class Raises(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.error = nn.Linear(4, 4), None

    def forward(self, x):
        y = self.fc(x)
        if self.error is not None:
            raise self.error
        return y @ y.t()


@pytest.mark.parametrize("error", [ValueError("v"), RuntimeError("r"), KeyboardInterrupt(), StopIteration()])
def test_exceptions_pass_and_leave_the_scope_closed(error):
    model, x = Raises(), torch.randn(2, 4)
    plain = F.linear(x, model.fc.weight)
    with hpqf.precision(model, "bf16"):
        model.error = error
        with pytest.raises(type(error)):
            model(x)
        # Outside of the model nothing is intercepted: the scope is closed again.
        assert torch.equal(F.linear(x, model.fc.weight), plain)
        model.error = None
        assert low(model) == {"fc"}
        model(x)
        assert low(model) == {"fc", ""}


def test_deepcopy_is_not_attached():
    model, x = models.Encoder(dropout=0.0), torch.randn(2, 5, 16)
    with torch.no_grad():
        plain = model(x)
        with hpqf.precision(model, "bf16"):
            twin = copy.deepcopy(model)
            assert torch.equal(twin(x), plain)
            assert differs(model, x, plain)
            twin.head.weight.zero_()   # its own weights
            assert differs(twin, x, plain) and model.head.weight.abs().sum() > 0
        assert all(getattr(f, "__self__", module) is module for f, module in zip(forwards(twin).values(), twin.modules()))


def test_deepcopy_keeps_a_forward_of_the_users_own():
    model, x = nn.Linear(4, 4), torch.randn(2, 4)
    model.forward = lambda value: value + 1
    with hpqf.precision(model, "bf16"):
        assert torch.equal(copy.deepcopy(model)(x), x + 1)


def test_saving_the_model_while_attached():
    model, x = models.ResNet().eval(), torch.randn(2, 3, 12, 12)
    plain = model(x)
    buffer = io.BytesIO()
    with hpqf.precision(model, "bf16"):
        torch.save(model, buffer)
        state = model.state_dict()
        unpickled = pickle.loads(pickle.dumps(model))
    buffer.seek(0)
    assert torch.equal(torch.load(buffer, weights_only=False)(x), plain) and torch.equal(unpickled(x), plain)
    assert b"hpqf" not in buffer.getvalue() and list(state) == list(model.state_dict())


def test_signature_and_name_of_forward_stay_visible():
    model = models.LstmTagger()
    before = inspect.signature(model.forward)
    with hpqf.precision(model, "bf16"):
        assert inspect.signature(model.forward) == before


def test_hooks_still_run_in_order():
    model, seen = nn.Linear(4, 4), []
    model.register_forward_pre_hook(lambda m, args: seen.append("pre"))
    model.register_forward_hook(lambda m, args, out: seen.append("post"))
    with hpqf.precision(model, "bf16"):
        model(torch.randn(1, 4))
    assert seen == ["pre", "post"]


def test_no_grad_then_training_in_one_block():
    model, x = models.mlp(), torch.randn(4, 16)
    with hpqf.precision(model, "bf16"):
        with torch.no_grad():
            model(x)
        model(x).sum().backward()   # a weight rounded without a graph must not be reused here
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_writes_through_data_are_seen_at_once():
    model, x = nn.Linear(16, 4, bias=False), torch.randn(4, 16)
    with hpqf.precision(model, "bf16"):
        model(x)
        model.weight.data.fill_(0.5)   # moves no version counter
        torch.testing.assert_close(model(x), x.bfloat16().float().sum(1, keepdim=True).expand(4, 4) * 0.5)
        model.weight.data = torch.ones(4, 16)
        torch.testing.assert_close(model(x), x.bfloat16().float().sum(1, keepdim=True).expand(4, 4))


def test_parameters_that_move_are_found_again():
    model, x = nn.MultiheadAttention(16, 4, batch_first=True), torch.randn(2, 5, 16)

    with hpqf.precision(model, "bf16", sensitive_layers=["out_proj"]) as scope:
        def out_proj_calls():
            model(x, x, x)
            return sum(row.calls for row in scope.audit().rows if row.layer == "out_proj" and row.pass_ == "forward")
        assert out_proj_calls() == 1
        model.double().float()                                             # other storage, same parameters
        assert out_proj_calls() == 2
        model.out_proj.weight = nn.Parameter(torch.randn(16, 16))          # another parameter
        assert out_proj_calls() == 3
        model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()}, assign=True)
        assert out_proj_calls() == 4
        model.out_proj.weight.data = torch.randn(16, 16)
        assert out_proj_calls() == 5


def test_lazy_modules_are_built_while_attached():
    model = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(2))
    with hpqf.precision(model, "bf16"):
        model(torch.randn(3, 5)).sum().backward()
        assert low(model) == {"0", "2"}


def test_threads_run_the_model_under_the_plan():
    model, x, results = models.mlp(), torch.randn(3, 16), []
    with hpqf.precision(model, "bf16"):
        expected = model(x)

        def work():
            out = model(x)
            out.sum().backward()
            results.append(torch.equal(out, expected))
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [True] * 4


@pytest.mark.parametrize("reentrant", [True, False])
def test_activation_checkpointing_recomputes_under_the_plan(reentrant):
    model, x = models.mlp(), torch.randn(4, 16, requires_grad=True)

    def gradients(call):
        model.zero_grad()
        call(x).sum().backward()
        return [p.grad.clone() for p in model.parameters()]
    with hpqf.precision(model, "bf16"):
        plain = gradients(model)
        recomputed = gradients(lambda value: checkpoint(model, value, use_reentrant=reentrant))
    assert all(torch.equal(a, b) for a, b in zip(plain, recomputed))
    fp32 = gradients(model)
    assert any(not torch.equal(a, b) for a, b in zip(plain, fp32))


def test_gradient_accumulation_adds_up():
    model = models.mlp()
    batches = [torch.randn(4, 16) for _ in range(3)]
    with hpqf.precision(model, "bf16"):
        singles = []
        for x in batches:
            model.zero_grad()
            model(x).sum().backward()
            singles.append([p.grad.clone() for p in model.parameters()])
        model.zero_grad()
        for x in batches:
            model(x).sum().backward()
    for p, *parts in zip(model.parameters(), *singles):
        assert p.grad.dtype == torch.float32
        torch.testing.assert_close(p.grad, sum(parts))


def test_the_users_autocast_neither_breaks_nor_overrules_the_plan():
    model, x = models.mlp(), torch.randn(3, 16)
    plain = model(x)
    with hpqf.precision(model, "bf16", sensitive_layers=["2"]) as scope, torch.autocast("cpu", torch.bfloat16):
        out = model(x)
        outside = torch.randn(4, 4) @ torch.randn(4, 4)
    assert outside.dtype == torch.bfloat16
    assert torch.allclose(out.float(), plain, atol=0.05)
    assert {row.effective_b for row in scope.audit().rows if row.layer == "2" and row.flops} == {"fp32"}


def test_a_submodule_called_alone_follows_the_plan():
    model, x = models.mlp(), torch.randn(3, 16)
    with hpqf.precision(model, "bf16"):
        model[0](x)
        assert low(model) == {"0"}


def test_per_sample_gradients_of_functorch():
    model, x = models.mlp(), torch.randn(5, 16)
    parameters = dict(model.named_parameters())
    with hpqf.precision(model, "bf16"):
        def loss(p, sample):
            return torch.func.functional_call(model, p, (sample,)).sum()
        gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
        model(x).sum().backward()
    for name, p in parameters.items():
        torch.testing.assert_close(gradients[name].sum(0), p.grad, rtol=2e-2, atol=2e-2)


def test_sensitive_layers_are_modules_names_or_patterns():
    model = models.LstmTagger()
    plan = hpqf.precision(model, "bf16", sensitive_layers=[model.lstm, "head.*"]).plan
    assert [plan.at(n).weight for n in ("embedding", "lstm", "head")] == ["bf16", "fp32", "fp32"]
    for wrong in ([nn.Linear(1, 1)], ["no.such.layer"], [3]):
        with pytest.raises(hpqf.Error):
            hpqf.precision(model, "bf16", sensitive_layers=wrong)


def test_strict_raises_our_error_through_torch():
    model = models.mlp()
    with hpqf.precision(model, "bf16", strict="native"):
        if hpqf_is_native():
            pytest.skip("this CPU runs bf16 natively: nothing is emulated")
        with pytest.raises(hpqf.Error) as caught:
            model(torch.randn(3, 16))
    assert caught.value.asked and caught.value.allowed and caught.value.todo
    with pytest.raises(hpqf.Error, match="strict"):
        hpqf.precision(model, "bf16", strict="sometimes").attach()


def hpqf_is_native():
    model = models.mlp()
    with hpqf.precision(model, "bf16"):
        model(torch.randn(3, 16))
    return all(row.implementation != "emulated" for row in hpqf.audit(model).rows)


def test_audit_of_a_model_that_never_had_a_plan():
    with pytest.raises(hpqf.Error, match="never had"):
        hpqf.audit(models.mlp())
