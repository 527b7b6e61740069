"""A host of the tests: a folder with an application, and the programs that run there."""

from __future__ import annotations

import os
import pathlib
import sys
import typing

from guests.programs import Program
from scenes import eventually

# Longer than anything here takes on a busy machine.
PATIENCE = 100.0

# The work of a recipe. The test sees it, and decides when it ends.
REPORTS = '''
import os, pathlib, time

FOLDER = pathlib.Path(os.environ["WORK"])


def begin():
    (FOLDER / f"{time.monotonic_ns()}-{os.getpid()}").touch()


def is_over():
    return (FOLDER / "go").exists()


def make_report(*words):
    begin()
    while not is_over():
        time.sleep(0.01)
'''


# Celery's settings, with a broker in a folder. kombu reads messages that another process is still writing, and then ends the
# worker. So each appears only when it is whole.
CELERY = '''
import io, os
from kombu.transport import filesystem


class Message(io.FileIO):
    def __init__(self, name):
        self.whole = name
        super().__init__(name + ".part", "wb")

    def close(self):
        if not self.closed:
            super().close()
            os.rename(self.whole + ".part", self.whole)


filesystem.open = lambda name, mode, **options: Message(name) if mode == "wb" else open(name, mode, **options)
broker_url = "filesystem://"
broker_transport_options = {"data_folder_in": FOLDER, "data_folder_out": FOLDER, "store_processed": False}
'''


def until(is_so: typing.Callable[[], object], what: typing.Callable[[], object]) -> None:
    """Waits until a condition is true that can only be polled."""
    eventually(is_so, PATIENCE, what)


class Hosts:
    """Hosts that have the same application."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder / "application"
        self._work = folder / "work"
        self._logs = folder / "logs"
        for new in (self._folder, self._work):
            new.mkdir()
        self._programs: list[Program] = []
        # Celery warns if it runs as root, but here it only runs our own code.
        self._environment = {"WORK": str(self._work), "C_FORCE_ROOT": "1", "PYTHONUNBUFFERED": "1"}
        self.write("reports.py", REPORTS)

    def write(self, file: str, text: str) -> pathlib.Path:
        path = self._folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def write_celery_config(self, *more: str) -> None:
        self.write("celeryconfig.py", "\n".join([CELERY.replace("FOLDER", repr(str(self.folder("queue")))), *more, ""]))

    def folder(self, name: str) -> pathlib.Path:
        """Makes a folder next to the application."""
        (self._folder / name).mkdir()
        return self._folder / name

    def python(self, *words: str) -> Program:
        return self.start(sys.executable, *words)

    def start(self, *words: str) -> Program:
        log = self._logs / str(len(self._programs))
        log.mkdir(parents=True)
        self._programs.append(Program(words, log, PATIENCE, cwd=self._folder, env={**os.environ, **self._environment}))
        return self._programs[-1]

    def begun(self) -> list[int]:
        """The processes that have begun to work, in this order."""
        marks = [mark.name.partition("-") for mark in self._work.iterdir() if mark.name != "go"]
        return [int(process) for _, _, process in sorted(marks, key=lambda mark: int(mark[0]))]

    def await_work(self, times: int) -> list[int]:
        """Waits until work has begun this number of times."""
        until(lambda: len(self.begun()) >= times, self.logs)
        return self.begun()

    def let_go(self) -> None:
        """Lets all work end, even work that begins later."""
        (self._work / "go").touch()

    def logs(self) -> str:
        return "\n".join(f"-- {program.process.args}\n{program.log()}" for program in self._programs)

    def close(self) -> None:
        for program in self._programs:
            program.kill()
