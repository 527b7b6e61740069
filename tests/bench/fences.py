"""Measures what a fenced write costs beside the bare one: PostgreSQL, Redis, and a server of HTTP over PostgreSQL.

Called by `run --fences`. README.md says what is measured.
"""

from __future__ import annotations

import argparse
import array
import contextlib
import functools
import http.client
import multiprocessing
import os
import pathlib
import re
import signal
import statistics
import sys
import time
import typing

FENCES = pathlib.Path(__file__).resolve().parents[1] / "fences"
# Before the folder of this file, which has a module `servers` too.
sys.path.insert(0, str(FENCES))

import psycopg
import redis
import servers
from disk import fdatasync
from holds import Held
from werkzeug.serving import make_server

from zklock import fence

CORES = sorted(os.sched_getaffinity(0))
SERVER_CORES, CLIENT_CORES = CORES[: len(CORES) // 2] or CORES, CORES[len(CORES) // 2 :]
COUNTS = (1, 16)
WORKS = ("bare", "fenced")
ROUND = 0.5
# Longer than a round takes on a busy machine.
PATIENCE = 60.0
FORK = multiprocessing.get_context("fork")

UPDATE = "UPDATE account SET amount = amount + 1 WHERE name = %s"
Write = typing.Callable[[], object]
Open = typing.Callable[[int], typing.Dict[str, Write]]
"""Opens the connection of one client, and gives the writes that it does over it. Each client writes under a name of its own."""


# ---- what is written to ----


def where(port: int) -> dict[str, typing.Any]:
    return {"host": "127.0.0.1", "port": port, "user": "test", "dbname": "postgres"}


def held(at: int) -> Held:
    return Held(f"/locks/{at}", 5)


def update(connection: typing.Any, name: str) -> None:
    connection.execute(UPDATE, (name,))


def to_postgresql(port: int, at: int) -> dict[str, Write]:
    connection, hold, name = psycopg.connect(**where(port)), held(at), str(at)

    def bare() -> None:
        with connection.transaction():
            update(connection, name)

    def fenced() -> None:
        with fence.transaction(connection, hold):
            update(connection, name)

    return {"bare": bare, "fenced": fenced}


def to_redis(port: int, at: int) -> dict[str, Write]:
    client, hold, key = redis.Redis(port=port), held(at), f"account:{at}"
    guarded = fence.Redis(client)
    return {"bare": lambda: client.set(key, "100"), "fenced": lambda: guarded.set(hold, key, "100")}


def to_http(port: int, at: int) -> dict[str, Write]:
    connection, hold = http.client.HTTPConnection("127.0.0.1", port), held(at)

    def post(path: str, headers: dict[str, str]) -> None:
        connection.request("POST", path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 204, f"{answer.status} {answer.reason}"

    return {"bare": lambda: post(f"/bare/{at}", {}), "fenced": lambda: post(f"/fenced/{at}", fence.headers(hold))}


def application(port: int) -> typing.Any:
    """An application over PostgreSQL, behind the fence or not. It keeps its connections to the database for later requests."""
    spare: list[typing.Any] = []

    @contextlib.contextmanager
    def connected() -> typing.Iterator[typing.Any]:
        try:
            connection = spare.pop()
        except IndexError:
            connection = psycopg.connect(**where(port))
        yield connection
        spare.append(connection)

    @contextlib.contextmanager
    def guard(stamp: fence.Stamp) -> typing.Iterator[typing.Any]:
        with connected() as connection, fence.transaction(connection, stamp):
            yield connection

    def pay_in(environ: dict[str, typing.Any], start_response: typing.Any) -> list[bytes]:
        update(environ["zklock.fenced"], environ["PATH_INFO"].rpartition("/")[2])
        start_response("204 No Content", [])
        return []

    def bare(environ: dict[str, typing.Any], start_response: typing.Any) -> list[bytes]:
        with connected() as connection, connection.transaction():
            return pay_in({**environ, "zklock.fenced": connection}, start_response)

    fenced = fence.wsgi(pay_in, guard)
    return lambda environ, start_response: (fenced if environ["PATH_INFO"].startswith("/fenced/") else bare)(environ, start_response)


@contextlib.contextmanager
def postgresql(fsync: bool) -> typing.Iterator[servers.Server]:
    with servers.running(functools.partial(servers.postgresql, fsync=fsync)) as server:
        with psycopg.connect(**where(server.port)) as connection:
            connection.execute(fence.create_table("postgresql"))
            connection.execute("CREATE TABLE account (name TEXT PRIMARY KEY, amount BIGINT NOT NULL)")
            connection.cursor().executemany("INSERT INTO account VALUES (%s, 0)", [(str(at),) for at in range(max(COUNTS))])
        yield server


@contextlib.contextmanager
def serving(application: typing.Any) -> typing.Iterator[int]:
    """The port of a process that serves it, each request with a connection and a thread of its own."""
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=servers.Quiet)
    process = FORK.Process(target=server.serve_forever, daemon=True)
    process.start()
    server.server_close()
    try:
        yield server.server_port
    finally:
        process.terminate()
        process.join()


# ---- clients ----


def timed(write: Write, seconds: float) -> array.array[int]:
    """How many ns each write took, one after the other for that long: at least one."""
    took = array.array("q")
    now = time.perf_counter_ns()
    end = now + int(seconds * 1e9)
    while True:
        write()
        before, now = now, time.perf_counter_ns()
        took.append(now - before)
        if now >= end:
            return took


def client(opened: Open, at: int, orders: typing.Any) -> None:
    """The process of a client."""
    os.sched_setaffinity(0, CLIENT_CORES)
    writes = opened(at)
    for what, seconds in iter(orders.recv, None):
        orders.send(timed(writes[what], seconds))


class Clients:
    """Processes that write at the same time."""

    def __init__(self, opened: Open, count: int) -> None:
        self._orders, self._processes = [], []
        for at in range(count):
            ours, theirs = FORK.Pipe()
            self._processes.append(FORK.Process(target=client, args=(opened, at, theirs), daemon=True))
            self._processes[-1].start()
            # So that the end of the process is the end of the pipe.
            theirs.close()
            self._orders.append(ours)

    def __call__(self, what: str, seconds: float) -> list[int]:
        """How many ns each write of a round took, by all clients."""
        for orders in self._orders:
            orders.send((what, seconds))
        took: list[int] = []
        for orders in self._orders:
            if not orders.poll(seconds + PATIENCE):
                raise TimeoutError("a client does not end its round")
            took.extend(orders.recv())
        return took

    def close(self) -> None:
        for process in self._processes:
            process.terminate()
            process.join()


class Round(typing.NamedTuple):
    p50_us: float
    p99_us: float
    writes: float
    """In a second."""

    @classmethod
    def of(cls, took: list[int], seconds: float) -> Round:
        ordered = sorted(took)
        return cls(ordered[len(ordered) // 2] / 1e3, ordered[len(ordered) * 99 // 100] / 1e3, len(ordered) / seconds)


Rounds = typing.Dict[str, typing.List[Round]]


def measured(opened: Open, count: int, seconds: float) -> Rounds:
    """Rounds of bare and of fenced writes in turn, over the same connections. Every second pair begins with the fenced one."""
    rounds: Rounds = {what: [] for what in WORKS}
    with contextlib.closing(Clients(opened, count)) as clients:
        for what in WORKS:
            clients(what, ROUND)
        for pair in range(max(1, round(seconds / (len(WORKS) * ROUND)))):
            for what in WORKS[:: -1 if pair % 2 else 1]:
                rounds[what].append(Round.of(clients(what, ROUND), ROUND))
    return rounds


# ---- what PostgreSQL sees ----


Statements = typing.Dict[str, typing.List[str]]


def statements(server: servers.Server, opened: Open) -> Statements:
    """The first word of each statement that a write sends, from the log of the server."""
    seen: Statements = {}
    with psycopg.connect(**where(server.port), autocommit=True) as database:
        database.execute("ALTER ROLE test SET log_statement = 'all'")
        with contextlib.closing(Clients(opened, 1)) as clients:
            for what in WORKS:
                # psycopg prepares a statement that it has seen several times.
                clients(what, 0.1)
                before = server.log.stat().st_size
                clients(what, 0)
                with server.log.open() as log:
                    log.seek(before)
                    seen[what] = re.findall(r"LOG:  (?:statement|execute [^:]*): (\w+)", log.read())
        database.execute("ALTER ROLE test RESET log_statement")
    return seen


def table(title: str, rounds: Rounds, seen: Statements) -> None:
    print(f"\n### {title}\n\n| write | × bare | least | greatest | p50 | p99 | writes/s | statements |")
    print("|---|" + "---:|" * 6 + "---|")
    ratios = [fenced.p50_us / bare.p50_us for bare, fenced in zip(rounds["bare"], rounds["fenced"])]
    for what, found in rounds.items():
        p50, p99, writes = (statistics.median(figures) for figures in zip(*found))
        ratio = p50 / statistics.median(bare.p50_us for bare in rounds["bare"])
        cells = [f"{ratio:.2f}", *(f"{ratio:.2f}" for ratio in (min(ratios), max(ratios)))] if what == "fenced" else ["1.00", "", ""]
        print(f"| {what} |", " | ".join([*cells, f"{p50:.0f}", f"{p99:.0f}", f"{writes:.0f}", ", ".join(seen.get(what, []))]), "|", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--fences", action="store_true")
    arguments.add_argument("--seconds", type=float, default=30, help="for each table; there are ten")
    chosen = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Those of the servers that it starts too.
    os.sched_setaffinity(0, SERVER_CORES)
    start, disk, wrong = time.monotonic(), fdatasync(), []

    def compare(sink: str, storage: str, opened: Open, server: servers.Server | None = None) -> None:
        seen = statements(server, opened) if server else {}
        if server and len(seen["fenced"]) != len(seen["bare"]) + 2:
            wrong.append(f"{sink}, {storage}: {seen}")
        for count in COUNTS:
            table(f"{sink} clients={count} — {storage}", measured(opened, count, chosen.seconds), seen)

    for fsync in (True, False):
        storage = f"fsync={'on' if fsync else 'off'}"
        with postgresql(fsync) as server:
            compare("postgresql", storage, functools.partial(to_postgresql, server.port), server)
            with serving(application(server.port)) as port:
                compare("http", storage, functools.partial(to_http, port), server)
    with servers.running(servers.redis) as server:
        compare("redis", "memory", functools.partial(to_redis, server.port))
    print(
        f"\n{disk} {time.monotonic() - start:.0f} s in all."
        f"\n× bare: ratio of the p50s; least, greatest: of the pairs of rounds. Latencies in us, medians of the rounds of {ROUND} s."
    )
    if wrong:
        sys.exit("a fenced write has not two statements more than a bare one: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
