"""Fenced transactions, in each library on a server of its own."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
import typing

import databases
import psycopg
import psycopg2
import pymysql
import pymysql.constants.CLIENT
import pytest
import sqlalchemy
from databases import Address, Database, Execute
from holds import AsyncHeld, Held
from scenes import Attempt, eventually

import zklock
from zklock import fence
from zklock.fence._settle import entered, now, settled
from zklock.fence._statements import REFUSED, statements

NAMES = [library.name for library in databases.LIBRARIES]
every_library = pytest.mark.parametrize("database", NAMES, indirect=True)
# One of each dialect.
every_dialect = pytest.mark.parametrize("database", ["sqlite3", "psycopg2", "pymysql"], indirect=True)


@every_library
def test_it_keeps_what_a_fence_promises(database: Database) -> None:
    report = fence.check(database)
    assert len(report.passed) == 15 and report.skipped == ()


@every_dialect
def test_a_hold_is_as_good_as_its_stamp(database: Database) -> None:
    database.raise_token(Held("/locks/a", 5))
    assert database.rows("zklock_fences") == [("/locks/a", "one", 5)]
    with database.library.connect(database.address) as connection:
        with fence.transaction(connection, Held("/locks/a", 4), name="/locks/a/part"):
            pass
    assert database.rows("zklock_fences") == [("/locks/a", "one", 5), ("/locks/a/part", "one", 4)]


@every_dialect
def test_the_error_says_what_to_do(database: Database) -> None:
    database.raise_token(Held("/locks/a", 9))
    with pytest.raises(zklock.StaleToken, match="/locks/a has written, with the token 9, and this one is 5: stop") as late:
        database.raise_token(Held("/locks/a", 5))
    assert (late.value.name, late.value.token, late.value.written) == ("/locks/a", 5, 9)
    with pytest.raises(zklock.OtherEnsemble, match="one, and this one is of two: .* delete the row .* from zklock_fences") as other:
        database.raise_token(Held("/locks/a", 10, "two"))
    assert (other.value.name, other.value.ensemble, other.value.kept) == ("/locks/a", "two", "one")
    # What it says helps.
    with database.plain() as execute:
        execute("DELETE FROM zklock_fences WHERE name = '/locks/a'")
    database.raise_token(Held("/locks/a", 5, "two"))


@every_library
def test_a_connection_is_free_after_a_refusal(database: Database) -> None:
    blocks = [(Held("/locks/a", token), error) for token, error in ((9, None), (5, zklock.StaleToken), (10, None))]

    async def main() -> None:
        async with database.connection() as connection:
            for hold, error in blocks:
                with pytest.raises(error) if error else contextlib.nullcontext():
                    async with entered(fence.transaction(connection, hold)):
                        pass

    asyncio.run(main())
    assert database.rows("zklock_fences") == [("/locks/a", "one", 10)]


@pytest.mark.parametrize("database", ["psycopg", "psycopg2", "asyncpg"], indirect=True)
def test_a_fenced_transaction_in_postgresql_has_two_statements_more(database: Database) -> None:
    async def work(execute: Execute, _: typing.Any) -> None:
        await execute("UPDATE things SET value = 'of 5'")

    with database.plain() as execute:
        look = "SELECT pg_read_file(current_setting('data_directory') || '/../log')"
        ((before,),) = execute(look)
        execute("ALTER ROLE test SET log_statement = 'all'")
        try:
            in_a_block(database, work)
        finally:
            execute("ALTER ROLE test RESET log_statement")
        ((after,),) = execute(look)
    words = re.findall(r"LOG:  (?:statement|execute [^:]*): (\w+)", after[len(before) :])
    assert words == ["BEGIN", "INSERT", "UPDATE", "SELECT", "COMMIT"]


@every_dialect
@pytest.mark.parametrize("names", [("/locks/a", "/locks/A"), ("/locks/\u00e4", "/locks/a"), ("/locks/a", "/locks/a?b%s$1")])
def test_names_are_compared_exactly(database: Database, names: tuple[str, str]) -> None:
    for name, token in zip(names, (9, 5)):
        database.raise_token(Held(name, token))
    assert {row[0] for row in database.rows("zklock_fences")} == set(names)


# It is always in a transaction.
WITHOUT_AUTOCOMMIT = "sqlite3, autocommit=False"


@pytest.mark.skipif(WITHOUT_AUTOCOMMIT not in NAMES, reason="since Python 3.12")
@pytest.mark.parametrize("database", [WITHOUT_AUTOCOMMIT], indirect=True)
def test_without_autocommit_earlier_statements_belong_to_the_block(database: Database) -> None:
    def write(token: int, name: str) -> None:
        with database.library.connect(database.address) as connection:
            connection.execute("INSERT INTO things VALUES (?, ?)", (name, name))
            with fence.transaction(connection, Held("/locks/a", token)):
                pass
            connection.rollback()

    write(9, "done")
    with pytest.raises(zklock.StaleToken):
        write(5, "late")
    assert database.rows("things") == [("done", "done")]


@pytest.mark.parametrize("database", [name for name in NAMES if name != WITHOUT_AUTOCOMMIT], indirect=True)
def test_a_connection_in_a_transaction_is_refused(database: Database) -> None:
    library = database.library
    # What commits each statement begins a transaction only if it is asked to.
    begin = ["BEGIN"] if "autocommit" in library.name or "by hand" in library.name or "asyncpg" == library.name else []
    begin.append("INSERT INTO things VALUES ('open', 'open')")

    async def main() -> None:
        async with database.connection() as connection:
            for statement in begin:
                await databases.execute(library, connection, statement)
            with pytest.raises(zklock.InvalidInput, match="is in a transaction"):
                await entered(fence.transaction(connection, Held("/locks/a", 5))).__aenter__()
            # It is still the transaction of who began it.
            assert await databases.execute(library, connection, "SELECT value FROM things WHERE name = 'open'") == [("open",)]
            if hasattr(connection, "rollback"):
                await settled(connection.rollback())

    asyncio.run(main())
    assert database.rows("zklock_fences") == [] and database.rows("things") == []


class Crossed(psycopg.Connection[typing.Any]):
    """Another thread begins a block between the first one's look and its transaction."""

    theirs: typing.Any = None

    def transaction(self, *_: typing.Any, **__: typing.Any) -> typing.Any:
        if not self.theirs:
            self.theirs = fence.transaction(self, Held("/locks/a", 9))
            self.theirs.__enter__()
        return super().transaction()


