"""Draws quickstart.svg, beside this file: what `zklock quickstart` says, from a run of it.

    python3 docs/pictures/quickstart.py                          with the command that cargo builds
    python3 docs/pictures/quickstart.py target/debug/zklock      with this one
"""

import pathlib
import re
import subprocess
import sys
import textwrap
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
CARGO = ("cargo", "run", "--locked", "--quiet", "-p", "zklock-cli", "--")
TITLE = "zklock quickstart"
DESCRIPTION = (
    "Four workers share a lock. One is killed while it holds the lock, and the next one gets it. One is stopped while it holds "
    "the lock; when it wakes, another has the lock, and its late write is refused."
)

# In characters.
WIDTH = 98
INDENT = " " * 10
# In pixels: of one character, of a line, and around the text. What is drawn is dark, and so legible on any page.
COLUMN, LINE, MARGIN = 8.4, 20, 20
BACKGROUND, TEXT, FAINT = "#161b22", "#d6dde6", "#8b949e"
# The first that is found in a line decides.
COLOURS = (
    ("holds the lock", "#6cd0e6"),
    ("REFUSED", "#ff7b72"),
    ("accepted|^done", "#7fd18b"),
    ("is killed|is stopped|wakes up|learns", "#e5b95c"),
)


def colour(text: str) -> str:
    return next((colour for pattern, colour in COLOURS if re.search(pattern, text)), TEXT)


def spans(line: str) -> "list[list[tuple[int, str, str]]]":
    """The lines in which this one is drawn: columns, texts and their colours."""
    timed = re.fullmatch(r"( *\d+\.\d\d s  )(.*)", line)
    if timed is None:
        return [[(0, part, FAINT)] for part in textwrap.wrap(line, WIDTH)]
    time, text = timed.groups()
    first, *others = textwrap.wrap(text, WIDTH - len(INDENT))
    drawn = [[(0, time.rstrip(), FAINT), (len(INDENT), first, colour(text))]]
    return drawn + [[(len(INDENT), other, colour(text))] for other in others]


def picture(output: str) -> str:
    lines = [[(0, "$", FAINT), (2, TITLE, TEXT)]]
    for line in output.splitlines():
        lines.extend(spans(line))
    width, height = round(WIDTH * COLUMN) + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        ' font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14">',
        f"<title>{TITLE}</title>",
        f"<desc>{DESCRIPTION}</desc>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
    ]
    for number, line in enumerate(lines):
        y = MARGIN + number * LINE + 14
        for column, text, fill in line:
            indent = len(text) - len(text.lstrip())
            text = text.strip()
            x, length = MARGIN + (column + indent) * COLUMN, len(text) * COLUMN
            # So it has its width in any font.
            size = f'textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"'
            drawn.append(f'<text x="{x:.1f}" y="{y}" fill="{fill}" {size}>{escape(text)}</text>')
    return "\n".join([*drawn, "</svg>", ""])


def main() -> None:
    command = sys.argv[1:] or CARGO
    done = subprocess.run([*command, "quickstart"], stdout=subprocess.PIPE, text=True, check=True)
    (HERE / "quickstart.svg").write_text(picture(done.stdout))


if __name__ == "__main__":
    main()
