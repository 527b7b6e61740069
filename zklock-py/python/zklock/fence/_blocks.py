"""Database libraries in which a transaction is a block. They refuse a commit within it."""

from __future__ import annotations

import inspect
import typing

from .._errors import InvalidInput
from ._drivers import AioSqlite, Driver, MySqlDb, PostgreSql, PyMySql, Sqlite
from ._settle import settled

TAKEN = "the connection is in a transaction already, which is not fenced: end it first, and give each thread and task its own"
# Marks for values, by what PEP 249 and SQLAlchemy call them.
_MARKS = {"qmark": "?", "format": "%s", "pyformat": "%s", "numeric_dollar": "$"}


class Block(Driver):
    block: typing.Any = None
    dialect = "postgresql"

    def made(self) -> typing.Any:
        """A block, which has not begun."""
        return self.connection.transaction()

    async def begin(self) -> None:
        await super().begin()
        block = self.made()
        self.entered = await settled(block.__aenter__() if self.is_async else block.__enter__())
        self.block = block

    async def finish(self, error: BaseException | None) -> None:
        about = (None, None, None) if error is None else (type(error), error, error.__traceback__)
        # A block whose commit has failed has ended.
        block, self.block = self.block, None
        if block is not None:
            await settled(block.__aexit__(*about) if self.is_async else block.__exit__(*about))


class Psycopg(Block, PostgreSql):
    def __init__(self, connection: typing.Any) -> None:
        super().__init__(connection)
        self.is_async = inspect.iscoroutinefunction(connection.commit)

    async def begin(self) -> None:
        if self.connection.pgconn.pipeline_status:
            raise InvalidInput("the connection is in a pipeline, where a refusal comes too late: begin the pipeline in the block")
        await super().begin()
        if self.entered.savepoint_name:
            # Another thread has begun meanwhile. To roll back would take back what it has written since.
            await self.finish(None)
            raise InvalidInput(TAKEN)

    async def set_autocommit(self, on: bool) -> None:
        await (self.connection.set_autocommit(on) if self.is_async else super().set_autocommit(on))

    async def execute(self, statement: str, *values: object) -> typing.Any:
        cursor = self.connection.cursor()
        # Whatever the user makes of rows.
        cursor.row_factory = lambda _: tuple
        await settled(cursor.execute(self.marked(statement), values))
        return cursor


class Asyncpg(Block):
    mark = "$"
    needs = "is_in_transaction"
    is_async = True

    async def is_open(self) -> bool:
        return bool(self.connection.is_in_transaction())

    async def row(self, statement: str, *values: object) -> typing.Any:
        return await self.connection.fetchrow(self.marked(statement), *values)


class SqlAlchemy(Block):
    """A connection or a session."""

    needs = "in_transaction"

    def __init__(self, connection: typing.Any) -> None:
        super().__init__(connection)
        self.is_async = inspect.iscoroutinefunction(connection.commit)
        dialect = (connection if hasattr(connection, "dialect") else connection.get_bind()).dialect
        self.dialect = {"mariadb": "mysql"}.get(dialect.name, dialect.name)
        self.mark = _MARKS.get(dialect.paramstyle, "?")

    def made(self) -> typing.Any:
        return self.connection.begin()

    async def is_taken(self) -> bool:
        return bool(self.connection.in_transaction())

    async def commits_by_itself(self) -> bool:
        # An engine in AUTOCOMMIT begins nothing, and says that it is in a transaction. Its library knows.
        return not await (await self.library()).is_open()

    async def library(self) -> Driver:
        """The connection of the library below."""
        core = await self.core()
        fairy = getattr(core, "sync_connection", core).connection
        return driver(fairy.driver_connection)

    async def core(self) -> typing.Any:
        """The connection of a session."""
        is_session = not hasattr(self.connection, "exec_driver_sql")
        return await settled(self.connection.connection()) if is_session else self.connection

    async def execute(self, statement: str, *values: object) -> typing.Any:
        return await settled((await self.core()).exec_driver_sql(self.marked(statement), values))


_DRIVERS: dict[str, type[Driver]] = {
    "sqlite3": Sqlite,
    "aiosqlite": AioSqlite,
    "psycopg": Psycopg,
    "psycopg2": PostgreSql,
    "pymysql": PyMySql,
    "MySQLdb": MySqlDb,
    "asyncpg": Asyncpg,
    "sqlalchemy": SqlAlchemy,
}


def driver(connection: typing.Any) -> Driver:
    """What a fenced transaction needs of this connection."""
    for cls in type(connection).__mro__:
        found = _DRIVERS.get(cls.__module__.partition(".")[0])
        if found and hasattr(type(connection), found.needs):
            return found(connection)
    raise InvalidInput(
        f"{type(connection).__module__}.{type(connection).__name__} is not a connection that a fence knows: give one of {', '.join(_DRIVERS)}"
    )
