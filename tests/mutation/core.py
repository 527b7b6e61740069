"""Mutants of what in zklock-core decides whether a hold is held, which the simulation looks for. See README.md."""

from __future__ import annotations

import subprocess

import changes
from changes import ROOT, Mutant
from trial import COPY, Limits, run

PACKAGE, SOURCE = "zklock", "zklock-core/src/"
# A unit test names every option, and so those for TLS.
UNIT_TESTS = ("--package", PACKAGE, "--features", "tls")
JOBS = ("answers", "holding", "holds", "link", "orphans", "requests")
SESSION = ("session", *(f"session/{job}" for job in JOBS), "attempt_marks", "lateness", "nodes", "heartbeat")
HOLD = ("hold", "grant", "loss", "wanted")
FILES = {f"session/{name}.rs" for name in SESSION} | {f"hold/{name}.rs" for name in HOLD} | {"attempt/local_queue/attempt/driver.rs"}
# A planted bug was found after some hundred seeds at most, but for two.
SEEDS = 1_500
# The unit tests take a fifth of a second of processor time, the simulation takes half a minute, on all cores.
UNITS, SIMULATION = Limits(5, 200), Limits(300, 3600)
SEARCHES = 1


def listed() -> list[Mutant]:
    if gone := [file for file in FILES if not (ROOT / SOURCE / file).exists()]:
        raise SystemExit(f"{SOURCE} has no {' and no '.join(gone)}: say in tests/mutation/core.py where that code is now")
    return [mutant for mutant in changes.listed(PACKAGE, SOURCE) if mutant.file in FILES]


def build() -> None:
    subprocess.run(["bash", "tests/simulation/run", "build"], cwd=COPY, check=True, capture_output=True)


def search(mutant: Mutant | None, number: int | None = None) -> str | None:
    command = ["bash", "tests/simulation/run", "--seeds", str(SEEDS), "--bad", "1"]
    return None if run(command, SIMULATION, number).is_well else "simulation"
