"""Time of an allocation over made-up scores: layers of one model, formats for weights and inputs, budgets of several kinds."""
import functools
import json
import random
import sys

import _setup
import _timing

# Formats, and the bits of accuracy that the made-up scores give them: they fall by a factor of 4 a bit.
_FORMATS = {"int4": 4, "int7": 7, "int8": 8, "int12": 12, "int16": 16, "fp8_e4m3": 5, "fp16": 12, "bf16": 9}


class _Record:
    """A sensitivity record as text: what hpqf.allocate() reads."""

    def __init__(self, layers: int, seed: int):
        draw, made = random.Random(seed), []
        for i in range(layers):
            weights, scores = 64 * draw.randint(1, 30000), []
            for role in ("weight", "input"):
                scale = draw.random() * draw.random()
                scores += [{"role": role, "format": name, "score": scale * 4.0**-bits * (0.5 + draw.random()), "stderr": 0.0}
                           for name, bits in _FORMATS.items()]
            made.append({"name": f"layer{i}", "kind": "linear", "weights": weights, "inputs": 1000, "macs": weights, "scores": scores})
        self.macs = sum(layer["macs"] for layer in made)
        self.text = json.dumps({"schema": "hpqf.sensitivity", "version": 1, "model": "made up", "layers": made})

    def to_json(self) -> str:
        return self.text


def main() -> int:
    p = _setup.parser(__doc__)
    p.add_argument("--layers", type=int, default=200)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--warmup", type=int, default=1)
    arguments = p.parse_args()
    _setup.use_package(arguments.build_dir)

    import hpqf
    from hpqf import _C

    report = _setup.Report("allocate", arguments)
    record = _Record(arguments.layers, arguments.seed)
    bops = 60.0 * record.macs   # about 8 x 8 bits a multiply-add
    cases = {
        "bits=4.5: weights": ({"bits": 4.5}, {}),
        "bits=6: weights, and a front of 64 points": ({"bits": 6}, {"front_points": 64}),
        "bops: weights and inputs together": ({"bops": bops}, {}),
        "bits=6 and bops": ({"bits": 6, "bops": bops}, {}),
    }
    calls = {"reading the record alone": functools.partial(_C.layers_of_sensitivity, record.text)}
    for name, (budget, options) in cases.items():
        calls[name] = functools.partial(hpqf.allocate, record, budget, **options)
    times = _timing.interleaved(calls, arguments.rounds, arguments.warmup)
    rows = []
    for name, seconds in times.items():
        low, median, high = (1e3 * t for t in _timing.quartiles(seconds))
        gap = method = ""
        if name in cases:
            a = calls[name]()
            gap, method = f"{100 * (a.loss - a.bound) / a.loss:.2g} %", a.method
        rows.append([name, f"{median:.1f} ({low:.1f}-{high:.1f})", gap, method])
        report.add(what=name, milliseconds=median, milliseconds_quartiles=[low, high], method=method)
    report.section(
        f"{arguments.layers} layers, {len(_FORMATS)} formats a role, {arguments.rounds} interleaved rounds: median (quartiles); reading the "
        "record is part of every time", ["what", "ms", "loss over bound", "method"], rows)
    report.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
