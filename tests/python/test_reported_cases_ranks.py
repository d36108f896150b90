"""Public bug reports about low-precision training on several ranks: two processes, Gloo, DistributedDataParallel.

Left out, as this version has no such part: ranks that hold different shards of the parameters (a skip is agreed on through the
gradients that DDP exchanges).
"""
import json
import pathlib
import subprocess
import sys

import hpqf
import pytest
import torch
import torch.distributed as dist
from torch import nn

FORMATS = ("fp16", "fp8")
OVERFLOW = "fp16, one rank overflows"


def rank_run(rank, store):
    """Trains once per format; rank 1's third batch holds a NaN (a finite value beyond fp16's range in the last run). Gives, per
    run, one record a step and the final weights."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    for run in (*FORMATS, OVERFLOW):
        format = run.partition(",")[0]
        torch.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)))
        t = hpqf.MixedPrecisionTrainer(model, {"default": format}, optimizer=lambda p: torch.optim.SGD(p, lr=0.1), progress=False,
                                       loss_scale={"init": 4096.0, "hysteresis": 1, "growth_interval": 3})
        torch.manual_seed(10 + rank)
        data = [(torch.randn(8, 16), torch.randint(4, (8,))) for _ in range(8)]
        if rank == 1:
            data[2][0][3, 5] = torch.nan if run in FORMATS else 1e6
        steps = []
        t.train(data, on_step=lambda r: steps.append([r.step, r.applied, r.loss_scale, r.cause, r.loss]))
        weights = [p.detach().flatten().tolist() for p in model.parameters()]
        print(json.dumps({"steps": steps, "scale": t.scaler.loss_scale, "weights": weights, "plan": t.plan.to_json()}))
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(build_dir, tmp_path_factory):
    """What the two ranks saw: {format: [rank 0, rank 1]}."""
    store = tmp_path_factory.mktemp("ranks") / "store"
    code = (f"import sys; sys.path[:0] = {[str(build_dir / 'python'), str(pathlib.Path(__file__).parent)]!r}\n"
            f"import test_reported_cases_ranks as t\nt.rank_run(int(sys.argv[1]), {str(store)!r})")
    running = [subprocess.Popen([sys.executable, "-c", code, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for rank in (0, 1)]
    try:
        outputs = [process.communicate(timeout=120) for process in running]
    finally:
        for process in running:
            process.kill()
    for process, (_, stderr) in zip(running, outputs):
        assert process.returncode == 0, stderr
    records = [[json.loads(line) for line in stdout.splitlines()] for stdout, _ in outputs]
    return {format: [of_rank[i] for of_rank in records] for i, format in enumerate((*FORMATS, OVERFLOW))}


@pytest.mark.parametrize("format", FORMATS)
def test_a_nan_on_one_rank_skips_the_step_on_all(ranks, format):
    """MS-AMP PR #56, #58: a NaN in one rank's gradient was lost in the exchange (the maximum of NaN and 3 is 3), and ranks disagreed."""
    assert torch.fmax(torch.tensor(torch.nan), torch.tensor(3.0)) == 3
    for of_rank in ranks[format]:
        assert [applied for _, applied, *_ in of_rank["steps"]] == [True, True, False] + [True] * 5
        assert "non-finite" in of_rank["steps"][2][3] and "module." in of_rank["steps"][2][3]
    losses = [[loss for *_, loss in of_rank["steps"]] for of_rank in ranks[format]]
    assert losses[0][2] == losses[0][2] and losses[1][2] != losses[1][2]   # only rank 1 met the NaN
    assert all(a != b for a, b in zip(*losses))


@pytest.mark.parametrize("format", FORMATS)
def test_replicas_hold_equal_scales_and_equal_weights(ranks, format):
    """Megatron-LM PR #442: scales reduced over the wrong group: replicas rounded the same weights differently and drifted apart."""
    first, second = ranks[format]
    assert [s[:4] for s in first["steps"]] == [s[:4] for s in second["steps"]]
    assert [scale for _, _, scale, *_ in first["steps"]] == [4096.0] * 3 + [2048.0] * 3 + [4096.0] * 2
    assert first["scale"] == second["scale"] and first["plan"] == second["plan"]
    assert first["weights"] == second["weights"]


def test_a_layer_that_overflows_on_one_rank_alone_leaves_its_format_on_all(ranks):
    first, second = ranks[OVERFLOW]
    assert not first["steps"][2][1] and not second["steps"][2][1]
    assert first["plan"] == second["plan"]
    plan = hpqf.PrecisionPlan.from_json(second["plan"])
    assert plan.at("module.0", "linear").input == "fp32", "the layer that met the large value"
    assert plan.at("module.2", "linear").input == "fp16", "the other one stays"
    assert first["weights"] == second["weights"]
