"""Fenced writes to the files of a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import re
import typing
import uuid

from .._errors import Error, InvalidInput
from ._stamp import Stamp, Stamped, is_refused, refusal, stamp_now

FENCE = ".zklock-fence"
# The token always has 19 digits. So a line is replaced by one of the same length, in which only digits change: nothing is cut off,
# and they are near the beginning of the file, in one sector of the disk.
_LINE = re.compile(r"([!-~]+) ([0-9]{19}) (.+)\n")


class Directory:
    """A folder in a local file system, in which only the holder with the greatest token writes.

    >>> import tempfile
    >>> folder = zklock.fence.Directory(tempfile.mkdtemp())
    >>> with zk.mutex("/locks/doc") as hold:
    ...     folder.write(hold, "report.txt", b"done")
    ...     folder.read(hold, "report.txt")
    b'done'

    The token is kept in the file ``.zklock-fence``. ``flock`` on it makes comparing, keeping and writing one step: another
    writer waits. A file is replaced as a whole, and is on the disk when ``write`` returns. If the program or the machine stops,
    the file is the old one or the new one.

    A folder has one fence. Each method takes a hold or a ``Stamp`` first, and raises ``StaleToken`` if a later holder has
    written, ``OtherEnsemble`` if the fence is of another ensemble, and ``InvalidInput`` if it is of another name. What the system
    refuses is an ``OSError``. In asyncio call it in a thread, with ``await zklock.fence.stamp(hold)``.
    """

    __module__ = "zklock.fence"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = pathlib.Path(path)

    def write(self, hold: Stamped, file: str, data: bytes, *, name: str | None = None) -> None:
        """Replaces a file of the folder, or makes it."""
        target = self._target(file)
        staged = self._path / f"{FENCE}-{uuid.uuid4().hex}"
        try:
            # Before the lock, which others wait for.
            with open(staged, "xb") as new:
                new.write(data)
                new.flush()
                os.fsync(new.fileno())
            with self._locked(stamp_now(hold, name)):
                os.replace(staged, target)
                self._sync()
        finally:
            staged.unlink(missing_ok=True)

    def read(self, hold: Stamped, file: str, *, name: str | None = None) -> bytes:
        """Reads a file of the folder, for a decision. It raises the token, as a write does."""
        with self._locked(stamp_now(hold, name)):
            return self._target(file).read_bytes()

    def raise_token(self, hold: Stamped, *, name: str | None = None) -> None:
        """Raises the token, so that writes of earlier holders are refused from now on."""
        with self._locked(stamp_now(hold, name)):
            pass

    @contextlib.contextmanager
    def _locked(self, stamp: Stamp) -> typing.Iterator[None]:
        """While the block runs, nobody else writes, and the token is on the disk."""
        with open(os.open(self._path / FENCE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b", buffering=0) as fence:
            fcntl.flock(fence, fcntl.LOCK_EX)
            line = fence.read()
            new = f"{stamp.ensemble} {stamp.token:019} {stamp.name}\n".encode()
            if line:
                self._compare(stamp, line)
            if new != line:
                os.pwrite(fence.fileno(), new, 0)
                os.fsync(fence.fileno())
                self._sync()
            yield

    def _compare(self, stamp: Stamp, line: bytes) -> None:
        found = _LINE.fullmatch(line.decode(errors="replace"))
        if not found:
            raise Error(
                f"{self._path / FENCE} is damaged, as when the machine stops while it is written: if no earlier holder can still "
                "write, delete it"
            )
        ensemble, token, name = found.groups()
        if name != stamp.name:
            raise InvalidInput(f"{self._path} is fenced under the name {name}, and not {stamp.name}")
        if is_refused(stamp, ensemble, int(token)):
            raise refusal(stamp, ensemble, int(token), f"delete {self._path / FENCE}")

    def _target(self, file: str) -> pathlib.Path:
        if file in ("", ".", "..") or "/" in file or file.startswith(FENCE):
            raise InvalidInput(f"the name of a file in the folder is wanted, not {file!r}")
        return self._path / file

    def _sync(self) -> None:
        folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
