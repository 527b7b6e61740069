"""The statements of the table of fences, for each dialect of SQL. They are the core's."""

from __future__ import annotations

import re
import typing

from .._errors import InvalidInput
from .._zklock import fence_sql

# The number of the error of MySQL and MariaDB when a value has two rows. How many rows a statement changes depends there on a
# flag of the client, so one that is refused fails.
REFUSED = 1242


class Statements(typing.NamedTuple):
    create_table: str
    """Makes the table, if it is not there."""
    raise_token: str
    """Raises the row of a name, or is refused. Its values are the name, the ensemble and the token."""
    look: str
    """Reads the ensemble and the token of a name."""


def _known(dialect: str) -> Statements:
    # PostgreSQL numbers its values. Drivers have marks of their own.
    return Statements(*(re.sub(r"\$\d", "?", text) for text in fence_sql(dialect) or ()))


_ALL = {dialect: _known(dialect) for dialect in ("postgresql", "mysql", "sqlite")}


def statements(dialect: str) -> Statements:
    if dialect not in _ALL:
        raise InvalidInput(f"there is no fence for {dialect}, only for {', '.join(_ALL)}")
    return _ALL[dialect]


def create_table(dialect: str) -> str:
    """The statement that creates the table of fences, if it does not exist. ``dialect`` is postgresql, mysql (for MariaDB too) or
    sqlite.

    Raises ``InvalidInput`` for another dialect.
    """
    return statements(dialect).create_table
