"""Run outside the sources with an installed package: it is that package, and a model under a plan computes as planned."""

import sys
from pathlib import Path

import torch

import hpqf


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    assert folder in Path(hpqf.__file__).resolve().parents, f"{hpqf.__file__} is not the package in {folder}"

    torch.manual_seed(1)
    model = torch.nn.Linear(64, 32)
    x = torch.randn(8, 64)
    fp32 = model(x)
    with hpqf.precision(model, "fp8"):
        inside = model(x)
    # Scale of a block: largest magnitude over the largest value of the format, 448.
    rounded = [
        (t / (t.abs().max() / 448)).to(torch.float8_e4m3fn).float() * (t.abs().max() / 448) for t in (x, model.weight)
    ]
    torch.testing.assert_close(inside, torch.nn.functional.linear(*rounded, model.bias))
    assert not torch.equal(inside, fp32)
    assert torch.equal(model(x), fp32), "the model is not what it was before"
    print(f"hpqf {hpqf.__version__} from {folder}: a planned layer computes as planned, and the model is restored")


if __name__ == "__main__":
    main()
