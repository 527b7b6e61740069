"""Mutants of what in zklock-core decides whether a hold is held: what finds each, a unit test or the simulation. See README.md."""

from __future__ import annotations

import concurrent.futures
import json
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
import switched
from changes import NO_PROGRAM, SURVIVES, Mutant

SOURCE = "zklock-core/src/"
JOBS = ("answers", "holding", "holds", "link", "orphans", "requests")
SESSION = ("session", *(f"session/{job}" for job in JOBS), "attempt_marks", "lateness", "nodes", "heartbeat")
HOLD = ("hold", "grant", "loss", "wanted")
FILES = {f"session/{name}.rs" for name in SESSION} | {f"hold/{name}.rs" for name in HOLD} | {"attempt/local_queue/attempt/driver.rs"}
COPY = ROOT / "target/mutants/tree"
# A planted bug was found after some hundred seeds at most, but for two.
SEEDS = 1_500
# What each may take: seconds of processor time, and of a clock, for with a mutant it may go on for ever, or wait for ever, which costs
# none. The unit tests take a fifth of a second of processor time, the simulation takes half a minute.
UNITS, SIMULATION = (5, 200), (300, 3600)
AT_ONCE = 8
# So that one changed file is compiled in seconds. What lints deny in other code is of no interest here.
QUICK = {
    "CARGO_PROFILE_DEV_DEBUG": "false",
    "CARGO_PROFILE_SIMULATION_LTO": "off",
    "CARGO_PROFILE_SIMULATION_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_SIMULATION_INCREMENTAL": "true",
}
TESTS = ("cargo", "test", "--quiet", "--locked", "--package", "zklock", "--lib")


def listed() -> list[Mutant]:
    if gone := [file for file in FILES if not (ROOT / SOURCE / file).exists()]:
        raise SystemExit(f"{SOURCE} has no {' and no '.join(gone)}: say in tests/mutation/core.py where that code is now")
    return [mutant for mutant in changes.listed("zklock", SOURCE) if mutant.file in FILES]


def found(mutants: list[Mutant], known: set[Mutant]) -> typing.Iterator[tuple[str, Mutant]]:
    """Yields what finds each. First come those that can be chosen when the program runs; the others are compiled one by one."""
    os.environ.update(QUICK)
    os.environ["CARGO_PKG_NAME"] = "zklock"  # Cargo says it to tests, and one looks.
    controls.plant(planted.Control("none", "", "", ""), COPY)
    chosen = dict(enumerate(mutants))
    units = together(chosen)
    survivors = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for number, passed in zip(chosen, pool.map(lambda number: passes(units, number), chosen), strict=True):
            if not passed:
                yield "unit tests", chosen[number]
            elif chosen[number] in known:
                yield SURVIVES, chosen[number]
            else:
                survivors.append(number)
    if survivors:
        build_simulation()
        if not simulates(None):
            raise SystemExit("the simulation fails without a mutant")
    for number in survivors:
        yield SURVIVES if simulates(number) else "simulation", chosen[number]
    for number, mutant in enumerate(mutants):
        if number not in chosen:
            yield alone(mutant, known), mutant


def together(chosen: dict[int, Mutant]) -> str:
    """Compiles the unit tests so that each mutant can be chosen. Removes those with which they do not compile from `chosen`."""
    places = {number: place for number, mutant in chosen.items() if (place := switched.place(mutant, number))}
    texts = {mutant.path: mutant.text() for mutant in chosen.values()}
    root = SOURCE + "lib.rs"
    texts.setdefault(root, (ROOT / root).read_text())
    while True:
        for path, text in texts.items():
            text = switched.written(text, [place for number, place in places.items() if chosen[number].path == path])
            (COPY / path).write_text(text + (switched.CHOICE if path == root else ""))
        command = [*TESTS, "--no-run", "--message-format", "json"]
        done = subprocess.run(command, cwd=COPY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        messages = [json.loads(line) for line in done.stdout.splitlines()]
        if not done.returncode:
            break
        refused = switched.refused(messages, COPY)
        if not refused:
            raise SystemExit("it does not compile, and no mutant is to blame: see cargo test --lib in target/mutants/tree")
        for number in refused:
            del places[number]
    for number in chosen.keys() - places.keys():
        del chosen[number]
    units = next(message["executable"] for message in messages if message.get("executable"))
    if not passes(units, None):
        raise SystemExit("the unit tests fail without a mutant")
    return units


def alone(mutant: Mutant, known: set[Mutant]) -> str:
    controls.plant(planted.Control(mutant.name, mutant.path, *mutant.change()), COPY)
    if not is_well([*TESTS, "--no-run"], SIMULATION):
        return NO_PROGRAM
    if not is_well(list(TESTS), UNITS):
        return "unit tests"
    if mutant in known:
        return SURVIVES
    build_simulation()
    return SURVIVES if simulates(None) else "simulation"


def passes(units: str, number: int | None) -> bool:
    return is_well([units, "--quiet"], UNITS, number)


def build_simulation() -> None:
    subprocess.run(["bash", "tests/simulation/run", "build"], cwd=COPY, check=True, capture_output=True)


def simulates(number: int | None) -> bool:
    return is_well(["bash", "tests/simulation/run", "--seeds", str(SEEDS), "--bad", "1"], SIMULATION, number)


def is_well(command: list[str], may_take: tuple[int, int], number: int | None = None) -> bool:
    """Whether it ends well, in that processor time and in that time. A mutant may go on for ever, and what it has started with it."""
    work, patience = may_take
    environment = os.environ if number is None else {**os.environ, "ZKLOCK_MUTANT": str(number)}

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (work, work))

    with subprocess.Popen(
        command, cwd=COPY, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit, start_new_session=True
    ) as program:
        try:
            return not program.wait(patience)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            return False
