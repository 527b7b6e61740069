"""Writes to a database, which refuses the writes of a holder whose lock has been given to another.

python fenced_sqlite.py [HOSTS [DATABASE]]

A lock alone cannot do that: a program may be paused just before it writes, and resume long after its lock was lost. A
token can: the database remembers the largest token that it has seen, and refuses smaller ones.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys

import zklock
from zklock import fence

SCHEMA = """
    CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, amount INTEGER NOT NULL);
    INSERT OR IGNORE INTO account VALUES ('anna', 100);
"""


def pay_in(database: sqlite3.Connection, hold: zklock.Hold, amount: int) -> None:
    # One transaction, which is rolled back if the token is refused.
    with fence.transaction(database, hold):
        database.execute("UPDATE account SET amount = amount + ? WHERE name = 'anna'", (amount,))


def main(hosts: str = "127.0.0.1:2181", file: str = ":memory:") -> None:
    with zklock.Client(hosts) as zk, contextlib.closing(sqlite3.connect(file)) as database:
        database.executescript(SCHEMA)
        database.execute(fence.create_table("sqlite"))
        lock = zk.mutex("/locks/account", timeout=5)

        with lock as slow:
            pay_in(database, slow, 10)
        with lock as quick:
            pay_in(database, quick, 20)

        # As if the slow holder had been paused inside its block while its session expired.
        try:
            pay_in(database, slow, 1000)
        except zklock.StaleToken as refusal:
            print(f"refused: {refusal}")
        print(database.execute("SELECT amount FROM account WHERE name = 'anna'").fetchone()[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