def test_of_two_threads_with_one_connection_the_later_is_refused_and_harms_nobody(postgresql: Address) -> None:
    database = Database(databases.PLAIN["postgresql"], postgresql)
    with Crossed.connect(**postgresql.options) as connection:
        with pytest.raises(zklock.InvalidInput, match="is in a transaction"):
            fence.transaction(connection, Held("/locks/a", 5)).__enter__()
        connection.execute("INSERT INTO things VALUES ('of 9', 'of 9')")
        connection.theirs.__exit__(None, None, None)
    assert database.rows("things") == [("of 9", "of 9")]


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "asyncpg", "pymysql", "mysqldb"])
def test_an_engine_that_commits_each_statement_is_refused(driver: str, request: pytest.FixtureRequest) -> None:
    dialect = "mysql" if "mysql" in driver else "postgresql"
    database = Database(databases.PLAIN[dialect], request.getfixturevalue(dialect))
    make = databases.create_async_engine if driver == "asyncpg" else sqlalchemy.create_engine
    database.library = databases.Library(driver, dialect, "", databases.alchemy(driver, databases.core, make, isolation_level="AUTOCOMMIT"))
    with pytest.raises(zklock.InvalidInput, match="commits each statement"):
        database.raise_token(Held("/locks/auto", 5))


def test_what_is_no_connection_is_refused() -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with contextlib.closing(sqlite3.connect(":memory:")) as connection, contextlib.closing(engine.raw_connection()) as raw:
        for other in (None, "sqlite://", connection.cursor(), engine, raw, pymysql):
            with pytest.raises(zklock.InvalidInput, match="is not a connection that a fence knows: give one of .*psycopg2, pymysql"):
                fence.transaction(typing.cast("sqlite3.Connection", other), Held("/locks/a", 5))


def test_another_dialect_is_refused() -> None:
    with pytest.raises(zklock.InvalidInput, match="oracle.*postgresql"):
        fence.create_table("oracle")


# MySQL checks no constraint at the commit.
@pytest.mark.parametrize("database", ["sqlite3", "psycopg2"], indirect=True)
def test_a_commit_that_fails_raises_no_token(database: Database) -> None:
    deferred = "DEFERRABLE INITIALLY DEFERRED"
    with database.plain() as execute:
        execute("DROP TABLE IF EXISTS parts")
        execute(f"CREATE TABLE parts (name VARCHAR(255) REFERENCES things {deferred})")
    with database.library.connect(database.address) as connection:
        if database.library.dialect == "sqlite":
            connection.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(Exception, match="(?i)foreign key"):
            with fence.transaction(connection, Held("/locks/deferred", 9)):
                now(databases.execute(database.library, connection, "INSERT INTO parts VALUES ('none')"))
        assert "/locks/deferred" not in [row[0] for row in database.rows("zklock_fences")]
        with fence.transaction(connection, Held("/locks/deferred", 9)):
            pass


