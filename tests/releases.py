"""Runs the scenarios of each promise and each kind on releases of ZooKeeper, and prints a table for FIGURES.md.

`tests/run servers` calls it: words that choose releases, then `--`, then the program of the scenarios. What a release cannot
do is skipped by its name, which is printed with the reason. A skip that no test has the name of is an error. What fails is run
once more, alone, because a busy machine ends sessions; if it passes then, its name is printed, too.
"""

from __future__ import annotations

import collections
import os
import re
import subprocess
import sys
import time

RELEASES = ("3.4.14", "3.5.10", "3.6.4", "3.7.2", "3.8.6", "3.9.5")
PROMISES = ("exclusive", "fenced", "fair", "bounded", "nothing_left_behind", "told", "no_false_grant")
KINDS = ("kinds", "mutex", "rwlock", "semaphore")
# Tests that also depend on the release: servers since 3.8.6 report nothing about a node to clients that may not read it.
OTHERS = ("access::rights_taken::",)
COLUMNS = (*PROMISES, "access")

# The first release on which a test runs, and why.
Skip = tuple[tuple[int, int], str]
PERMITS: Skip = (3, 5), "several permits at once are created in one transaction, which 3.4 cannot do for us"
TOGETHER: Skip = (3, 5), "its nodes are created in one transaction, which 3.4 cannot do for us"
CREATION: Skip = (3, 5), "a guarded write creates a node, which 3.4 cannot do for us"
DOWNGRADE: Skip = (3, 5), "the read side within the write side is created in a transaction, which 3.4 cannot do for us"
REQUESTS: Skip = (3, 5), "it counts requests, and 3.4 has none that takes a watch back"
# By the name of a test, or of the kind that it is about.
SKIPS: dict[str, Skip] = {
    "PERMIT": PERMITS,
    "PERMITS": PERMITS,
    "SET": TOGETHER,
    "SETS": TOGETHER,
    "SINGLE_NODE": TOGETHER,
    "fenced::mutex::a_guarded_write_is_done_while_the_lock_is_held": CREATION,
    "fenced::mutex::a_guarded_write_is_done_whole_or_not_at_all": CREATION,
    "fair::mutex::a_waiter_that_gives_up_wakes_the_one_behind_its_successor_only_and_the_order_stays": REQUESTS,
    "fair::semaphore::permits_are_granted_in_the_order_of_arrival_also_to_who_wants_many": PERMITS,
    "bounded::rwlock::a_downgrade_in_a_frozen_network_ends_in_time_and_the_writer_stays_what_it_is": DOWNGRADE,
    "bounded::semaphore::a_network_that_freezes_at_a_later_step_delays_nobody": PERMITS,
    "told::kinds::a_reader_within_its_writer_is_told_within_a_heartbeat::READER": DOWNGRADE,
}

TEST = re.compile(r"test (\S+) \.\.\. (ok|FAILED)$")
Results = dict[str, bool]


def main(arguments: list[str]) -> int:
    words, program = split(arguments)
    if unknown := set(words) - set(RELEASES):
        print(f"no release {', '.join(unknown)}: there are {', '.join(RELEASES)}", file=sys.stderr)
        return 2
    tests = list_tests(program)
    if missing := set(SKIPS) - set(tests) - {kind_of(test) for test in tests}:
        print(f"skipped, but there is no such test: {', '.join(missing)}", file=sys.stderr)
        return 1
    rows, outcomes, again = [], {}, []
    for release in words or RELEASES:
        begun = time.monotonic()
        outcomes[release] = run(program, release, [test for test in tests if reason(test, release) is None])
        if late := [test for test, fine in outcomes[release].items() if not fine]:
            outcomes[release] |= run(program, release, late, threads=1)
            again += [f"`{test}` on {release}" for test in late if outcomes[release][test]]
        rows.append(row(release, tests, outcomes[release], time.monotonic() - begun))
    print("\n".join(["", *head(), *rows, "", *skipped(tests, words or RELEASES)]))
    print(f"In a second go, alone: {', '.join(again) or 'none'}.", flush=True)
    failed = [f"{release} {test}" for release, results in outcomes.items() for test, fine in results.items() if not fine]
    for name in failed:
        print(f"FAILED: {name}", file=sys.stderr)
    return 1 if failed else 0


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def list_tests(program: list[str]) -> list[str]:
    """The names of the tests that run, in the order of the promises."""
    listed = subprocess.run([*program, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout
    names = [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]
    modules = [f"{promise}::{kind}::" for promise in PROMISES for kind in KINDS] + list(OTHERS)
    return [name for module in modules for name in names if name.startswith(module)]


def kind_of(test: str) -> str:
    return test.rpartition("::")[2]


def reason(test: str, release: str) -> str | None:
    """Why a test is skipped on this release."""
    before, why = SKIPS.get(test) or SKIPS.get(kind_of(test)) or ((0, 0), "")
    major, minor = release.split(".")[:2]
    return why if (int(major), int(minor)) < before else None


def run(program: list[str], release: str, tests: list[str], threads: int = 2 * (os.cpu_count() or 1)) -> Results:
    """Whether each test has passed. A test without a result has failed."""
    print(f"-- ZooKeeper {release}: {len(tests)} scenarios", flush=True)
    command = [*program, "--exact", "--test-threads", str(threads), *tests]
    environment = os.environ | {"ZKLOCK_SERVER_VERSION": release}
    results = dict.fromkeys(tests, False)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            if (found := TEST.match(line.rstrip())) and found[1] in results:
                results[found[1]] = found[2] == "ok"
    return results


def head() -> list[str]:
    return [
        "| ZooKeeper | " + " | ".join(column.replace("_", " ") for column in COLUMNS) + " | seconds |",
        "|---" * (len(COLUMNS) + 2) + "|",
    ]


def row(release: str, tests: list[str], results: Results, seconds: float) -> str:
    cells = []
    for column in COLUMNS:
        of_column = [test for test in tests if test.startswith(f"{column}::")]
        counts = collections.Counter("skipped" if test not in results else results[test] for test in of_column)
        cell = f"{counts[True]} of {len(of_column)}"
        if counts[False]:
            cell += f", {counts[False]} FAILED"
        cells.append(cell)
    return f"| {release} | {' | '.join(cells)} | {seconds:.0f} |"


def skipped(tests: list[str], releases: tuple[str, ...] | list[str]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for test in tests:
        if where := [release for release in releases if reason(test, release)]:
            key = f"On {', '.join(where)}, because {reason(test, where[0])}"
            by_reason.setdefault(key, []).append(f"`{test}`")
    lines = [f"- {key}: {', '.join(names)}." for key, names in by_reason.items()]
    return ["Not run:", "", *lines] if lines else ["All are run."]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
