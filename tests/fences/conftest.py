"""Servers, which are started when the first test needs them."""

from __future__ import annotations

import pathlib
import typing

import databases
import pymysql
import pytest
import servers


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
def sqlite(tmp_path: pathlib.Path) -> databases.Address:
    return databases.Address("sqlite", file=str(tmp_path / "database"))


@pytest.fixture
def database(request: pytest.FixtureRequest) -> databases.Database:
    """The database of a library, by its name."""
    library = databases.BY_NAME[request.param]
    return databases.Database(library, request.getfixturevalue(library.dialect))