def in_a_block(database: Database, work: typing.Callable[[Execute, typing.Any], typing.Coroutine[typing.Any, typing.Any, None]]) -> None:
    """Does the work in the block of a holder, with a function that runs statements and the connection."""

    async def main() -> None:
        async with database.block(Held("/locks/a", 5)) as given:
            await work(*given)

    asyncio.run(main())


def write_as_a_later_holder(database: Database) -> None:
    library = databases.PLAIN[database.library.dialect]
    with library.connect(database.address) as connection, fence.transaction(connection, Held("/locks/a", 9)):
        now(databases.execute(library, connection, "INSERT INTO things VALUES ('later', 'later')"))


def of_dialect(dialect: str) -> list[str]:
    return [library.name for library in databases.LIBRARIES if library.dialect == dialect]


@pytest.mark.parametrize("database", of_dialect("postgresql"), indirect=True)
def test_a_block_in_which_a_statement_failed_does_not_pass_for_committed(database: Database) -> None:
    async def work(execute: Execute, _: typing.Any) -> None:
        await execute("INSERT INTO things VALUES ('early', 'early')")
        with pytest.raises(Exception, match="division by zero"):
            await execute("SELECT 1 / 0")

    with pytest.raises(zklock.Error, match="is not committed"):
        in_a_block(database, work)
    assert database.rows("things") == [] and database.rows("zklock_fences") == []


@pytest.mark.parametrize("database", of_dialect("mysql"), indirect=True)
def test_nothing_of_a_block_is_done_after_a_deadlock(database: Database) -> None:
    with database.plain() as execute_now:
        execute_now("INSERT INTO things VALUES ('ours', 'old'), ('theirs', 'old')")

    async def work(execute: Execute, _: typing.Any) -> None:
        with contextlib.closing(pymysql.connect(**database.address.options)) as other, other.cursor() as cursor:
            # The database ends the one that has changed less.
            cursor.executemany("INSERT INTO things VALUES (%s, '')", [(str(number),) for number in range(50)])
            cursor.execute("UPDATE things SET value = 'other' WHERE name = 'theirs'")
            await execute("UPDATE things SET value = 'early' WHERE name = 'ours'")
            crossing = Attempt(lambda: cursor.execute("UPDATE things SET value = 'other' WHERE name = 'ours'"))
            with pytest.raises(Exception, match="Deadlock"):
                await execute("UPDATE things SET value = 'early' WHERE name = 'theirs'")
            crossing.result()
            other.rollback()
        write_as_a_later_holder(database)
        await execute("UPDATE things SET value = 'late' WHERE name = 'later'")

    with pytest.raises(zklock.Error, match="is not committed"):
        in_a_block(database, work)
    assert database.rows("things") == [("later", "later"), ("ours", "old"), ("theirs", "old")]
    assert database.rows("zklock_fences") == [("/locks/a", "one", 9)]


@pytest.mark.parametrize("database", of_dialect("sqlite"), indirect=True)
def test_a_block_whose_transaction_sqlite_has_ended_fails(database: Database) -> None:
    with database.plain() as execute_now:
        execute_now("INSERT INTO things VALUES ('taken', 'old')")

    async def work(execute: Execute, _: typing.Any) -> None:
        await execute("INSERT INTO things VALUES ('early', 'early')")
        with pytest.raises(Exception, match="UNIQUE"):
            await execute("INSERT OR ROLLBACK INTO things VALUES ('taken', 'new')")
        write_as_a_later_holder(database)
        await execute("UPDATE things SET value = 'late' WHERE name = 'later'")

    with pytest.raises(zklock.Error, match="is not committed"):
        in_a_block(database, work)
    # Without the transactions of the library, each statement after that is committed.
    value = "late" if "autocommit" in database.library.name else "later"
    assert database.rows("things") == [("later", value), ("taken", "old")]


def below(connection: typing.Any) -> typing.Any:
    """The connection of the library that SQLAlchemy uses."""
    core = connection if hasattr(connection, "exec_driver_sql") else connection.connection()
    return core.connection.driver_connection


def leave(connection: typing.Any) -> None:
    with connection:
        pass


