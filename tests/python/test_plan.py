"""Plans, formats and errors as Python values."""
import pickle
import subprocess
import sys

import hpqf
import ml_dtypes
import models
import numpy as np
import pytest
import torch
from hpqf.describe import kind
from torch import nn


def test_a_plan_is_a_value():
    model = models.LstmTagger()
    plan = hpqf.PrecisionPlan.with_sensitive("fp16", ["head"])
    assert plan.at("lstm").weight == "fp16" and plan.at("head").all_fp32()
    assert hpqf.PrecisionPlan.from_json(plan.to_json()) == plan
    assert hpqf.PrecisionPlan.from_json(plan.to_json(model)) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan
    other = plan.with_rule("lstm", "int8[1x32]", reason="trial")
    assert other != plan and other.epoch == plan.epoch + 1
    assert {(c.layer, c.role, c.before, c.after) for c in plan.diff(other, model)} >= {("lstm", "weight", "fp16", "int8[1x32]")}
    plan.check(model)
    with pytest.raises(hpqf.Error, match="lstm"):
        plan.with_rule("lstn", "bf16").check(model)


def test_roles_one_by_one():
    precision = hpqf.LayerPrecision("bf16", wgrad="fp32", reason="noisy")
    assert (precision.weight, precision.dgrad, precision.wgrad, precision.reason) == ("bf16", "bf16", "fp32", "noisy")
    for bad in ({"gradient": "bf16"}, {"weight": "bf17"}):
        with pytest.raises(hpqf.Error):
            hpqf.LayerPrecision("bf16", **bad)


def test_norms_stay_in_fp32_whatever_the_rules():
    plan = hpqf.PrecisionPlan.uniform("bf16")
    assert plan.at("norm", "norm").all_fp32() and not plan.at("norm", "linear").all_fp32()
    with pytest.raises(hpqf.Error, match="kind"):
        plan.at("x", "no_such_kind")


class MyRMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))


class NormedLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))


@pytest.mark.parametrize("module, expected", [
    (nn.Linear(2, 2), "linear"), (nn.Bilinear(2, 2, 2), "linear"), (nn.Conv1d(1, 1, 1), "conv"), (nn.Conv3d(1, 1, 1), "conv"),
    (nn.ConvTranspose2d(1, 1, 1), "conv_transpose"), (nn.GRU(2, 2), "rnn"), (nn.LSTMCell(2, 2), "rnn"), (nn.Embedding(2, 2), "embedding"),
    (nn.EmbeddingBag(2, 2), "embedding"), (nn.MultiheadAttention(2, 1), "attention"), (nn.MultiheadAttention(2, 1).out_proj, "linear"),
    (nn.BatchNorm1d(2), "norm"), (nn.InstanceNorm2d(2), "norm"), (nn.LayerNorm(2, elementwise_affine=False), "norm"),
    (nn.RMSNorm(2), "norm"), (MyRMSNorm(), "norm"), (NormedLinear(), "other"), (nn.Softmax(), "softmax"), (nn.LogSoftmax(), "softmax"),
    (nn.CrossEntropyLoss(), "loss"), (nn.GELU(), "activation"), (nn.Sequential(), "other"), (nn.Dropout(), "other"),
    (nn.LazyLinear(2), "linear")])
def test_layer_kinds(module, expected):
    assert kind(module) == expected


def test_facts_count_own_parameters_and_name_shared_modules_once():
    model = nn.Module()
    model.a = nn.Linear(3, 2)
    model.b = model.a
    facts = hpqf.model_facts(model)
    assert [(layer.name, layer.type, layer.parameters) for layer in facts.layers] == [("", "Module", 0), ("a", "Linear", 8)]


def test_formats_are_data():
    formats = {f.name: f for f in hpqf.formats()}
    assert formats["bf16"].bits == 16 and formats["fp16"].largest == 65504 and formats["fp8_e4m3"].largest == 448
    assert formats["int8"].is_integer and formats["int8"].default_block == "int8"


@pytest.mark.parametrize("format, dtype", [("bf16", ml_dtypes.bfloat16), ("fp16", np.float16)])
def test_rounding_against_another_library(format, dtype):
    x = torch.cat([torch.randn(1000) * 10.0 ** torch.randint(-12, 5, (1000,)),
                   torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e-45, 65519.99, 65520.0])])
    expected = torch.from_numpy(x.numpy().astype(dtype).astype(np.float32))
    assert torch.equal(hpqf.quantize_dequantize(x, format).isnan(), expected.isnan())
    assert torch.equal(hpqf.quantize_dequantize(x, format).nan_to_num(7), expected.nan_to_num(7))


def test_integer_blocks_run_along_the_axis_asked_for():
    x = torch.randn(3, 8, 5)
    for axis in (0, 1, -1):
        moved = x.movedim(axis, -1)
        blocks = moved.unflatten(-1, (-1, 4)) if moved.shape[-1] % 4 == 0 else moved.unsqueeze(-2)
        scale = blocks.abs().amax(-1, keepdim=True) / 127
        expected = ((blocks / scale).round() * scale).reshape(moved.shape).movedim(-1, axis)
        got = hpqf.quantize_dequantize(x, "int8[1x4]" if x.shape[axis] % 4 == 0 else "int8[row]", axis=axis)
        torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-6)
    assert hpqf.quantize_dequantize(torch.zeros(0, 3), "int8").shape == (0, 3)
    assert hpqf.quantize_dequantize(torch.tensor(1.0), "bf16").shape == ()
    strided = torch.randn(6, 10).t()[::2]
    assert torch.equal(hpqf.quantize_dequantize(strided, "int8[row]"), hpqf.quantize_dequantize(strided.contiguous(), "int8[row]"))


def test_rounding_refuses_what_it_cannot_do():
    for arguments in ((torch.ones(2, dtype=torch.float64), "bf16"), (torch.ones(2), "bf15"), (torch.ones(2), "bf16", 1)):
        with pytest.raises(hpqf.Error) as caught:
            hpqf.quantize_dequantize(*arguments)
        assert caught.value.asked and caught.value.allowed and caught.value.todo


def test_errors_have_three_parts_and_are_runtime_errors():
    with pytest.raises(RuntimeError) as caught:
        hpqf.PrecisionPlan.uniform("bf17")
    error = caught.value
    assert isinstance(error, hpqf.Error) and "bf17" in error.asked
    assert str(error) == f"asked:   {error.asked}\nallowed: {error.allowed}\nto do:   {error.todo}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def run_python(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def test_a_second_copy_in_one_process_is_refused(build_dir, tmp_path):
    (tmp_path / "hpqf").mkdir()
    for file in (build_dir / "python" / "hpqf").iterdir():
        if file.is_file():
            (tmp_path / "hpqf" / file.name).write_bytes(file.read_bytes())
    code = ("import sys\nsys.path.insert(0, sys.argv[1])\nimport hpqf\n"
            "for name in [n for n in sys.modules if n.partition('.')[0] == 'hpqf']: del sys.modules[name]\n"
            "sys.path[0] = sys.argv[2]\nimport hpqf\nprint(hpqf.PrecisionPlan.uniform('bf16').at('x').weight)")
    first = build_dir / "python"
    result = run_python(code, first, tmp_path)
    assert result.returncode != 0 and "one copy per process" in result.stderr, result.stderr
    result = run_python(code, first, first)   # the same copy again is fine
    assert result.returncode == 0 and result.stdout.strip() == "bf16", result.stderr
