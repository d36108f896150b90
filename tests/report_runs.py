"""Run folders made up for the tests of the report and the exporters: every file a run can have, of any length."""
import json
import math
import random

ROLES = ("weight", "input", "dgrad", "wgrad")
REST = {role: "fp32" for role in ("saved", "master", "state", "wire", "accumulate")}


def formats(format, gradient=None):
    return {"weight": format, "input": format, "dgrad": gradient or format, "wgrad": gradient or format, **REST}


def plan(layers, reasons):
    """Layers: (name, type, kind, format, gradient format)."""
    rules = [{"layers": "=" + name, **formats(a, b), "reason": reasons[a]} for name, _, _, a, b in layers]
    rules.append({"layers": "*", **formats("fp32"), "reason": "all else"})
    table = [
        {"name": name, "type": type_, "kind": kind, "parameters": 1000 + i, **formats(a, b), "reason": reasons[a]}
        for i, (name, type_, kind, a, b) in enumerate(layers)
    ]
    return {"schema": "hpqf.plan", "version": 1, "epoch": 3, "rules": rules, "model": "Made <up>", "layers": table}


def audit_rows(layers, effective, seconds):
    rows = []
    for i, (name, _, _, a, b) in enumerate(layers):
        for run in ("forward", "dgrad", "wgrad"):
            asked = a if run == "forward" else b
            ran, implementation, reason = effective(asked)
            rows.append({
                "layer": name, "op": "linear", "pass": run, "requested_a": asked, "requested_b": a, "effective_a": ran,
                "effective_b": a if ran == asked else ran, "implementation": implementation, "reason": reason,
                "calls": 100, "flops": 1e9 * (1 + i % 7), "bytes": 0.0, "seconds": seconds * (1 + i % 5 + (run == "forward")),
            })
    return rows


def audit(rows, steps, total):
    return {"schema": "hpqf.audit", "version": 1, "steps": steps, "total_seconds": total, "rows": rows,
            "uncounted": [{"op": "aten::add_", "share_of_time": 0.05, "calls": 40}], "shares": []}


