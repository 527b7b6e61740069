"""Objects that belong to this process refuse to be pickled or copied, with advice. Exceptions and values can be."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest

import zklock


def copies(thing: object) -> list[typing.Callable[[], object]]:
    protocols = range(pickle.HIGHEST_PROTOCOL + 1)
    dumps = [lambda protocol=protocol: pickle.dumps(thing, protocol) for protocol in protocols]
    return [*dumps, lambda: copy.copy(thing), lambda: copy.deepcopy(thing), lambda: copy.deepcopy([thing])]


def refuses(thing: object, *words: str) -> None:
    for make in copies(thing):
        with pytest.raises(TypeError) as raised:
            make()
        for word in ("cannot be pickled or copied", "belongs to this process", *words):
            assert word in str(raised.value)


@pytest.mark.parametrize("is_connected", [False, True])
def test_clients_and_locks(zk: zklock.Client, hosts: str, path: str, is_connected: bool) -> None:
    client = zk if is_connected else zklock.Client(hosts)
    refuses(client, "make one in each process", "zklock.Client(hosts)")
    refuses(client.aio, "make one in each process", "zklock.Client(hosts)")
    refuses(client.mutex(path), "send its path")
    refuses(client.mutex(path, reentrant=True).aio, "send its path")
    refuses(client.all([client.mutex(path)]), "send its path")
    refuses(client.barrier(path), "send its path")
    refuses(client.double_barrier(path, 2), "send its path")
    refuses(client.job(path, "1d"), "send its path")
    refuses(client.aio.job(path, "1d"), "send its path")
    refuses(client.election(path).observe(), "make one in each process")
    refuses(client.aio.election(path).observe(), "make one in each process")


def test_holds_and_what_comes_of_them(zk: zklock.Client, path: str) -> None:
    with zk.mutex(path) as hold:
        refuses(hold, "send its token")
        refuses(hold.lost, "look at it where the lock is held")
        refuses(hold.wanted, "look at it where the lock is held")
        refuses(hold.guarded(), "commit it where the lock is held")
        refuses(zk.mutex(path).current, "send its token")
    refuses(hold, "send its token")


async def test_holds_of_asyncio(zk: zklock.Client, path: str) -> None:
    async with zk.aio.mutex(path) as hold:
        refuses(hold, "send its token")
        refuses(hold.guarded(), "commit it where the lock is held")
        begun = zk.aio.mutex(f"{path}-never").acquire()
        for make in copies(begun):
            with pytest.raises(TypeError):
                make()
        begun.close()


def test_no_object_is_left_out() -> None:
    # Each new class must be in one of these lists.
    own = [thing for thing in vars(zklock).values() if isinstance(thing, type) and not issubclass(thing, Exception)]
    values = {zklock.Contender, zklock.Histogram, zklock.LockStats, zklock.NodeData, zklock.Stats}
    values |= {zklock.ConnectionState, zklock.HoldState, zklock.LossReason}
    # The hold of a run refuses.
    values |= {zklock.Record, zklock.Run, zklock.AsyncRun}
    for one in set(own) - values:
        assert one.__reduce__ is not object.__reduce__, one


EXCEPTIONS = [thing for thing in vars(zklock).values() if isinstance(thing, type) and issubclass(thing, zklock.Error)]


@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("arguments", [(), ("what is wrong",), ("what is wrong", zklock.LossReason.NODE_DELETED)], ids=len)
def test_exceptions(kind: type[zklock.Error], arguments: tuple[object, ...]) -> None:
    """With fewer arguments than ours, since test doubles make objects in this way."""
    if len(arguments) == 2 and kind is not zklock.LockLost:
        return
    given = typing.cast("typing.Callable[..., zklock.Error]", kind)(*arguments)
    for make in copies(given):
        made = make()
        made = pickle.loads(made) if isinstance(made, bytes) else made
        one = made[0] if isinstance(made, list) else made
        assert type(one) is kind and str(one) == "".join(map(str, arguments[:1])) and repr(one).startswith(kind.__name__)
        assert one.args == given.args and vars(one) == vars(given)
        if isinstance(one, zklock.LockLost):
            assert one.reason is (zklock.LossReason.NODE_DELETED if len(arguments) == 2 else None)


def test_there_are_exceptions() -> None:
    assert len(EXCEPTIONS) == 17
    assert all(kind.__module__ == "zklock" and kind.__doc__ for kind in EXCEPTIONS)


def test_values(zk: zklock.Client, path: str) -> None:
    lock = zk.mutex(path, metrics_name="report")
    with lock as hold:
        things = [hold.state, zklock.LossReason.FORKED, zk.stats(), lock.contenders()[0], zklock.HoldState.LOST]
    for thing in things:
        assert pickle.loads(pickle.dumps(thing)) == thing
        assert type(copy.deepcopy(thing)) is type(thing)
    for thing in (zklock.HoldState.LOST, zklock.LossReason.FORKED):
        assert pickle.loads(pickle.dumps(thing)) is thing
