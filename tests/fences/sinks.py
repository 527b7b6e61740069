"""What holders write to in stale.py, with a fence and without. Each counts its own writes, and those that came too late.

A late write has a smaller token than one that was written before. The sink itself finds that, in the same step as the write.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import pathlib
import time
import typing

import boto3
import httpx
import psycopg
import psycopg2
import pymysql
import redis
from databases import Address

import zklock
from zklock import fence

KINDS = ("postgresql", "psycopg2", "mariadb", "redis", "objects", "files", "http")
KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
TABLE = """CREATE TABLE guarded (name VARCHAR(100) PRIMARY KEY, token BIGINT NOT NULL, writes INTEGER NOT NULL, stale INTEGER NOT NULL)"""
UPDATE = """UPDATE guarded SET writes = writes + 1, stale = stale + CASE WHEN token > %s THEN 1 ELSE 0 END,
    token = CASE WHEN token > %s THEN token ELSE %s END WHERE name = %s"""
SCRIPT = """
local late = tonumber(redis.call('HGET', KEYS[1], 'token') or '0') > tonumber(ARGV[1])
redis.call('HINCRBY', KEYS[1], 'writes', 1)
if late then redis.call('HINCRBY', KEYS[1], 'stale', 1) else redis.call('HSET', KEYS[1], 'token', ARGV[1]) end
"""

Pause = typing.Callable[[], None]
End = typing.Callable[[typing.Any], object]
# What ends a transaction: the calls of most libraries, or statements, where the library refuses the calls within a block.
CALLS: tuple[End, ...] = (lambda connection: connection.commit(), lambda connection: connection.rollback())
WORDS: tuple[End, ...] = (lambda connection: connection.execute("COMMIT"), lambda connection: connection.execute("ROLLBACK"))


class Counts(typing.NamedTuple):
    writes: int
    stale: int

    @classmethod
    def of(cls, tokens: typing.Iterable[int]) -> Counts:
        """The counts of writes that came in this order."""
        greatest = writes = stale = 0
        for token in tokens:
            writes, stale, greatest = writes + 1, stale + (token < greatest), max(greatest, token)
        return cls(writes, stale)


class Sql:
    """Every other block ends its transaction in the middle, and goes on."""

    def __init__(self, connection: typing.Any, ends: tuple[End, ...] = CALLS) -> None:
        self._connection, self._ends = connection, itertools.cycle([None, ends[0], None, ends[1]])

    def create(self, dialect: str, names: typing.Iterable[str]) -> None:
        cursor = self._connection.cursor()
        cursor.execute(fence.create_table(dialect))
        cursor.execute(TABLE)
        for name in names:
            cursor.execute("INSERT INTO guarded VALUES (%s, 0, 0, 0)", (name,))
        self._connection.commit()

    def update(self, name: str, token: int) -> None:
        self._connection.cursor().execute(UPDATE, (token, token, token, name))

    def write(self, name: str, hold: typing.Any, is_fenced: bool, pause: Pause) -> None:
        end = next(self._ends)
        try:
            with fence.transaction(self._connection, hold, name) if is_fenced else contextlib.nullcontext():
                pause()
                if end:
                    end(self._connection)
                    pause()
                self.update(name, hold.token)
            self._connection.commit()
        except BaseException as error:
            self._connection.rollback()
            if not end or type(error) is not zklock.Error:
                raise

    def counts(self, name: str) -> Counts:
        cursor = self._connection.cursor()
        cursor.execute("SELECT writes, stale FROM guarded WHERE name = %s", (name,))
        row = cursor.fetchone()
        self._connection.commit()
        return Counts(*row)


class Redis:
    def __init__(self, client: redis.Redis) -> None:
        self._client, self._fence = client, fence.Redis(client)

    def write(self, name: str, hold: typing.Any, is_fenced: bool, pause: Pause) -> None:
        pause()
        if is_fenced:
            self._fence.run(hold, SCRIPT, [name], [hold.token])
        else:
            self._client.eval(SCRIPT, 1, name, str(hold.token))

    def counts(self, name: str) -> Counts:
        return Counts(*(int(self._client.hget(name, field) or 0) for field in ("writes", "stale")))  # type: ignore[arg-type]


class Objects:
    def __init__(self, address: str) -> None:
        self._client = boto3.client("s3", endpoint_url=address, **KEYS)

    def create(self) -> None:
        self._client.create_bucket(Bucket="bucket")

    def write(self, name: str, hold: typing.Any, is_fenced: bool, pause: Pause) -> None:
        pause()
        if is_fenced:
            fence.Object(self._client, "bucket", name).write(hold, b"data")
        else:
            self._client.put_object(Bucket="bucket", Key=name, Body=json.dumps({"token": str(hold.token)}).encode())


class Files:
    """Where a file is replaced, the token is written to a journal in the same step."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder

    def write(self, name: str, hold: typing.Any, is_fenced: bool, pause: Pause) -> None:
        folder = self._folder / name
        pause()
        if is_fenced:
            fence.Directory(folder).write(hold, "report", str(hold.token).encode())
        else:
            staged = folder / f"{hold.token}-{time.monotonic_ns()}"
            staged.write_text(str(hold.token))
            os.replace(staged, folder / "report")

    def counts(self, name: str) -> Counts:
        return Counts.of(map(int, (self._folder / name / "journal").read_text().split()))


