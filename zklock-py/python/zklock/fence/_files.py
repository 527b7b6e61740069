"""Fenced writes to the files of a folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pathlib
import re
import stat
import typing
import uuid

from .._errors import Error, InvalidInput
from ._stamp import Stamp, Stamped, is_refused, refusal, stamp_now

FENCE = ".zklock-fence"
# The token always has 19 digits. So a line is replaced by one of the same length, in which only digits change: nothing is cut off,
# and they are near the beginning of the file, in one sector of the disk.
_LINE = re.compile(r"([!-~]+) ([0-9]{19}) (.+)\n")


class _Folder(typing.NamedTuple):
    """A folder that is open. Its files are its own, even if another folder takes its name meanwhile."""

    number: int

    def permissions(self, file: str) -> int | None:
        """Those of a file, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            return os.stat(file, dir_fd=self.number).st_mode & 0o777
        return None

    def open(self, file: str, mode: str, flags: int, permissions: int = 0o666) -> typing.IO[bytes]:
        # A pipe must not wait for its other end.
        number = os.open(file, flags | os.O_CLOEXEC | os.O_NONBLOCK, permissions, dir_fd=self.number)
        if not stat.S_ISREG(os.fstat(number).st_mode):
            os.close(number)
            raise InvalidInput(f"{file} is not a regular file")
        return typing.cast("typing.IO[bytes]", open(number, mode))


@contextlib.contextmanager
def _lock(folder: _Folder) -> typing.Iterator[typing.IO[bytes]]:
    """Opens the file with the token, and locks it."""
    while True:
        with folder.open(FENCE, "r+b", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW) as fence:
            fcntl.flock(fence, fcntl.LOCK_EX)
            try:
                # One that was deleted while this call waited, to reset the fence, fences nothing any more.
                if os.fstat(fence.fileno()).st_nlink:
                    yield fence
                    return
            finally:
                # To close the file is not enough: a process that was forked meanwhile has it open too.
                fcntl.flock(fence, fcntl.LOCK_UN)


def _check(file: str) -> None:
    if file in ("", ".", "..") or "/" in file or file.startswith(FENCE):
        raise InvalidInput(f"give the name of a file in the folder, not {file!r}")


class Directory:
    """A folder in a local file system, in which only the holder with the greatest token writes.

    >>> import tempfile
    >>> folder = zklock.fence.Directory(tempfile.mkdtemp())
    >>> with zk.mutex("/locks/doc") as hold:
    ...     folder.write(hold, "report.txt", b"done")
    ...     folder.read(hold, "report.txt")
    b'done'

    The file ``.zklock-fence`` keeps the token. ``flock`` on it makes comparing, keeping and writing one step: another writer
    waits. A file is replaced as a whole, with its permissions, and is on the disk when ``write`` returns. If the program or the
    machine stops, the file is either the old one or the new one.

    A folder has one fence. Each method takes a hold or a ``Stamp`` first, and raises ``StaleToken`` if a later holder has
    written, ``OtherEnsemble`` if the fence is of another ensemble, and ``InvalidInput`` if it is of another name. If the system
    refuses an operation, that is an ``OSError``. In asyncio, call it in a thread, with ``await zklock.fence.stamp(hold)``.
    """

    __module__ = "zklock.fence"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = pathlib.Path(path)

    def write(self, hold: Stamped, file: str, data: bytes, *, name: str | None = None) -> None:
        """Replaces a file of the folder, or makes it."""
        _check(file)
        with self._opened() as folder:
            permissions = folder.permissions(file)
            staged = f"{FENCE}-{uuid.uuid4().hex}"
            try:
                # Before the lock, which others wait for.
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                with folder.open(staged, "xb", flags, 0o666 if permissions is None else permissions) as new:
                    if permissions is not None:
                        os.fchmod(new.fileno(), permissions)
                    new.write(data)
                    new.flush()
                    os.fsync(new.fileno())
                with self._locked(folder, stamp_now(hold, name)):
                    os.replace(staged, file, src_dir_fd=folder.number, dst_dir_fd=folder.number)
                    os.fsync(folder.number)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(staged, dir_fd=folder.number)

    def read(self, hold: Stamped, file: str, *, name: str | None = None) -> bytes:
        """Reads a file of the folder, for a decision. It raises the token, as a write does."""
        _check(file)
        with self._opened() as folder, self._locked(folder, stamp_now(hold, name)), folder.open(file, "rb", os.O_RDONLY) as old:
            return old.read()

    def raise_token(self, hold: Stamped, *, name: str | None = None) -> None:
        """Raises the token. Afterwards, writes of earlier holders are refused."""
        with self._opened() as folder, self._locked(folder, stamp_now(hold, name)):
            pass

    @contextlib.contextmanager
    def _opened(self) -> typing.Iterator[_Folder]:
        folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield _Folder(folder)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _locked(self, folder: _Folder, stamp: Stamp) -> typing.Iterator[None]:
        """While the block runs, nobody else writes, and the token is on the disk."""
        with _lock(folder) as fence:
            line = fence.read()
            new = f"{stamp.ensemble} {stamp.token:019} {stamp.name}\n".encode()
            if line:
                self._compare(stamp, line)
            if new != line and os.pwrite(fence.fileno(), new, 0) < len(new):
                # As it was.
                os.pwrite(fence.fileno(), line, 0)
                os.ftruncate(fence.fileno(), len(line))
                raise OSError(errno.EFBIG, "no room for the token: see ulimit -f, and the disk", str(self._path / FENCE))
            # Also what was written before: that writer may have been killed before it was synced.
            os.fsync(fence.fileno())
            if new != line:
                os.fsync(folder.number)
            yield

    def _compare(self, stamp: Stamp, line: bytes) -> None:
        found = _LINE.fullmatch(line.decode(errors="replace"))
        if not found:
            raise Error(
                f"{self._path / FENCE} is damaged, for example because the machine stopped while it was written: if no "
                "earlier holder can still write, delete it"
            )
        ensemble, token, name = found.groups()
        if name != stamp.name:
            raise InvalidInput(f"{self._path} is fenced under the name {name}, and not {stamp.name}")
        if is_refused(stamp, ensemble, int(token)):
            raise refusal(stamp, ensemble, int(token), f"delete {self._path / FENCE}")
