"""The exceptions. All have one base, ``Error``; each says by its class what the caller can do about it."""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from ._values import LossReason


class Error(Exception):
    """The base of all exceptions of zklock."""

    __module__ = "zklock"


class InvalidInput(Error, ValueError):
    """An argument is wrong: correct the call."""

    __module__ = "zklock"


class Unreachable(Error, ConnectionError):
    """No server could be reached: check the hosts and the network, or try again later."""

    __module__ = "zklock"


class Timeout(Error, TimeoutError):
    """The time was over before the lock was free: try again, or do without."""

    __module__ = "zklock"


class Deadlock(Error, RuntimeError):
    """The wait could never end, because this thread or task itself holds the lock, and no other can release it: correct
    the program.
    """

    __module__ = "zklock"


class NotOwner(Error, RuntimeError):
    """The hold is of a reentrant lock, and belongs to another thread or task: release it there."""

    __module__ = "zklock"


class NotHeld(Error, RuntimeError):
    """The lock is not held, or the hold has been released before: correct the program."""

    __module__ = "zklock"


class LockLost(Error):
    """The hold is lost: stop what it guarded, because others may hold the lock. ``reason`` says why.

    >>> zklock.LockLost("as in a test", zklock.LossReason.NODE_DELETED).reason
    <LossReason.NODE_DELETED: 'its node was deleted'>
    """

    __module__ = "zklock"

    # Made without running code of ours, and so at any time: its arguments are the message and the reason.

    @property
    def reason(self) -> LossReason | None:
        """Why the hold was lost. ``None`` only if the exception was made without a reason."""
        return typing.cast("LossReason", self.args[1]) if len(self.args) > 1 else None

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ForeignContender(Error):
    """A contender that cannot see ours is in the queue: let both sides use one naming scheme."""

    __module__ = "zklock"


class Refused(Error):
    """The servers' rules or the system forbid it: correct the rights, the setup or the limits."""

    __module__ = "zklock"


class Closed(Error):
    """The client, or the embedded server, is closed: make a new one."""

    __module__ = "zklock"


class Uncertain(Error):
    """The reply to guarded writes was lost: all of them were done, or none. Find out with ``Hold.read``, then decide."""

    __module__ = "zklock"


class Conflict(Error):
    """A guarded write was refused: its node had another version, existed already, or did not exist. Nothing was written.

    ``index`` and ``path`` say which write it was.
    """

    __module__ = "zklock"

    # Its arguments are the message, the index and the path; a program that makes one itself may leave out the last two.

    @property
    def index(self) -> int | None:
        """Which of the writes was refused, counted from 0."""
        return typing.cast("int", self.args[1]) if len(self.args) > 1 else None

    @property
    def path(self) -> str | None:
        """The path of the node of that write."""
        return typing.cast("str", self.args[2]) if len(self.args) > 2 else None

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ForkedError(Error, RuntimeError):
    """This process was forked from one that had connected: its locks stay with its parent.

    Connect after the fork, or start the process anew: ``multiprocessing`` with ``spawn`` does.
    """

    __module__ = "zklock"
