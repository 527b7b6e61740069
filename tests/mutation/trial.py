"""Tries the mutants of a part: most of them are in one program, in which each can be chosen. See README.md.

A part is a module such as core.py. It says which mutants are `listed()` of which PACKAGE, where the UNIT_TESTS are, and what these may take (UNITS).
What they do not find goes to a program that the part can `build()`: `search()` returns what has found a mutant with it, if anything. SEARCHES run at once.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import resource
import signal
import subprocess
import sys
import types
import typing

from changes import NO_PROGRAM, ROOT, SURVIVES, Mutant

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/simulation")]

import controls
import planted
import switched

COPY = ROOT / "target/mutants/tree"
# Unit tests of the core mostly wait.
AT_ONCE = 8
# With a mutant it may ask for memory for ever.
BYTES = 8 << 30
# So that one changed file is compiled in seconds. The machine's own assertions must not help the model: a bug must be found from outside.
QUICK = {
    "CARGO_PROFILE_DEV_DEBUG": "false",
    "CARGO_PROFILE_SIMULATION_LTO": "off",
    "CARGO_PROFILE_SIMULATION_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_SIMULATION_INCREMENTAL": "true",
    "CARGO_PROFILE_MODEL_DEBUG_ASSERTIONS": "false",
    "CARGO_PROFILE_MODEL_OVERFLOW_CHECKS": "false",
}


class Limits(typing.NamedTuple):
    """Seconds of processor time, and of a clock, for with a mutant a program may go on for ever, or wait for ever, which costs none."""

    work: int
    patience: int


class Ended(typing.NamedTuple):
    status: int
    said: str

    @property
    def is_well(self) -> bool:
        return not self.status

    @property
    def is_out_of_time(self) -> bool:
        return self.status in (-signal.SIGXCPU, -signal.SIGKILL)


def found(part: types.ModuleType, mutants: list[Mutant], known: set[Mutant]) -> typing.Iterator[tuple[str, Mutant]]:
    """Yields what finds each. First come those that can be chosen when the program runs; the others are compiled one by one."""
    os.environ.update(QUICK)
    os.environ["CARGO_PKG_NAME"] = part.PACKAGE  # Cargo says it to tests, and one looks.
    controls.plant(planted.Control("none", "", "", ""), COPY)
    chosen = dict(enumerate(mutants))
    units = together(part, chosen)
    survivors = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for number, passed in zip(chosen, pool.map(lambda number: passes(part, units, number), chosen), strict=True):
            if not passed:
                yield "unit tests", chosen[number]
            elif chosen[number] in known:
                yield SURVIVES, chosen[number]
            else:
                survivors.append(number)
    if survivors:
        part.build()
        if finder := part.search(None):
            raise SystemExit(f"without a mutant, something is found: {finder}")
    with concurrent.futures.ThreadPoolExecutor(part.SEARCHES) as pool:
        finders = pool.map(lambda number: part.search(chosen[number], number), survivors)
        for number, finder in zip(survivors, finders, strict=True):
            yield finder or SURVIVES, chosen[number]
    for number, mutant in enumerate(mutants):
        if number not in chosen:
            yield alone(part, mutant, known), mutant


def together(part: types.ModuleType, chosen: dict[int, Mutant]) -> str:
    """Compiles the unit tests so that each mutant can be chosen. Removes those with which they do not compile from `chosen`."""
    places = {number: place for number, mutant in chosen.items() if (place := switched.place(mutant, number))}
    texts = {mutant.path: mutant.text() for mutant in chosen.values()}
    root = part.SOURCE + "lib.rs"
    texts.setdefault(root, (ROOT / root).read_text())
    while True:
        for path, text in texts.items():
            text = switched.written(text, [place for number, place in places.items() if chosen[number].path == path])
            (COPY / path).write_text(text + (switched.CHOICE if path == root else ""))
        units, messages = compiled("test", "--lib", "--no-run", *part.UNIT_TESTS)
        if units:
            break
        refused = switched.refused(messages, COPY)
        if not refused:
            raise SystemExit("it does not compile, and no mutant is to blame: see cargo test --lib in target/mutants/tree")
        for number in refused:
            del places[number]
    for number in chosen.keys() - places.keys():
        del chosen[number]
    if not passes(part, units, None):
        raise SystemExit("the unit tests fail without a mutant")
    return units


def alone(part: types.ModuleType, mutant: Mutant, known: set[Mutant]) -> str:
    controls.plant(planted.Control(mutant.name, mutant.path, *mutant.change()), COPY)
    units, _ = compiled("test", "--lib", "--no-run", *part.UNIT_TESTS)
    if not units:
        return NO_PROGRAM
    if not passes(part, units, None):
        return "unit tests"
    if mutant in known:
        return SURVIVES
    part.build()
    return part.search(mutant) or SURVIVES


def passes(part: types.ModuleType, units: str, number: int | None) -> bool:
    return run([units, "--quiet"], part.UNITS, number).is_well


def compiled(*words: str) -> tuple[str | None, list[dict]]:
    """The program that Cargo compiles in the copy, if it does, and what it says."""
    command = ["cargo", *words, "--quiet", "--locked", "--message-format", "json"]
    done = subprocess.run(command, cwd=COPY, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    programs = [message["executable"] for message in messages if message.get("executable")]
    return None if done.returncode else programs[0], messages


def run(command: list[str], limits: Limits, number: int | None, **more: str) -> Ended:
    """Runs a program with the mutant of this number, and ends what it has started, too, if it takes longer."""
    environment = {**os.environ, **more, **({} if number is None else {"ZKLOCK_MUTANT": str(number)})}

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limits.work, limits.work))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))

    with subprocess.Popen(
        command, cwd=COPY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=limit, start_new_session=True
    ) as program:
        try:
            said, _ = program.communicate(timeout=limits.patience)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            said, _ = program.communicate()
        return Ended(program.returncode, said.decode(errors="replace"))
