"""Tables and plots of `npm run bench:feed`."""

import html

COLUMNS = (
    ("samples/s", lambda result: f"{result['rate']:,.0f}"),
    ("CPU s", lambda result: f"{result['cpu']:.2f}"),
    ("first batch s", lambda result: f"{result['first']:.2f}"),
    ("epoch gap ms", lambda result: f"{1000 * result['gap']:.1f}"),
    ("memory MiB", lambda result: f"{result['memory']:,.0f}"),
)


def table(rows, mode, results):
    lines = ["| loader | " + " | ".join(name for name, _ in COLUMNS) + " |", "|---|" + "--:|" * len(COLUMNS)]
    for row in rows:
        result = results.get((row, mode))
        cells = " | ".join(show(result) for _, show in COLUMNS) if result else "failed" + " |" * (len(COLUMNS) - 1)
        lines.append(f"| {row} | {cells} |")
    return lines


def ratios(rows, mode, results):
    """How the feeds compare with the best peer that uses workers."""
    peers = {row: results[row, mode]["rate"] for row in rows if is_peer_with_workers(row) and (row, mode) in results}
    if not peers:
        return []
    best = max(peers, key=peers.get)
    feeds = [f"{row} {results[row, mode]['rate'] / peers[best]:.2f}x" for row in rows if is_feed(row) and (row, mode) in results]
    return [f"{mode}: best peer with workers is {best} ({peers[best]:,.0f}/s); {', '.join(feeds)}.", ""]


def is_feed(row):
    return row.startswith("dsc:")


def is_peer_with_workers(row):
    return not is_feed(row) and not row.endswith(":0")


def plot(title, rows, mode, results):
    """Samples per second as horizontal bars, as SVG."""
    rows = [row for row in rows if (row, mode) in results]
    most = max(results[row, mode]["rate"] for row in rows)
    height = 44 + 24 * len(rows)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{height}" font-family="sans-serif" font-size="13">',
             f'<rect width="640" height="{height}" fill="white"/>',
             f'<text x="12" y="22" font-weight="bold">{html.escape(title)}, samples per second</text>']
    for i, row in enumerate(rows):
        rate, y = results[row, mode]["rate"], 36 + 24 * i
        width = max(1, round(420 * rate / most))
        parts.append(f'<text x="112" y="{y + 14}" text-anchor="end">{html.escape(row)}</text>')
        parts.append(f'<rect x="120" y="{y}" width="{width}" height="18" fill="{"#2266aa" if is_feed(row) else "#999999"}"/>')
        parts.append(f'<text x="{126 + width}" y="{y + 14}">{rate:,.0f}</text>')
    return "\n".join([*parts, "</svg>", ""])
