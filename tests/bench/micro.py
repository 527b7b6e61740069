"""Measures work without requests, on one server that it starts: criterion for Rust, the peers' own loop for C and Python.

Called by `run --micro`, which builds them. Other words than --port are criterion's, such as --quick or a name.
"""

import argparse
import os
import statistics
import subprocess
import sys

from run import CACHE, PEERS, Peer
from servers import PEER_CORES, Servers

WORKS = {"lingering": {"linger": 600}, "reentrant": {"reentrant": 1}, "valid_for": {"valid_for": 1}, "ensure": {"ensure": 1}}
ROUNDS = 5


def faces(servers):
    print("\n| µs | acquire and release, lingering | reentrant | valid_for | ensure |\n|---|---:|---:|---:|---:|")
    for name in ("zklock-c", "zklock-py"):
        peer, cells = Peer(name, PEERS[name][0]), []
        try:
            for work, words in WORKS.items():
                path = f"/micro-{work}-{name}"
                figures = [peer.bench(servers, "uncontended", dict(n=20_000, warm=2_000) | words, f"{path}-{i}", 60) for i in range(ROUNDS)]
                rates = [1e6 / figure["ops_per_s"] for figure in figures]
                cells.append(f"{statistics.median(rates):.2f} ({min(rates):.2f} to {max(rates):.2f})")
        finally:
            peer.stop()
        print(f"| {name} |", " | ".join(cells), "|", flush=True)
    print(f"Median of {ROUNDS} rounds of 20,000, least and greatest; three readings of the clock are in each.")


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--micro", action="store_true")
    ap.add_argument("--port", type=int, default=21810)
    args, criterion = ap.parse_known_args()
    servers = Servers(1, "shm", args.port)
    try:
        command = [f"{CACHE}/rust/release/zklock_micro", "--bench", "--noplot", *criterion]
        environment = os.environ | {"ZKLOCK_BENCH_HOSTS": servers.connect, "CRITERION_HOME": f"{CACHE}/criterion"}
        pin = lambda: os.sched_setaffinity(0, PEER_CORES)
        done = subprocess.run(command, env=environment, preexec_fn=pin)
        if done.returncode:
            sys.exit(f"tests/bench/run --micro: criterion ended with {done.returncode}")
        faces(servers)
    finally:
        servers.stop()


if __name__ == "__main__":
    main()
