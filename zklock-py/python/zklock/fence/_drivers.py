"""What a fenced transaction needs of a database library. Nothing here imports one."""

from __future__ import annotations

import itertools
import re
import typing

from ._settle import settled

_TRANSACTION_IN_PROGRESS = 1568  # the number of an error of MySQL and MariaDB
_NO_SAVEPOINT = 1305  # another
_INTACT = 2  # the number of a transaction in which no statement has failed, in the library of PostgreSQL


class Driver:
    """A connection whose transactions are begun and ended by statements."""

    dialect = ""
    mark = "%s"
    begins = "BEGIN"
    is_async = False
    needs = "commit"
    """What a connection has, unlike other objects of its library."""
    is_implicit = False
    """Whether the library itself begins a transaction with the first statement."""

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

    async def begin(self) -> None:
        if not self.is_implicit:
            await self.execute(self.begins)

    async def end(self, error: BaseException | None) -> None:
        word = "commit" if error is None else "rollback"
        await (settled(getattr(self.connection, word)()) if self.is_implicit else self.execute(word))

    async def mark_begin(self) -> None:
        """Makes a savepoint. It goes with the transaction, also if the database ends that by itself."""
        await self.execute("SAVEPOINT zklock_fence")

    async def is_intact(self) -> bool:
        """Whether it is still in the transaction that has the mark, and can commit."""
        try:
            await self.execute("RELEASE SAVEPOINT zklock_fence")
        except Exception as error:
            # SQLAlchemy wraps it.
            original = getattr(error, "orig", error)
            if original.args[:1] != (_NO_SAVEPOINT,) and "no such savepoint" not in str(original):
                raise
            return False
        return True

    async def change(self, statement: str, *values: object) -> int:
        """How many rows the statement has changed."""
        return typing.cast("int", (await self.execute(statement, *values)).rowcount)

    async def row(self, statement: str, *values: object) -> typing.Any:
        (row,) = await settled((await self.execute(statement, *values)).fetchall())
        return row.values() if isinstance(row, dict) else row

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

    async def is_open(self) -> bool:
        # The flags that came with the last answer.
        return bool(self.connection.server_status & 1)

    async def begin(self) -> None:
        # After a deadlock, which ends the transaction, the next statements would be committed one by one.
        self.commits_each = self.connection.get_autocommit()
        if self.commits_each:
            self.connection.autocommit(False)
        else:
            await super().begin()

    async def end(self, error: BaseException | None) -> None:
        await super().end(error)
        if self.commits_each:
            self.connection.autocommit(True)


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
    # So it waits for other writers here, and not in the middle.
    begins = "BEGIN IMMEDIATE"

    def __init__(self, connection: typing.Any) -> None:
        super().__init__(connection)
        self.is_implicit = getattr(connection, "autocommit", None) is False

    async def is_open(self) -> bool:
        return bool(self.connection.in_transaction)

    async def is_taken(self) -> bool:
        # Without autocommit it is always in one.
        return await self.is_open() and not self.is_implicit


class AioSqlite(Sqlite):
    is_async = True


class PostgreSql(Driver):
    """The libraries that keep how the transaction is, which the server says in each answer. So that costs no statement."""

    dialect = "postgresql"

    async def is_open(self) -> bool:
        return bool(self.connection.info.transaction_status)

    async def mark_begin(self) -> None:
        """Nothing is needed."""

    async def is_intact(self) -> bool:
        return bool(self.connection.info.transaction_status == _INTACT)


class Psycopg2(PostgreSql):
    def __init__(self, connection: typing.Any) -> None:
        super().__init__(connection)
        self.is_implicit = not connection.autocommit
