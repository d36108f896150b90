"""GELU, SiLU, softmax and LayerNorm of the kernels room, against torch's, forward and backward, one thread (ns an element, ratio)."""
import ctypes
import sys
import time

import _setup
import _timing


class _Kernels:
    """The C functions of libhpqf_core on tensors, ready to be called: arguments converted and results allocated beforehand, because
    foreign calls made from Python would otherwise be measured. torch's operations allocate their results, some 1 us."""

    def __init__(self, build_dir):
        self._library = ctypes.CDLL(str(build_dir.resolve() / "libhpqf_core.so"))
        self._library.hpqf_layer_norm_scratch.restype = ctypes.c_int64
        self._library.hpqf_last_error.restype = ctypes.c_char_p

    def _ready(self, results: tuple, name: str, *arguments):
        function, converted = getattr(self._library, name), tuple(map(_to_c, arguments))

        def call():
            if function(*converted):
                sys.exit(self._library.hpqf_last_error().decode())
            return results

        call.keep = arguments   # the pointers alone keep no tensor alive
        return call

    def activation(self, name, x):
        y = x.new_empty(x.shape)
        return self._ready((y,), "hpqf_activation", name, *x.shape, x, None, y)

    def activation_backward(self, name, x, dy):
        dx = x.new_empty(x.shape)
        return self._ready((dx,), "hpqf_activation_backward", name, *x.shape, x, None, dy, dx)

    def softmax(self, log, x):
        y = x.new_empty(x.shape)
        return self._ready((y,), "hpqf_softmax", log, 1.0, *x.shape, x, y)

    def softmax_backward(self, log, y, dy):
        dx = y.new_empty(y.shape)
        return self._ready((dx,), "hpqf_softmax_backward", log, 1.0, *y.shape, y, dy, dx)

    def layer_norm(self, x, weight, bias):
        y, mean, rstd = x.new_empty(x.shape), x.new_empty(len(x)), x.new_empty(len(x))
        return self._ready((y, mean, rstd), "hpqf_layer_norm", *x.shape, ctypes.c_double(1e-5), x, weight, bias, y, mean, rstd)

    def layer_norm_backward(self, x, mean, rstd, weight, dy):
        scratch = x.new_empty(self._library.hpqf_layer_norm_scratch(*map(_to_c, x.shape)))
        dx, dweight, dbias = x.new_empty(x.shape), weight.new_empty(weight.shape), weight.new_empty(weight.shape)
        return self._ready((dx, dweight, dbias), "hpqf_layer_norm_backward", *x.shape, x, mean, rstd, weight, dy, dx, dweight, dbias,
                           scratch)


def _to_c(value):
    match value:
        case bool():
            return ctypes.c_int(value)
        case int():
            return ctypes.c_int64(value)
        case float():
            return ctypes.c_float(value)
        case str():
            return value.encode()
        case None:
            return ctypes.c_void_p(None)
        case _ if hasattr(value, "data_ptr"):
            return ctypes.c_void_p(value.data_ptr())
    return value


def _cases(kernels: _Kernels, rows: int, cols: int) -> dict:
    """Name to (ours, torch's), two functions without arguments that return tuples of tensors."""
    import torch

    aten = torch.ops.aten
    x, dy, weight, bias = torch.randn(rows, cols), torch.randn(rows, cols), torch.rand(cols) + 0.5, torch.randn(cols)
    torch_activations = {
        "gelu": (lambda: (aten.gelu(x),), lambda: (aten.gelu_backward(dy, x),)),
        "gelu_tanh": (lambda: (aten.gelu(x, approximate="tanh"),), lambda: (aten.gelu_backward(dy, x, approximate="tanh"),)),
        "silu": (lambda: (aten.silu(x),), lambda: (aten.silu_backward(dy, x),)),
    }
    cases = {}
    for name, (forward, backward) in torch_activations.items():
        cases[name] = kernels.activation(name, x), forward
        cases[f"{name} backward"] = kernels.activation_backward(name, x, dy), backward
    y, log_y = torch.softmax(x, -1), torch.log_softmax(x, -1)
    cases["softmax"] = kernels.softmax(False, x), lambda: (aten._softmax(x, -1, False),)
    cases["softmax backward"] = (kernels.softmax_backward(False, y, dy),
                                 lambda: (aten._softmax_backward_data(dy, y, -1, torch.float32),))
    cases["log_softmax"] = kernels.softmax(True, x), lambda: (aten._log_softmax(x, -1, False),)
    cases["log_softmax backward"] = (kernels.softmax_backward(True, log_y, dy),
                                     lambda: (aten._log_softmax_backward_data(dy, log_y, -1, torch.float32),))
    _, mean, rstd = aten.native_layer_norm(x, [cols], weight, bias, 1e-5)
    cases["layer_norm"] = (kernels.layer_norm(x, weight, bias),
                           lambda: aten.native_layer_norm(x, [cols], weight, bias, 1e-5))
    cases["layer_norm backward"] = (
        kernels.layer_norm_backward(x, mean, rstd, weight, dy),
        lambda: aten.native_layer_norm_backward(dy, x, [cols], mean, rstd, weight, bias, [True, True, True]))
    return cases


