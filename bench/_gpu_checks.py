"""Does a model under a plan compute on this device what the plan says, and through which implementation?"""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

import hpqf
from hpqf import _C
from hpqf.attach import Attachment


@dataclass(frozen=True)
class Case:
    plan: str             # the format as a plan names it
    implementation: str   # that must run every GEMM of the MLP
    # Largest relative error (2-norms) of output and gradients against fp32. Rounding an operand errs by u = 2^-9 (bf16), 2^-12 (fp16),
    # 2^-5 (e4m3) or 2^-4 (e5m2: the gradients) over sqrt(3) in the mean, int8 by a 254th of the row's largest value over sqrt(3); a GEMM
    # has two of these, the last gradient has seen six GEMMs. About twice what a CPU shows.
    tolerance: float


CASES = (
    Case("bf16", "torch.cast", 0.02),
    Case("fp16", "torch.cast", 0.005),
    Case("fp8", "torch._scaled_mm", 0.25),
    # Scales inside the contraction are what torch's integer product cannot apply: one a row instead.
    Case("int8[row]", "torch._int_mm", 0.06),
)

# Without one the gradients of a mean over 16384 outputs are subnormal in fp16. A constant cancels in relative errors.
_LOSS_SCALE = 2.0**12


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(16, 32, 3, padding=1), nn.Conv2d(32, 32, 3, stride=2, padding=1, bias=False)   # its gradient is zero: a norm follows
        self.norm, self.fc = nn.BatchNorm2d(32), nn.Linear(32, 16)

    def forward(self, x):
        x = x.view(-1, 16, 8, 8)
        # No ReLU: of the outputs near zero each rounding turns some gradients off, which hides the errors that are looked for.
        return self.fc(F.gelu(self.norm(self.conv2(F.gelu(self.conv1(x))))).mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(64, 128, num_layers=2, batch_first=True), nn.Linear(128, 16)

    def forward(self, x):
        return self.fc(self.lstm(x.view(-1, 16, 64))[0])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.encoder, self.fc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(64, 16)

    def forward(self, x):
        return self.fc(self.encoder(x.view(-1, 16, 64)))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(1024, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 64))


def narrow() -> nn.Module:
    return nn.Sequential(nn.Linear(1024, 16), nn.GELU(), nn.Linear(16, 16))   # torch._int_mm takes more than 16 rows on CUDA


FAMILIES = (("convolutions", "bf16", ConvNet), ("LSTM", "bf16", Recurrent), ("encoder", "bf16", Attention), ("narrow MLP", "int8[row]", narrow))


@dataclass(frozen=True)
class Outcome:
    forward: float      # relative error against fp32
    backward: float     # the largest, over the input's and every parameter's gradient
    emulation: float    # the largest error against the same plan emulated: only the order of sums, and roundings of results, differ
    implementations: dict[str, float]   # share of GEMM FLOPs of each
    native: float       # share of low-precision GEMM FLOPs that were not emulated; 0: none were low
    reason: str         # why the best implementation did not run, if one did not


def _run(model, x, target, plan=None, force=""):
    """Output and gradients, and the audit."""
    model.zero_grad(set_to_none=True)
    x = x.detach().requires_grad_()
    audit = _C.Audit()
    attachment = None if plan is None else Attachment(model, plan, audit=audit, force_implementation=force)
    try:
        y = model(x)
        (_LOSS_SCALE * F.mse_loss(y.float(), target.expand_as(y))).backward()
    finally:
        if attachment is not None:
            attachment.detach()
    return [y.detach(), x.grad, *(p.grad for p in model.parameters())], audit.report()


def _errors(got, wanted) -> list[float]:
    return [((g.double() - w.double()).norm() / w.double().norm().clamp_min(1e-30)).item() for g, w in zip(got, wanted, strict=True)]


def run_case(make, plan_name: str, device: str, force: str) -> Outcome:
    torch.manual_seed(0)
    model, x = make().to(device), torch.randn(256, 1024, device=device)
    target = torch.randn(1, device=device)
    plan = hpqf.PrecisionPlan.uniform(plan_name)
    exact, _ = _run(model, x, target)
    got, report = _run(model, x, target, plan, force)
    emulated, _ = _run(model, x, target, plan, "emulated")
    errors = _errors(got, exact)
    flops: dict[str, float] = {}
    for row in report.rows:
        if row.flops > 0:
            flops[row.implementation] = flops.get(row.implementation, 0.0) + row.flops
    total = sum(flops.values()) or 1.0
    low = [share for share in report.shares() if share.format != "fp32"]
    return Outcome(
        forward=errors[0],
        backward=max(errors[1:]),
        emulation=max(_errors(got, emulated)),
        implementations={name: value / total for name, value in flops.items()},
        native=sum(s.flops for s in low if not s.emulated) / (sum(s.flops for s in low) or 1.0),
        reason="; ".join(sorted({row.reason for row in report.rows if row.flops > 0 and row.reason})),
    )


def trainer_trains(device: str) -> tuple[float, float, int]:
    """(first loss, last loss, steps skipped) of fp16 with the dynamic loss scale."""
    torch.manual_seed(0)
    model = mlp().to(device)
    x = torch.randn(2048, 1024)
    y = (x[:, :64]).argmax(1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=256)
    trainer = hpqf.MixedPrecisionTrainer(model, precision_config={"default": "fp16"}, lr=1e-3, progress=False)
    losses = []
    summary = trainer.train(loader, epochs=8, on_step=lambda result: losses.append(result.loss))
    return losses[0], losses[-1], summary.skipped
