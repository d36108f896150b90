"""Range compensation: fp16 and unscaled fp8 follow the largest values of each layer and role."""
import hpqf
import pytest
import torch
import torch.nn.functional as F
from torch import nn


class Loud(nn.Module):
    """Hidden values of about 2e5, beyond fp16's 65504: no loss scale can help."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)) * 1e5) * 1e-5


def loader(batches=12):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(batches * 16, 16, generator=generator)
    y = (x[:, :4].sum(1) > 0).long() + 2 * (x[:, 4] > 0).long()
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16)


def train(precision, compensation, steps=24, **options):
    trainer = hpqf.MixedPrecisionTrainer(
        Loud(), {"default": precision}, lr=0.01, range_compensation=compensation, progress=False,
        fallback=hpqf.FallbackRules(enabled=False), **options)
    seen = []
    trainer.train(loader(), epochs=2, steps=steps, on_step=seen.append)
    return trainer, seen


def test_forward_overflow_skips_every_step_without_it_and_none_with_it():
    _, plain = train("fp16", False, steps=8)
    assert not any(result.applied for result in plain)
    _, exact = train("fp32", False)
    _, compensated = train("fp16", True, loss_scale={"init": 256.0})
    assert all(result.applied for result in compensated)
    assert compensated[-1].loss == pytest.approx(exact[-1].loss, rel=0.02) and compensated[-1].loss < 0.8 * compensated[0].loss


def test_resumed_runs_are_bit_equal(tmp_path):
    """TransformerEngine #982, Megatron-LM #1350: resumed without its history of largest values, a run clipped with stale scales."""
    def losses(folder, steps, resume=False):
        trainer = hpqf.MixedPrecisionTrainer(Loud(), {"default": "fp16"}, lr=0.01, range_compensation=True, progress=False, checkpoint_dir=folder)
        seen = []
        trainer.train(loader(), epochs=2, steps=steps, resume=resume, on_step=lambda r: seen.append(r.loss))
        return seen
    assert losses(tmp_path / "cut", 7) + losses(tmp_path / "cut", None, resume=True) == losses(tmp_path / "whole", None)


def test_evaluation_does_not_steer_the_training():
    def losses(evaluate):
        trainer = hpqf.MixedPrecisionTrainer(Loud(), {"default": "fp16"}, lr=0.01, range_compensation=True, progress=False)
        seen = []

        def on_step(result):
            seen.append(result.loss)
            if evaluate:
                assert torch.isfinite(torch.tensor(trainer.evaluate([(torch.randn(4, 16) * 1e3, torch.zeros(4, dtype=torch.long))]).loss))
        trainer.train(loader(), epochs=1, on_step=on_step)
        return seen
    assert losses(True) == losses(False)


def test_in_a_loop_of_ones_own():
    model, (x, y) = Loud(), next(iter(loader()))
    with hpqf.precision(model, "fp16") as scope:
        assert not torch.isfinite(model(x)).all()
    with hpqf.precision(model, "fp16", range_compensation=hpqf.RangeRules(window=4)) as scope:
        for factor in (1, 64, 1):   # a jump is cast again in the same forward
            out = model(x * factor)
            F.cross_entropy(out, y).backward()
            assert torch.isfinite(out).all() and all(torch.isfinite(p.grad).all() for p in model.parameters())
    assert not scope._audit.take_observations(1).casts


@pytest.mark.parametrize("bad", [1, "yes", None])
def test_mistakes(bad):
    with pytest.raises(hpqf.Error, match="range_compensation"):
        hpqf.precision(nn.Linear(2, 2), "fp16", range_compensation=bad)
    with pytest.raises(hpqf.Error, match="window"):
        hpqf.RangeRules(window=0)
