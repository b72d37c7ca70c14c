"""Turns the exchange benchmark's results into docs/benchmarks/exchange.md and a plot."""

import json
from pathlib import Path

BASE = "gloo fp32, DDP's buckets"
FAIR = "fp16 hook, DDP's buckets"
PLANNED = {"fp16": "dsc scaled fp16, threshold", "fp32": "gloo fp32, threshold"}


def write_report(results, out):
    machine = results["machine"]
    lines = [
        "# Exchange: measurements",
        "",
        f"`{machine['command']}`, {machine['minutes']:.0f} minutes, on {machine['cores']} cores of {machine['processor']},",
        f"Linux {machine['system']}, Node {machine['node']}, PyTorch {machine['torch']}, two ranks, one thread each;",
        f"load average while it ran: {machine['load'][0]:.1f} to {machine['load'][1]:.1f} (2 is this benchmark's own).",
        f"Ways take turns within one run; medians of {machine['rounds']} rounds, of the slower rank. No GPU is involved.",
        "",
        "The gradients are computed by the processors that also send them, or waited for: then the host sleeps for as long as a",
        "device would compute, which is what a rank with a GPU does. Bold is what `dsc exchange plan` chooses by itself.",
        "",
        *busy_warning(machine),
        "Both ranks share the cores with the kernel that shapes their link: only ratios mean anything elsewhere, and where the",
        "processor's milliseconds come near all milliseconds, the cores are the limit and not the link.",
        "",
    ]
    for link, found in results["links"].items():
        lines += link_section(link, found)
    lines += shared_section(results["shared"])
    lines += accuracy_section(results["accuracy"])
    lines += convergence_section(results["convergence"])
    lines += ["![milliseconds per backward pass, by link](exchange.svg)", ""]
    (out / "exchange.md").write_text("\n".join(lines))
    (out / "exchange.svg").write_text(plot(results["links"]))
    (out / "exchange.json").write_text(json.dumps(results, indent=1) + "\n")


def busy_warning(machine):
    if machine["load"][1] <= 2 * machine["cores"]:
        return []
    return [
        "**The machine was busy with other work: the times below, and their ratios, prove nothing. Accuracy and convergence"
        " do not depend on it. Run the command again on a quiet machine.**",
        "",
    ]


def link_section(link, found):
    fitted = found["steps"]["link"]
    lines = [
        f"## {link}",
        "",
        f"All-reduce measured by `dsc.exchange.probe_link`: α {fitted['alphaMicroseconds']:.0f} µs,"
        f" {fitted['bandwidthBytesPerSecond'] * 8 / 1e9:.2f} Gb/s.",
        "",
    ]
    for load in found["steps"]["loads"]:
        lines += load_section(load, fitted["bandwidthBytesPerSecond"])
    if "levels" in found:
        lines += levels_section(found["levels"]) + ring_levels_section(found["ringLevels"])
    lines += [
        "dsc's own TypeScript ring, beside gloo's all-reduce of one tensor (its step includes filling the buffer and the commit):",
        "",
        "| MiB fp32 | gloo fp32, ms | gloo fp16 | ring fp16 | ring fp32 | direct fp16 | gloo fp32 ÷ ring fp16 |",
        "|---|---|---|---|---|---|---|",
    ]
    for at, row in enumerate(found["plain"]):
        ring = {name: rows[at]["medianMs"] for name, rows in found["ring"].items()}
        lines.append(
            f"| {row['mib']} | {row['gloo fp32']:.1f} | {row['gloo fp16']:.1f} | {ring['ring fp16']:.1f} |"
            f" {ring['ring fp32']:.1f} | {ring['direct fp16']:.1f} | {row['gloo fp32'] / ring['ring fp16']:.2f} |"
        )
    return [*lines, ""]


def levels_section(loads):
    lines = [
        "Two hosts with two ranks each on this link, one network namespace per host: one level sends every rank's bytes through",
        "the network, two levels take the mean of a host through shared memory first. The machine computes all four ranks.",
        "",
        "| load | way | ms | processor ms | fp16 hook ÷ way |",
        "|---|---|---|---|---|",
    ]
    for load in loads:
        base = next(row["ms"] for row in load["rows"] if row["name"] == "PyTorch fp16 hook")
        for row in load["rows"]:
            shown = f"{row['ms']:.0f} | {row['busyMs']:.0f} | {base / row['ms']:.2f}"
            lines.append(f"| {load['load']}, {load['gradientMib']:.0f} MiB | {row['name']} | {shown} |")
    return [*lines, ""]


def ring_levels_section(found):
    lines = [
        "dsc's own TypeScript ring between the same four ranks, halves:",
        "",
        "| MiB fp32 | one level, ms | two levels, ms | one ÷ two |",
        "|---|---|---|---|",
    ]
    for one, two in zip(found[1], found[2]):
        ratio = one["medianMs"] / two["medianMs"]
        lines.append(f"| {one['bytes'] / 2**20:.0f} | {one['medianMs']:.1f} | {two['medianMs']:.1f} | {ratio:.2f} |")
    return [*lines, ""]