def step_lines(steps, skip_every=0, nan_at=(), seed=1):
    draw = random.Random(seed)
    scale, time = 65536.0, 1.7e9
    for step in range(1, steps + 1):
        skipped = bool(skip_every) and step % skip_every == 0
        seconds = 0.1 + 0.02 * draw.random()
        time += seconds + 0.01
        loss = 0.3 + 2.5 * math.exp(-3 * step / steps) + 0.15 * draw.gauss(0, 1)
        line = {"step": step, "epoch": 4 * (step - 1) // steps, "loss": loss, "loss_scale": scale, "skipped": skipped}
        if skipped:
            line["cause"] = "layer blocks.0.up: 3 of 8192 gradients not finite"
            scale = max(1.0, scale / 2)
            line["changes"] = [f"loss scale {2 * scale:g} to {scale:g}: gradients overflowed"]
        elif step % 500 == 0:
            scale = min(65536.0, 2 * scale)
        if step in nan_at:
            line.update(loss=None, loss_text="nan")
        line.update(lr=0.1 * 0.5 * (1 + math.cos(math.pi * step / steps)), samples_per_second=128 / seconds,
                    samples=128, seconds=seconds, time=time, grad_norm=1 + abs(draw.gauss(0, 0.3)), plan_epoch=0)
        yield json.dumps(line)


LAYERS = [("stem.conv", "Conv2d", "conv", "fp32", "fp32")] + [
    (f"blocks.{i}.{part}", "Linear", "linear", a, b)
    for i in range(6)
    for part, a, b in (("attention.qkv", "bf16", "bf16"), ("attention.proj", "fp16", "fp16"), ("up", "int8", "int12"),
                       ("down", "fp8_e4m3", "fp8_e5m2"))
] + [("norm", "LayerNorm", "norm", "fp32", "fp32"), ("head", "Linear", "linear", "fp32", "fp32")]
REASONS = {"fp32": "sensitive: asked by the user", "bf16": "range matters here: attention logits reach 1.2e4",
           "fp16": "within range over 500 observed steps", "int8": "lowest time that keeps 30 dB (measured 33.1 dB)",
           "fp8_e4m3": "asked by the user"}


def effective(format):
    if format == "fp16":
        return "fp32", "torch", "fp16: this CPU multiplies it 14 times slower than fp32 (measured)"
    if format.startswith(("int", "fp32")):
        return format, "integer.avx2" if format.startswith("int") else "torch", ""
    return format, "emulated", f"{format}: cpu has no avx512_bf16 or amx_bf16"


def make_run(folder, steps=2000, layers=LAYERS, reasons=REASONS, seed=1, loss_shift=0.0, rich=True):
    folder.mkdir(parents=True, exist_ok=True)
    write = lambda name, value: (folder / name).write_text(json.dumps(value))
    with open(folder / "metrics.jsonl", "w") as file:
        for line in step_lines(steps, skip_every=steps // 7 if rich else 0, nan_at=(steps // 2,) if rich else (), seed=seed):
            file.write(line + "\n")
    write("plan.json", plan(layers, reasons))
    gemms = [layer for layer in layers if layer[2] != "norm"]
    rows = audit_rows(gemms, effective, 0.02)
    write("audit.json", audit(rows, steps, 1.3 * sum(row["seconds"] for row in rows)))
    write("config.json", {"schema": "hpqf.run", "version": 1, "model": "gpt-mini", "data": "text", "precision": "auto",
                          "sensitive": ["stem", "head"], "optimizer": "adamw", "lr": 0.1, "batch-size": 128, "seed": seed})
    write("result.json", {"schema": "hpqf.result", "version": 1, "task": "images", "loss": 0.42 + loss_shift, "samples": 10000,
                          "accuracy": 0.914 - loss_shift / 10, "steps": steps, "skipped": 7, "seconds": 0.12 * steps})
    if not rich:
        return folder
    with open(folder / "evaluations.jsonl", "w") as file:
        for i in range(1, 9):
            file.write(json.dumps({"step": i * steps // 8, "epoch": i // 2, "loss": 0.45 + 1.6 * 0.6**i, "accuracy": 0.92 - 0.5 * 0.6**i,
                                   "samples": 10000, "time": 1.7e9 + i * steps // 8 * 0.12}) + "\n")
    changes = [(steps // 5, "blocks.0.up", "input", "int8[1x64]", "int12"), (steps // 5, "blocks.0.up", "weight", "int8", "int12"),
               (steps // 3, "blocks.2.down", "dgrad", "fp8_e5m2", "bf16"), (steps // 2, "blocks.0.up", "input", "int12", "bf16"),
               (3 * steps // 4, "blocks.5.attention.proj", "input", "fp16", "bf16")]
    with open(folder / "history.jsonl", "w") as file:
        for i, (step, layer, role, a, b) in enumerate(changes):
            file.write(json.dumps({"step": step, "epoch": i + 1, "changes": [
                {"layer": layer, "role": role, "from": a, "to": b, "reason": f"{12 + i} overflows in 100 steps"}]}) + "\n")
    with open(folder / "alerts.jsonl", "w") as file:
        for step, severity, kind, layer, text in [
            (steps // 5, "warning", "overflow", "blocks.0.up", "0.8 % of the inputs saturate"),
            (steps // 2, "error", "loss", "", "the loss is not finite"),
        ]:
            file.write(json.dumps({"step": step, "severity": severity, "kind": kind, "layer": layer, "message": text}) + "\n")
    with open(folder / "monitor.jsonl", "w") as file:
        for step in range(steps // 20, steps + 1, max(1, steps // 20)):
            file.write(json.dumps({"step": step, "layer": "blocks.0.up", "role": "input", "sqnr_db": 33 + math.sin(step), "amax": 4.0}) + "\n")
    return folder
