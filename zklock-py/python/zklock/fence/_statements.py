"""The statements of the table of fences, for each dialect of SQL."""

from __future__ import annotations

import typing

from .._errors import InvalidInput


class Statements(typing.NamedTuple):
    create_table: str
    """Makes the table, if it is not there."""
    raise_token: str
    """Raises the row of a name, or is refused. Its values are the name, the ensemble and the token."""
    look: str
    """Reads the ensemble and the token of a name."""


_CREATE = "CREATE TABLE IF NOT EXISTS zklock_fences ({})"
_INSERT = "INSERT INTO zklock_fences (name, ensemble, token) VALUES (?, ?, ?) "
_LOOK = "SELECT ensemble, token FROM zklock_fences WHERE name = ?"

# It changes no row if it is refused.
_RAISE = (
    _INSERT + "ON CONFLICT (name) DO UPDATE SET token = excluded.token "
    "WHERE zklock_fences.ensemble = excluded.ensemble AND zklock_fences.token <= excluded.token"
)
# How many rows it changes depends on a flag of the client. So if it is refused it fails: a value is to have two rows.
_RAISE_OR_FAIL = (
    _INSERT + "ON DUPLICATE KEY UPDATE token = "
    "IF(ensemble = VALUES(ensemble) AND token <= VALUES(token), VALUES(token), (SELECT 1 UNION SELECT 2))"
)

_COLUMNS = "name VARCHAR(255) PRIMARY KEY, ensemble VARCHAR(64) NOT NULL, token BIGINT NOT NULL"
# By default MySQL compares without regard to case, and its other engines cannot roll back.
_COLUMNS_OF_MYSQL = (
    "name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, "
    "ensemble VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, token BIGINT NOT NULL"
)

STATEMENTS = {
    "postgresql": Statements(_CREATE.format(_COLUMNS), _RAISE, _LOOK),
    "mysql": Statements(_CREATE.format(_COLUMNS_OF_MYSQL) + " ENGINE=InnoDB", _RAISE_OR_FAIL, _LOOK),
    "sqlite": Statements(_CREATE.format(_COLUMNS), _RAISE, _LOOK),
}
# The number of the error of MySQL and MariaDB when a value has two rows.
REFUSED = 1242


def statements(dialect: str) -> Statements:
    if dialect not in STATEMENTS:
        raise InvalidInput(f"there is no fence for {dialect}, only for {', '.join(STATEMENTS)}")
    return STATEMENTS[dialect]


def create_table(dialect: str) -> str:
    """The statement that makes the table of fences, if it is not there. ``dialect`` is postgresql, mysql (for MariaDB too) or sqlite.

    Raises ``InvalidInput`` for another dialect.
    """
    return statements(dialect).create_table
