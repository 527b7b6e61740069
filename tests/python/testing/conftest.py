"""What tests of the embedded server need: one server each, and programs of their own."""

from __future__ import annotations

import pathlib
import typing

import pytest
from guests.programs import STRICT, Program, Start

import zklock
from zklock.testing import Server


@pytest.fixture
def server() -> typing.Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def zk(server: Server) -> typing.Iterator[zklock.Client]:
    """A client of it, and not one of the shared ground."""
    with zklock.Client(server.hosts) as client:
        yield client


@pytest.fixture
def start(tmp_path: pathlib.Path) -> typing.Iterator[Start]:
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
