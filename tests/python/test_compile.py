"""torch.compile around an attached model gives the numbers of eager mode; what is compiled before is refused."""
import warnings

import hpqf
import models
import pytest
import torch


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("how", ["torch.compile", "module.compile"])
def test_compiled_after_attaching_equals_eager(how):
    model, x = models.FunctionalAttention(), torch.randn(2, 5, 16)
    with hpqf.precision(model, "bf16"):
        eager = model(x)
        eager.sum().backward()
        expected = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        with pytest.warns(UserWarning, match="runs eagerly") as caught:
            if how == "torch.compile":
                compiled = torch.compile(model, backend="aot_eager")
            else:
                model.compile(backend="aot_eager")
                compiled = model
            out = compiled(x)
            again = compiled(x)
        assert len([w for w in caught if "runs eagerly" in str(w.message)]) == 1
        assert torch.equal(out, eager) and torch.equal(again, eager)
        out.sum().backward()
        assert all(torch.equal(p.grad, e) for p, e in zip(model.parameters(), expected))


def test_a_compiled_function_around_the_model_keeps_the_plan():
    model, x = models.mlp(), torch.randn(3, 16)
    with hpqf.precision(model, "bf16"):
        eager = torch.relu(model(x)) * 2

        @torch.compile(backend="aot_eager")
        def around(value):
            return torch.relu(model(value)) * 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert torch.equal(around(x), eager)
    assert not torch.equal(torch.relu(model(x)) * 2, eager)


def test_compiled_before_attaching_is_refused():
    model = models.mlp()
    with pytest.raises(hpqf.Error, match="compiled already"):
        hpqf.precision(torch.compile(model, backend="eager"), "bf16")
    model[0] = torch.compile(model[0], backend="eager")
    with pytest.raises(hpqf.Error, match="module '0'"):
        hpqf.precision(model, "bf16")
    model = models.mlp()
    model[2].compile(backend="eager")
    with pytest.raises(hpqf.Error, match="module '2'"):
        hpqf.precision(model, "bf16")
