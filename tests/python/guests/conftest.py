"""What tests of the guest's manners need besides: programs of their own."""

from __future__ import annotations

import pathlib
import typing

import pytest
from guests.programs import STRICT, Program, Start


@pytest.fixture
def start(tmp_path: pathlib.Path, path: str) -> typing.Iterator[Start]:
    """Starts programs; none outlives the test."""
    programs: list[Program] = []

    def start(text: str, *arguments: str, options: tuple[str, ...] = STRICT) -> Program:
        folder = tmp_path / str(len(programs))
        folder.mkdir()
        programs.append(Program(folder, text, arguments, options))
        return programs[-1]

    yield start
    for program in programs:
        program.kill()
