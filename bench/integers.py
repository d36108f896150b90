"""What integer arithmetic buys on a CPU: a training step in int8, int12 and auto, against torch's fp32 (ratio: fp32's time over ours)."""
import sys
import time

import _setup
import _timing


def main() -> int:
    p = _setup.parser(__doc__)
    p.add_argument("--models", nargs="+", default=["bert", "gpt", "resnet18", "lstm"], choices=["bert", "gpt", "resnet18", "lstm"])
    p.add_argument("--formats", nargs="+", default=["int8", "int12", "auto"])
    p.add_argument("--rounds", type=int, default=9, help="timed steps of each variant")
    p.add_argument("--warmup", type=int, default=2, help="steps of each variant before these; the first settles auto")
    p.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments = p.parse_args()
    _setup.use_package(arguments.build_dir)

    import torch

    import hpqf
    from _models import Trained
    from _wide_models import MODELS

    report = _setup.Report("integers", arguments)
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        rows = []
        for name in arguments.models:
            steps, scopes = {"fp32": Trained(name, models=MODELS, fused=True).step}, {}
            for format_ in arguments.formats:
                trained = Trained(name, models=MODELS, fused=True)
                scopes[format_] = hpqf.precision(trained.model, format_).attach()
                steps[format_] = trained.step
            try:
                # One thread is timed by its own clock: the ratio then does not see what else the machine does.
                times = _timing.interleaved(steps, arguments.rounds, arguments.warmup, torch.manual_seed,
                                            clock=time.process_time if threads == 1 else time.perf_counter)
            finally:
                for scope in scopes.values():
                    scope.detach()
            cells = []
            for format_ in arguments.formats:
                ratio = _timing.ratio(times["fp32"], times[format_])
                low = sum(share.flops for share in scopes[format_].audit().shares() if share.format != "fp32")
                share = low / sum(share.flops for share in scopes[format_].audit().shares())
                cells.append(f"{ratio} {100 * share:.0f} %")
                report.add(model=name, variant=format_, threads=threads, speed_ratio=ratio.as_json(), low_flops_share=share,
                           seconds=times[format_], base_seconds=times["fp32"])
            rows.append([name, *cells, _timing.milliseconds(times["fp32"])])
        clock = "process time" if threads == 1 else "wall time"
        report.section(
            f"fp32's step time over ours ({clock}), {threads} thread{'s' if threads > 1 else ''}, {arguments.rounds} interleaved steps each: "
            "median (quartiles), share of GEMM FLOPs below fp32",
            ["model", *arguments.formats, "fp32, ms"], rows)
    report.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
