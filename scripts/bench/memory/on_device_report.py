"""The table of design goals and what was measured, as Markdown."""

from bench_page import table


def judge(ways):
    """The goals of a plan: (goal, what was found, whether it is met)."""
    plain, half = ways["plain"], ways["half"]
    peak, step = half["peakBytes"] / half["predicted"]["peakBytes"], half["stepMs"] / plain["stepMs"]
    goals = [
        ("half: peak within 10 % of the prediction", f"{100 * (peak - 1):+.1f} %", abs(peak - 1) <= 0.10),
        ("half: step at most 1.10 × the plain one", f"{step:.2f} ×", step <= 1.10),
    ]
    for name, ours, theirs in (("checkpointing", "half", "checkpointing"), ("save_on_cpu", "lean", "saveOnCpu")):
        goal = f"no higher than {name}, and at least 10 % faster"
        share = ways[ours]["peakBytes"] / ways[theirs]["peakBytes"]
        faster = 1 - ways[ours]["stepMs"] / ways[theirs]["stepMs"]
        found = f"{share:.2f} × its peak, step {abs(100 * faster):.0f} % {'shorter' if faster >= 0 else 'longer'}"
        goals.append((goal, found, share <= 1.005 and faster >= 0.10))
    return goals


def find_spread(ways):
    """How far the norms of all gradients of all ways are apart, as a share of the plain one: 0 when bit-equal."""
    norms = [norm for row in ways.values() for norm in row["norms"]]
    return (max(norms) - min(norms)) / ways["plain"]["norms"][0]


def format_section(device, results):
    """The lines of the whole section."""
    lines = [f"On {device}.", ""]
    for network, ways in results.items():
        plain = ways["plain"]
        rows = []
        for row in ways.values():
            peak, step = row["peakBytes"] / plain["peakBytes"], row["stepMs"] / plain["stepMs"]
            predicted, stall = "", ""
            if "predicted" in row:
                predicted = f"{row['predicted']['peakBytes'] / 2**20:.1f}"
                stall = f"{row['predicted']['stallMs']:.1f} ({row['predicted']['leastStallMs']:.1f})"
            times = [f"{peak:.2f} ×", predicted, f"{row['stepMs']:.1f}", f"{step:.2f} ×", stall]
            rows.append([row["way"], f"{row['peakBytes'] / 2**20:.1f}", *times])
        heads = ["", "peak, MiB", "ratio", "predicted", "step, ms", "ratio", "predicted stall, ms (least possible)"]
        counts = ways["half"]["counts"]
        missed = f"{counts['planMisses']} of {counts['steps']} steps did not match the plan"
        goals = [[goal, found, "met" if is_met else "**not met**"] for goal, found, is_met in judge(ways)]
        lines += [f"### {network}", "", *table(heads, rows)]
        lines += [f"Half: {ways['half']['moves']} moves; {missed}.", ""]
        lines += [f"Gradients of all ways: norms within {find_spread(ways):.1e} of each other.", ""]
        lines += table(["goal", "found", ""], goals)
    return lines
