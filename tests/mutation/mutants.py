"""Mutants of the machine: what finds each, a unit test, an example in the documentation, or the model. See README.md."""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import queue
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINE = "zklock-core/machine/src/"
# The cases in which the model looks first for a bug of a module; of the others, in those of the mutex.
KINDS = {
    "barrier": "barrier",
    "member": "barrier",
    "single": "single",
    "lease": "lease",
    "keeper": "holds",
    "memory": "tries",
    "turns": "lingers",
}
NOT_IN_THE_MODEL = {"lib", "marks", "protocol", "status"}
# The limits of the unit tests: CPU time in seconds, and memory. They take a tenth of a second; a mutant may run for ever.
SECONDS = 8
BYTES = 8 << 30
SURVIVES = "SURVIVES"
KNOWN = "survives for a known reason"
NO_PROGRAM = "no program"
# What the model says of those that it has not found.
NOT_FOUND = {SURVIVES, "not found in time"}


class Mutant(typing.NamedTuple):
    """A change to one place of the machine."""

    name: str
    file: str
    begin: int
    end: int
    replacement: str

    @property
    def module(self) -> str:
        return self.file.split("/")[0].removesuffix(".rs")

    @property
    def lasting_name(self) -> str:
        """Without the line and the column, which change."""
        return re.sub(r":\d+:\d+:", ":", self.name)

    def for_the_model(self) -> str:
        """Its name, the kind of cases, the file, a text that stands once in it, and what that is replaced by."""
        source = (ROOT / MACHINE / self.file).read_text()
        first, last = self.begin, self.end
        while first == last or source.count(source[first:last]) != 1:
            first, last = max(0, first - 40), min(len(source), last + 40)
        replaced = source[first : self.begin] + self.replacement + source[self.end : last]
        return "\x1f".join((self.name, KINDS.get(self.module, ""), self.file, source[first:last], replaced)) + "\x1e"


def listed() -> list[Mutant]:
    command = ["cargo", "mutants", "--list", "--json", "--package", "zklock-machine"]
    told = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    return [read(mutant) for mutant in told]


def read(told: dict) -> Mutant:
    lines = (ROOT / told["file"]).read_text().splitlines(keepends=True)

    def offset(place: dict) -> int:
        return sum(map(len, lines[: place["line"] - 1])) + place["column"] - 1

    span = told["span"]
    file, name = (told[key].removeprefix(MACHINE) for key in ("file", "name"))
    return Mutant(name, file, offset(span["start"]), offset(span["end"]), told["replacement"])


def copied(copy: pathlib.Path) -> pathlib.Path:
    """The machine as a package of its own."""
    shutil.copytree(ROOT / MACHINE, copy / "src")
    ours, workspace = (path.read_text() for path in (ROOT / MACHINE / "../Cargo.toml", ROOT / "Cargo.toml"))
    for key in ("version", "edition", "rust-version", "license", "uuid"):
        line = re.search(rf"^{key} = .*$", workspace, re.M)
        assert line, f"the workspace says nothing of {key}"
        ours = re.sub(rf"^{key}\.workspace = true$", line[0], ours, flags=re.M)
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
    place.write_text(source[: mutant.begin] + mutant.replacement + source[mutant.end :])

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
        file.writelines(mutant.for_the_model() for mutant in mutants)
        file.flush()
        command = ["cargo", "test", "--quiet", "--locked", "--package", "zklock-tests", "--test", "model"]
        environment = {**os.environ, "ZKLOCK_MUTANTS": file.name}
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as model:
            assert model.stdout
            for line in model.stdout:
                what, _, name = line.rstrip("\n").partition("\t")
                if name in by_name:
                    yield (SURVIVES if what in NOT_FOUND else f"model: {what}"), by_name.pop(name)
    if by_name:
        raise SystemExit(f"the model says nothing of {', '.join(by_name)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="those with one of these words in their names; by default all")
    words = parser.parse_args().words
    mutants = [mutant for mutant in listed() if not words or any(word in mutant.name for word in words)]
    known = dict(line.split("\t") for line in (ROOT / "tests/mutation/known.txt").read_text().splitlines())
    fates: collections.Counter[str] = collections.Counter()
    left, new = [], []

    def tell(what: str, mutant: Mutant) -> None:
        fates[what.split(":")[0]] += 1
        print(what, mutant.name, sep="\t", flush=True)
        if what == SURVIVES:
            new.append(mutant)

    for what, mutant in found_by_units(mutants):
        if what != SURVIVES:
            tell(what, mutant)
        elif mutant.lasting_name in known:
            tell(KNOWN, mutant)
        elif mutant.module in NOT_IN_THE_MODEL:
            tell(what, mutant)
        else:
            left.append(mutant)
    for what, mutant in found_by_the_model(left) if left else ():
        tell(what, mutant)
    total = fates.total() - fates[NO_PROGRAM]
    survive = fates[SURVIVES] + fates[KNOWN]
    print(*(f"{what}: {count}" for what, count in fates.most_common()), sep="; ")
    print(f"{total - survive} of {total} found, {100 * (total - survive) / max(total, 1):.1f} %; {len(new)} survive for no known reason")
    for mutant in new:
        print(f"  {mutant.name}")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
