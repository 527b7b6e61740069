"""A program with locks, and a Prometheus that scrapes it."""

from __future__ import annotations

import contextlib
import itertools
import json
import pathlib
import socket
import subprocess
import threading
import typing
import urllib.error
import urllib.parse
import urllib.request

from host import until
from page import ROOT
from prometheus_client import CollectorRegistry, start_http_server

import zklock
import zklock.prometheus

BOARD = ROOT / "docs/monitoring/zklock.grafana.json"

def questions() -> dict[str, list[str]]:
    """What the board asks, by the titles of its panels, with the choices and times that Grafana would fill in."""
    filled = {"$instance": ".*", "$lock": ".*", "$__rate_interval": "10s", "$__range": "1m"}

    def asked(text: str) -> str:
        for variable, value in filled.items():
            text = text.replace(variable, value)
        return text

    panels = json.loads(BOARD.read_text())["panels"]
    return {panel["title"]: [asked(target["expr"]) for target in panel["targets"]] for panel in panels}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


class Prometheus:
    """It scrapes a program, once a second."""

    def __init__(self, folder: pathlib.Path, target: int) -> None:
        port = free_port()
        self._url = f"http://127.0.0.1:{port}/api/v1/"
        scrapes = [{"job_name": "program", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}]
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": scrapes}
        file = folder / "prometheus.yml"
        file.write_text(json.dumps(config))
        words = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
        self._log = folder / "prometheus.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)

    def __enter__(self) -> Prometheus:
        until(lambda: bool(self.ask("up == 1")), self._log.read_text)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, query: str, **times: object) -> list[dict[str, typing.Any]]:
        """The series that answer a query, now or over some time. There are none while it is not ready yet."""
        how = "query_range" if times else "query"
        url = f"{self._url}{how}?{urllib.parse.urlencode({'query': query, **times})}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                found: list[dict[str, typing.Any]] = json.load(answer)["data"]["result"]
                return found
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return []
            raise AssertionError(f"{query}: {error.read().decode()}") from None
        except OSError:
            return []


def takes_turns(lock: zklock.Lock, times: tuple[float, ...], is_over: threading.Event) -> None:
    """Holds the lock for these times, again and again."""
    held = itertools.cycle(times)
    while not is_over.is_set():
        with contextlib.suppress(zklock.Timeout), lock:
            is_over.wait(next(held))


@contextlib.contextmanager
def program(hosts: str) -> typing.Iterator[tuple[zklock.Client, int]]:
    """A program whose threads take three locks. It serves its figures at a port."""
    registry, is_over = CollectorRegistry(auto_describe=True), threading.Event()
    with zklock.Client(hosts, session_timeout=4) as zk:
        registry.register(zklock.prometheus.Collector(zk))
        server, serving = start_http_server(0, addr="127.0.0.1", registry=registry)
        # Name, how long each thread holds it, and how many threads there are. Others give up on the report.
        locks = [("report", (2.0, 0.5, 0.5, 0.5, 9.0), 2), ("import", (0.05,), 4), ("mail", (0.3, 0.4), 3)]
        threads = [
            threading.Thread(target=takes_turns, args=(zk.mutex(f"/locks/{name}", timeout=1, metrics_name=name), times, is_over))
            for name, times, count in locks
            for _ in range(count)
        ]
        for thread in threads:
            thread.start()
        try:
            yield zk, server.server_port
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
            server.shutdown()
            server.server_close()
            serving.join()
