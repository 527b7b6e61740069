"""Draws docs/monitoring/board.svg: answers of a real Prometheus to questions of the board, about a program that runs for a minute.

    target/docs/environment/bin/python tests/docs/picture.py

It needs what `tests/docs/run monitoring` has installed and built.
"""

from __future__ import annotations

import math
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE.parent / "python"), str(HERE.parent / "bench")]

from ground import started  # noqa: E402
from plots import STYLE, number, ticks  # noqa: E402
from scraped import BOARD, Prometheus, program, questions  # noqa: E402

SECONDS = 60
# The panels, their units, and which of their questions.
PANELS = [("Waiting now", "calls", 0), ("Age of the oldest hold", "s", 0), ("Grants", "a second", 0), ("Wait for a lock", "s, 99th percentile", 1)]
COLOURS = {"import": "#5b8db8", "mail": "#6a9a4a", "report": "#c8702a"}
WIDE, HIGH, LEFT, TOP, GAP = 300, 110, 40, 34, 50

Point = tuple[float, float]


def drawn(title: str, unit: str, series: dict[str, list[Point]], at: Point, since: float) -> list[str]:
    """One panel."""
    x0, y0 = at
    most = max(value for points in series.values() for _, value in points) or 1
    top = most * 1.1
    out = [f'<text class="title" x="{x0}" y="{y0 - 10}">{title}</text><text class="note" x="{x0 + WIDE}" y="{y0 - 10}" text-anchor="end">{unit}</text>']
    for tick in ticks(0, most, False):
        y = y0 + HIGH * (1 - tick / top)
        out.append(f'<line class="grid" x1="{x0}" x2="{x0 + WIDE}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text class="note" text-anchor="end" x="{x0 - 4}" y="{y + 4:.1f}">{number(tick) if tick else 0}</text>')
    for name, points in sorted(series.items()):
        line = " ".join(f"{x0 + WIDE * (when - since) / SECONDS:.1f},{y0 + HIGH * (1 - value / top):.1f}" for when, value in points)
        out.append(f'<polyline fill="none" stroke="{COLOURS[name]}" stroke-width="1.5" points="{line}"/>')
    return out


def main() -> None:
    asked = questions()
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        for ground in started("standalone tick=500"):
            ground("create /picture")
            with program(ground("servers") + "/picture") as (_, port), Prometheus(pathlib.Path(folder), port) as prometheus:
                time.sleep(SECONDS + 5)
                end = time.time()
                for title, _, which in PANELS:
                    found = prometheus.ask(asked[title][which], start=end - SECONDS, end=end, step=1)
                    answers[title] = {
                        series["metric"]["lock"]: [(when, float(value)) for when, value in series["values"] if not math.isnan(float(value))]
                        for series in found
                    }
    width, height = LEFT + 2 * WIDE + GAP + 20, TOP + 2 * (HIGH + GAP) + 10
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">']
    out.append(f"<title>Three locks of a program in a minute, as Prometheus answers the board</title><style>{STYLE}</style>")
    for place, (title, unit, _) in enumerate(PANELS):
        corner = (LEFT + (WIDE + GAP) * (place % 2), TOP + (HIGH + GAP) * (place // 2))
        out += drawn(title, unit, answers[title], corner, end - SECONDS)
    for place, (name, colour) in enumerate(COLOURS.items()):
        x, y = LEFT + 100 * place, height - 14
        out.append(f'<rect fill="{colour}" x="{x}" y="{y - 9}" width="10" height="10"/><text x="{x + 16}" y="{y}">{name}</text>')
    out.append(f'<text class="note" text-anchor="end" x="{width - 20}" y="{height - 14}">{SECONDS} s, scraped once a second</text></svg>')
    BOARD.with_name("board.svg").write_text("\n".join(out) + "\n")


main()
