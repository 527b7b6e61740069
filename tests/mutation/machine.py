"""Mutants of the machine: what finds each, a unit test, an example in the documentation, or the model. See README.md."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import queue
import re
import resource
import shutil
import subprocess
import tempfile
import typing

import changes
from changes import NO_PROGRAM, ROOT, SURVIVES, Mutant

MACHINE = "zklock-core/machine/src/"
# The cases in which the model looks first for a bug of a module; of the others, in those of the mutex.
KINDS = {
    "single": "single",
    "lease": "lease",
    "keeper": "holds",
    "memory": "tries",
    "turns": "lingers",
    "callers": "callers",
}
NOT_IN_THE_MODEL = {"barrier", "lib", "marks", "protocol", "status"}
# What the unit tests may take of the processor, in seconds, and of memory. They take seven seconds; a mutant may go on for ever.
SECONDS = 60
BYTES = 8 << 30
# What the model says of those that it has not found.
NOT_FOUND = {SURVIVES, "not found in time"}


def listed() -> list[Mutant]:
    return changes.listed("zklock-machine", MACHINE)


def found(mutants: list[Mutant], known: set[Mutant]) -> typing.Iterator[tuple[str, Mutant]]:
    """What finds each. Those for which the model has nothing, or which are known to survive, are not tried with it."""
    left = []
    for what, mutant in found_by_units(mutants):
        if what == SURVIVES and mutant not in known and mutant.module not in NOT_IN_THE_MODEL:
            left.append(mutant)
        else:
            yield what, mutant
    if left:
        yield from found_by_the_model(left)


def for_the_model(mutant: Mutant) -> str:
    """Its name, the kind of cases, the file, a text that stands once in it, and what that is replaced by."""
    return "\x1f".join((mutant.name, KINDS.get(mutant.module, ""), mutant.file, *mutant.change())) + "\x1e"


def copied(copy: pathlib.Path) -> pathlib.Path:
    """The machine as a package of its own."""
    shutil.copytree(ROOT / MACHINE, copy / "src")
    ours, workspace = (path.read_text() for path in (ROOT / MACHINE / "../Cargo.toml", ROOT / "Cargo.toml"))

    def inherited(key: re.Match[str]) -> str:
        line = re.search(rf"^{key[1]} = .*$", workspace, re.M)
        assert line, f"the workspace says nothing of {key[1]}"
        return line[0]

    ours = re.sub(r"^([a-z-]+)\.workspace = true$", inherited, ours, flags=re.M)
    ours = ours.replace("[lints]\nworkspace = true", "[profile.dev]\ndebug = false\n\n[workspace]")
    (copy / "Cargo.toml").write_text(ours)
    shutil.copy(ROOT / "Cargo.lock", copy)
    # So that what does not build later is the mutant's doing.
    subprocess.run(["cargo", "test", "--quiet"], cwd=copy, check=True, stdout=subprocess.DEVNULL)
    return copy


def found_by_units(mutants: list[Mutant]) -> typing.Iterator[tuple[str, Mutant]]:
    with tempfile.TemporaryDirectory() as folder:
        copies: queue.Queue[pathlib.Path] = queue.Queue()
        workers = os.cpu_count() or 1
        for number in range(workers):
            copies.put(copied(pathlib.Path(folder, str(number))))

        def look(mutant: Mutant) -> tuple[str, Mutant]:
            copy = copies.get()
            try:
                return fate(copy, mutant), mutant
            finally:
                copies.put(copy)

        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            yield from pool.map(look, mutants)


def fate(copy: pathlib.Path, mutant: Mutant) -> str:
    place = copy / "src" / mutant.file
    source = place.read_text()
    place.write_text(mutant.changed())

    def passes(*words: str) -> bool:
        test = ["cargo", "test", "--quiet", *words]
        return not subprocess.run(test, cwd=copy, capture_output=True, preexec_fn=limit).returncode

    try:
        if not passes("--lib", "--no-run"):
            return NO_PROGRAM
        found = (by for what, by in (("--lib", "unit tests"), ("--doc", "examples")) if not passes(what))
        return next(found, SURVIVES)
    finally:
        place.write_text(source)


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def found_by_the_model(mutants: list[Mutant]) -> typing.Iterator[tuple[str, Mutant]]:
    by_name = {mutant.name: mutant for mutant in mutants}
    with tempfile.NamedTemporaryFile("w", suffix=".mutants") as file:
        file.writelines(for_the_model(mutant) for mutant in mutants)
        file.flush()
        command = ["cargo", "run", "--quiet", "--locked", "--profile", "model", "--package", "zklock-model"]
        environment = {**os.environ, "ZKLOCK_MUTANTS": file.name}
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as model:
            assert model.stdout
            for line in model.stdout:
                what, _, name = line.rstrip("\n").partition("\t")
                if name in by_name:
                    yield (SURVIVES if what in NOT_FOUND else f"model: {what}"), by_name.pop(name)
    if by_name:
        raise SystemExit(f"the model says nothing of {', '.join(by_name)}")
