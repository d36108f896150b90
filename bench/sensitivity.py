"""Does the sensitivity score rank whole plans as the KL divergence they really cause, and do plans chosen by it beat uniform ones?

Two models are trained for a few minutes (a ResNet-20 on Fashion-MNIST at 14 x 14 pixels, a decoder on the text of --text), profiled
once, and run under random plans: a format drawn for the weights and one for the inputs of every layer. Truth is the mean KL divergence
of the fp32 outputs to those under the plan, on held-out data. Figures are kept in --out: the same command goes on after --minutes.
"""
import gzip
import json
import math
import pathlib
import sys
import sysconfig
import time

import _setup

MENU = ["int4", "fp8_e5m2", "fp8_e4m3", "int7", "int8", "bf16"]   # of the random plans
BITS = {"int4": 4, "int7": 7, "int8": 8, "int12": 12, "int16": 16}   # of the chosen ones
BUDGETS = ["int7", "int8", "int12"]   # the bits a weight that a uniform plan takes


def fashion(folder: pathlib.Path, part: str):
    import torch
    import torch.nn.functional as F

    def read(name, header):
        return torch.frombuffer(bytearray(gzip.decompress((folder / name).read_bytes())), dtype=torch.uint8)[header:]

    y = read(f"{part}-labels-idx1-ubyte.gz", 8).long()
    x = F.avg_pool2d((read(f"{part}-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28).float() / 255 - 0.286) / 0.353, 2)
    return x.expand(-1, 3, -1, -1), y


def library_text() -> bytes:
    """The Python standard library's own sources: some megabytes that are on every machine."""
    return b"".join(path.read_bytes() for path in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py")))


def windows(text: bytes, size: int = 64):
    import torch

    t = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    n = (len(t) - 1) // size
    return t[:n * size].view(n, size), t[1:n * size + 1].view(n, size)


def decoder():
    import torch
    from torch import nn

    class Decoder(nn.Module):
        def __init__(self, width=96, layers=3, vocab=256, context=64):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(context, width)
            layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
            self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab)

        def forward(self, tokens):
            steps = tokens.shape[1]
            mask = torch.full((steps, steps), -math.inf).triu(1)
            x = self.tokens(tokens) + self.positions.weight[:steps]
            return self.head(self.norm(self.body(x, mask=mask, is_causal=True))).transpose(1, 2)

    return Decoder()


def batches_of(x, y, size, generator=None):
    import torch

    order = torch.randperm(len(x), generator=generator) if generator is not None else torch.arange(len(x))
    return [(x[i], y[i]) for i in order.split(size)]


def train(model, x, y, steps, size, lr):
    import torch
    import torch.nn.functional as F

    generator, step = torch.Generator().manual_seed(0), 0
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, steps)
    while step < steps:
        for a, b in batches_of(x, y, size, generator):
            optimizer.zero_grad()
            F.cross_entropy(model(a), b).backward()
            optimizer.step()
            schedule.step()
            step += 1
            if step == steps:
                break
    return model.eval()


def log_probabilities(model, data):
    import torch

    with torch.no_grad():
        z = torch.cat([model(x) for x, _ in data])
    return z.log_softmax(1)


def divergence(model, plan, data, reference):
    """KL of each sample (and token), flat."""
    import hpqf

    with hpqf.precision(model, plan):
        low = log_probabilities(model, data)
    return (reference.exp() * (reference - low)).sum(1).flatten().double()


def rank(values):
    import torch

    v = torch.tensor(values, dtype=torch.float64)
    return v.argsort().argsort().double()


def spearman(a, b) -> float:
    import torch

    return torch.corrcoef(torch.stack([rank(a), rank(b)]))[0, 1].item()


def plan_of(choice):
    """choice: {layer: (weight format, input format)}."""
    import hpqf

    rules = [hpqf.Rule("=" + layer, hpqf.LayerPrecision("fp32", weight=w, input=x)) for layer, (w, x) in choice.items()]
    return hpqf.PrecisionPlan(rules + [hpqf.Rule("*", hpqf.LayerPrecision("fp32"))])


def score_of(scores, choice) -> float:
    return sum(scores[layer].get(role, {}).get(f, 0.0) for layer, pair in choice.items() for role, f in zip(("weight", "input"), pair))


def chosen(scores, sizes, bits):
    """Greedy: from the cheapest up, the largest gain per bit first, weights alone, within `bits` a weight."""
    order = sorted(BITS, key=BITS.get)
    at = {layer: 0 for layer in sizes}
    left = bits * sum(sizes.values()) - sum(BITS[order[0]] * n for n in sizes.values())
    while True:
        steps = [((scores[layer]["weight"][order[i]] - scores[layer]["weight"][order[j]]) / (n * (BITS[order[j]] - BITS[order[i]])), layer, j)
                 for layer, n in sizes.items() for i in [at[layer]] for j in range(i + 1, len(order))
                 if n * (BITS[order[j]] - BITS[order[i]]) <= left]
        steps = [s for s in steps if s[0] > 0]
        if not steps:
            return {layer: (order[i], "fp32") for layer, i in at.items()}
        _, layer, j = max(steps)
        left -= sizes[layer] * (BITS[order[j]] - BITS[order[at[layer]]])
        at[layer] = j


class Figures:
    """One line of JSON for each plan that was run; a killed benchmark goes on after the last whole line."""

    def __init__(self, path: pathlib.Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.known = path, {}
        if path.exists():
            for line in path.read_text().splitlines():
                try:
                    row = json.loads(line)
                    self.known[row["plan"]] = row
                except json.JSONDecodeError:
                    pass

    def get(self, key: str, compute):
        if key not in self.known:
            self.known[key] = {"plan": key, **compute()}
            with self.path.open("a") as file:
                file.write(json.dumps(self.known[key]) + "\n")
        return self.known[key]


def examine(name, model, calibration, held, arguments, report, deadline):
    import random

    import hpqf
    import torch

    formats = sorted(set(MENU) | set(BITS))
    begin = time.process_time()
    measured = hpqf.profile(model, calibration, formats=formats, samples=arguments.samples)
    seconds = time.process_time() - begin
    begin = time.process_time()
    for x, y in calibration:
        torch.nn.functional.cross_entropy(model(x), y).backward()
    step = time.process_time() - begin
    model.zero_grad()
    scores = {}
    for layer in measured.layers:
        for s in layer.scores:
            scores.setdefault(layer.name, {}).setdefault(s.role, {})[s.format] = s.score
    layers = {layer.name: layer.weights for layer in measured.layers if layer.kind in ("linear", "conv")}
    reference = log_probabilities(model, held)
    figures = Figures(arguments.out / f"{name}.jsonl")
    half = torch.randperm(reference[:, 0].numel(), generator=torch.Generator().manual_seed(1)) % 2 == 0

    def run(choice):
        kl = divergence(model, plan_of(choice), held, reference)
        return {"kl": kl.mean().item(), "halves": [kl[half].mean().item(), kl[~half].mean().item()]}

    for kind in ("weights", "weights and inputs"):
        draw, truth, halves, predicted, size = random.Random(kind), [], [], [], []
        for i in range(arguments.plans):
            choice = {layer: (draw.choice(MENU), draw.choice(MENU) if kind != "weights" else "fp32") for layer in layers}
            if f"{kind} {i}" not in figures.known and time.monotonic() > deadline:
                continue
            row = figures.get(f"{kind} {i}", lambda: run(choice))
            truth.append(row["kl"])
            halves.append(row["halves"])
            predicted.append(score_of(scores, choice))
            size.append(-sum(layers[layer] * {"bf16": 16, "int4": 4, "int7": 7}.get(w, 8) for layer, (w, _) in choice.items()))
        if len(truth) < 10:
            continue
        ratio = sorted(p / t for p, t in zip(predicted, truth))[len(truth) // 2]
        report.add(model=name, kind=kind, plans=len(truth), spearman=spearman(predicted, truth), size_only=spearman(size, truth),
                   split_half=spearman(*zip(*halves)), predicted_over_true=ratio)
    for budget in BUDGETS:
        if time.monotonic() > deadline:
            break
        uniform = figures.get(f"uniform {budget}", lambda: run({layer: (budget, "fp32") for layer in layers}))
        ours = figures.get(f"chosen {budget}", lambda: run(chosen(scores, layers, BITS[budget])))
        report.add(model=name, kind="chosen", budget=BITS[budget], uniform=uniform["kl"], chosen=ours["kl"])
    report.add(model=name, kind="cost", seconds=seconds, over_step=seconds / step, formats=len(formats), layers=len(measured.layers))


def main() -> int:
    p = _setup.parser(__doc__)
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/bench-sensitivity"), help="figures of each plan, trained weights")
    p.add_argument("--minutes", type=float, default=30, help="start nothing new after this time")
    p.add_argument("--plans", type=int, default=100, help="random plans of each kind")
    p.add_argument("--samples", type=int, default=256, help="to profile on; windows of 64 bytes for text")
    p.add_argument("--steps", type=int, default=300, help="of training")
    p.add_argument("--held", type=int, default=1000, help="held-out images; windows are an eighth as many")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--fashion-mnist", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    p.add_argument("--text", type=pathlib.Path, help="a text file; default: the sources of Python's standard library")
    p.add_argument("--models", nargs="+", choices=["cnn", "decoder"], default=["cnn", "decoder"])
    arguments = p.parse_args()
    _setup.use_package(arguments.build_dir)
    import _models
    import torch
    import warnings

    warnings.filterwarnings("ignore", message="hpqf.profile")
    torch.set_num_threads(arguments.threads)
    deadline = time.monotonic() + 60 * arguments.minutes
    report = _setup.Report("sensitivity", arguments)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.models:
        torch.manual_seed(0)
        if name == "cnn":
            model, (x, y), (hx, hy) = _models.ResNet20(), fashion(arguments.fashion_mnist, "train"), fashion(arguments.fashion_mnist, "t10k")
            held, size, lr = batches_of(hx[:arguments.held], hy[:arguments.held], 250), 64, 3e-3
        else:
            x, y = windows(arguments.text.read_bytes() if arguments.text else library_text())
            cut = len(x) - len(x) // 20
            model, hx, hy = decoder(), x[cut:], y[cut:]
            pick = torch.randperm(len(hx), generator=torch.Generator().manual_seed(2))[:max(arguments.held // 8, 80)]
            held, x, y, size, lr = batches_of(hx[pick], hy[pick], 32), x[:cut], y[:cut], 32, 3e-3
        weights = arguments.out / f"{name}-{arguments.steps}.pt"
        if weights.exists():
            model.load_state_dict(torch.load(weights, weights_only=True))
        else:
            train(model, x, y, arguments.steps, size, lr)
            torch.save(model.state_dict(), weights)
        pick = torch.randperm(len(x), generator=torch.Generator().manual_seed(3))[:arguments.samples]
        examine(name, model.eval(), batches_of(x[pick], y[pick], 32), held, arguments, report, deadline)

    rows = report.content["rows"]
    report.section("Spearman correlation of the score with the KL divergence over random plans",
                   ["model, formats drawn for", "score", "size alone", "split halves of the truth", "predicted / true KL", "plans"],
                   [[f"{r['model']}, {r['kind']}", f"{r['spearman']:.3f}", f"{r['size_only']:.3f}", f"{r['split_half']:.3f}",
                     f"{r['predicted_over_true']:.2f}", r["plans"]] for r in rows if "spearman" in r])
    report.section("KL divergence of the plan chosen by the score, weights alone, against the uniform plan of the same size",
                   ["model, bits a weight", "uniform, nats", "chosen, nats", "ratio"],
                   [[f"{r['model']}, {r['budget']}", f"{r['uniform']:.3g}", f"{r['chosen']:.3g}", f"{r['chosen'] / r['uniform']:.2f}"]
                    for r in rows if r["kind"] == "chosen"])
    report.section("Cost of the profile, CPU time", ["model", "s", "over a forward and backward of the same samples", "formats", "layers"],
                   [[r["model"], f"{r['seconds']:.1f}", f"{r['over_step']:.1f}", r["formats"], r["layers"]] for r in rows if r["kind"] == "cost"])
    report.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
