"""Fenced transactions in databases that speak SQL."""

from __future__ import annotations

import contextlib
import types
import typing

from .._errors import Error, InvalidInput
from ._blocks import TAKEN, driver
from ._drivers import Driver
from ._settle import now
from ._stamp import AnyStamped, Held, Stamp, Stamped, refusal, stamp_later, stamp_now
from ._statements import REFUSED, statements


class _Blocking(typing.Protocol):
    def commit(self) -> None: ...


class _Asynchronous(typing.Protocol):
    def commit(self) -> typing.Awaitable[None]: ...


class _Asyncpg(typing.Protocol):
    def is_in_transaction(self) -> bool: ...


Blocking = typing.TypeVar("Blocking", bound=_Blocking)
Asynchronous = typing.TypeVar("Asynchronous", bound=typing.Union[_Asynchronous, _Asyncpg])
Connection = typing.TypeVar("Connection")


class _Fenced(typing.Generic[Connection]):
    def __init__(self, driver: Driver, hold: AnyStamped, name: str | None) -> None:
        self._driver = driver
        self._hold = hold
        self._name = name

    async def _begin(self, stamp: Stamp) -> Connection:
        if await self._driver.is_taken():
            raise InvalidInput(TAKEN)
        try:
            await self._driver.begin()
            await self._raise_token(stamp)
            if await self._driver.commits_by_itself():
                raise InvalidInput("the connection commits each statement by itself: give one that has transactions")
            await self._driver.mark_begin()
        except BaseException as error:
            await self._end(error)
            raise
        return typing.cast("Connection", self._driver.connection)

    async def _raise_token(self, stamp: Stamp) -> None:
        known = statements(self._driver.dialect)
        try:
            if await self._driver.raise_token(known.raise_token, stamp.name, stamp.ensemble, stamp.token):
                return
        except Exception as error:
            # SQLAlchemy wraps it.
            if getattr(error, "orig", error).args[:1] != (REFUSED,):
                raise
        kept, written = await self._driver.row(known.look, stamp.name)
        ensemble = kept.decode() if isinstance(kept, bytes) else kept
        raise refusal(stamp, ensemble, written, "delete the row of that name from zklock_fences")

    async def _end(self, error: BaseException | None) -> None:
        try:
            if error is None:
                if not await self._driver.is_intact():
                    raise Error(
                        "the transaction of the block is not committed: it failed or ended within the block; do not catch "
                        "errors of the database in the block, and do not commit in it"
                    )
                await self._driver.end(None)
        except BaseException as failed:
            error = failed
            raise
        finally:
            if error is not None:
                # A connection that cannot roll back is broken, and its database does it. The error to raise is the first.
                with contextlib.suppress(Exception):
                    await self._driver.end(error)


class Transaction(_Fenced[Connection]):
    """A transaction under a fence, for ``with``. See ``transaction``."""

    def __enter__(self) -> Connection:
        return now(self._begin(stamp_now(typing.cast("Stamped", self._hold), self._name)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: types.TracebackType | None
    ) -> None:
        now(self._end(error))


class AsyncTransaction(_Fenced[Connection]):
    """A transaction under a fence, for ``async with``. See ``transaction``."""

    async def __aenter__(self) -> Connection:
        return await self._begin(await stamp_later(self._hold, self._name))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: types.TracebackType | None
    ) -> None:
        await self._end(error)


@typing.overload
def transaction(connection: Blocking, hold: Stamped, name: str | None = None) -> Transaction[Blocking]: ...
@typing.overload
def transaction(connection: Asynchronous, hold: AnyStamped, name: str | None = None) -> AsyncTransaction[Asynchronous]: ...
def transaction(connection: typing.Any, hold: AnyStamped, name: str | None = None) -> typing.Any:
    """A transaction that only commits if no later holder has written before it began.

    >>> import sqlite3
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute(zklock.fence.create_table("sqlite"))
    >>> _ = database.execute("CREATE TABLE account (amount INTEGER)")
    >>> with zk.mutex("/locks/doc") as hold:
    ...     with zklock.fence.transaction(database, hold):
    ...         _ = database.execute("INSERT INTO account VALUES (100)")

    The block begins the transaction, raises the token in the table ``zklock_fences``, and commits at its end. Any exception rolls
    back the transaction, and the token with it. The row of the name is locked until the end of the block: a later holder waits for
    it, and an earlier one waits and is then refused. Do not commit or roll back inside of the block, and do not catch errors of the
    database in it. If such an error, or anything else, has ended the transaction, the end of the block raises ``Error`` and commits
    nothing more. It cannot take back a statement that is committed by then: docs/fencing.md and docs/fencing-stores.md say which
    libraries commit each one after that. All that other threads or tasks do with the connection meanwhile is in the transaction.

    ``connection`` is one of psycopg, psycopg2, PyMySQL, mysqlclient or sqlite3, or a ``Connection`` or ``Session`` of SQLAlchemy 2.
    Use ``async with`` for one of asyncpg, aiosqlite, psycopg's ``AsyncConnection``, and SQLAlchemy's ``AsyncConnection`` and
    ``AsyncSession``. The value of the block is the connection. ``hold`` is a hold or a ``Stamp``.

    Raises ``StaleToken`` if a later holder has written, and ``OtherEnsemble`` if the row is of another ensemble; ``InvalidInput``
    if the connection is in a transaction already, commits each statement, or is of another library. Errors of the database, such
    as a serialization failure or a deadlock, are raised unchanged: begin the block again.
    """
    known = driver(connection)
    return (AsyncTransaction if known.is_async else Transaction)(known, hold, name)
