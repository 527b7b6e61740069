"""Fenced writes to the files of a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import re
import signal
import subprocess
import sys
import typing

import pytest
from holds import Held
from scenes import Attempt, eventually

import zklock
from zklock import fence
from zklock.fence import Stamp

FENCE = ".zklock-fence"


class File(typing.NamedTuple):
    folder: fence.Directory
    stamp: Stamp

    def read(self) -> str | None:
        try:
            return self.folder.read(self.stamp, "file").decode()
        except FileNotFoundError:
            return None

    def write(self, value: str) -> None:
        self.folder.write(self.stamp, "file", value.encode())


class Folders:
    """For ``fence.check``: a folder for each name."""

    def __init__(self, above: pathlib.Path) -> None:
        self._above = above

    @contextlib.contextmanager
    def transaction(self, stamp: Stamp) -> typing.Iterator[File]:
        path = self._above / stamp.name.replace("/", "-")
        path.mkdir(exist_ok=True)
        file = File(fence.Directory(path), stamp)
        file.folder.raise_token(stamp)
        yield file


def test_it_keeps_what_a_fence_promises(tmp_path: pathlib.Path) -> None:
    report = fence.check(Folders(tmp_path), rolls_back=False)
    assert len(report.passed) == 14 and report.skipped == ("roll_back",)


# Counts calls of the system, and stops this process before or after one of them: killed, or halted until another kills it.
STOPPED = """
import os, signal, sys
from zklock import fence
folder, at, by = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
moments = 0

def moment():
    global moments
    if moments == at:
        os.kill(os.getpid(), by)
    moments += 1

def watched(call):
    def with_moments(*words, **more):
        moment()
        done = call(*words, **more)
        moment()
        return done
    return with_moments

for name in ("fsync", "pwrite", "replace"):
    setattr(os, name, watched(getattr(os, name)))
