"""Every module of torch's own module tests, in training and evaluation, under every plan."""
import copy
import warnings

import pytest
import torch
from hpqf.describe import kind
from torch_inputs import LOW, Judge, Tally, one_thread, thaw_flags   # noqa: F401: one_thread is a fixture

pytest.importorskip("expecttest", reason="expecttest, which torch's test inputs import, is not installed")
from torch.testing._internal.common_modules import module_db   # noqa: E402

thaw_flags()
TALLY = Tally(f"torch's module inputs, {len(module_db)} modules")
COMPUTES_LOW = {"linear", "conv", "conv_transpose", "rnn", "embedding", "attention"}
FP32_BY_KIND = {"norm", "softmax", "loss", "activation"}


SAMPLES = 150   # at most so many of each module, evenly: all, but of LinearCrossEntropyLoss, which has 857


def samples(info, training, every):
    torch.manual_seed(0)
    all_ = list(info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training))
    return [all_[i * len(all_) // SAMPLES] for i in range(SAMPLES)] if len(all_) > SAMPLES and not every else all_


@pytest.mark.parametrize("info", module_db, ids=lambda info: info.formatted_name)
def test_module(info, request):
    TALLY.print_at_end(request.config)
    warnings.simplefilter("ignore")   # torch's, on options without effect; pytest puts the filters back
    rows, moved, kinds = [], set(), set()
    for training in (True, False) if info.train_and_eval_differ else (True,):
        for i, sample in enumerate(samples(info, training, request.config.getoption("--all-samples"))):
            torch.manual_seed(i)
            module = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs)
            module = module.to(torch.float32).train(training)
            kinds.add(kind(module))
            title = f"{info.name} {i} {sample.desc} {'training' if training else 'evaluating'}"
            judge = Judge(TALLY, title, lambda: copy.deepcopy(module), sample.forward_input.args, sample.forward_input.kwargs)
            rows += judge().low_rows
            moved |= judge.moved
    (what,) = kinds
    if what in COMPUTES_LOW:
        assert {row.effective_b for row in rows} >= set(LOW), "some products never left fp32"
        assert moved == set(LOW), "the audit tells of low precision, but no number moved"
    if what in FP32_BY_KIND:
        own = [row for row in rows if not row.layer]   # a loss with a linear layer of its own lets that follow the plan
        assert not own, f"{what} layers compute in fp32, but {own[0]}"
