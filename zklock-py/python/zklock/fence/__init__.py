"""Fences: a resource that a lock guards refuses the writes of late holders.

>>> import sqlite3, zklock.fence
>>> database = sqlite3.connect(":memory:")
>>> _ = database.executescript(zklock.fence.create_table("sqlite"))
>>> lock = zk.mutex("/locks/doc")
>>> with lock as slow:
...     pass
>>> with lock as quick, zklock.fence.transaction(database, quick):
...     pass
>>> try:
...     with zklock.fence.transaction(database, slow):
...         pass
... except zklock.StaleToken as refusal:
...     refusal.written == quick.token
True

A fence keeps the greatest token that it has seen for each name, and refuses smaller ones. It compares, keeps and writes in one
atomic step. It accepts an equal token, so you can repeat a write that may have been done already.

Each fence takes a hold, or a ``Stamp``, which may come from another process. By default, ``name`` is the path of the lock.
"""

from ._check import Broken, Fence, Guarded, Report, check
from ._files import Directory
from ._http import headers
from ._middleware import asgi, wsgi
from ._objects import Object
from ._redis import Redis
from ._sql import AsyncTransaction, Transaction, transaction
from ._stamp import Stamp, stamp
from ._statements import create_table

__all__ = [
    "AsyncTransaction",
    "Broken",
    "Directory",
    "Fence",
    "Guarded",
    "Object",
    "Redis",
    "Report",
    "Stamp",
    "Transaction",
    "asgi",
    "check",
    "create_table",
    "headers",
    "stamp",
    "transaction",
    "wsgi",
]
