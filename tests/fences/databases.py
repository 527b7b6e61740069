"""Database libraries, and what a fence protects in them: a row of the table ``things`` for each name."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import re
import sqlite3
import sys
import typing

import aiosqlite
import asyncpg
import MySQLdb
import psycopg
import psycopg2
import psycopg2.extras
import pymysql
import pymysql.cursors
import sqlalchemy
import sqlalchemy.orm
import sqlalchemy.pool
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from zklock import fence
from zklock.fence._settle import entered, now, settled

THINGS = "CREATE TABLE IF NOT EXISTS things (name VARCHAR(255) PRIMARY KEY, value VARCHAR(255)){}"


class Address(typing.NamedTuple):
    """Where a database is."""

    dialect: str
    port: int = 0
    file: str = ""

    @property
    def options(self) -> dict[str, typing.Any]:
        """What the libraries of its dialect connect with."""
        if self.dialect == "sqlite":
            return {"database": self.file, "timeout": 30}
        own = {"user": "test", "dbname": "postgres"} if self.dialect == "postgresql" else {"user": "root", "database": "test"}
        return {"host": "127.0.0.1", "port": self.port, **own}

    def url(self, driver: str) -> str:
        if self.dialect == "sqlite":
            return f"sqlite+{driver}:///{self.file}"
        user, database = ("test", "postgres") if self.dialect == "postgresql" else ("root", "test")
        return f"{self.dialect}+{driver}://{user}@127.0.0.1:{self.port}/{database}"


Connect = typing.Callable[[Address], typing.Any]
Execute = typing.Callable[..., typing.Awaitable[typing.Any]]
Make = typing.Callable[..., typing.Any]


class Library(typing.NamedTuple):
    """A way to a database."""

    name: str
    dialect: str
    mark: str
    connect: Connect
    """A context manager, of asyncio or not, which gives a connection."""


async def execute(library: Library, connection: typing.Any, statement: str, *values: object) -> list[tuple[typing.Any, ...]]:
    """Runs a statement with marks ``?``, and returns its rows."""
    numbers = itertools.count(1)
    statement = re.sub(r"\?", lambda _: library.mark.replace("N", str(next(numbers))), statement)
    if library.name.startswith("asyncpg"):
        return [tuple(row) for row in await connection.fetch(statement, *values)]
    if library.name.startswith("sqlalchemy"):
        core = connection if hasattr(connection, "exec_driver_sql") else await settled(connection.connection())
        cursor = await settled(core.exec_driver_sql(statement, values))
        return [tuple(row) for row in cursor.fetchall()] if cursor.returns_rows else []
    cursor = await settled(connection.cursor())
    await settled(cursor.execute(statement, values))
    rows = await settled(cursor.fetchall()) if cursor.description else []
    return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rows]


class Things(typing.NamedTuple):
    """The row of one name, in a transaction."""

    execute: Execute
    name: str

    async def read(self) -> str | None:
        rows = await self.execute("SELECT value FROM things WHERE name = ?", self.name)
        return rows[0][0] if rows else None

    async def write(self, value: str) -> None:
        await self.execute("DELETE FROM things WHERE name = ?", self.name)
        await self.execute("INSERT INTO things VALUES (?, ?)", self.name, value)


class Database:
    """A fence in a database, for ``fence.check`` and other tests. Each transaction has a connection of its own."""

    def __init__(self, library: Library, address: Address) -> None:
        self.library, self.address = library, address
        with self.plain() as execute_now:
            execute_now(fence.create_table(library.dialect))
            execute_now(THINGS.format(" ENGINE=InnoDB" if library.dialect == "mysql" else ""))
            for table in ("zklock_fences", "things"):
                execute_now(f"DELETE FROM {table}")

    @contextlib.contextmanager
    def plain(self) -> typing.Iterator[typing.Callable[..., list[tuple[typing.Any, ...]]]]:
        """Statements that no fence sees, each of which is committed."""
        library = PLAIN[self.library.dialect]
        with library.connect(self.address) as connection:
            yield lambda statement, *values: now(execute(library, connection, statement, *values))

    def rows(self, table: str) -> list[tuple[typing.Any, ...]]:
        with self.plain() as execute_now:
            return execute_now(f"SELECT * FROM {table} ORDER BY name")

    def connection(self) -> typing.Any:
        """A connection, whether its library is for asyncio or not."""
        return entered(self.library.connect(self.address))

    @contextlib.asynccontextmanager
    async def block(self, hold: typing.Any) -> typing.AsyncIterator[tuple[Execute, typing.Any]]:
        """A fenced transaction over a connection of its own, likewise: what runs statements in it, and the connection."""
        async with self.connection() as connection, entered(fence.transaction(connection, hold)) as given:
            assert given is connection
            yield functools.partial(execute, self.library, connection), connection

    @contextlib.asynccontextmanager
    async def transaction(self, stamp: typing.Any) -> typing.AsyncIterator[Things]:
        async with self.block(stamp) as (execute_here, _):
            yield Things(execute_here, stamp.name)

    def raise_token(self, hold: typing.Any) -> None:
        """A fenced transaction that does nothing else."""

        async def main() -> None:
            async with self.block(hold):
                pass

        asyncio.run(main())


def closing(connect: Make, **options: typing.Any) -> Connect:
    return lambda address: contextlib.closing(connect(**address.options, **options))


def closing_later(connect: typing.Callable[[Address], typing.Awaitable[typing.Any]]) -> Connect:
    @contextlib.asynccontextmanager
    async def opened(address: Address) -> typing.AsyncIterator[typing.Any]:
        connection = await connect(address)
        try:
            yield connection
        finally:
            await connection.close()

    return opened


def alchemy(driver: str, what: Make, make: Make = sqlalchemy.create_engine, **options: typing.Any) -> Connect:
    """Without a pool, the engine keeps nothing to close."""
    return lambda address: what(make(address.url(driver), poolclass=sqlalchemy.pool.NullPool, **options))


def core(engine: typing.Any) -> typing.Any:
    return engine.connect()


DICTIONARIES = {"cursorclass": pymysql.cursors.DictCursor}
REAL_DICTIONARIES = {"cursor_factory": psycopg2.extras.RealDictCursor}
PATIENT = {"connect_args": {"timeout": 30}}
LIBRARIES = [
    Library("sqlite3", "sqlite", "?", closing(sqlite3.connect)),
    Library("sqlite3, by hand", "sqlite", "?", closing(sqlite3.connect, isolation_level=None)),
    Library("aiosqlite", "sqlite", "?", lambda address: aiosqlite.connect(**address.options)),
    Library("psycopg", "postgresql", "%s", closing(psycopg.connect)),
    Library("psycopg, autocommit", "postgresql", "%s", closing(psycopg.connect, autocommit=True)),
    Library("psycopg, rows as dictionaries", "postgresql", "%s", closing(psycopg.connect, row_factory=psycopg.rows.dict_row)),
    Library("psycopg, asyncio", "postgresql", "%s", closing_later(lambda address: psycopg.AsyncConnection.connect(**address.options))),
    Library("psycopg2", "postgresql", "%s", closing(psycopg2.connect)),
    Library("psycopg2, rows as dictionaries", "postgresql", "%s", closing(psycopg2.connect, **REAL_DICTIONARIES)),
    Library("asyncpg", "postgresql", "$N", closing_later(lambda address: asyncpg.connect(f"postgresql://test@127.0.0.1:{address.port}/postgres"))),
    Library("pymysql", "mysql", "%s", closing(pymysql.connect)),
    Library("pymysql, autocommit", "mysql", "%s", closing(pymysql.connect, autocommit=True, **DICTIONARIES)),
    Library("mysqlclient", "mysql", "%s", closing(MySQLdb.connect)),
    Library("sqlalchemy, psycopg", "postgresql", "%s", alchemy("psycopg", core)),
    Library("sqlalchemy, psycopg, session", "postgresql", "%s", alchemy("psycopg", sqlalchemy.orm.Session)),
    Library("sqlalchemy, psycopg2", "postgresql", "%s", alchemy("psycopg2", core)),
    Library("sqlalchemy, asyncpg", "postgresql", "$N", alchemy("asyncpg", core, create_async_engine)),
    Library("sqlalchemy, asyncpg, session", "postgresql", "$N", alchemy("asyncpg", AsyncSession, create_async_engine)),
    Library("sqlalchemy, pymysql, session", "mysql", "%s", alchemy("pymysql", sqlalchemy.orm.Session)),
    Library("sqlalchemy, mysqldb", "mysql", "%s", alchemy("mysqldb", core)),
    Library("sqlalchemy, sqlite", "sqlite", "?", alchemy("pysqlite", core, **PATIENT)),
    Library("sqlalchemy, aiosqlite, session", "sqlite", "?", alchemy("aiosqlite", AsyncSession, create_async_engine, **PATIENT)),
]
if sys.version_info >= (3, 12):
    LIBRARIES += [
        Library(f"sqlite3, autocommit={on}", "sqlite", "?", closing(sqlite3.connect, autocommit=on)) for on in (True, False)
    ]


def plain_psycopg2(address: Address) -> typing.Any:
    connection = psycopg2.connect(**address.options)
    connection.autocommit = True
    return contextlib.closing(connection)


LIBRARIES.append(Library("psycopg2, autocommit", "postgresql", "%s", plain_psycopg2))
BY_NAME = {library.name: library for library in LIBRARIES}
# What commits each statement.
PLAIN = {
    "sqlite": BY_NAME["sqlite3, by hand"],
    "postgresql": BY_NAME["psycopg, autocommit"],
    "mysql": Library("pymysql, plain", "mysql", "%s", closing(pymysql.connect, autocommit=True)),
}