# Those of a GPT-like step, and one that stays in a level-2 cache, where the arithmetic alone is measured.
_SHAPES = {
    "gelu": [(32, 1024), (2048, 1024), (2048, 2048)],
    "softmax": [(256, 128), (16 * 8 * 128, 128)],
    "layer_norm": [(64, 512), (2048, 512)],
}
_SHAPES |= {"gelu_tanh": _SHAPES["gelu"], "silu": _SHAPES["gelu"], "log_softmax": _SHAPES["softmax"]}


def _times(call, repeat: int) -> None:
    for _ in range(repeat):
        call()   # each result dies at once: the next one gets its memory, and no page faults


def _agree(ours, theirs) -> bool:
    import torch

    return all(torch.allclose(a.flatten(), b.flatten(), rtol=1e-4, atol=1e-4) for a, b in zip(ours, theirs, strict=True))


def main() -> int:
    p = _setup.parser(__doc__)
    p.add_argument("--ops", nargs="+", default=list(_SHAPES), choices=list(_SHAPES))
    p.add_argument("--rounds", type=int, default=30)
    p.add_argument("--warmup", type=int, default=3)
    arguments = p.parse_args()
    arguments.threads = 1   # the kernels are serial until the engine gives them torch's pool

    import torch

    torch.set_num_threads(1)
    kernels, report, wrong, rows_ = _Kernels(arguments.build_dir), _setup.Report("elementwise", arguments), [], []
    for op in arguments.ops:
        for rows, cols in _SHAPES[op]:
            torch.manual_seed(0)
            cases = _cases(kernels, rows, cols)
            for name in (op, f"{op} backward"):
                ours, theirs = cases[name]
                if not _agree(ours(), theirs()):
                    wrong.append(f"{name} {rows} x {cols}")
                # Some 10 ms in one timing: the clock of the process does not matter then.
                repeat = max(1, (1 << 22) // (rows * cols))
                times = _timing.interleaved({"ours": lambda: _times(ours, repeat), "torch": lambda: _times(theirs, repeat)},
                                            arguments.rounds, arguments.warmup, clock=time.process_time)
                element = 1e9 / (rows * cols * repeat)
                nanoseconds = {key: [t * element for t in _timing.quartiles(value)] for key, value in times.items()}
                ratio = _timing.ratio(times["ours"], times["torch"])
                rows_.append([name, f"{rows} x {cols}",
                              *(f"{n[1]:.2f} ({n[0]:.2f}-{n[2]:.2f})" for n in nanoseconds.values()), str(ratio)])
                report.add(op=name, rows=rows, cols=cols, ns_per_element={key: n[1] for key, n in nanoseconds.items()},
                           ns_per_element_quartiles={key: [n[0], n[2]] for key, n in nanoseconds.items()},
                           time_ratio_to_torch=ratio.as_json())
    report.section(f"1 thread, {arguments.rounds} interleaved rounds, time of the process: median (quartiles)",
                   ["op", "shape", "hpqf, ns an element", "torch, ns an element", "time over torch's"], rows_)
    report.write()
    for what in wrong:
        print(f"the results of {what} are not those of torch", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
