"""What attaching costs: a training step with an all-fp32 plan attached, against torch alone (ratio of step times)."""
import sys

import _setup
import _timing


def main() -> int:
    p = _setup.parser(__doc__)
    p.add_argument("--models", nargs="+", default=["resnet20", "bert-mini", "lstm"], choices=["resnet20", "bert-mini", "lstm"])
    p.add_argument("--rounds", type=int, default=40, help="timed steps of each variant")
    p.add_argument("--warmup", type=int, default=4, help="steps of each variant before these")
    p.add_argument("--threads", type=int, default=0, help="0: as many as torch chooses")
    p.add_argument("--scale", type=float, default=1.0, help="of the batch sizes (128 images, 16 sentences, 32 windows)")
    arguments = p.parse_args()
    _setup.use_package(arguments.build_dir)

    import torch

    import hpqf
    from _models import Trained
    from hpqf.attach import Attachment

    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    report = _setup.Report("overhead", arguments)
    rows, identical = [], True
    for name in arguments.models:
        variants = {variant: Trained(name, arguments.scale) for variant in ("torch", "plan", "plan + audit")}
        plan = hpqf.PrecisionPlan.uniform("fp32")
        attached = Attachment(variants["plan"].model, plan)   # nobody listens to its events
        audited = hpqf.precision(variants["plan + audit"].model, plan).attach()   # what a user gets
        try:
            # The seed is that of dropout: each variant draws the same masks in a round.
            times = _timing.interleaved({v: t.step for v, t in variants.items()}, arguments.rounds, arguments.warmup, torch.manual_seed)
        finally:
            attached.detach()
            audited.detach()
        if not audited.audit().rows:
            raise SystemExit(f"{name}: the audit saw no op: nothing was attached")
        base = times["torch"]
        for variant in ("plan", "plan + audit"):
            same = variants[variant].losses == variants["torch"].losses
            identical = identical and same
            ratio = _timing.ratio(times[variant], base)
            rows.append([f"{name}, {variant}", ratio, "identical" if same else "DIFFERENT", _timing.milliseconds(base),
                         _timing.milliseconds(times[variant])])
            report.add(model=name, variant=variant, step_time_ratio=ratio.as_json(), losses_identical=same, base_seconds=base,
                       seconds=times[variant])
    report.section(
        f"all-fp32 plan against torch alone, {arguments.rounds} interleaved steps each: median (quartiles)",
        ["model, variant", "step time ratio", "losses, bit by bit", "torch, ms", "hpqf, ms"], rows)
    report.write()
    return 0 if identical else 1   # an fp32 plan that changes a number is an error; time never is


if __name__ == "__main__":
    sys.exit(main())
