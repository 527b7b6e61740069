"""Counts instructions and system calls of one acquire and release, which noise does not move as it moves times.

Called by `run --counts`, which builds the peers, and with `--check` by tests/c/run, for the C library alone. Each work is done n times
and 3n times in a fresh process, under callgrind and under strace: what the longer run has more, divided by 2n. Connecting and warming up
are in both.
"""

import argparse
import collections
import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import types

from run import PEERS, Peer, manylocks, handoff, uncontended, tries
from servers import Servers

FIGURES = pathlib.Path(__file__).parents[1] / "FIGURES.md"
NAMES = ["rust-pipe", "zklock-rust", "zklock-c", "zklock-py"]
WORKS = {
    "free": uncontended(1, 200, 50),
    "lingering": uncontended(1, 500, 50, linger=60),
    "reentrant": uncontended(1, 500, 50, reentrant=1),
    "refused try": tries(1, 100, 20),
    "one of a thousand": manylocks(1, 1),
    "handed over by a task": handoff(1, 2, 100, sessions=1, turns=10_000),
    "handed over by a session": handoff(1, 2, 100),
}
# What only zklock does, and what a peer cannot.
ABLE = dict.fromkeys(("lingering", "reentrant", "refused try", "handed over by a task"), {"zklock-rust", "zklock-c", "zklock-py"})
# What the C library may need at most: instructions (on x86-64, with panic-probe, which is 2,000 of them), and system calls. A machine's
# compiler and C library make a difference to the first, and whether a thread sleeps before it is woken to both.
MOST = {"free": (137_000, 33), "lingering": (10_300, 3.5), "reentrant": (9_200, 3.5)}


def instructions(folder):
    """By function, of all threads."""
    command = ["callgrind_annotate", "--auto=no", "--threshold=100", *folder.glob("callgrind.*")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sums = collections.Counter()
    # A row for each file whose code was inlined into the function.
    for number, function in re.findall(r"^ *([\d,]+) \([ \d.]+%\)  \S+?:([^:\s].*?)(?: \[.*\])?$", text, re.M):
        sums[function] += int(number.replace(",", ""))
    return sums


def calls(folder):
    return collections.Counter(re.findall(r"^\d+ +(\w+)\(", (folder / "strace").read_text(), re.M))


TOOLS = {
    "instructions": (
        lambda folder: ["valgrind", "-q", "--max-threads=1100", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind.%p"],
        instructions,
    ),
    "system calls": (lambda folder: ["strace", "-f", "-qq", "-o", f"{folder}/strace"], calls),
}


def count(servers, name, work, tool):
    """What one turn of a work needs, by function or call."""
    bench, _, params = WORKS[work]
    sums = []
    for times in (1, 3):
        with tempfile.TemporaryDirectory() as folder:
            before, read = TOOLS[tool]
            peer = Peer(name, before(pathlib.Path(folder)) + PEERS[name][0])
            peer.bench(servers, bench, params | {"n": params["n"] * times, "silent": 1}, f"/counts-{os.getpid()}-{name}-{abs(hash((work, tool, times)))}", 600)
            peer.p.stdin.close()
            if peer.p.wait() != 0:
                raise RuntimeError(f"{name}: status {peer.p.returncode}")
            sums.append(read(pathlib.Path(folder)))
    sums[1].subtract(sums[0])
    done = 2 * params["n"] * (params["k"] if bench == "manylocks" else 1)
    return collections.Counter({key: value / done for key, value in sums[1].items()})


def check(servers, work):
    """Returns what is wrong with the counts of the C library. A busy machine may need three tries to count what a quiet one does."""
    for most, tool in zip(MOST[work], TOOLS):
        if tool == "instructions" and platform.machine() != "x86_64":
            continue
        seen = []
        while len(seen) < 3:
            counts = count(servers, "zklock-c", work, tool)
            seen.append(sum(counts.values()))
            if most / 2 < seen[-1] <= most:
                print(f"{work}: {seen[-1]:,.1f} {tool}")
                break
        else:
            yield f"{work}: {', '.join(f'{it:,.1f}' for it in seen)} {tool}: over {most / 2:,} to {most:,} are right\n" + "\n".join(
                f"    {number:10,.1f} {what[:150]}" for what, number in counts.most_common(20)
            )


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--counts", action="store_true")
    ap.add_argument("--only", type=lambda words: words.split(","), default=NAMES)
    ap.add_argument("--work", type=lambda words: words.split(","), default=list(WORKS), help=", ".join(WORKS))
    ap.add_argument("--most", type=int, default=0, help="also print as many functions or calls of each")
    ap.add_argument("--write", action="store_true", help="also put the table into FIGURES.md")
    ap.add_argument("--check", action="store_true", help="that the C library needs no more than it may, at --connect")
    ap.add_argument("--connect", help="a server that is there, for --check")
    ap.add_argument("--port", type=int, default=21810)
    args = ap.parse_args()
    if args.write and (args.only, args.work) != (NAMES, list(WORKS)):
        ap.error("--write needs all works of all peers")
    if args.check:
        there = types.SimpleNamespace(connect=args.connect, one=args.connect, pin=False, counters=collections.Counter)
        return sys.exit("\n".join(wrong for work in MOST for wrong in check(there, work)) or 0)
    servers = Servers(1, "shm", args.port)
    table = [f"| | {' | '.join(args.only)} |", "|---|" + "---|" * len(args.only)]
    print(*table, sep="\n")
    try:
        for work in args.work:
            able = [name for name in args.only if name in ABLE.get(work, NAMES) and WORKS[work][0] in PEERS[name][1]]
            for tool, place in (("instructions", "{:,.0f}"), ("system calls", "{:,.1f}")):
                counted = {name: count(servers, name, work, tool) for name in able}
                cells = [place.format(max(0, sum(counted[name].values()))) if name in able else "–" for name in args.only]
                table.append(f"| {work}: {tool} | {' | '.join(cells)} |")
                print(table[-1], flush=True)
                for name, what, number in ((name, *most) for name in able for most in counted[name].most_common(args.most)):
                    print(f"    {name} {number:10,.1f} {what[:150]}", flush=True)
    finally:
        servers.stop()
    if args.write:
        write(table)


def write(table):
    """Puts the table in the place of the last one in FIGURES.md, with the date."""
    before, heading, rest = FIGURES.read_text().partition("## Instructions and system calls\n")
    said, further, after = rest.partition("\n## ")
    said = re.sub(r"\d{4}-\d\d-\d\d", datetime.date.today().isoformat(), said[: said.index("\n|") + 1])
    FIGURES.write_text(before + heading + said + "\n".join(table) + "\n" + further + after)


if __name__ == "__main__":
    main()
