"""Mutants of the machine, which the examples in its documentation look for, and then the model. See README.md."""

from __future__ import annotations

import os

import changes
from changes import Mutant
from trial import COPY, Limits, compiled, run

PACKAGE, SOURCE = "zklock-machine", "zklock-core/machine/src/"
UNIT_TESTS = ("--package", PACKAGE)
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
# The unit tests take seven seconds.
UNITS, EXAMPLES, MODEL = Limits(60, 3600), Limits(60, 3600), Limits(120, 3600)
SEARCHES = os.cpu_count() or 1


def listed() -> list[Mutant]:
    return changes.listed(PACKAGE, SOURCE)


def build() -> None:
    if not compiled("build", "--profile", "model", "--package", "zklock-model")[0]:
        raise SystemExit("the model does not compile")


def search(mutant: Mutant | None, number: int | None = None) -> str | None:
    examples = ["cargo", "test", "--quiet", "--locked", "--doc", "--package", PACKAGE]
    if not run(examples, EXAMPLES, number).is_well:
        return "examples"
    module = mutant.module if mutant else ""
    if module in NOT_IN_THE_MODEL:
        return None
    # One that takes too long is not found, for it may be that the model has very much to look at.
    model = [str(COPY / "target/model/zklock-model"), "quickly", KINDS.get(module, "")]
    ended = run(model, MODEL, number, ZKLOCK_PLANTED="0")
    if ended.is_well or ended.is_out_of_time:
        return ": ".join(["model", *ended.said.split("\t")[:2]]) if ended.said else None
    return "model: panics"
