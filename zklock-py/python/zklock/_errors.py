"""The exceptions. Their common base is ``Error``. The class of an exception says what the caller can do about it."""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from ._values import LossReason


class Error(Exception):
    """The base of all exceptions of zklock."""

    # The first argument is the message. Some have more.
    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class InvalidInput(Error, ValueError):
    """An argument is wrong: correct the call."""


class Unreachable(Error, ConnectionError):
    """No server could be reached: check the hosts and the network, or try again later."""


class Timeout(Error, TimeoutError):
    """The time ran out before the lock was free: try again, or do without the lock."""


class Deadlock(Error, RuntimeError):
    """The wait could never end, because only this thread or task can release the hold that it waits for; or it would stop the
    event loop that runs in this thread. Correct the program.
    """


class NotOwner(Error, RuntimeError):
    """The hold is of a reentrant lock that another thread or task acquired: release it there."""


class NotHeld(Error, RuntimeError):
    """The lock is not held, or the hold was already released: correct the program."""


class LockLost(Error):
    """The hold is lost, and others may hold the lock: stop the work that it guarded. ``reason`` says why.

    >>> zklock.LockLost("as in a test", zklock.LossReason.NODE_DELETED).reason
    <LossReason.NODE_DELETED: 'its node was deleted'>
    """

    # Its arguments are the message and the reason. There is no __init__, so making one runs no Python code of ours, and works at any
    # time.

    @property
    def reason(self) -> LossReason | None:
        """Why the hold was lost. ``None`` only if the exception was made without a reason."""
        return typing.cast("LossReason", self.args[1]) if len(self.args) > 1 else None


class AtRisk(Error):
    """The lock is held, but not certain to be held for long enough: begin nothing, and ask again. See ``Hold.ensure``."""


class ForeignContender(Error):
    """A contender that cannot see ours is in the queue: make both sides use the same naming scheme (``naming``)."""


class Refused(Error):
    """An access list, a rule of the servers or a limit of this system forbids it: correct the rights, the setup or the limit."""


class Closed(Error):
    """The client, or the embedded server, is closed: make a new one."""


class Uncertain(Error):
    """The reply to guarded writes was lost: either all or none of them are done. ``Hold.read`` says what to do."""


class Conflict(Error):
    """A guarded write was refused because its node had another version, already existed, or did not exist. Nothing was written.

    ``index`` and ``path`` say which write it was.
    """

    # Its arguments are the message, the index and the path. A program that makes one itself may leave out the last two.

    @property
    def index(self) -> int | None:
        """Which of the writes was refused, counting from 0."""
        return typing.cast("int", self.args[1]) if len(self.args) > 1 else None

    @property
    def path(self) -> str | None:
        """The path of the node of that write."""
        return typing.cast("str", self.args[2]) if len(self.args) > 2 else None


class StaleToken(Error):
    """A fence refused a write, because a later holder has written: stop the work. See ``zklock.fence``.

    >>> zklock.StaleToken("as in a test", "/locks/doc", 5, 9).written
    9
    """

    # Its arguments are the message, the name, our token and the greatest one. A program that makes one itself may leave out the last
    # three.

    @property
    def name(self) -> str | None:
        """The name of the fence: by default the path of the lock."""
        return typing.cast("str", self.args[1]) if len(self.args) > 1 else None

    @property
    def token(self) -> int | None:
        """The token that was refused."""
        return typing.cast("int", self.args[2]) if len(self.args) > 2 else None

    @property
    def written(self) -> int | None:
        """The greatest token that has written."""
        return typing.cast("int", self.args[3]) if len(self.args) > 3 else None


class OtherEnsemble(Error):
    """A fence refused a write, because it keeps the token of another ensemble, with which ours cannot be compared. If no holder
    of that ensemble can still write, reset the fence, as the message says.
    """

    # Its arguments are the message, the name, our ensemble and that of the fence. A program that makes one itself may leave out the
    # last three.

    @property
    def name(self) -> str | None:
        """The name of the fence: by default the path of the lock."""
        return typing.cast("str", self.args[1]) if len(self.args) > 1 else None

    @property
    def ensemble(self) -> str | None:
        """The identity of the ensemble whose token was refused."""
        return typing.cast("str", self.args[2]) if len(self.args) > 2 else None

    @property
    def kept(self) -> str | None:
        """The identity of the ensemble whose token the fence keeps."""
        return typing.cast("str", self.args[3]) if len(self.args) > 3 else None


class Forked(Error, RuntimeError):
    """The client was connected in the process from which this one was forked. Its locks stay with that process.

    Make a new client after the fork, or start processes without a fork, as ``multiprocessing`` does with ``spawn``.
    """


# They are known by the name of the package.
for _cls in [Error, *Error.__subclasses__()]:
    _cls.__module__ = "zklock"