# What ends the transaction of a block: statements, or calls.
WORDS = ["COMMIT", "ROLLBACK"]
CALLS = [lambda connection: connection.commit(), lambda connection: connection.rollback()]
CHAINS = [*WORDS, "COMMIT AND CHAIN", "ROLLBACK AND CHAIN"]
BELOW = [lambda connection: below(connection).commit(), lambda connection: below(connection).rollback()]
ENDS: dict[str, list[typing.Any]] = {
    "psycopg": CHAINS,
    "psycopg, autocommit": CHAINS,
    "psycopg, asyncio": CHAINS,
    "psycopg2": [*CALLS, leave, lambda connection: connection.reset()],
    "psycopg2, autocommit": [*CALLS, leave, lambda connection: connection.reset()],
    "asyncpg": [lambda connection: connection.execute("COMMIT; BEGIN")],
    "sqlalchemy, psycopg": [*WORDS, *BELOW],
    "sqlalchemy, psycopg, session": [*WORDS, *BELOW],
    "sqlalchemy, psycopg2": BELOW,
    "pymysql": [*WORDS, *CALLS, "CREATE TABLE IF NOT EXISTS parts (name INTEGER)"],
    "pymysql, autocommit": [*WORDS, *CALLS],
    "mysqlclient": [*WORDS, *CALLS],
    "sqlite3": [*WORDS, *CALLS, leave],
    "sqlite3, by hand": [*WORDS, *CALLS, leave],
}


@pytest.mark.parametrize(
    ("database", "way"), [(name, way) for name, ways in ENDS.items() for way in range(len(ways))], indirect=["database"]
)
def test_what_follows_the_end_of_the_transaction_within_the_block_is_rolled_back(database: Database, way: int) -> None:
    end = ENDS[database.library.name][way]

    async def work(execute: Execute, connection: typing.Any) -> None:
        await (execute(end) if isinstance(end, str) else settled(end(connection)))
        write_as_a_later_holder(database)
        await execute("UPDATE things SET value = 'late' WHERE name = 'later'")

    with pytest.raises(zklock.Error, match="is not committed"):
        in_a_block(database, work)
    assert database.rows("things") == [("later", "later")]


def commits_each(connection: typing.Any) -> bool:
    return bool(connection.get_autocommit() if hasattr(connection, "get_autocommit") else connection.autocommit)


@pytest.mark.parametrize("database", ["pymysql, autocommit", "psycopg, autocommit", "psycopg2, autocommit"], indirect=True)
@pytest.mark.parametrize(("token", "error"), [(9, None), (9, ZeroDivisionError), (5, zklock.StaleToken)])
def test_a_connection_that_committed_each_statement_does_so_after_the_block(
    database: Database, token: int, error: type[Exception] | None
) -> None:
    database.raise_token(Held("/locks/a", 9))
    with database.library.connect(database.address) as connection:
        with pytest.raises(error) if error else contextlib.nullcontext():
            with fence.transaction(connection, Held("/locks/a", token)):
                assert not commits_each(connection)
                if error:
                    raise error
        assert commits_each(connection)


def test_a_pipeline_is_begun_in_the_block(postgresql: Address) -> None:
    database = Database(databases.PLAIN["postgresql"], postgresql)
    with psycopg.connect(**postgresql.options) as connection:
        with connection.pipeline(), pytest.raises(zklock.InvalidInput, match="pipeline"):
            fence.transaction(connection, Held("/locks/a", 5)).__enter__()
        with fence.transaction(connection, Held("/locks/a", 5)), connection.pipeline():
            connection.execute("INSERT INTO things VALUES ('piped', 'piped')")
    assert database.rows("things") == [("piped", "piped")]


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
@pytest.mark.parametrize(("here", "there"), [(5, 9), (9, 5)])
def test_a_serialization_failure_comes_out_and_the_retry_is_decided(
    postgresql: Address, level: psycopg.IsolationLevel, here: int, there: int
) -> None:
    database, name = Database(databases.PLAIN["postgresql"], postgresql), f"/locks/{level}-{here}"
    with psycopg.connect(**postgresql.options) as first, psycopg.connect(**postgresql.options) as second:
        second.isolation_level = level
        waiting = fence.transaction(second, Held(name, there))
        with fence.transaction(first, Held(name, here)):
            attempt = Attempt(waiting.__enter__)
            with database.plain() as execute:
                waits = "SELECT wait_event_type FROM pg_stat_activity WHERE pid = ?"
                eventually(lambda: execute(waits, second.info.backend_pid) == [("Lock",)] or attempt.done())
        with pytest.raises(psycopg.errors.SerializationFailure):
            attempt.result()
        with contextlib.nullcontext() if there > here else pytest.raises(zklock.StaleToken), waiting:
            pass
    assert (name, "one", 9) in database.rows("zklock_fences")


