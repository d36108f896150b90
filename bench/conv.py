"""Convolutions on integers against torch's fp32 in its faster layout: forward, input gradient and weight gradient, one after the other."""
import sys
import time

import _setup
import _timing

_SHAPES = ["128x32x16", "128x64x8", "16x64x56", "16x128x28", "16x256x14", "16x512x7"]


def main() -> int:
    p = _setup.parser(__doc__)
    p.add_argument("--shapes", nargs="+", default=_SHAPES, help="images x channels x height (and width) of layers that keep their channels")
    p.add_argument("--kernel", type=int, default=3)
    p.add_argument("--stride", type=int, default=1)
    p.add_argument("--formats", nargs="+", default=["int8", "int12"])
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--warmup", type=int, default=1)
    p.add_argument("--threads", type=int, default=1)
    arguments = p.parse_args()
    _setup.use_package(arguments.build_dir)

    import torch

    import hpqf

    torch.set_num_threads(arguments.threads)
    clock = time.process_time if arguments.threads == 1 else time.perf_counter
    layouts = {"channels first": torch.contiguous_format, "channels last": torch.channels_last}

    def passes(layer, x):
        """The three products as functions; each graph is built once, so that only its own product is timed."""
        def forward():
            with torch.no_grad():
                layer(x)
        wanted = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
        layer.weight.requires_grad_(False)
        through_x = layer(wanted)
        layer.weight.requires_grad_(True)
        through_w = layer(x)
        g = torch.randn(through_x.shape).contiguous(memory_format=memory_format)
        return {"forward": forward,
                "input gradient": lambda: torch.autograd.grad(through_x, wanted, g, retain_graph=True),
                "weight gradient": lambda: torch.autograd.grad(through_w, layer.weight, g, retain_graph=True)}

    report = _setup.Report("conv", arguments)
    rows = []
    for shape in arguments.shapes:
        images, channels, size = map(int, shape.split("x"))
        variants, scopes = {}, []
        for layout, memory_format in layouts.items():
            x = torch.randn(images, channels, size, size).contiguous(memory_format=memory_format)
            for format_ in ["fp32", *arguments.formats]:
                layer = torch.nn.Conv2d(channels, channels, arguments.kernel, arguments.stride, arguments.kernel // 2, bias=False)
                layer = layer.to(memory_format=memory_format)
                if format_ != "fp32":
                    scopes.append(hpqf.precision(layer, format_).attach())
                for what, run in passes(layer, x).items():
                    variants[what, format_, layout] = run
        try:
            times = _timing.interleaved(variants, arguments.rounds, arguments.warmup, torch.manual_seed, clock=clock)
        finally:
            for scope in scopes:
                scope.detach()
        for scope in scopes:
            if {row.implementation for row in scope.audit().rows} != {"hpqf.integer"}:
                raise SystemExit(f"{shape}: not every product ran on integers:\n{scope.audit().table()}")
        for what in ("forward", "input gradient", "weight gradient"):
            best = min((times[what, "fp32", layout] for layout in layouts), key=lambda t: _timing.quartiles(t)[1])
            cells = []
            for format_ in arguments.formats:
                for layout in layouts:
                    ratio = _timing.ratio(best, times[what, format_, layout])
                    cells.append(str(ratio))
                    report.add(shape=shape, kernel=arguments.kernel, stride=arguments.stride, product=what, format=format_, layout=layout,
                               speed_ratio=ratio.as_json(), seconds=times[what, format_, layout], base_seconds=best)
            rows.append([shape, what, *cells, _timing.milliseconds(best)])
    report.section(
        f"time of torch's fp32 in its faster layout over ours, kernel {arguments.kernel}, stride {arguments.stride}: median (quartiles)",
        ["images x channels x size", "product", *(f"{f}, {layout}" for f in arguments.formats for layout in layouts), "fp32, ms"], rows)
    report.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
