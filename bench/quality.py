"""Test accuracy of ResNet-20 on Fashion-MNIST in each format, against fp32 with the same data and seeds."""
import sys

import _runs
import _setup

# What the names stand for. fp16 and fp8 get a dynamic loss scale from the trainer by themselves. Any other name is taken as a format.
_VARIANTS = {"mixed": ["--precision", "bf16", "--sensitive", "conv1,fc"]}
_NOTES = {"mixed": "mixed: bf16, conv1 and fc fp32", "fp16": "fp16, dynamic loss scale", "fp8": "fp8, dynamic loss scale"}


def main() -> int:
    p = _setup.parser(__doc__)
    _runs.add_options(p, out="runs/bench-quality", formats=["fp32", "bf16", "fp16", "int8", "mixed"], seeds=[0, 1, 2])
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--limit", type=int, default=0, help="only the first N training images; 0: all 60000")
    p.add_argument("--data", default="fashion-mnist", help="or mnist-idx:DIR")
    arguments = p.parse_args()

    runs = _runs.Runs(_setup.program(arguments.build_dir), arguments.out, arguments.minutes)
    report = _setup.Report("quality", arguments)
    done: dict[str, dict[int, _runs.Result]] = {variant: {} for variant in arguments.formats}
    # Seed by seed: when time is up, what is done can be compared.
    for seed in arguments.seeds:
        for variant in arguments.formats:
            data = arguments.data.replace(":", "-").replace("/", "-")
            name = f"{data}-{variant}-epochs{arguments.epochs}-limit{arguments.limit}-seed{seed}"
            settings = ["--model", "resnet20", "--data", arguments.data, *_VARIANTS.get(variant, ["--precision", variant]),
                        "--schedule", "cosine", "--epochs", str(arguments.epochs), "--limit", str(arguments.limit), "--seed", str(seed),
                        "--threads", str(arguments.threads)]
            result = runs.result(name, settings)
            if result is not None:
                done[variant][seed] = result

    rows, fp32 = [], done.get("fp32", {})
    for variant, results in done.items():
        if not results:
            continue
        accuracy = [100 * r.quality for r in results.values()]
        both = [seed for seed in results if seed in fp32]
        difference = [100 * (results[seed].quality - fp32[seed].quality) for seed in both]
        against = "-" if variant == "fp32" or not both else _runs.mean_spread(difference, 2)
        rows.append([_NOTES.get(variant, variant), _runs.mean_spread(accuracy, 2), against, len(results),
                     sum(r.skipped for r in results.values()), _runs.share_text(list(results.values()))])
        for seed, r in results.items():
            report.add(variant=variant, seed=seed, accuracy=r.quality, test_loss=r.loss, skipped_steps=r.skipped, low_flops_share=r.low,
                       emulated=r.emulated)
    images = f"the first {arguments.limit} training images" if arguments.limit else "all training images"
    report.section(
        f"ResNet-20 on {arguments.data}, {images}, {arguments.epochs} epochs: mean ± standard deviation over seeds; differences are taken "
        "seed by seed",
        ["format", "test accuracy, %", "difference to fp32", "seeds", "steps skipped", "GEMM FLOPs below fp32"], rows)
    report.write()
    missing = sum(len(arguments.seeds) - len(results) for results in done.values())
    if missing:
        print(f"\n{missing} runs are not done yet; the same command goes on with them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