@pytest.mark.parametrize("mode", ["", "STRICT_ALL_TABLES", "ANSI,TRADITIONAL"])
@pytest.mark.parametrize("flag", [0, pymysql.constants.CLIENT.FOUND_ROWS])
def test_mysql_refuses_whatever_its_mode_and_its_count(mysql: Address, mode: str, flag: int) -> None:
    database, name = Database(databases.PLAIN["mysql"], mysql), f"/locks/mode-{mode}-{flag}"
    with pymysql.connect(**mysql.options, sql_mode=mode, client_flag=flag) as connection:
        for token in (5, 9, 9):
            with fence.transaction(connection, Held(name, token)):
                pass
        for held, error in ((Held(name, 5), zklock.StaleToken), (Held(name, 10, "two"), zklock.OtherEnsemble)):
            with pytest.raises(error):
                fence.transaction(connection, held).__enter__()
            # The statement fails by itself, for those who use no more than its text.
            with pytest.raises(pymysql.MySQLError) as refused:
                connection.cursor().execute(statements("mysql").raise_token.replace("?", "%s"), (name, held.ensemble, held.token))
            assert refused.value.args[0] == REFUSED
            connection.rollback()
    assert (name, "one", 9) in database.rows("zklock_fences")


def test_a_user_of_sqlalchemy_cannot_commit_within_the_block(sqlite: Address) -> None:
    database = Database(databases.BY_NAME["sqlalchemy, sqlite"], sqlite)
    with database.library.connect(sqlite) as connection:
        with pytest.raises(sqlalchemy.exc.InvalidRequestError):
            with fence.transaction(connection, Held("/locks/a", 5)):
                connection.commit()
                connection.exec_driver_sql("INSERT INTO things VALUES ('late', 'late')")
    assert database.rows("things") == []


@pytest.mark.parametrize(
    ("database", "ways"),
    [
        ("psycopg", {"row_factory": psycopg.rows.scalar_row}),
        ("sqlite3", {"text_factory": bytes, "row_factory": sqlite3.Row}),
    ],
    indirect=["database"],
)
def test_rows_are_read_whatever_the_user_makes_of_them(database: Database, ways: dict[str, typing.Any]) -> None:
    with database.library.connect(database.address) as connection:
        for name, way in ways.items():
            setattr(connection, name, way)
        with fence.transaction(connection, Held("/locks/a", 9)):
            pass
        with pytest.raises(zklock.StaleToken):
            fence.transaction(connection, Held("/locks/a", 5)).__enter__()


def test_an_asynchronous_hold_is_awaited(sqlite: Address) -> None:
    database = Database(databases.BY_NAME["aiosqlite"], sqlite)
    database.raise_token(AsyncHeld("/locks/a", 5))
    assert database.rows("zklock_fences") == [("/locks/a", "one", 5)]


def test_the_first_error_comes_out_if_the_connection_cannot_roll_back(postgresql: Address) -> None:
    Database(databases.PLAIN["postgresql"], postgresql)
    with contextlib.closing(psycopg2.connect(**postgresql.options)) as connection:
        with pytest.raises(ZeroDivisionError), fence.transaction(connection, Held("/locks/broken", 5)):
            connection.close()
            raise ZeroDivisionError


@pytest.mark.parametrize("database", ["psycopg", "psycopg2", "asyncpg", "pymysql", "mysqlclient"], indirect=True)
def test_if_the_connection_breaks_within_the_block_the_error_of_the_library_comes_out(database: Database) -> None:
    is_mysql = database.library.dialect == "mysql"

    async def work(execute: Execute, _: typing.Any) -> None:
        await execute("INSERT INTO things VALUES ('early', 'early')")
        ((number,),) = await execute("SELECT CONNECTION_ID()" if is_mysql else "SELECT pg_backend_pid()")
        with database.plain() as execute_now:
            execute_now(f"KILL {number}" if is_mysql else f"SELECT pg_terminate_backend({number})")

    with pytest.raises(Exception, match="(?i)connection|server|Broken") as broken:
        in_a_block(database, work)
    assert not isinstance(broken.value, zklock.Error)
    assert database.rows("things") == [] and database.rows("zklock_fences") == []
