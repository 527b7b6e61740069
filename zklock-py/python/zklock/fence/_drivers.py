"""What a fenced transaction needs of a database library. Nothing here imports one."""

from __future__ import annotations

import itertools
import re
import typing

from ._settle import settled

_TRANSACTION_IN_PROGRESS = 1568  # the number of an error of MySQL and MariaDB
# How databases say that there is no such savepoint, and PostgreSQL that the transaction has failed.
_NOT_INTACT = {1305, "no such savepoint: zklock_fence", "25P02"}


class Driver:
    """A connection that begins a transaction with the first statement."""

    dialect = ""
    mark = "%s"
    is_async = False
    needs = "commit"
    """What a connection has, unlike other objects of its library."""
    autocommit = False
    commits_each = False
    """Whether it commits each statement, but not in the block: no write lands after the transaction has ended."""

    def __init__(self, connection: typing.Any) -> None:
        self.connection = connection

    async def is_open(self) -> bool:
        """Whether it is in a transaction."""
        raise NotImplementedError

    async def is_taken(self) -> bool:
        """Whether it is in a transaction that somebody else began."""
        return await self.is_open()

    async def commits_by_itself(self) -> bool:
        """Whether no transaction is open although one has begun."""
        return False

    async def set_autocommit(self, on: bool) -> None:
        """For those that ever commit each."""

    async def begin(self) -> None:
        self.commits_each = self.autocommit
        if self.commits_each:
            await self.set_autocommit(False)

    async def end(self, error: BaseException | None) -> None:
        await self.finish(error)
        if self.commits_each:
            await self.set_autocommit(True)

    async def finish(self, error: BaseException | None) -> None:
        """Commits, or rolls back."""
        await settled(self.connection.commit() if error is None else self.connection.rollback())

    async def raise_token(self, statement: str, *values: object) -> bool:
        """Whether the token may write. MySQL raises an error if not, and its count of rows depends on a flag of the client."""
        if self.dialect == "postgresql":
            # The number of the transaction comes with the answer.
            self.transaction = await self.row(f"{statement} RETURNING txid_current()", *values)
            return self.transaction is not None
        return (await self.execute(statement, *values)).rowcount > 0 or self.dialect == "mysql"

    async def mark_begin(self) -> None:
        """Where transactions have no number, makes a savepoint. It goes with the transaction, however that ends."""
        if self.dialect != "postgresql":
            await self.execute("SAVEPOINT zklock_fence")

    async def is_intact(self) -> bool:
        """Whether it is still in the transaction that raised the token, and can commit."""
        try:
            if self.dialect == "postgresql":
                return bool(await self.row("SELECT txid_current_if_assigned()") == self.transaction)
            await self.execute("RELEASE SAVEPOINT zklock_fence")
        except Exception as error:
            # SQLAlchemy wraps it.
            original = getattr(error, "orig", error)
            code = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)
            if _NOT_INTACT.isdisjoint((code, *original.args)):
                raise
            return False
        return True

    async def row(self, statement: str, *values: object) -> typing.Any:
        """The first row, or nothing."""
        rows = await settled((await self.execute(statement, *values)).fetchall())
        return next((tuple(row.values() if isinstance(row, dict) else row) for row in rows), None)

    async def execute(self, statement: str, *values: object) -> typing.Any:
        cursor = await settled(self.connection.cursor())
        await settled(cursor.execute(self.marked(statement), values))
        return cursor

    def marked(self, statement: str) -> str:
        """The statement with the library's own marks for values."""
        numbers = itertools.count(1)
        return re.sub(r"\?", lambda _: f"${next(numbers)}" if self.mark == "$" else self.mark, statement)


class PyMySql(Driver):
    dialect = "mysql"

    @property
    def autocommit(self) -> bool:  # type: ignore[override]
        return bool(self.connection.get_autocommit())

    async def set_autocommit(self, on: bool) -> None:
        self.connection.autocommit(on)

    async def is_open(self) -> bool:
        # The flags that came with the last answer.
        return bool(self.connection.server_status & 1)


class MySqlDb(PyMySql):
    async def is_open(self) -> bool:
        # It does not show the flag, but this is refused within a transaction. A fenced transaction writes in any case.
        try:
            await self.execute("SET TRANSACTION READ WRITE")
        except Exception as error:
            if error.args[:1] != (_TRANSACTION_IN_PROGRESS,):
                raise
            return True
        return False


class Sqlite(Driver):
    dialect = "sqlite"
    mark = "?"

    def __init__(self, connection: typing.Any) -> None:
        super().__init__(connection)
        self.is_implicit = getattr(connection, "autocommit", None) is False

    @property
    def autocommit(self) -> bool:  # type: ignore[override]
        return self.connection.isolation_level is None

    async def set_autocommit(self, on: bool) -> None:
        self.connection.isolation_level = None if on else "IMMEDIATE"

    async def begin(self) -> None:
        await super().begin()
        if not self.is_implicit:
            # So it waits for other writers here, and not in the middle.
            await self.execute("BEGIN IMMEDIATE")

    async def finish(self, error: BaseException | None) -> None:
        await (super().finish(error) if self.is_implicit else self.execute("COMMIT" if error is None else "ROLLBACK"))

    async def is_open(self) -> bool:
        return bool(self.connection.in_transaction)

    async def is_taken(self) -> bool:
        # Without autocommit it is always in one.
        return await self.is_open() and not self.is_implicit


class AioSqlite(Sqlite):
    is_async = True
    # Its connection belongs to another thread, which this would have to be done in.
    autocommit = False


class PostgreSql(Driver):
    """The libraries that keep how the transaction is, which the server says in each answer."""

    dialect = "postgresql"

    @property
    def autocommit(self) -> bool:  # type: ignore[override]
        return bool(self.connection.autocommit)

    async def set_autocommit(self, on: bool) -> None:
        self.connection.autocommit = on

    async def is_open(self) -> bool:
        return bool(self.connection.info.transaction_status)
