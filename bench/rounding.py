"""Rounding an fp32 tensor to a format and back, against a copy of it and torch's own casts (GB/s, ratio of times)."""
import functools
import sys

import _setup
import _timing

_CASTS = {"bf16": "bfloat16", "fp16": "float16", "fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2"}


def _times(call, repeat: int) -> None:
    for _ in range(repeat):
        call()   # each result dies at once: the next one gets its memory, and no page faults


def main() -> int:
    p = _setup.parser(__doc__)
    p.add_argument("--formats", nargs="+", default=[], help="formats, or block formats such as int8[1x64]; default: all")
    p.add_argument("--kib", type=int, nargs="+", default=[256, 16384],
                   help="size of the tensor: one that fits a level-2 cache and one that fits none. Below 32 MiB: there the allocator "
                        "begins to return memory after each call, and page faults would be measured")
    p.add_argument("--rounds", type=int, default=50)
    p.add_argument("--warmup", type=int, default=5)
    p.add_argument("--threads", type=int, default=1)
    arguments = p.parse_args()
    _setup.use_package(arguments.build_dir)

    import torch

    import hpqf

    torch.set_num_threads(arguments.threads)
    formats = arguments.formats or [f.name for f in hpqf.formats() if f.name != "fp32"]
    report = _setup.Report("rounding", arguments)
    for kib in arguments.kib:
        torch.manual_seed(0)
        x = torch.randn(kib * 256 // 1024 or 1, 1024)
        calls = {"copy: x.clone()": x.clone}
        for format_ in formats:
            calls[f"hpqf {format_}"] = lambda format_=format_: hpqf.quantize_dequantize(x, format_)
            if format_ in _CASTS:
                dtype = getattr(torch, _CASTS[format_])
                calls[f"torch .to({_CASTS[format_]}).float()"] = lambda dtype=dtype: x.to(dtype).float()
        # So many calls in one timing that the clock does not matter: 256 KiB are copied in 10 us.
        repeat = max(1, 4096 // kib)
        times = _timing.interleaved(
            {name: functools.partial(_times, call, repeat) for name, call in calls.items()}, arguments.rounds, arguments.warmup)
        bytes_ = 2 * x.numel() * x.element_size() * repeat   # read once, written once
        rows = []
        for name, seconds in times.items():
            low, median, high = (bytes_ / t / 1e9 for t in _timing.quartiles(seconds))
            ratio = _timing.ratio(seconds, times["copy: x.clone()"])
            rows.append([name, f"{median:.1f} ({high:.1f}-{low:.1f})", str(ratio)])
            report.add(what=name, kib=kib, gb_per_second=median, gb_per_second_quartiles=[high, low], time_ratio_to_copy=ratio.as_json())
        report.section(
            f"{x.numel() * 4 // 1024} KiB, {arguments.threads} thread{'s' if arguments.threads > 1 else ''}, {arguments.rounds} interleaved "
            "rounds: median (quartiles); 8 bytes of traffic an element",
            ["what", "GB/s", "time over copy"], rows)
    report.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