fence.Directory(folder).write(fence.Stamp("/locks/a", 9, "one"), "file", b"new" * 1000)
"""
# Three calls for the file, and three for the fence. Each has two moments.
MOMENTS = 12


def stopped(folder: pathlib.Path, at: int, by: signal.Signals) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", STOPPED, str(folder), str(at), str(by.value)])


@pytest.mark.parametrize("at", range(MOMENTS + 1))
def test_a_program_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path: pathlib.Path, at: int) -> None:
    folder = fence.Directory(tmp_path)
    folder.write(Held("/locks/a", 5), "file", b"old")
    assert stopped(tmp_path, at, signal.SIGKILL).wait(60) == (0 if at == MOMENTS else -signal.SIGKILL)
    left = (tmp_path / "file").read_bytes()
    assert left in (b"old", b"new" * 1000)
    if left != b"old":
        with pytest.raises(zklock.StaleToken):
            folder.write(Held("/locks/a", 8), "file", b"late")
    folder.write(Held("/locks/a", 9), "file", b"next")
    assert (tmp_path / "file").read_bytes() == b"next"


def test_others_wait_for_a_program_that_sleeps_while_it_writes(tmp_path: pathlib.Path) -> None:
    folder = fence.Directory(tmp_path)
    # Before the file is renamed.
    sleeper = stopped(tmp_path, 8, signal.SIGSTOP)
    try:
        os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED | os.WNOWAIT)
        later = Attempt(lambda: folder.write(Held("/locks/a", 10), "file", b"later"))
        assert not later.wait(0.3)
    finally:
        sleeper.send_signal(signal.SIGCONT)
    later.result()
    assert sleeper.wait(60) == 0 and (tmp_path / "file").read_bytes() == b"later"


def test_what_shows_is_on_the_disk_before(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def watched(name: str) -> typing.Callable[..., typing.Any]:
        call = getattr(os, name)

        def noted(first: typing.Any, *more: typing.Any, **options: typing.Any) -> typing.Any:
            path = tmp_path / (os.readlink(f"/proc/self/fd/{first}") if isinstance(first, int) else more[0])
            calls.append(f"{name} {'staged' if path.name.startswith(FENCE + '-') else path.relative_to(tmp_path)}")
            return call(first, *more, **options)

        return noted

    folder = fence.Directory(tmp_path)
    for name in ("fsync", "pwrite", "replace"):
        monkeypatch.setattr(os, name, watched(name))
    folder.write(Held("/locks/a", 5), "file", b"x")
    raised = [f"pwrite {FENCE}", f"fsync {FENCE}", "fsync ."]
    assert calls == ["fsync staged", *raised, "replace file", "fsync ."]
    calls.clear()
    # An equal token need not be written again, but the program that wrote it may have been killed before it was on the disk.
    folder.write(Held("/locks/a", 5), "file", b"y")
    assert calls == ["fsync staged", f"fsync {FENCE}", "replace file", "fsync ."]
    calls.clear()
    assert folder.read(Held("/locks/a", 6), "file") == b"y"
    assert calls == raised


def while_it_waits(path: pathlib.Path, token: int, meanwhile: typing.Callable[[], None]) -> Attempt[None]:
    """Lets a writer wait for the fence, does this meanwhile, and lets the writer go on."""
    number = os.open(path / FENCE, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        inode = os.fstat(number).st_ino
        writer = Attempt(lambda: fence.Directory(path).write(Held("/locks/a", token), "file", str(token).encode()))
        # The kernel shows one that waits with an arrow.
        eventually(lambda: re.search(rf"-> FLOCK .*:{inode} ", pathlib.Path("/proc/locks").read_text()) or writer.done())
        meanwhile()
    finally:
        os.close(number)
    return writer


def write(path: pathlib.Path, token: int) -> None:
    fence.Directory(path).write(Held("/locks/a", token), "file", str(token).encode())


def test_a_fence_that_is_deleted_while_others_wait_for_it_is_made_again(tmp_path: pathlib.Path) -> None:
    def reset() -> None:
        (tmp_path / FENCE).unlink()
        write(tmp_path, 9)

    write(tmp_path, 1)
    with pytest.raises(zklock.StaleToken):
        while_it_waits(tmp_path, 5, reset).result()
    assert (tmp_path / "file").read_bytes() == b"9"


def test_what_was_compared_in_one_folder_is_not_written_to_another(tmp_path: pathlib.Path) -> None:
    folder, old = tmp_path / "folder", tmp_path / "old"

    def exchange() -> None:
        folder.rename(old)
        folder.mkdir()
        write(folder, 9)
        # Where the writer finds it.
        for staged in old.glob(f"{FENCE}-*"):
            (folder / staged.name).write_bytes(staged.read_bytes())

    folder.mkdir()
    write(folder, 1)
    while_it_waits(folder, 5, exchange).result()
    assert ((folder / "file").read_bytes(), (old / "file").read_bytes()) == (b"9", b"5")


def test_a_process_that_is_forked_meanwhile_keeps_nobody_out(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, (ours, theirs) = os.replace, os.pipe()
    children: list[int] = []

    def forked(*words: typing.Any, **options: typing.Any) -> None:
        child = os.fork()
        if not child:
            # Until the test is over.
            os.close(theirs)
            os.read(ours, 1)
            os._exit(0)
        children.append(child)
        replace(*words, **options)

    monkeypatch.setattr(os, "replace", forked)
    write(tmp_path, 5)
    monkeypatch.undo()
    try:
        with open(tmp_path / FENCE) as next_one:
            fcntl.flock(next_one, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(theirs)
        os.waitpid(children[0], 0)
        os.close(ours)


def test_a_link_is_no_fence(tmp_path: pathlib.Path) -> None:
    (tmp_path / FENCE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=FENCE):
        write(tmp_path, 5)
    assert os.listdir(tmp_path) == [FENCE]


@pytest.mark.parametrize("file", ["file", FENCE])
def test_what_is_no_regular_file_keeps_nobody_waiting(tmp_path: pathlib.Path, file: str) -> None:
    os.mkfifo(tmp_path / file)
    with pytest.raises(zklock.InvalidInput, match=f"{file} is not a regular file"):
        fence.Directory(tmp_path).read(Held("/locks/a", 5), "file")


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o666])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: pathlib.Path, permissions: int) -> None:
    write(tmp_path, 5)
    (tmp_path / "file").chmod(permissions)
    write(tmp_path, 6)
    assert (tmp_path / "file").read_bytes() == b"6" and (tmp_path / "file").stat().st_mode & 0o777 == permissions


@pytest.mark.parametrize("room", [1, 25])
@pytest.mark.parametrize("before", [None, 5])
def test_a_token_for_which_there_is_no_room_leaves_the_fence_as_it_was(tmp_path: pathlib.Path, room: int, before: int | None) -> None:
    if before:
        write(tmp_path, before)
    text = "import resource, sys; from zklock.fence import *; resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2); "
    text += "Directory(sys.argv[1]).write(Stamp('/locks/a', 2**62, 'one'), 'file', b'')"
    ended = subprocess.run([sys.executable, "-c", text, str(tmp_path), str(room)], capture_output=True, text=True, timeout=60)
    assert "no room for the token" in ended.stderr and not list(tmp_path.glob(f"{FENCE}-*"))
    with contextlib.nullcontext() if not before else pytest.raises(zklock.StaleToken):
        write(tmp_path, 4)
    write(tmp_path, 5)


def test_the_fence_is_one_line_of_a_fixed_length(tmp_path: pathlib.Path) -> None:
    folder = fence.Directory(tmp_path)
    for token in (5, 2**63 - 1):
        folder.raise_token(Held("/locks/\u00e4 b", token))
        assert (tmp_path / FENCE).read_text() == f"one {token:019} /locks/\u00e4 b\n"


DIGITS = b"0000000000000000005"


DAMAGED = [b"one", b"\0" * 30, b"one 5 /a\n", b"one %s /a" % DIGITS, b"\xff %s /a\n" % DIGITS, b"one %s /a\n\n" % DIGITS]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_fence_is_an_error_that_says_so(tmp_path: pathlib.Path, text: bytes) -> None:
    (tmp_path / FENCE).write_bytes(text)
    with pytest.raises(zklock.Error, match="damaged, .*delete it"):
        fence.Directory(tmp_path).write(Held("/locks/a", 9), "file", b"x")
    assert os.listdir(tmp_path) == [FENCE] and (tmp_path / FENCE).read_bytes() == text


def test_a_program_that_was_stopped_before_it_kept_its_first_token_leaves_no_fence(tmp_path: pathlib.Path) -> None:
    (tmp_path / FENCE).touch()
    fence.Directory(tmp_path).write(Held("/locks/a", 5), "file", b"x")


def test_the_error_says_what_to_do(tmp_path: pathlib.Path) -> None:
    folder = fence.Directory(tmp_path)
    folder.write(Held("/locks/a", 9), "file", b"x")
    with pytest.raises(zklock.OtherEnsemble, match=f"delete {tmp_path}/{FENCE}"):
        folder.write(Held("/locks/a", 10, "two"), "file", b"y")
    with pytest.raises(zklock.InvalidInput, match="fenced under the name /locks/a, and not /locks/b"):
        folder.write(Held("/locks/b", 10), "file", b"y")
    assert sorted(os.listdir(tmp_path)) == [FENCE, "file"]
    (tmp_path / FENCE).unlink()
    folder.write(Held("/locks/b", 5, "two"), "file", b"y")


@pytest.mark.parametrize("file", ["", ".", "..", "a/b", "/etc/passwd", FENCE, f"{FENCE}-x"])
def test_only_files_of_the_folder_are_written(tmp_path: pathlib.Path, file: str) -> None:
    with pytest.raises(zklock.InvalidInput, match="name of a file"):
        fence.Directory(tmp_path).write(Held("/locks/a", 5), file, b"x")
    assert os.listdir(tmp_path) == []
