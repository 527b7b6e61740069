"""Mutants of what in zklock-core decides whether a hold is held: what finds each, a unit test or the simulation. See README.md."""

from __future__ import annotations

import os
import pathlib
import resource
import signal
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/simulation")]

import changes
import controls
import planted
from changes import NO_PROGRAM, SURVIVES, Mutant

SOURCE = "zklock-core/src/"
MODULES = ("session", "hold", "heartbeat")
COPY = ROOT / "target/mutants/tree"
# A planted bug was found after some hundred seeds at most, but for two.
SEEDS = 1_500
# What the unit tests may take of the processor, and on the clock. They take a second.
SECONDS, WAIT = 60, 600
# So that one changed file is compiled in seconds.
QUICK = {
    "CARGO_PROFILE_DEV_DEBUG": "false",
    "CARGO_PROFILE_SIMULATION_LTO": "off",
    "CARGO_PROFILE_SIMULATION_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_SIMULATION_INCREMENTAL": "true",
}


def listed() -> list[Mutant]:
    return [mutant for mutant in changes.listed("zklock-core", SOURCE) if mutant.module in MODULES]


def found(mutants: list[Mutant], known: set[Mutant]) -> typing.Iterator[tuple[str, Mutant]]:
    os.environ.update(QUICK)
    for mutant in mutants:
        yield SURVIVES if mutant in known else fate(mutant), mutant


def fate(mutant: Mutant) -> str:
    controls.plant(planted.Control(mutant.name, mutant.path, *mutant.change()), COPY)
    if not passes("--no-run"):
        return NO_PROGRAM
    if not passes():
        return "unit tests"
    subprocess.run(["bash", "tests/simulation/run", "build"], cwd=COPY, check=True, capture_output=True)
    words = ["bash", "tests/simulation/run", "--seeds", str(SEEDS), "--bad", "1"]
    return SURVIVES if is_well(words) else "simulation"


def passes(*words: str) -> bool:
    quick = ("--config", "profile.dev.package.zklock-core.opt-level=0")
    test = ["cargo", *quick, "test", "--quiet", "--locked", "--package", "zklock-core", "--lib", *words]
    # What compiles is not to be stopped.
    return is_well(test, None if words else limit)


def is_well(command: list[str], before: typing.Callable[[], None] | None = None) -> bool:
    """Whether it ends well. A mutant may go on for ever, and the programs that it has started with it."""
    with subprocess.Popen(
        command, cwd=COPY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=before, start_new_session=True
    ) as program:
        try:
            return not program.wait(WAIT)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            return False


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
