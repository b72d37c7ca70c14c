"""The table of design goals and what was measured, as Markdown."""


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
    """The whole section; ``device`` is None where there was none to measure on."""
    lines = ["## Training steps under a plan", ""]
    if device is None:
        why = "**No GPU was at hand (`torch.cuda.is_available()` is false): this table is open.**"
        return "\n".join([*lines, f"{why} With one, the same command fills it."])
    lines += [
        f"On {device}. Ways to train one model on one batch, in turn;",
        "medians, and the highest peak. *Half*: the plan's budget leaves half of the activations. As many blocks are",
        "checkpointed as it takes to get to its peak. The plan for save_on_cpu's peak has the least feasible budget where",
        "that peak is below it.",
        "",
    ]
    for network, ways in results.items():
        plain = ways["plain"]
        lines += [
            f"### {network}",
            "",
            "| | peak, MiB | ratio | predicted | step, ms | ratio | predicted stall, ms (least possible) |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in ways.values():
            peak, step = row["peakBytes"] / plain["peakBytes"], row["stepMs"] / plain["stepMs"]
            predicted, stall = "", ""
            if "predicted" in row:
                predicted = f"{row['predicted']['peakBytes'] / 2**20:.1f}"
                stall = f"{row['predicted']['stallMs']:.1f} ({row['predicted']['leastStallMs']:.1f})"
            lines.append(
                f"| {row['way']} | {row['peakBytes'] / 2**20:.1f} | {peak:.2f} × | {predicted} | {row['stepMs']:.1f} | "
                f"{step:.2f} × | {stall} |"
            )
        counts = ways["half"]["counts"]
        lines += [
            "",
            f"Half: {ways['half']['moves']} moves; {counts['planMisses']} of {counts['steps']} steps did not match the "
            f"plan. Gradients of all ways: norms within {find_spread(ways):.1e} of each other.",
            "",
            "| goal | found | |",
            "|---|---|---|",
        ]
        lines += [f"| {goal} | {found} | {'met' if is_met else '**not met**'} |" for goal, found, is_met in judge(ways)]
        lines.append("")
    return "\n".join(lines)
