"""The sections of exchange.md from what was measured."""

from bench_page import section, table

BASE = "gloo fp32, DDP's buckets"
FAIR = "fp16 hook, DDP's buckets"
PLANNED = {"fp16": "dsc scaled fp16, threshold", "fp32": "gloo fp32, threshold"}


def report(results):
    for link, found in results["links"].items():
        report_link(link, found)
        if "levels" in found:
            report_hosts(link, found)
    rows = [
        [row["mib"], f"{row['gloo']:.2f}", f"{row['shared memory']:.2f}", f"{row['gloo'] / row['shared memory']:.2f}"]
        for row in results["shared"]
    ]
    section("shared memory", *table(["MiB", "gloo fp32, ms", "`SharedMemory`, ms", "ratio"], rows, 0))
    rows = [
        [row["name"], f"{row['worst']:.1e}", f"{row['median']:.1e}", f"{row['zeroed'] * 100:.2g} %"]
        for row in results["accuracy"]
    ]
    section("accuracy", *table(["hook", "worst layer", "median layer", "zeroed"], rows))


def report_convergence(found):
    rows = []
    for seed, full in enumerate(found["fp32"], 1):
        losses = [full, found["scaled fp16"][seed - 1], found["int8"][seed - 1]]
        changes = [f"{(loss / full - 1) * 100:+.3f} %" for loss in losses[1:]]
        rows.append([seed, *(f"{loss:.5f}" for loss in losses), *changes])
    heads = ["seed", "fp32", "scaled fp16", "int8", "scaled fp16 to fp32", "int8 to fp32"]
    text = f"Held-out loss of a small GPT, two ranks, {found['steps']} steps:"
    section("convergence", text, "", *table(heads, rows, 0))


def report_link(link, found):
    fitted = found["steps"]["link"]
    speed = f"{fitted['bandwidthBytesPerSecond'] * 8 / 1e9:.2f} Gb/s"
    lines = [f"By `dsc.exchange.probe_link`: α {fitted['alphaMicroseconds']:.0f} µs, {speed}.", ""]
    for load in found["steps"]["loads"]:
        lines += load_lines(load, fitted["bandwidthBytesPerSecond"])
    rows = []
    for at, row in enumerate(found["plain"]):
        ring = {name: of[at]["medianMs"] for name, of in found["ring"].items()}
        times = [row["gloo fp32"], row["gloo fp16"], ring["ring fp16"], ring["ring fp32"], ring["direct fp16"]]
        rows.append([row["mib"], *(f"{ms:.1f}" for ms in times), f"{row['gloo fp32'] / ring['ring fp16']:.2f}"])
    heads = ["MiB fp32", "gloo fp32, ms", "gloo fp16", "ring fp16", "ring fp32", "direct fp16", "gloo fp32 ÷ ring fp16"]
    section(link, *lines, "The same ring between two ranks, beside gloo's all-reduce of one tensor:", "", *table(heads, rows, 0))


def report_hooks(link, found):
    """PyTorch's hooks and dsc's, side by side."""
    by_name = {row["name"]: row for row in found["rows"]}
    default, half = by_name["DDP's default"], by_name["fp16 hook"]
    rows = []
    for row in found["rows"]:
        ratios = [f"{other['ms'] / row['ms']:.2f}" for other in (default, half)]
        sent = [f"{row['sentBytes'] / 2**20:.1f}", f"{row['sentBytes'] / half['sentBytes']:.3f}"]
        rows.append([row["name"], f"{row['ms']:.1f}", f"{row['busyMs']:.0f}", *sent, *ratios])
    heads = ["way", "ms", "processor, ms", "MiB sent", "÷ fp16 hook's", "DDP's default ÷ this", "fp16 hook ÷ this"]
    lines = [f"{found['gradientMib']:.0f} MiB of fp32 gradients, {found['load']}; the plan: {found['explanation']}", ""]
    section(f"hooks, {found['ranks']} ranks, {link}", *lines, *table(heads, rows))


def report_hosts(link, found):
    """Two hosts with two ranks each on one link."""
    rows = []
    for load in found["levels"]:
        base = next(row["ms"] for row in load["rows"] if row["name"] == "PyTorch fp16 hook")
        for row in load["rows"]:
            name = f"{load['load']}, {load['gradientMib']:.0f} MiB"
            rows.append([name, row["name"], f"{row['ms']:.0f}", f"{row['busyMs']:.0f}", f"{base / row['ms']:.2f}"])
    lines = [f"Link: {link}.", "", *table(["load", "way", "ms", "processor ms", "fp16 hook ÷ way"], rows, 2)]
    rows = [
        [f"{one['messageBytes'] / 2**20:.0f}", *(f"{ms:.1f}" for ms in (one["medianMs"], two["medianMs"])), f"{one['medianMs'] / two['medianMs']:.2f}"]
        for one, two in zip(found["ringLevels"][1], found["ringLevels"][2])
    ]
    lines += ["dsc's own TypeScript ring between the same four ranks, halves:", ""]
    lines += table(["MiB fp32", "one level, ms", "two levels, ms", "one ÷ two"], rows, 0)
    section("two hosts", *lines)


def load_lines(load, bandwidth):
    by_name = {row["name"]: row["ms"] for row in load["rows"]}
    plans = load["plans"]
    wire = plans["auto"]["wire"]
    planned = PLANNED[wire]
    # Two ranks send every byte once, whatever the way: nothing ends before them, or before backward.
    bytes_ms = load["gradientMib"] * 2**20 / (2 if wire == "fp16" else 1) / bandwidth * 1000
    bound_ms = max(bytes_ms, load["backwardMs"])
    rows = []
    for row in load["rows"]:
        name, ms = row["name"], row["ms"]
        mark = "**" if name == planned else ""
        ratios = [f"{by_name[other] / ms:.2f}" for other in (BASE, FAIR)]
        rows.append([f"{mark}{name}{mark}", f"{ms:.1f}", f"{row['busyMs']:.0f}", *ratios])
    best = " and ".join(f"{by_name[name] / bound_ms:.2f} × {of}" for name, of in ((BASE, "DDP's default"), (FAIR, "the fp16 hook")))
    threshold = plans["fp16"]["threshold"]
    return [
        f"`loss.backward()` with DDP, {load['gradientMib']:.0f} MiB of fp32 gradients, {describe(load)}:",
        "",
        *table(["way", "ms", "processor, ms", "DDP's default ÷ this", "fp16 hook ÷ this"], rows),
        f"The plan says (in bold) {plans['auto']['wireExplanation']} The bytes alone take {bytes_ms:.0f} ms and backward"
        f" {load['backwardMs']:.0f} ms: no way of sending {wire} reaches more than {best}.",
        "",
        f"Threshold for fp16: {threshold['wireBytes'] / 2**20:.2f} MiB on the wire. {threshold['explanation']}",
        "",
    ]


def describe(load):
    kind, amount = load["load"].split(":")
    ms = f"{load['backwardMs']:.0f} ms"
    return f"computed by the processors in {ms} (batch {amount})" if kind == "batch" else f"as if a device computed them in {ms}"
