"""Loss of a byte-level GPT and LSTM on English text in each format, against fp32 with the same data and seeds."""
import math
import statistics
import sys

import _runs
import _setup

_LEAST_SHARE = 0.85   # of GEMM FLOPs: below that a run says little of its format


def final_loss(result: _runs.Result, last: int) -> float:
    return statistics.fmean(result.training[-last:]) if result.training else math.nan


def main() -> int:
    p = _setup.parser(__doc__)
    _runs.add_options(p, out="runs/bench-language", formats=["fp32", "bf16", "fp16", "fp8", "int8"], seeds=[0, 1, 2])
    p.add_argument("--models", nargs="+", default=["gpt-mini", "lstm-lm"], choices=["gpt-mini", "lstm-lm"])
    p.add_argument("--steps", type=int, default=500)
    p.add_argument("--last", type=int, default=50, help="steps whose mean is the final training loss")
    p.add_argument("--limit", type=int, default=0, help="only the first N windows of the training text; 0: all")
    p.add_argument("--data", default="text", help="text (Debian's package bible-kjv-text) or text:PATH")
    arguments = p.parse_args()

    runs = _runs.Runs(_setup.program(arguments.build_dir), arguments.out, arguments.minutes)
    report = _setup.Report("language", arguments)
    missing, below = 0, []
    for model in arguments.models:
        done: dict[str, dict[int, _runs.Result]] = {format_: {} for format_ in arguments.formats}
        for seed in arguments.seeds:
            for format_ in arguments.formats:
                data = arguments.data.replace(":", "-").replace("/", "-")
                name = f"{model}-{data}-{format_}-steps{arguments.steps}-limit{arguments.limit}-seed{seed}"
                settings = ["--model", model, "--data", arguments.data, "--precision", format_, "--steps", str(arguments.steps),
                            "--limit", str(arguments.limit), "--seed", str(seed), "--threads", str(arguments.threads)]
                result = runs.result(name, settings)
                if result is None:
                    missing += 1
                else:
                    done[format_][seed] = result
        rows, fp32 = [], done.get("fp32", {})
        for format_, results in done.items():
            if not results:
                continue
            final = {seed: final_loss(r, arguments.last) for seed, r in results.items()}
            both = [seed for seed in results if seed in fp32]
            cells = ["-", "-"]
            if format_ != "fp32" and both:
                cells = [
                    _runs.mean_spread([final[s] - final_loss(fp32[s], arguments.last) for s in both], 4),
                    _runs.mean_spread([results[s].loss - fp32[s].loss for s in both], 4),
                ]
            rows.append([format_, _runs.mean_spread(list(final.values()), 4), cells[0],
                         _runs.mean_spread([r.loss for r in results.values()], 4), cells[1], sum(r.skipped for r in results.values()),
                         _runs.share_text(list(results.values()))])
            for seed, r in results.items():
                report.add(model=model, format=format_, seed=seed, training_loss=final[seed], validation_loss=r.loss, perplexity=r.quality,
                           skipped_steps=r.skipped, low_flops_share=r.low, emulated=r.emulated)
                if format_ != "fp32" and r.low < _LEAST_SHARE:
                    below.append(f"{model} in {format_}, seed {seed}: {100 * r.low:.1f} % of GEMM FLOPs")
        report.section(
            f"{model} on {arguments.data}, {arguments.steps} steps, nats per byte: mean ± standard deviation over seeds; differences are "
            f"taken seed by seed; training loss is the mean of the last {arguments.last} steps",
            ["format", "training loss", "to fp32", "validation loss", "to fp32", "steps skipped", "GEMM FLOPs below fp32"], rows)
    report.write()
    if missing:
        print(f"\n{missing} runs are not done yet; the same command goes on with them")
    if below:
        print(f"\nless than {100 * _LEAST_SHARE:.0f} % ran below fp32:", *below, sep="\n  ")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
