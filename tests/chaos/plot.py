"""Draws the resources used in a soak: python3 tests/chaos/plot.py FOLDER/used.tsv soak.svg"""

from __future__ import annotations

import collections
import itertools
import pathlib
import sys
from html import escape

STYLE = """text { font: 13px sans-serif; fill: #1f2328 } .title { font-weight: bold } .note { font-size: 11px; fill: #59636e }
polyline { fill: none; stroke-width: 1.5 } .grid { stroke: #8884 }
@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .note { fill: #9198a1 } }"""
COLOURS = "#c8702a", "#5b8db8", "#5a9e6f", "#b0578d", "#9aa4af", "#c9a227", "#7a6fc0", "#4aa5a5", "#8a6d3b"
# The panels: a part of the names of their values, and the title.
PANELS = {
    "memory, kB": "memory of the workers of each library, MB",
    "descriptors": "their descriptors",
    "threads": "their threads",
    "servers": "what the servers keep",
}
LEFT, WIDE, HIGH, BESIDE = 60, 480, 120, 190
Series = dict[str, list[tuple[float, float]]]


def read(table: pathlib.Path) -> Series:
    series = collections.defaultdict(list)
    for line in table.read_text().splitlines():
        second, name, value = line.split("\t")
        series[name].append((float(second) / 60, float(value) / (1024 if "kB" in name else 1)))
    return series


def panel(title: str, series: Series, top: int, minutes: float, colours: dict[str, str]) -> list[str]:
    most = max((value for points in series.values() for _, value in points), default=1) or 1
    out = [f'<text x="{LEFT}" y="{top - 8}">{escape(title)}</text>']
    for value in (0, most / 2, most):
        y = top + HIGH - HIGH * value / most
        out.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + WIDE}" y1="{y:.1f}" y2="{y:.1f}"/>'
                   f'<text class="note" text-anchor="end" x="{LEFT - 6}" y="{y + 4:.1f}">{value:.4g}</text>')
    for number, (name, points) in enumerate(sorted(series.items())):
        colour = colours[name]
        line = " ".join(f"{LEFT + WIDE * x / minutes:.1f},{top + HIGH - HIGH * y / most:.1f}" for x, y in points)
        out.append(f'<polyline points="{line}" stroke="{colour}"/>'
                   f'<text class="note" x="{LEFT + WIDE + 8}" y="{top + 12 + 16 * number}" style="fill: {colour}">{escape(name)}</text>')
    return out


def draw(series: Series) -> str:
    minutes = max(x for points in series.values() for x, _ in points)
    room = HIGH + 40
    out = []
    panels = [{name.replace(word, "").strip(): points for name, points in series.items() if word in name} for word in PANELS]
    # A library has the same colour in all panels.
    colours = dict(zip(sorted(set().union(*panels)), itertools.cycle(COLOURS)))
    for number, (title, chosen) in enumerate(zip(PANELS.values(), panels)):
        out += panel(title, chosen, 60 + room * number, minutes, colours)
    high = 40 + room * len(PANELS)
    title = f"{minutes:.0f} minutes of hand-overs without faults"
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDE + BESIDE} {high}" role="img">',
                      f"<title>{title}</title><style>{STYLE}</style>", f'<text class="title" x="8" y="20">{title}</text>', *out, "</svg>", ""])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    pathlib.Path(sys.argv[2]).write_text(draw(read(pathlib.Path(sys.argv[1]))))
