"""Celery: a worker whose parent has acquired a lock before it forks its pool."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

APPLICATION = """
import os, pathlib, sys
import celery, celery.signals
import zklock

hosts, path, folder = os.environ["HOSTS"], os.environ["LOCK"], pathlib.Path(os.environ["FOLDER"])
app = celery.Celery("application", broker="filesystem://")
queue = {"data_folder_in": str(folder / "queue"), "data_folder_out": str(folder / "queue")}
app.conf.update(broker_transport_options={**queue, "store_processed": False}, worker_hijack_root_logger=False)
own = None


@celery.signals.worker_init.connect
def check(**_):
    # In the parent, which keeps it.
    global at_start
    at_start = zklock.Client(hosts, session_timeout=4)
    at_start.mutex(path + "-parent").acquire()


@celery.signals.worker_process_init.connect
def connect(**_):
    global own
    own = zklock.Client(hosts, session_timeout=4)


@app.task
def add():
    try:
        at_start.mutex(path).acquire()
    except zklock.Forked:
        pass
    with own.mutex(path):
        number = int((folder / "number").read_text()) + 1
        (folder / "number").write_text(str(number))
    (folder / "done" / str(number)).write_text(str(os.getpid()))


if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        add.delay()
"""


def test_a_pool_of_a_worker_that_has_connected_locks(tmp_path: pathlib.Path, hosts: str, path: str) -> None:
    (tmp_path / "application.py").write_text(APPLICATION)
    (tmp_path / "number").write_text("0")
    for folder in ("queue", "done"):
        (tmp_path / folder).mkdir()
    # Celery warns if it runs as root, but here it only runs our own code.
    environment = {**os.environ, "HOSTS": hosts, "LOCK": path, "FOLDER": str(tmp_path), "C_FORCE_ROOT": "1"}
    words = ["-A", "application", "worker", "--pool", "prefork", "--concurrency", "2", "--without-gossip"]
    with (tmp_path / "log").open("w") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "celery", *words], env=environment, cwd=tmp_path, stdout=log, stderr=log
        )

    def said() -> str:
        return (tmp_path / "log").read_text()

    try:
        subprocess.run([sys.executable, "application.py", "20"], env=environment, cwd=tmp_path, check=True, timeout=50)
        until = time.monotonic() + 50
        while len(done := list((tmp_path / "done").iterdir())) < 20:
            assert time.monotonic() < until and worker.poll() is None, said()
            time.sleep(0.02)
        assert sorted(int(file.name) for file in done) == list(range(1, 21))
        assert str(worker.pid) not in {file.read_text() for file in done}
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=50) == 0, said()
        assert "Traceback" not in said()
    finally:
        worker.kill()
        worker.wait(timeout=30)
