"""Extracts the examples of the pages in docs for the tests."""

from __future__ import annotations

import configparser
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADDRESS = "127.0.0.1:2181"
ZKLOCK = os.environ.get("ZKLOCK_COMMAND") or str(ROOT / "target/debug/zklock")


def blocks(page: str, language: str) -> dict[str, dict[str, str]]:
    """The examples, by the heading of their section and the file that their first line names."""
    found: dict[str, dict[str, str]] = {}
    for section in re.split(r"^## ", (ROOT / page).read_text(), flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        for block in re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            file = re.match(r"# (\S+)\n", block)
            assert file, f"no file is named in the first line of: {block[:100]}"
            assert file[1] not in found.setdefault(heading, {}), f"{heading} has two blocks of {file[1]}"
            found[heading][file[1]] = block
    return found


def texts(page: str, heading: str) -> str:
    """The ```text blocks of a section."""
    section = (ROOT / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return "".join(re.findall(r"^```text\n(.*?)^```$", section, re.DOTALL | re.MULTILINE))


def unit(text: str) -> configparser.ConfigParser:
    """A unit of systemd."""
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment, method-assign]
    parsed.read_string(text)
    return parsed


def changed(text: str, before: str, after: str) -> str:
    """The page with replacements, for example a time that suits a test. The replaced text must occur."""
    assert before in text, f"{before!r} is not in: {text}"
    return text.replace(before, after)
