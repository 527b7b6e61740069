"""Late writes: with a fence none gets through, whatever happens to its holder.

    tests/fences/run stale [--seconds N] [--seed N]

Sixteen holders in three processes write to real servers. At random moments a process is stopped for longer than its session, and then
goes on, wherever it was: between its look at the hold and its write, or within the transaction, which every other block ends itself
with a commit or a rollback before it writes. Or it is cut off from ZooKeeper for
that long. What is guarded counts the writes of holders that came after those of a later holder: with the fence, with `hold.ensure`
alone, and with neither. It goes on until a late write was done without a fence, and one was refused by a fence: so there was danger.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import io
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing

import psycopg
import pymysql
import redis
import servers
import sinks
from databases import Address
from ground import Ground, Proxy
from moto.server import DomainDispatcherApplication, create_backend_app
from sinks import Counts
from stale_worker import BETWEEN, CONDITIONS, WITHIN

HOLDERS = (6, 5, 5)
SESSION = 1.0
# A session that nobody hears of ends at most this much later than it says.
TICK = 0.25
PATIENCE = 120.0
# So many pauses without a late write would show that there is no danger. A minute has a tenth of them, and many late writes.
ENOUGH = 600
NAMES = [f"{kind}-{condition}" for kind in sinks.KINDS for condition in CONDITIONS]


class Store:
    """moto, one request at a time, which remembers the token of each object that was put in the place of another."""

    def __init__(self) -> None:
        self.tokens: dict[str, list[int]] = collections.defaultdict(list)
        self._application, self._turn = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def __call__(self, environ: dict[str, typing.Any], start_response: typing.Any) -> list[bytes]:
        name = environ["PATH_INFO"].rpartition("/")[2]
        statuses: list[str] = []

        def begin(status: str, *rest: typing.Any) -> typing.Any:
            statuses.append(status)
            return start_response(status, *rest)

        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        with self._turn:
            answer = list(self._application(environ, begin))
            if environ["REQUEST_METHOD"] == "PUT" and name in NAMES and statuses[-1].startswith("200"):
                self.tokens[name].append(int(json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])["token"]))
        return answer


class Worker:
    """A process with holders, and what befalls it."""

    def __init__(self, where: dict[str, typing.Any], proxy: Proxy, states: pathlib.Path) -> None:
        self.holders, self._proxy, self._states = where["holders"], proxy, states
        words = [sys.executable, "-B", str(pathlib.Path(__file__).with_name("stale_worker.py")), json.dumps(where)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.befallen: collections.Counter[str] = collections.Counter()

    def trouble(self, dice: random.Random, is_over: threading.Event) -> None:
        """Strikes again and again."""
        while not is_over.wait(dice.uniform(0.5, 1.5)):
            seconds = SESSION + TICK + dice.uniform(0.1, 1)
            if dice.random() < 0.1:
                self._cut_off(seconds)
            else:
                self._stop(seconds)

    def _stop(self, seconds: float) -> None:
        self.process.send_signal(signal.SIGSTOP)
        try:
            states = self._states.read_bytes()
            self.befallen["stopped"] += 1
            self.befallen["between look and write"] += sum(states[at] == BETWEEN for at in self.holders)
            self.befallen["within a write"] += sum(states[at] == WITHIN for at in self.holders)
            time.sleep(seconds)
        finally:
            self.process.send_signal(signal.SIGCONT)

    def _cut_off(self, seconds: float) -> None:
        self.befallen["cut off"] += 1
        self._proxy("freeze", "both")
        time.sleep(seconds)
        self._proxy("thaw")

    def end(self) -> dict[str, int]:
        out, _ = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, f"a process of holders ended with {self.process.returncode}"
        return typing.cast("dict[str, int]", json.loads(out))


class Sums:
    """The counts of all sinks."""

    def __init__(self, where: dict[str, typing.Any], store: Store) -> None:
        self._sql = sinks.Sql(psycopg.connect(**Address("postgresql", where["postgresql"]).options))
        self._maria = sinks.Sql(pymysql.connect(**Address("mysql", where["mariadb"]).options))
        self._redis = sinks.Redis(redis.Redis(port=where["redis"]))
        self._files = sinks.Files(pathlib.Path(where["files"]))
        self._store = store
        self._sql.create("postgresql", NAMES)
        self._maria.create("mysql", NAMES)
        sinks.Objects(where["objects"]).create()
        for name in NAMES:
            (pathlib.Path(where["files"]) / name).mkdir()
            (pathlib.Path(where["files"]) / name / "journal").touch()

    def of(self, name: str) -> Counts:
        kind = name.partition("-")[0]
        if kind == "objects":
            return Counts.of(list(self._store.tokens[name]))
        known = {"postgresql": self._sql, "psycopg2": self._sql, "http": self._sql, "mariadb": self._maria, "redis": self._redis, "files": self._files}
        return typing.cast("Counts", known[kind].counts(name))  # type: ignore[attr-defined]

    def show_danger(self, states: pathlib.Path) -> bool:
        return any(states.read_bytes()[sum(HOLDERS) :]) and any(self.of(f"{kind}-neither").stale for kind in sinks.KINDS)


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    chosen = arguments.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ground, store = stack.enter_context(contextlib.closing(Ground())), Store()
        ground(f"start standalone tick={int(TICK * 1000)} real")
        where: dict[str, typing.Any] = {
            name: stack.enter_context(servers.running(start)).port
            for name, start in (("postgresql", servers.postgresql), ("mariadb", servers.mariadb), ("redis", servers.redis))
        }
        with pymysql.connect(host="127.0.0.1", port=where["mariadb"], user="root") as connection:
            connection.cursor().execute("CREATE DATABASE test")
        where["http"] = stack.enter_context(servers.serving(sinks.application(where["postgresql"])))
        where["objects"] = stack.enter_context(servers.serving(store))
        where.update(files=str(folder), states=str(folder / "states"), session=SESSION)
        states = folder / "states"
        states.write_bytes(bytes(2 * sum(HOLDERS)))
        sums = Sums(where, store)
        workers, first = [], 0
        for count in HOLDERS:
            proxy = ground.proxy()
            about = {"zookeeper": proxy.hosts, "holders": list(range(first, first + count)), "seed": chosen.seed}
            workers.append(Worker({**where, **about}, proxy, states))
            first += count
        return contest(workers, lambda: sums.show_danger(states), sums, chosen)


def contest(workers: list[Worker], is_shown: typing.Callable[[], bool], sums: Sums, chosen: argparse.Namespace) -> int:
    is_over, begun = threading.Event(), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(workers)) as threads:
        troubles = [
            threads.submit(worker.trouble, random.Random(chosen.seed + at), is_over) for at, worker in enumerate(workers)
        ]
        try:
            while time.monotonic() < begun + chosen.seconds or not is_shown():
                stopped = sum(worker.befallen["stopped"] for worker in workers)
                is_late = time.monotonic() >= begun + chosen.seconds and stopped >= ENOUGH
                assert not is_late, f"no late write in {stopped} pauses: neither done without a fence, nor refused by one"
                assert not any(trouble.done() for trouble in troubles) and all(worker.process.poll() is None for worker in workers)
                time.sleep(1)
        finally:
            is_over.set()
    befallen, ended = sum((worker.befallen for worker in workers), collections.Counter()), collections.Counter[str]()
    for worker in workers:
        ended.update(worker.end())
    return judged(sums, befallen, ended, time.monotonic() - begun)


def judged(sums: Sums, befallen: collections.Counter[str], ended: collections.Counter[str], seconds: float) -> int:
    print(f"{seconds:.0f} s; " + ", ".join(f"{what}: {count}" for what, count in befallen.items()))
    print("holds that ended early: " + ", ".join(f"{what}: {count}" for what, count in sorted(ended.items())))
    print(f"{'sink':12}" + "".join(f"{condition:>20}" for condition in CONDITIONS) + "   (late writes of all writes)")
    total = {condition: Counts(0, 0) for condition in CONDITIONS}
    for kind in sinks.KINDS:
        found = {condition: sums.of(f"{kind}-{condition}") for condition in CONDITIONS}
        total = {condition: Counts(*map(sum, zip(total[condition], found[condition]))) for condition in CONDITIONS}
        print(f"{kind:12}" + "".join(f"{f'{count.stale} of {count.writes}':>20}" for count in found.values()))
    print(f"{'all':12}" + "".join(f"{f'{count.stale} of {count.writes}':>20}" for count in total.values()))
    return 1 if total["fence"].stale else 0


if __name__ == "__main__":
    sys.exit(main())
