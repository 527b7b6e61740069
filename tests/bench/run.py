"""Runs every peer against real servers, in turn (A B C A B C), and prints tables of medians.

Called by `run`, which builds the peers. README.md says what is measured and how a peer is added.
"""

import argparse
import collections
import json
import math
import operator
import os
import pathlib
import select
import signal
import statistics
import subprocess
import sys
import time

from disk import fdatasync
from servers import CORES, PEER_CORES, Other, Servers, cpu, pin

HERE = pathlib.Path(__file__).resolve().parent
CACHE = os.environ.get("MEASURE_CACHE", "")
PY = [f"{CACHE}/venv/bin/python"]
JAVA = ["java", "-cp", os.environ.get("MEASURE_CLASSPATH", ""), "Curator"]

WAIT = {"handoff", "drain"}
LOCK = {"uncontended", "manylocks"} | WAIT
OURS_ALL = LOCK | {"tries", "wanted"}
# name: (command, benches)
PEERS = {
    "rust-pipe": ([f"{CACHE}/rust/release/raw_peer"], LOCK),
    "curator": (JAVA, LOCK | {"tries", "holders"}),
    "kazoo": ([*PY, str(HERE / "peers/python/kazoo_peer.py")], LOCK | {"tries", "holders"}),
    "zklock-rust": ([f"{CACHE}/rust/release/zklock_peer"], OURS_ALL | {"holders"}),
    "zklock-c": ([f"{CACHE}/zklock_c"], OURS_ALL),
    "zklock-py": ([*PY, str(HERE / "peers/python/zklock_peer.py")], OURS_ALL),
    "redis-py": ([*PY, str(HERE / "peers/python/redis_peer.py")], {"uncontended", "handoff", "tries"}),
    "etcd": ([*PY, str(HERE / "peers/python/etcd_peer.py")], {"uncontended", "handoff"}),
}
OTHERS = {"redis-py": "redis", "etcd": "etcd"}  # what they lock on; measured beside one server on tmpfs
OURS = {"linger", "turns", "told", "reentrant", "valid_for", "ensure"}  # asked of zklock alone: the others do the ordinary work beside it
QUEUES_AT_HOME = {"zklock-rust", "zklock-c", "zklock-py"}  # a client has two nodes at most, however many wait in it
RAW = "rust-pipe"  # the raw limit


# A bench, its rounds, and the parameters of each: k contenders on so many sessions, and n turns that are measured.


def uncontended(rounds, n, warm, **ours):
    return "uncontended", rounds, dict(k=1, sessions=1, n=n, warm=warm) | ours


def handoff(rounds, k, n, sessions=None, **more):
    return "handoff", rounds, dict(k=k, sessions=sessions or k, n=n) | more


def tries(rounds, n, warm):
    return "tries", rounds, dict(k=2, sessions=2, n=n, warm=warm)


def wanted(rounds, n, warm):
    return "wanted", rounds, dict(k=2, sessions=2, n=n, warm=warm, linger=600)


def drain(n):
    """The waiters, and the holder before them, are threads or tasks on one client."""
    return "drain", 1, dict(k=n + 1, sessions=1, n=n)


def manylocks(rounds, n, k=1000):
    """Each contender has a lock of its own, and a turn is one of all of them."""
    return "manylocks", rounds, dict(k=k, sessions=1, n=n, apart=1)


def holders(k, n=20, warm=10, **ours):
    """A turn is a second."""
    return "holders", 1, dict(k=k, sessions=k, n=n, warm=warm, timeout=10, apart=1) | ours


# What clients cost that hold a lock each. Asked for by `--holders`; zklock with the shortest, a middle and the longest `loss_timeout`.
HOLDERS = [(3, "disk", [holders(n, **told) for n in (10, 100, 1000, 3000) for told in ({}, {"told": 2000}, {"told": 3333})])]


# Work without requests. It is compared by the rate: three readings of the clock are in each.
MICRO = [(1, "shm", [uncontended(5, 20_000, 2_000, **{work: more}) for work, more in (("linger", 600), ("reentrant", 1), ("valid_for", 1), ("ensure", 1))])]


