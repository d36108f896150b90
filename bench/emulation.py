"""The price of emulation: a training step with rounded operands, against fp32 and torch.autocast (ratio of step times)."""
import sys
import time

import _setup
import _timing


def main() -> int:
    p = _setup.parser(__doc__)
    p.add_argument("--models", nargs="+", default=["resnet20", "bert-mini", "lstm"], choices=["resnet20", "bert-mini", "lstm"])
    p.add_argument("--formats", nargs="+", default=["bf16", "fp16", "fp8"])
    p.add_argument("--rounds", type=int, default=15, help="timed steps of each variant")
    p.add_argument("--warmup", type=int, default=2, help="steps of each variant before these")
    p.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    p.add_argument("--scale", type=float, default=1.0, help="of the batch sizes (128 images, 16 sentences, 32 windows)")
    p.add_argument("--peer-seconds", type=float, default=3.0,
                   help="torch.autocast takes turns too if its first step is faster; else that one step is all it gets")
    arguments = p.parse_args()
    _setup.use_package(arguments.build_dir)

    import torch

    import hpqf
    from _models import Trained
    from hpqf import _C
    from hpqf.attach import Attachment

    def autocast_step(trained):
        def step():
            with torch.autocast("cpu", torch.bfloat16):
                trained.step()
        return step

    def first_step(step):
        """Seconds, or the first line of why it cannot run."""
        begin = time.perf_counter()
        try:
            step()
        except RuntimeError as error:
            return str(error).splitlines()[0]
        return time.perf_counter() - begin

    report = _setup.Report("emulation", arguments)
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        rows, refusals = [], []
        for name in arguments.models:
            base = Trained(name, arguments.scale)
            steps, attached, audits = {"fp32": base.step}, [], {}
            for format_ in arguments.formats:
                trained, audits[format_] = Trained(name, arguments.scale), _C.Audit()
                # Forced: where torch has fast arithmetic in the format, this still measures emulation.
                attached.append(Attachment(trained.model, hpqf.PrecisionPlan.uniform(format_), audit=audits[format_],
                                           force_implementation="emulated"))
                steps[format_] = trained.step
            base.step()   # torch's set-up is no part of the peer's first step
            peer = autocast_step(Trained(name, arguments.scale))
            alone = first_step(peer)
            if isinstance(alone, float) and alone < arguments.peer_seconds:
                steps["autocast bf16"] = peer
            try:
                times = _timing.interleaved(steps, arguments.rounds, arguments.warmup, torch.manual_seed)
            finally:
                for attachment in attached:
                    attachment.detach()
            cells = []
            for format_ in arguments.formats:
                if not any(share.emulated for share in audits[format_].report().shares()):
                    raise SystemExit(f"{name}, {format_}: the audit knows of no emulated op")
            for variant in [*arguments.formats, "autocast bf16"]:
                if variant in times:
                    ratio = _timing.ratio(times[variant], times["fp32"])
                    cells.append(str(ratio))
                    measured = {"step_time_ratio": ratio.as_json(), "seconds": times[variant]}
                elif isinstance(alone, float):
                    once = alone / _timing.quartiles(times["fp32"])[1]
                    cells.append(f"{once:.1f} (one step)")
                    measured = {"step_time_ratio": {"median": once}, "seconds": [alone], "note": "one step, its first"}
                else:
                    cells.append("does not run")
                    refusals.append(f"{name}, autocast bf16: {alone}")
                    measured = {"error": alone}
                report.add(model=name, variant=variant, threads=threads, base_seconds=times["fp32"], **measured)
            rows.append([name, *cells, _timing.milliseconds(times["fp32"])])
        report.section(
            f"step time over that of fp32, {threads} thread{'s' if threads > 1 else ''}, {arguments.rounds} interleaved steps each: "
            "median (quartiles)",
            ["model", *arguments.formats, "autocast bf16", "fp32, ms"], rows)
        print(*refusals, sep="\n", flush=True)
    report.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
