"""The servers of the tests, each on a port of 127.0.0.1 of its own, with its data in a temporary folder."""

from __future__ import annotations

import atexit
import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import typing

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

# Longer than any of them takes to start on a busy machine.
PATIENCE = 60.0


def free_port() -> int:
    """A port that the system gives to nobody else until this process ends: it stays bound, and the server binds it, too."""
    taken = socket.socket()
    atexit.register(taken.close)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind(("127.0.0.1", 0))
    return typing.cast("int", taken.getsockname()[1])


def account() -> dict[str, typing.Any]:
    """PostgreSQL refuses to run as root."""
    if os.getuid():
        return {}
    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def environment(folder: pathlib.Path) -> dict[str, str]:
    # A server of MariaDB that starts deletes the temporary tables that it finds.
    return {**os.environ, "HOME": str(folder), "TMPDIR": str(folder)}


class Server:
    """A running server. It is ended by its number, and ends with this process."""

    def __init__(self, folder: pathlib.Path, words: list[str], port: int, end: signal.Signals = signal.SIGTERM) -> None:
        self.port, self._end = port, end
        self.log = folder / "log"
        with self.log.open("w") as log:
            about = {"cwd": folder, "env": environment(folder), "stdin": subprocess.DEVNULL, **account()}
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", end.name, *words], stdout=log, stderr=log, **about)
        latest = time.monotonic() + PATIENCE
        while not re.search("(?i)ready (to accept|for) connections", self.log.read_text()):
            if self.process.poll() is not None or time.monotonic() > latest:
                self.close()
                raise AssertionError(self.log.read_text())
            time.sleep(0.02)

    def close(self) -> None:
        self.process.send_signal(self._end)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def make(words: list[str], folder: pathlib.Path) -> None:
    about = {"cwd": folder, "env": environment(folder), "timeout": 2 * PATIENCE, **account()}
    done = subprocess.run(words, capture_output=True, text=True, check=False, **about)
    assert done.returncode == 0, done.stdout + done.stderr


def postgresql(folder: pathlib.Path, fsync: bool = False) -> Server:
    programs = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    port = free_port()
    make([str(programs / "initdb"), "--pgdata=data", "--username=test", "--auth=trust", "--no-sync", "--encoding=UTF8"], folder)
    options = [f"--port={port}", "--listen_addresses=127.0.0.1", f"--unix_socket_directories={folder}", f"--fsync={'on' if fsync else 'off'}"]
    # It need not wait for its clients.
    return Server(folder, [str(programs / "postgres"), "-D", "data", *options], port, signal.SIGINT)


def mariadb(folder: pathlib.Path) -> Server:
    port = free_port()
    data = f"--datadir={folder}/data"
    # The user root of the database needs no password.
    make(["mariadb-install-db", "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db"], folder)
    options = [data, f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder}/socket", f"--pid-file={folder}/pid"]
    return Server(folder, ["/usr/sbin/mariadbd", "--no-defaults", *options, "--innodb-lock-wait-timeout=30"], port)


def redis(folder: pathlib.Path, *options: str) -> Server:
    port = free_port()
    words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    return Server(folder, ["/usr/bin/redis-server", *words, *options], port)


def redis_cluster(folder: pathlib.Path) -> Server:
    """A cluster of one, which refuses a script whose keys are in several slots."""
    return redis(folder, "--cluster-enabled", "yes", "--cluster-port", str(free_port()))


@contextlib.contextmanager
def running(start: typing.Callable[[pathlib.Path], Server]) -> typing.Iterator[Server]:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="zklock-fences-"))
    try:
        if user := account():
            os.chown(folder, user["user"], user["group"])
        server = start(folder)
        try:
            yield server
        finally:
            server.close()
    finally:
        shutil.rmtree(folder)


class Quiet(WSGIRequestHandler):
    def log(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(application: typing.Any) -> typing.Iterator[str]:
    """The address of a server with this application of WSGI."""
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@contextlib.contextmanager
def objects() -> typing.Iterator[str]:
    """The address of moto, a stand-in for S3. It compares a condition and stores the object in two steps, so here it has one request
    at a time."""
    application, turn = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def one_at_a_time(environ: typing.Any, start_response: typing.Any) -> typing.Any:
        with turn:
            return list(application(environ, start_response))

    with serving(one_at_a_time) as address:
        yield address