def keep_journal() -> None:
    """Has this process write a line for each file that it replaces."""
    replace = os.replace

    def replaced(source: typing.Any, target: typing.Any, **folders: typing.Any) -> None:
        # The fence names both in a folder that is open.
        above = pathlib.Path(f"/proc/self/fd/{folders['dst_dir_fd']}" if folders else "")
        with open((above / target).parent / "journal", "a") as journal:
            fcntl.flock(journal, fcntl.LOCK_EX)
            token = (above / source).read_text()
            replace(source, target, **folders)
            journal.write(token + "\n")

    os.replace = replaced


class Http:
    """A server that writes to PostgreSQL, behind the middleware or not."""

    def __init__(self, address: str) -> None:
        self._client = httpx.Client(base_url=address, timeout=60)

    def write(self, name: str, hold: typing.Any, is_fenced: bool, pause: Pause) -> None:
        headers = fence.headers(hold, name)
        pause()
        answer = self._client.post(f"/{'fenced' if is_fenced else 'plain'}/{name}", headers=headers)
        if answer.status_code == 412:
            raise zklock.StaleToken(answer.text)
        answer.raise_for_status()


def application(port: int) -> typing.Any:
    """The server."""
    address = Address("postgresql", port).options

    def app(environ: dict[str, typing.Any], start_response: typing.Any) -> list[bytes]:
        name, token = environ["PATH_INFO"].rpartition("/")[2], int(environ["HTTP_FENCING_TOKEN"])
        given = environ.get("zklock.fenced")
        if given is not None:
            Sql(given).update(name, token)
        else:
            with psycopg.connect(**address) as connection:
                Sql(connection).update(name, token)
        start_response("204 No Content", [])
        return []

    @contextlib.contextmanager
    def guard(stamp: fence.Stamp) -> typing.Iterator[typing.Any]:
        with psycopg.connect(**address) as connection, fence.transaction(connection, stamp):
            yield connection

    fenced = fence.wsgi(app, guard)
    return lambda environ, start: (fenced if environ["PATH_INFO"].startswith("/fenced/") else app)(environ, start)


def connected(where: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """A way to each sink, for one thread."""
    address = Address("postgresql", where["postgresql"]).options
    return {
        "postgresql": Sql(psycopg.connect(**address), WORDS),
        "psycopg2": Sql(psycopg2.connect(**address)),
        "mariadb": Sql(pymysql.connect(**Address("mysql", where["mariadb"]).options)),
        "redis": Redis(redis.Redis(port=where["redis"])),
        "objects": Objects(where["objects"]),
        "files": Files(pathlib.Path(where["files"])),
        "http": Http(where["http"]),
    }
