"""Changes to the source, as cargo-mutants lists them."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
SURVIVES = "SURVIVES"
NO_PROGRAM = "no program"


class Mutant(typing.NamedTuple):
    """A change to one place of a package."""

    name: str
    # The folder with the source of the package, and the file in it.
    source: str
    file: str
    begin: int
    end: int
    replacement: str
    # Whether it is all of a function that is replaced.
    whole_function: bool

    @property
    def path(self) -> str:
        return self.source + self.file

    @property
    def module(self) -> str:
        return self.file.split("/")[0].removesuffix(".rs")

    @property
    def lasting_name(self) -> str:
        """Without the line and the column, which change."""
        return re.sub(r":\d+:\d+:", ":", self.name)

    def text(self) -> str:
        return (ROOT / self.path).read_text()

    def change(self) -> tuple[str, str]:
        """A text that stands once in the file, and what it is replaced by."""
        text = self.text()
        first, last = self.begin, self.end
        while first == last or text.count(text[first:last]) != 1:
            first, last = max(0, first - 40), min(len(text), last + 40)
        return text[first:last], text[first : self.begin] + self.replacement + text[self.end : last]


def listed(package: str, source: str) -> list[Mutant]:
    command = ["cargo", "mutants", "--list", "--json", "--package", package]
    told = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    return [read(mutant, source) for mutant in told]


def read(told: dict, source: str) -> Mutant:
    lines = (ROOT / told["file"]).read_text().splitlines(keepends=True)

    def offset(place: dict) -> int:
        return sum(map(len, lines[: place["line"] - 1])) + place["column"] - 1

    span = told["span"]
    file, name = (told[key].removeprefix(source) for key in ("file", "name"))
    return Mutant(name, source, file, offset(span["start"]), offset(span["end"]), told["replacement"], told["genre"] == "FnValue")
