"""Servers, which are started when the first test needs them."""

from __future__ import annotations

import pathlib
import typing

import boto3
import databases
import psycopg
import pymysql
import pytest
import redis
import servers
import sinks
from scenes import eventually

import zklock.testing


@pytest.fixture(scope="session")
def postgresql() -> typing.Iterator[databases.Address]:
    with servers.running(servers.postgresql) as server:
        yield databases.Address("postgresql", server.port)


@pytest.fixture(scope="session")
def mysql() -> typing.Iterator[databases.Address]:
    with servers.running(servers.mariadb) as server:
        with pymysql.connect(host="127.0.0.1", port=server.port, user="root") as connection:
            connection.cursor().execute("CREATE DATABASE test")
        yield databases.Address("mysql", server.port)


@pytest.fixture
def shop(postgresql: databases.Address, monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[psycopg.Connection]:
    """A new database of that name, to which programs connect that the test starts."""
    address = postgresql.options
    for name, value in (("PGHOST", address["host"]), ("PGPORT", address["port"]), ("PGUSER", address["user"])):
        monkeypatch.setenv(name, str(value))
    with psycopg.connect(**address, autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS shop")
        admin.execute("CREATE DATABASE shop")
    with psycopg.connect(**{**address, "dbname": "shop"}, autocommit=True) as connection:
        yield connection


@pytest.fixture
def zookeeper() -> typing.Iterator[str]:
    with zklock.testing.Server() as server:
        yield server.hosts


@pytest.fixture
def sqlite(tmp_path: pathlib.Path) -> databases.Address:
    return databases.Address("sqlite", file=str(tmp_path / "database"))


@pytest.fixture
def database(request: pytest.FixtureRequest) -> databases.Database:
    """The database of a library, by its name."""
    library = databases.BY_NAME[request.param]
    return databases.Database(library, request.getfixturevalue(library.dialect))


@pytest.fixture(scope="session")
def redis_port() -> typing.Iterator[int]:
    with servers.running(servers.redis) as server:
        yield server.port


@pytest.fixture(scope="session")
def redis_cluster_port() -> typing.Iterator[int]:
    with servers.running(servers.redis_cluster) as server, redis.Redis(port=server.port) as client:
        client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        eventually(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
        yield server.port


@pytest.fixture(scope="session")
def s3() -> typing.Iterator[typing.Any]:
    """A client of a store of objects, with a bucket."""
    with servers.objects() as address:
        client = boto3.client("s3", endpoint_url=address, **sinks.KEYS)
        client.create_bucket(Bucket="bucket")
        yield client
        client.close()
