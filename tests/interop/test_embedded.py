"""ZooKeeper's own C client works on the embedded server as on a real one."""

from __future__ import annotations

import pathlib
import subprocess
import typing

import pytest
from contest import BUILT
from ground import PROGRAM, Ground

CLIENT: typing.Final = BUILT / "zookeeper-client"
EMBEDDED: typing.Final = pathlib.Path(PROGRAM).with_name("zklock-testkit")


class Embedded:
    """The running program, which ends with its input."""

    def __init__(self) -> None:
        self._program = subprocess.Popen([EMBEDDED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._program.stdin is not None and self._program.stdout is not None
        self._orders, self._answers = self._program.stdin, self._program.stdout
        self.hosts = self._answers.readline().strip()

    def cut(self) -> None:
        print("cut", file=self._orders, flush=True)
        assert self._answers.readline() == "ok\n"

    def close(self) -> None:
        self._orders.close()
        assert self._program.wait(timeout=10) == 0
        self._answers.close()


class Real:
    """The ground's server, behind a proxy."""

    def __init__(self, ground: Ground) -> None:
        self._proxy = ground.proxy()
        self.hosts = self._proxy.hosts

    def cut(self) -> None:
        self._proxy("cut")

    def close(self) -> None:
        pass


@pytest.mark.parametrize("kind", ["embedded", "real"])
def test_the_c_client(kind: str, ground: Ground) -> None:
    server = Embedded() if kind == "embedded" else Real(ground)
    if kind == "real":
        ground("create /c-client")
        server.hosts += "/c-client"
    try:
        client = subprocess.Popen([CLIENT, server.hosts], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert client.stdin is not None and client.stdout is not None
        seen = []
        for line in client.stdout:
            seen.append(line.strip())
            if line == "cut me\n":
                server.cut()
                print("cut", file=client.stdin, flush=True)
        client.stdin.close()
        client.stdout.close()
        assert client.wait(timeout=30) == 0
        assert seen == ["nodes", "watches", "transactions", "access lists", "cut me", "reconnect", "closed"]
    finally:
        server.close()