# (servers, storage, benches). Many short rounds rather than few long ones: noise comes in bursts.
FULL = [
    (1, "shm", [uncontended(7, 500, 100), uncontended(5, 500, 100, linger=60), tries(5, 500, 100), handoff(5, 2, 200), wanted(5, 200, 50), handoff(5, 16, 200),
                handoff(3, 64, 200), handoff(3, 16, 200, sessions=1), handoff(3, 16, 200, sessions=1, turns=64),
                handoff(2, 16, 100, hold=1), handoff(1, 8, 60, hold=20), drain(200), drain(1000), drain(2000), manylocks(3, 2)]),
    (1, "disk", [uncontended(3, 150, 20), uncontended(3, 150, 20, linger=60), handoff(3, 16, 100)]),
    (1, "nosync", [uncontended(3, 300, 50)]),
    (3, "shm", [uncontended(5, 200, 50), handoff(3, 2, 200), wanted(3, 200, 50), handoff(3, 16, 200), handoff(1, 64, 200),
                drain(1000), manylocks(2, 1)]),
    (3, "disk", [uncontended(3, 100, 20), handoff(2, 16, 100)]),
]
QUICK = [
    (1, "shm", [uncontended(3, 300, 100), handoff(3, 2, 100), handoff(3, 16, 100), drain(200), manylocks(1, 1)]),
    (3, "shm", [uncontended(3, 100, 50), handoff(2, 16, 100)]),
]
CHECK = [(1, "shm", [uncontended(2, 20, 5), uncontended(1, 20, 5, linger=60), tries(1, 20, 5), handoff(2, 2, 20), wanted(1, 20, 4), drain(10), holders(2, 1, 1, told=3000), manylocks(2, 1, 20)])]


# ---- peers ----


def commands(bench, k, n, warm=0, **_):
    """What a peer is told before what is measured, and then. `settle` and `sleep` are for this program."""
    turns = [f"go n={k}", "join"]
    return {
        "uncontended": ([f"turns n={warm}"], [f"turns n={n}"]),
        # With linger, each session finds the node that the other has left.
        "wanted": ([f"turns n={warm}"], [f"turns n={n}"]),
        "tries": (["acquire m=1", f"tries n={warm}"], [f"tries n={n}"]),
        "handoff": (["start"], [f"go n={n}", "join"]),
        "drain": (["acquire m=1", "start", f"go n={n}", "settle"], ["release", "join"]),
        "holders": ([f"acquire m={k}", f"sleep {warm}"], [f"sleep {n}"]),
        # Locks apart have a turn each. The first round creates the parents.
        "manylocks": (["start", *turns], turns * n),
    }[bench]


