"""The programs of the pages about fences do what the pages say, and refuse what comes too late."""

from __future__ import annotations

import pathlib
import re
import typing

import httpx
import psycopg
import pytest
import redis
from databases import Database
from host import Hosts
from page import ADDRESS, ROOT, blocks

import zklock
from zklock import fence
from zklock.fence import Stamp

FENCING, STORES = PAGES = ("docs/fencing.md", "docs/fencing-stores.md")
# By heading: no heading is on both pages.
PROGRAMS = {heading: files for page in PAGES for heading, files in blocks(page, "python").items()}
# Greater than any token of a server that has just started.
LATER = 2**62


@pytest.fixture
def hosts(tmp_path: pathlib.Path) -> typing.Iterator[Hosts]:
    hosts = Hosts(tmp_path)
    yield hosts
    hosts.close()


Run = typing.Callable[..., tuple[int, str]]


@pytest.fixture
def run(hosts: Hosts, zookeeper: str) -> Run:
    """Runs a program of the pages, with changes. Returns its status and its output."""

    def run(heading: str, file: str, *changes: tuple[str, str]) -> tuple[int, str]:
        text = PROGRAMS[heading][file]
        for before, after in (*changes, *([(ADDRESS, zookeeper)] if ADDRESS in text else [])):
            assert before in text
            text = text.replace(before, after)
        hosts.write(file, text)
        program = hosts.python(file)
        return program.finish().status, program.log()

    return run


def identity(zookeeper: str) -> str:
    with zklock.Client(zookeeper) as zk, zk.mutex("/locks/identity") as hold:
        return fence.stamp(hold).ensemble


def is_late(answer: tuple[int, str]) -> bool:
    return answer[0] == 1 and "zklock.StaleToken: a later holder of " in answer[1] and str(LATER) in answer[1]


def test_every_program_is_tested_and_short() -> None:
    text = "".join((ROOT / page).read_text() for page in PAGES)
    own = pathlib.Path(__file__).read_text()
    assert text.count("```py") == sum(len(files) for files in PROGRAMS.values())
    for heading, files in PROGRAMS.items():
        for file, text in files.items():
                assert f'"{heading}"' in own and f'"{file}"' in own and len(text.splitlines()) <= 32


def test_postgresql(run: Run, zookeeper: str, shop: psycopg.Connection) -> None:
    assert run("PostgreSQL", "pay.py") == (0, "110\n")
    shop.execute("UPDATE zklock_fences SET token = %s", (LATER,))
    assert is_late(run("PostgreSQL", "pay.py"))
    assert shop.execute("SELECT amount FROM account").fetchall() == [(110,)]
    (reset,) = re.findall(r"^DELETE .*;$", (ROOT / FENCING).read_text(), re.MULTILINE)
    shop.execute(reset)
    assert run("PostgreSQL", "pay.py") == (0, "120\n")


def test_redis(run: Run, zookeeper: str, redis_port: int) -> None:
    port = ("6379", str(redis_port))
    assert run("Redis", "count.py", port) == (0, "10\n")
    assert run("Redis", "count.py", port) == (0, "20\n")
    with redis.Redis(port=redis_port) as client:
        assert client.lrange("{account}:history", 0, -1) == [b"10", b"10"] and client.get("{account}:state") == b"paid"
        client.hset("zklock-fence:{account}:/locks/account", "token", f"{LATER:020}")
        assert is_late(run("Redis", "count.py", port))
        assert client.get("{account}:anna") == b"20"


def test_http(run: Run, hosts: Hosts, zookeeper: str) -> None:
    hosts.write("service.py", PROGRAMS["HTTP"]["service.py"])
    service = hosts.python("-m", "uvicorn", "service:app", "--port", "0")
    (address,) = service.said(r"Uvicorn running on (\S+)")
    later = fence.headers(Stamp("/locks/account", LATER, identity(zookeeper)))
    with zklock.Client(zookeeper) as zk, httpx.Client(base_url=address) as shop, zk.mutex("/locks/account") as hold:
        for amount in (10, 20):
            assert shop.post("/account/anna?amount=10", headers=fence.headers(hold)).json() == {"amount": amount}
        assert shop.post("/account/anna").status_code == 428 and shop.get("/docs").status_code == 200
        # A request that the application refuses raises the token all the same.
        assert shop.post("/account/anna?amount=none", headers=later).status_code == 422
        late = shop.post("/account/anna?amount=10", headers=fence.headers(hold))
        assert late.status_code == 412 and late.json()["written"] == str(LATER)


@pytest.mark.parametrize("database", ["sqlite3", "psycopg2", "pymysql"], indirect=True)
def test_the_form_without_a_table_refuses_smaller_tokens(database: Database) -> None:
    (form,) = re.findall(r"^UPDATE account\n(?:.*\n)+?(?=```)", (ROOT / STORES).read_text(), re.MULTILINE)

    def write(token: int, amount: int, ensemble: str = "one") -> int:
        marked = re.sub(r":(\w+)", lambda name: str({"amount": amount, "token": token, "ensemble": f"'{ensemble}'"}[name[1]]), form)
        with database.library.connect(database.address) as connection:
            cursor = connection.cursor()
            cursor.execute(marked)
            connection.commit()
            return int(cursor.rowcount)

    with database.plain() as execute:
        execute("DROP TABLE IF EXISTS account")
        execute("CREATE TABLE account (name VARCHAR(99) PRIMARY KEY, amount BIGINT, token BIGINT, ensemble VARCHAR(64))")
        execute("INSERT INTO account VALUES ('anna', 100, 0, 'one')")
    assert [write(5, 10), write(9, 20), write(5, 30), write(9, 40), write(10, 50, "two")] == [1, 1, 0, 1, 0]
    with database.plain() as execute:
        assert execute("SELECT amount, token FROM account") == [(40, 9)]