def load_section(load, bandwidth):
    by_name = {row["name"]: row["ms"] for row in load["rows"]}
    plans = load["plans"]
    wire = plans["auto"]["wire"]
    planned = PLANNED[wire]
    # Two ranks send every byte once, whatever the way: nothing ends before them, or before backward.
    bytes_ms = load["gradientMib"] * 2**20 / (2 if wire == "fp16" else 1) / bandwidth * 1000
    bound_ms = max(bytes_ms, load["backwardMs"])
    lines = [
        f"`loss.backward()` with DDP, {load['gradientMib']:.0f} MiB of fp32 gradients, {describe(load)}:",
        "",
        "| way | ms | processor, ms | DDP's default ÷ this | fp16 hook ÷ this |",
        "|---|---|---|---|---|",
    ]
    for row in load["rows"]:
        name, ms = row["name"], row["ms"]
        mark = "**" if name == planned else ""
        lines.append(
            f"| {mark}{name}{mark} | {ms:.1f} | {row['busyMs']:.0f} | {by_name[BASE] / ms:.2f} | {by_name[FAIR] / ms:.2f} |"
        )
    threshold = plans["fp16"]["threshold"]
    return [
        *lines,
        "",
        f"The plan says (in bold) {plans['auto']['wireExplanation']} The bytes alone take {bytes_ms:.0f} ms and backward"
        f" {load['backwardMs']:.0f} ms: no way of sending {wire} reaches more than {by_name[BASE] / bound_ms:.2f} × DDP's"
        f" default and {by_name[FAIR] / bound_ms:.2f} × the fp16 hook.",
        "",
        f"Threshold for fp16: {threshold['wireBytes'] / 2**20:.2f} MiB on the wire. {threshold['explanation']}",
        "",
    ]


def describe(load):
    kind, amount = load["load"].split(":")
    ms = f"{load['backwardMs']:.0f} ms"
    return f"computed by the processors in {ms} (batch {amount})" if kind == "batch" else f"as if a device computed them in {ms}"


def shared_section(rows):
    lines = ["## One host: shared memory", "", "| MiB | gloo fp32, ms | `SharedMemory`, ms | ratio |", "|---|---|---|---|"]
    for row in rows:
        ratio = row["gloo"] / row["shared memory"]
        lines.append(f"| {row['mib']} | {row['gloo']:.2f} | {row['shared memory']:.2f} | {ratio:.2f} |")
    return [*lines, ""]


def accuracy_section(rows):
    lines = [
        "## Accuracy",
        "",
        "Relative error of the mean per layer, 60 layers of 4096 values with standard deviations from 1e-9 to 1e-3, no loss"
        " scaling, two ranks, through DDP:",
        "",
        "| hook | worst layer | median layer | zeroed |",
        "|---|---|---|---|",
    ]
    for row in rows:
        lines.append(f"| {row['name']} | {row['worst']:.1e} | {row['median']:.1e} | {row['zeroed'] * 100:.2g} % |")
    return [
        *lines,
        "",
        "With a loss scale of 65536 the plain fp16 hook does not lose anything either: the gain is for training without"
        " loss scaling, and for spikes.",
        "",
    ]


def convergence_section(found):
    full, scaled = found["fp32"], found["scaled fp16"]
    return [
        "## Convergence",
        "",
        f"A small GPT, two ranks, {found['steps']} steps, held-out loss: fp32 DDP {full:.5f}, scaled fp16 {scaled:.5f},"
        f" difference {(scaled / full - 1) * 100:+.3f} %.",
        "",
    ]


def plot(links):
    """Horizontal bars, one group per link and load."""
    colours = {BASE: "#9aa5b1", FAIR: "#6b8fb3"}
    top, rows = 20, []
    loads = [(link, load) for link, found in links.items() for load in found["steps"]["loads"]]
    for link, load in loads:
        bars = load["rows"]
        most = max(row["ms"] for row in bars)
        title = f"{link}, gradients {describe(load)}"
        planned = PLANNED[load["plans"]["auto"]["wire"]]
        rows.append(f'<text x="10" y="{top + 12}" font-weight="bold">{title}</text>')
        for row in bars:
            top += 20
            width = 420 * row["ms"] / most
            rows.append(f'<text x="20" y="{top + 12}">{row["name"]}</text>')
            colour = "#d9622b" if row["name"] == planned else colours.get(row["name"], "#c9d3dc")
            rows.append(f'<rect x="250" y="{top + 2}" width="{width:.0f}" height="13" fill="{colour}"/>')
            rows.append(f'<text x="{255 + width:.0f}" y="{top + 12}">{row["ms"]:.0f} ms</text>')
        top += 34
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{top}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(rows)}</svg>\n'
    )


if __name__ == "__main__":
    folder = Path(__file__).resolve().parents[2] / "docs/benchmarks"
    write_report(json.loads((folder / "exchange.json").read_text()), folder)
