"""Comments of the headers for C and C++ as Markdown."""

from __future__ import annotations

import re
import textwrap
import typing

# What is code in the prose of a comment: names with an underscore or a scope, calls, and types of the standard library.
CODE = re.compile(r'"[^"\s]*[_<>*][^"\s]*"|[\w:.@/-]*\w\(\)|[\w:@./*-]*\w*(?:_|::)[\w:@./*-]*[\w*]|\b[A-Z][A-Z0-9]*_\b|<[^>\s]*>')


def uncommented(comment: str) -> str:
    """The text of a comment, without its stars."""
    lines = comment.removeprefix("/**<").removeprefix("/**").removeprefix("/*").removesuffix("*/").split("\n")
    rest = textwrap.dedent("\n".join(re.sub(r"^\s*\* ?", "", line) if re.match(r"\s*\*", line) else line for line in lines[1:]))
    return f"{lines[0].strip()}\n{rest}".strip("\n").rstrip()


def inline(text: str, link: typing.Callable[[str], str | None]) -> str:
    """A line of prose. Names that `link` knows lead there."""

    def marked(code: str) -> str:
        target = link(code)
        return f"[`{code}`]({target})" if target else f"`{code}`"

    parts = text.split("`")
    # What is between backticks is code already.
    parts[::2] = [CODE.sub(lambda found: marked(found[0]), part) for part in parts[::2]]
    parts[1::2] = [marked(part) for part in parts[1::2]]
    return "".join(parts)


def markdown(text: str, link: typing.Callable[[str], str | None], language: str, level: int = 3) -> str:
    """Paragraphs, lists, indented code, and headings that are underlined. Lists keep their form."""
    made: list[str] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if at + 1 < len(lines) and re.fullmatch(r"---+", lines[at + 1]):
            made.append(f"{'#' * level} {line}")
            at += 1
        elif line.startswith("    "):
            begin = at
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at]):
                at += 1
            code = textwrap.dedent("\n".join(lines[begin:at])).strip("\n")
            made += ["", f"```{language}", code, "```", ""]
            continue
        else:
            # A list needs an empty line before it.
            if line.startswith("- ") and made and made[-1] and not made[-1].startswith(("- ", "  ")):
                made.append("")
            made.append(inline(line, link))
        at += 1
    return "\n".join(made)
