"""Low precision on a GPU: plans reach torch's fast GEMMs, numbers are right, and a large linear layer is timed against fp32.

Minutes on a machine with a GPU; needs the package built there (bash bench/_gpu_build.sh does that and then runs this file).
Without a GPU the same checks run on the CPU with each implementation forced, and no time is printed.
"""
import functools
import sys

import _setup
import _timing

_FAMILY_TOLERANCE = 0.06   # relative error of output and gradients; ten times the rounding error of bf16, three times that of int8[row]


def check(report, device: str, forced: bool) -> int:
    """Prints the checks; returns how many failed."""
    import _gpu_checks as checks

    rows, failed = [], 0
    for case in checks.CASES:
        got = checks.run_case(checks.mlp, case.plan, device, case.implementation if forced else "")
        wrong = []
        if got.implementations.get(case.implementation, 0) < 0.999:
            wrong.append(f"not all by {case.implementation}: {got.implementations} {got.reason}")
        if not max(got.forward, got.backward) <= case.tolerance:   # written so that NaN fails
            wrong.append(f"error over {case.tolerance}")
        if not got.emulation <= case.tolerance:
            wrong.append("differs from the emulated plan")
        if got.native < 0.999:
            wrong.append("the audit calls it emulated")
        failed += bool(wrong)
        rows.append([f"MLP, {case.plan}", "FAILED: " + "; ".join(wrong) if wrong else "ok", case.implementation, f"{got.forward:.1e}",
                     f"{got.backward:.1e}", f"{got.emulation:.1e}"])
        report.add(check=f"MLP, {case.plan}", ok=not wrong, forward=got.forward, backward=got.backward, emulation=got.emulation,
                   implementations=got.implementations, native=got.native, reason=got.reason)
    # Layers of other kinds may run through several implementations; which ones is shown, not required.
    implementations = {case.plan: case.implementation for case in checks.CASES}
    for family, plan, make in checks.FAMILIES:
        got = checks.run_case(make, plan, device, implementations[plan] if forced else "")
        ok = max(got.forward, got.backward, got.emulation) <= _FAMILY_TOLERANCE
        failed += not ok
        by = " ".join(f"{name} {100 * share:.0f}%" for name, share in sorted(got.implementations.items()))
        rows.append([f"{family}, {plan}", "ok" if ok else f"FAILED: error over {_FAMILY_TOLERANCE}", by, f"{got.forward:.1e}",
                     f"{got.backward:.1e}", f"{got.emulation:.1e}"])
        report.add(check=f"{family}, {plan}", ok=ok, forward=got.forward, backward=got.backward, emulation=got.emulation,
                   implementations=got.implementations, native=got.native, reason=got.reason)
    report.section(f"on {device}: relative errors (2-norm) against fp32, and against the same plan emulated",
                   ["what", "result", "ran by", "forward", "gradients", "to emulated"], rows)

    first, last, skipped = checks.trainer_trains(device)
    ok = last < first / 2
    print(f"\nMixedPrecisionTrainer, fp16 with loss scale: loss {first:.3f} to {last:.3f}, {skipped} steps skipped: {'ok' if ok else 'FAILED'}")
    report.add(check="trainer, fp16", ok=ok, first_loss=first, last_loss=last, skipped=skipped)
    return failed + (not ok)


def time_linear(device: str, size: int, rounds: int, forced: bool) -> dict[str, list[float]]:
    """Seconds of forward and backward of a size x size linear layer on size rows, in each variant and round."""
    import torch
    from torch import nn

    import _gpu_checks as checks
    import hpqf
    from hpqf import _C
    from hpqf.attach import Attachment

    def step(model, x):
        model(x).sum().backward()
        model.zero_grad(set_to_none=True)

    def autocast(model, x):
        with torch.autocast(device, torch.bfloat16):
            step(model, x)

    def tf32(model, x):
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            step(model, x)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False

    tf32_before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, False   # fp32 means fp32
    torch.manual_seed(0)
    x = torch.randn(size, size, device=device, requires_grad=True)
    variants = {name: functools.partial(run, nn.Linear(size, size, device=device), x)
                for name, run in (("torch fp32", step), ("torch tf32", tf32), ("torch autocast bf16", autocast))}
    attached = []
    for case in checks.CASES:
        model = nn.Linear(size, size, device=device)
        attached.append(Attachment(model, hpqf.PrecisionPlan.uniform(case.plan), audit=_C.Audit(),
                                   force_implementation=case.implementation if forced else ""))
        variants[f"hpqf {case.plan}"] = functools.partial(step, model, x)
    try:
        return _timing.interleaved(variants, rounds, 5, synchronize=torch.cuda.synchronize if device == "cuda" else lambda: None)
    finally:
        for attachment in attached:
            attachment.detach()
        torch.backends.cuda.matmul.allow_tf32 = tf32_before


def show_times(report, times: dict[str, list[float]], size: int) -> None:
    rows = []
    for name, seconds in times.items():
        ratio = _timing.ratio(seconds, times["torch fp32"])
        rate = 6 * size**3 / _timing.quartiles(seconds)[1] / 1e12
        rows.append([name, str(ratio), f"{rate:.0f}", _timing.milliseconds(seconds)])
        report.add(what=f"linear {size}, {name}", time_ratio_to_fp32=ratio.as_json(), tflops=rate, seconds=seconds)
    report.section(f"linear layer {size} x {size} on {size} rows, forward and backward (6 n^3 FLOPs), {len(times['torch fp32'])} interleaved "
                   "rounds: median (quartiles)", ["variant", "time over fp32", "TFLOP/s", "ms"], rows)


def main() -> int:
    p = _setup.parser(__doc__)
    p.add_argument("--size", type=int, default=4096, help="of the linear layer that is timed")
    p.add_argument("--rounds", type=int, default=30)
    arguments = p.parse_args()
    _setup.use_package(arguments.build_dir)

    import torch

    gpu = torch.cuda.is_available()
    report = _setup.Report("gpu_smoke", arguments)
    if not gpu:
        print("\nno GPU here: each implementation is forced on the CPU, which checks the code but neither the GPU's numbers nor any speed")
    failed = check(report, "cuda" if gpu else "cpu", forced=not gpu)
    if gpu:
        show_times(report, time_linear("cuda", arguments.size, arguments.rounds, forced=False), arguments.size)
    else:
        time_linear("cpu", 64, 1, forced=True)   # for its code alone: times of a CPU say nothing here
    report.write()
    print(f"\n{failed} checks failed" if failed else "\nall checks passed" if gpu else "\nno GPU here; the same code passed on the CPU")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
