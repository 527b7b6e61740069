"""Mutants of the machine and of what keeps a hold: what finds each. See README.md."""

from __future__ import annotations

import argparse
import collections
import sys

import core
import machine
import trial
from changes import NO_PROGRAM, ROOT, SURVIVES, Mutant

KNOWN = "survives for a known reason"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="those with one of these words in their names; by default all")
    words = parser.parse_args().words
    known = dict(line.split("\t") for line in (ROOT / "tests/mutation/known.txt").read_text().splitlines())
    return max([score(part, words, known) for part in (machine, core)])


def score(part, words: list[str], known: dict[str, str]) -> int:
    mutants = [mutant for mutant in part.listed() if not words or any(word in mutant.name for word in words)]
    if not mutants:
        return 0
    fates: collections.Counter[str] = collections.Counter()
    new: list[Mutant] = []
    for what, mutant in trial.found(part, mutants, {mutant for mutant in mutants if mutant.lasting_name in known}):
        if what == SURVIVES and mutant.lasting_name in known:
            what = KNOWN
        fates[what.split(":")[0]] += 1
        print(what, mutant.name, sep="\t", flush=True)
        if what == SURVIVES:
            new.append(mutant)
    total = fates.total() - fates[NO_PROGRAM]
    survive = fates[SURVIVES] + fates[KNOWN]
    print(part.__name__, *(f"{what}: {count}" for what, count in fates.most_common()), sep="; ")
    print(f"{total - survive} of {total} found, {100 * (total - survive) / max(total, 1):.1f} %; {len(new)} survive for no known reason")
    for mutant in new:
        print(f"  {mutant.name}")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