class Peer:
    def __init__(self, name, command):
        self.name, self.command, self.p = name, command, None

    def start(self):
        if not self.p or self.p.poll() is not None:
            self.p = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            self.buffer = b""

    def line(self, deadline):
        while b"\n" not in self.buffer:
            if not select.select([self.p.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("no answer in time")
            chunk = os.read(self.p.stdout.fileno(), 65536)
            if not chunk:
                raise EOFError(f"peer ended: {self.p.wait()}")
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def bench(self, servers, bench, params, path, limit):
        """Figures of one run. Adds those that only the servers and /proc have."""
        self.start()
        pin(self.p.pid, PEER_CORES if servers.pin else CORES)
        connect = servers.connect if params["sessions"] > 1 else servers.one
        figures, deadline = {}, time.monotonic() + limit
        nodes, began = servers.counters()["zk_znode_count"], time.monotonic()

        def tell(command):
            if command == "settle":
                servers.settle(nodes + (2 if self.name in QUEUES_AT_HOME else params["k"]))
                figures["queue_s"] = time.monotonic() - began
            elif command.startswith("sleep "):
                time.sleep(int(command.split()[1]))
            else:
                self.p.stdin.write(f"{command}\n".encode())
                return self.line(deadline)

        def counters():
            return servers.counters() + collections.Counter(client_cpu=cpu(self.p.pid))

        before, then = commands(bench, **params)
        tell(" ".join(["begin", f"connect={connect}", f"path={path}", *(f"{key}={value}" for key, value in params.items())]))
        for command in before:
            tell(command)
        start = counters()
        for command in then:
            tell(command)
        end = counters()
        figures |= timed(bench, params, tell("end")["spans"])
        turns = params["n"] * (params["k"] if bench == "manylocks" else 1)
        spent = collections.Counter({key: (end[key] - start[key]) / turns for key in end})
        if "zk_packets_received" in spent:
            figures["requests"] = spent["zk_packets_received"]
        if bench == "holders":
            figures["writes_per_s"], figures["log_bytes_per_s"] = spent["writes"], spent["log"]
        if "bytes" in spent:
            figures["packets"] = spent["zk_packets_received"] + spent["zk_packets_sent"]
            figures["bytes"] = spent["bytes"]
        figures["client_cpu_us"] = spent["client_cpu"] * 1e6
        figures["server_cpu_us"] = spent["server_cpu"] * 1e6
        return figures

    def stop(self):
        if self.p and self.p.poll() is None:
            self.p.kill()
            self.p.wait()


def timed(bench, params, spans):
    """The figures in the times of a peer: of each turn, when acquire was called and returned, and release was called and returned, in ns."""
    if not spans:
        return {}
    called, acquired, left, released = zip(*sorted(spans[params.get("warm", 0) :], key=lambda span: span[1]))
    figures, k = {}, params["k"]

    def quantiles(name, ns):
        ns = sorted(ns)
        figures[f"{name}_p50_us"], figures[f"{name}_p99_us"] = ns[len(ns) // 2] / 1e3, ns[len(ns) * 99 // 100] / 1e3

    acquires, releases = list(map(operator.sub, acquired, called)), list(map(operator.sub, released, left))
    handoffs = list(map(operator.sub, acquired[1:], left))
    if bench in WAIT:
        figures["violations"] = sum(gap < 0 for gap in handoffs)
    if bench == "uncontended":
        figures["ops_per_s"] = params["n"] * 1e9 / (released[-1] - called[0])
        quantiles("acquire", acquires)
        quantiles("release", releases)
        quantiles("both", map(operator.add, acquires, releases))
    elif bench == "tries":
        figures["tries_per_s"] = params["n"] * 1e9 / sum(acquires)
        quantiles("try", acquires)
    elif bench == "wanted":
        quantiles("wanted", acquires)
    elif bench == "handoff":
        figures["acquisitions_per_s"] = (params["n"] - 1) * 1e9 / (acquired[-1] - acquired[0])
        quantiles("handoff", handoffs)
    elif bench == "drain":  # the holder was first
        figures["drain_s"] = (max(released) - left[0]) / 1e9
    else:  # each round of manylocks, of which the first creates the parents
        rounds = (slice(at, at + k) for at in range(0, len(spans), k))
        first, *rates = (k * 1e9 / (max(released[its]) - min(called[its])) for its in rounds)
        figures["first_locks_per_s"], figures["locks_per_s"] = first, sorted(rates)[len(rates) // 2]
    return figures


def warm(servers, seconds):
    """For the servers' JIT: creates, deletes, lists and watches."""
    peer, end = Peer("warm", PEERS[RAW][0]), time.monotonic() + seconds
    while time.monotonic() < end:
        for bench, _, params in (manylocks(1, 1), handoff(1, 8, 500)):
            peer.bench(servers, bench, params, "/warm", 60)
    peer.stop()


def run(plan, peers, args, out):
    live = {name: Peer(name, command) for name, (command, _) in peers.items()}
    others = {}
    try:
        others.update((name, Other(kind, args.port + 100 + 10 * i))
                      for i, (name, kind) in enumerate(OTHERS.items()) if name in peers)
        run_plan(plan, peers, live, others, args, out)
    finally:
        for other in others.values():
            other.stop()
        for peer in live.values():
            peer.stop()
        print("\r".ljust(80) + "\r", end="", file=sys.stderr)


def run_plan(plan, peers, live, others, args, out):
    serial = 0
    for n, storage, benches in plan:
        kind = "standalone" if n == 1 else "ensemble"
        if args.servers and kind not in args.servers or args.storage and storage not in args.storage:
            continue
        servers = Servers(n, storage, args.port)
        try:
            warm(servers, 1 if args.check else 4 if args.quick else 8)
            for bench, rounds, params in benches:
                if args.bench and bench not in args.bench:
                    continue
                for r in range(args.rounds or rounds):
                    for name, (_, able) in peers.items():
                        p = dict(params)
                        if bench not in able or name in others and (n, storage) != (1, "shm"):
                            continue
                        if not name.startswith("zklock"):
                            p = {key: value for key, value in p.items() if key not in OURS}
                        if bench == "holders" and not params.keys() <= p.keys():
                            continue  # it has been measured without that
                        serial += 1
                        row = dict(server=kind, storage=storage, bench=bench, params=params, peer=name, round=r)
                        began = time.monotonic()
                        try:
                            row["figures"] = live[name].bench(others.get(name, servers), bench, p, f"/b{serial}", 600 if bench == "holders" else args.limit)
                        except (OSError, EOFError, TimeoutError) as e:
                            row["error"] = str(e)
                            live[name].stop()
                        row["took_s"] = round(time.monotonic() - began, 2)
                        out.append(row)
                        print(json.dumps(row), file=args.log, flush=True)
                        print(f"\r{kind} {storage} {bench} {name} round {r} ".ljust(79), end="", file=sys.stderr)
        finally:
            servers.stop()


# ---- tables ----

HEAD = {  # column: (figure, format)
    "uncontended": {"both p50": ("both_p50_us", ".1f"), "ops/s": ("ops_per_s", ".0f"), "acquire p50": ("acquire_p50_us", ".0f"),
                    "p99": ("acquire_p99_us", ".0f"), "release p50": ("release_p50_us", ".0f"),
                    "p99 ": ("release_p99_us", ".0f")},
    "handoff": {"handoff p50": ("handoff_p50_us", ".0f"), "p99": ("handoff_p99_us", ".0f"),
                "acq/s": ("acquisitions_per_s", ".0f")},
    "drain": {"drain s": ("drain_s", ".2f"), "queue s": ("queue_s", ".1f")},
    "manylocks": {"locks/s": ("locks_per_s", ".0f"), "first": ("first_locks_per_s", ".0f")},
    "tries": {"try p50": ("try_p50_us", ".1f"), "p99": ("try_p99_us", ".0f"), "tries/s": ("tries_per_s", ".0f")},
    "holders": {"writes/s": ("writes_per_s", ".1f"), "log bytes/s": ("log_bytes_per_s", ".0f")},
    "wanted": {"wanted p50": ("wanted_p50_us", ".0f"), "p99": ("wanted_p99_us", ".0f")},
}
COMPARED = {bench: next(iter(columns.values()))[0] for bench, columns in HEAD.items()}
COSTS = {"requests": ("requests", ".1f"), "packets": ("packets", ".1f"), "bytes": ("bytes", ".0f"),
         "client cpu": ("client_cpu_us", ".0f"), "server cpu": ("server_cpu_us", ".0f")}


def tables(rows):
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        key = (row["server"], row["storage"], row["bench"], tuple(row["params"].items()))
        groups[key][row["peer"]].append(row)
    for (server, storage, bench, params), by_peer in groups.items():
        print(f"\n### {bench} {' '.join(f'{k}={v}' for k, v in params)} — {server}, {storage}\n")
        columns, main = HEAD[bench] | COSTS, COMPARED[bench]
        good = {p: [r["figures"] for r in rs if "figures" in r] for p, rs in by_peer.items()}
        median = lambda peer, figure: statistics.median(f[figure] for f in good[peer])
        time_of = lambda peer: 1 / median(peer, main) if main.endswith("per_s") else median(peer, main)
        raw = time_of(RAW) if good.get(RAW) else None
        print("| peer | × raw |", " | ".join(columns), "| spread |")
        print("|---|" + "---:|" * (len(columns) + 2))
        for peer, rs in by_peer.items():
            bad = [r["error"] for r in rs if "error" in r]
            bad += [f"{f['violations']:.0f} overlaps" for f in good[peer] if f.get("violations")]
            note = f" ({len(bad)} of {len(rs)}: {bad[0]})" if bad else ""
            if not good[peer]:
                print(f"| {peer}{note} |" + " |" * (len(columns) + 2))
                continue
            ratio = format(time_of(peer) / raw, ".2f") if raw else ""
            values = [f[main] for f in good[peer]]
            spread = f"{100 * (max(values) - min(values)) / median(peer, main):.0f}%" if len(values) > 1 else ""
            cells = [format(median(peer, figure), form) if figure in good[peer][0] else "" for figure, form in columns.values()]
            print(f"| {peer}{note} | {ratio} |", " | ".join(cells), f"| {spread} |")


def check(rows):
    """The problems in the rows of `--check`: no peer may fail, overlap, or answer with something that is not a number."""
    wrong = [] if rows else ["nothing was measured"]
    for row in rows:
        where, figures = f"{row['bench']} of {row['peer']}", row.get("figures", {})
        if "error" in row:
            wrong.append(f"{where}: {row['error']}")
            continue
        for figure in {COMPARED[row["bench"]], *(figure for figure, _ in HEAD[row["bench"]].values())} - figures.keys():
            wrong.append(f"{where}: no {figure}")
        wrong += [f"{where}: {k} is {v}" for k, v in figures.items() if not isinstance(v, (int, float)) or not math.isfinite(v)]
        if row["bench"] in WAIT and figures.get("violations") != 0:
            wrong.append(f"{where}: {figures.get('violations', 'it does not count its')} overlaps")
    return wrong


def main():
    names = lambda s: s.split(",")
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--quick", action="store_true", help="under 2 minutes")
    ap.add_argument("--holders", action="store_true", help="what 10 to 3,000 clients cost that hold a lock each: half an hour")
    ap.add_argument("--micro", action="store_true", help="work of zklock without requests")
    ap.add_argument("--check", action="store_true", help="under a minute: that every peer works, without figures of use")
    ap.add_argument("--servers", type=names, help="standalone,ensemble")
    ap.add_argument("--storage", type=names, help="shm,disk,nosync")
    ap.add_argument("--bench", type=names, help="uncontended,tries,wanted,handoff,drain,manylocks,holders")
    ap.add_argument("--only", type=names, help="these peers (the raw one stays, for the ratios)")
    ap.add_argument("--rounds", type=int)
    ap.add_argument("--limit", type=float, default=40, help="seconds one run may take")
    ap.add_argument("--port", type=int, default=21810)
    ap.add_argument("--priority", type=int, help="nice value of this terminal session as a whole (root for < 0)")
    ap.add_argument("--log", type=argparse.FileType("w"), default=os.devnull, help="results as JSON lines")
    ap.add_argument("--show", type=argparse.FileType(), help="only print the tables of such a log")
    args = ap.parse_args()
    if args.show:
        return tables([json.loads(line) for line in args.show])
    if unknown := {*(args.only or [])} - PEERS.keys():
        ap.error(f"no peer {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    keep = lambda n: (not args.only or n in args.only or n == RAW) and (not args.micro or n in QUEUES_AT_HOME)
    peers = {n: p for n, p in PEERS.items() if keep(n)}
    if args.priority:  # over what else runs here; see autogroup in sched(7)
        pathlib.Path("/proc/self/autogroup").write_text(str(args.priority))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rows, start = [], time.monotonic()
    disk = fdatasync()
    try:
        run(CHECK if args.check else QUICK if args.quick else HOLDERS if args.holders else MICRO if args.micro else FULL, peers, args, rows)
    finally:
        if args.priority:
            pathlib.Path("/proc/self/autogroup").write_text("0")
        tables(rows)
        print(f"\n{disk} {time.monotonic() - start:.0f} s in all."
              f"\n× raw: time over that of {RAW}."
              " Latencies and CPU in us; both = acquire+release. requests, packets, bytes (TCP payload, both ways), CPU:"
              " per acquire+release. spread ((max - min) / median over the rounds) and × are those of the first column.")
    if args.check and (wrong := check(rows)):
        sys.exit("tests/bench/run --check: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
