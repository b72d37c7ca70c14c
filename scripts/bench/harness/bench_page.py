"""What a benchmark in Python tells the harness in JavaScript: lines of JSON on stdout, sections and pictures of a page."""

import json


def tell(**what):
    print(json.dumps({"bench": what}), flush=True)


def section(title, *lines):
    tell(section=title, text="\n".join(lines))


def picture(name, *groups):
    """Bars: groups of (title, [(label, value, text, colour)])."""
    tell(picture=name, groups=[{"title": title, "bars": bars} for title, bars in groups])


def leave_out(title, why):
    tell(leftOut=title, why=why)


def table(heads, rows, texts=1):
    """Lines of Markdown; all columns but the first `texts` are figures."""
    rule = "|".join("---" if at < texts else "--:" for at in range(len(heads)))
    lines = [f"| {' | '.join(map(str, line))} |" for line in (heads, *rows)]
    return [lines[0], f"|{rule}|", *lines[1:], ""]
