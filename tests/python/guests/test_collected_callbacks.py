"""Callbacks and the garbage collector: they go with their object, not before, and no half-collected object is called."""

from __future__ import annotations

import asyncio
import gc
import queue
import sys
import threading
import typing
import warnings
import weakref

import pytest
from aio.support import Loop
from ground import Ground
from scenes import eventually, in_asyncio, lose, without_garbage

import zklock
from zklock import ConnectionState, LossReason

CONNECTED, DISCONNECTED, CLOSED = ConnectionState.CONNECTED, ConnectionState.DISCONNECTED, ConnectionState.CLOSED


def have_run() -> bool:
    """Whether every callback that has begun has ended: then the threads that call them end."""
    return not any(thread.name == "zklock-callbacks" for thread in threading.enumerate())


class Witness:
    """Has a callback that is never garbage. When the client drops it, every report of the client's end is decided."""

    def __init__(self, client: zklock.Client) -> None:
        self.states: list[ConnectionState] = []
        self._tell = lambda state: self.states.append(state)
        self._references = sys.getrefcount(self._tell)
        client.on_connection(self._tell)
        assert sys.getrefcount(self._tell) > self._references

    def waits_for_the_end(self) -> None:
        eventually(lambda: sys.getrefcount(self._tell) == self._references)
        eventually(have_run)


class Told:
    """An object whose callback gets the reports of the client that it refers to."""

    def __init__(self, client: zklock.Client) -> None:
        self.states: queue.Queue[ConnectionState] = queue.Queue()
        self.client = client

    def tell(self, state: ConnectionState) -> None:
        # If the collector has begun to clear this object, this raises.
        self.states.put(state)


def test_a_callback_is_forgotten_when_its_hold_is_released(zk: zklock.Client, path: str) -> None:
    class Callback:
        def __call__(self, reason: LossReason) -> None:
            pass

    callback = Callback()
    known = weakref.ref(callback)
    hold = zk.mutex(path).hold()
    hold.on_lost(callback)
    del callback
    gc.collect()
    assert known() is not None
    hold.release()
    eventually(lambda: known() is None)


@pytest.mark.parametrize("is_connected", [True, False])
@pytest.mark.parametrize("face", ["threads", "asyncio"])
def test_a_client_that_is_collected_tells_nothing(
    hosts: str, face: str, is_connected: bool, unraisable: list[typing.Any]
) -> None:
    told = Told(zklock.Client(hosts))
    # The face's own object goes at once.
    (told.client.aio if face == "asyncio" else told.client).on_connection(told.tell)
    witness = Witness(told.client)
    heard = []
    if is_connected:
        told.client.connect()
        heard.append(told.states.get(timeout=10))
        eventually(lambda: witness.states == heard)
    known, states = weakref.ref(told), told.states
    gc.collect()
    assert known() is not None
    del told
    without_garbage(lambda: known() is None)
    witness.waits_for_the_end()
    assert unraisable == []
    assert witness.states == heard and states.empty()


@pytest.fixture
def blocked(zk: zklock.Client, path: str) -> typing.Iterator[threading.Event]:
    """Blocks the thread that hands over callbacks, while it wakes a loop, until the result is set."""
    loop, barrier, is_blocked, go_on = Loop(), zk.barrier(path), threading.Event(), threading.Event()

    def block() -> None:
        is_blocked.set()
        go_on.wait(30)

    loop.before_a_call = block
    barrier.set()
    waits = loop.create_task(barrier.aio.wait())
    loop.run_until_complete(asyncio.sleep(0))
    # This wakes the task.
    barrier.remove()
    assert is_blocked.wait(30)
    yield go_on
    go_on.set()
    loop.run_until_complete(waits)
    loop.close()


CLOSERS: dict[str, typing.Callable[[zklock.Client], object]] = {
    "close": lambda client: client.close(),
    # The close begins at once.
    "asyncio": lambda client: client.aio.close(),
    "finalizer": lambda client: None,
}


class Closes(Told):
    """Closes its client when it is collected."""

    def __del__(self) -> None:
        self.client.close()


@pytest.mark.parametrize("closer", CLOSERS)
def test_a_client_that_is_closed_tells_it_once_though_it_is_collected_before(
    hosts: str, closer: str, request: pytest.FixtureRequest, unraisable: list[typing.Any]
) -> None:
    told = (Closes if closer == "finalizer" else Told)(zklock.Client(hosts))
    told.client.on_connection(told.tell)
    witness = Witness(told.client)
    known, states = weakref.ref(told), told.states
    told.client.connect()
    assert states.get(timeout=10) is CONNECTED
    go_on = request.getfixturevalue("blocked")
    CLOSERS[closer](told.client)
    del told
    gc.collect()
    go_on.set()
    assert states.get(timeout=10) is CLOSED
    witness.waits_for_the_end()
    assert witness.states[-1] is CLOSED and witness.states.count(CLOSED) == 1
    assert states.empty() and unraisable == []
    # Reports do not keep the client alive any longer.
    without_garbage(lambda: known() is None)


def waiting(client: zklock.Client, path: str) -> object:
    """A coroutine that has begun, but belongs to no task."""

    async def begin() -> object:
        coroutine = client.aio.barrier(path).wait()
        coroutine.send(None)
        return coroutine

    client.barrier(path).set()
    return asyncio.run(begin())


def leaving(client: zklock.Client, path: str) -> object:
    """A call that begins before it is awaited."""
    client.double_barrier(path, 1).enter().leave()
    return in_asyncio(client.aio.double_barrier(path, 1).enter).leave()


KEEPERS: dict[str, typing.Callable[[zklock.Client, str], object]] = {
    "face": lambda client, path: client.aio,
    "lock": lambda client, path: client.mutex(path),
    "hold": lambda client, path: client.mutex(path).hold(),
    "guarded": lambda client, path: client.mutex(path).hold().guarded(),
    "observer": lambda client, path: client.mutex(path).observe(),
    "barrier": lambda client, path: client.barrier(path),
    "double barrier": lambda client, path: client.double_barrier(path, 2),
    "member": lambda client, path: client.double_barrier(path, 1).enter(),
    "coroutine": lambda client, path: client.aio.mutex(path).hold(),
    "coroutine that waits": waiting,
    "coroutine that was begun": leaving,
}


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore:.*was never awaited:RuntimeWarning")
@pytest.mark.parametrize("keeper", KEEPERS)
def test_a_callback_of_a_client_stays_as_long_as_something_keeps_the_client(
    zk: zklock.Client, ground: Ground, path: str, keeper: str
) -> None:
    proxy = ground.proxy("1")
    told = Told(zklock.Client(proxy.hosts, session_timeout=4))
    told.client.on_connection(told.tell)
    told.client.connect()
    kept = [KEEPERS[keeper](told.client, path)]
    known, states = weakref.ref(told), told.states
    assert states.get(timeout=10) is CONNECTED
    del told
    gc.collect()
    assert known() is not None
    proxy("reset")
    assert states.get(timeout=10) is DISCONNECTED
    kept.clear()
    without_garbage(lambda: known() is None)
    zk.barrier(path).remove()


def all_is_decided(client: zklock.Client, ground: Ground, path: str) -> None:
    """Waits until every earlier loss has been reported, or never will be."""
    told = threading.Event()
    hold = client.mutex(f"{path}-decided").hold()
    hold.on_lost(lambda _: told.set())
    ground(f"delete {hold.node}")
    assert told.wait(30)
    eventually(have_run)


Acquire = typing.Callable[[], typing.Tuple[typing.Union[zklock.Hold, zklock.AsyncHold], object]]


class Stops:
    """An object whose callback gets the loss of the hold that it refers to."""

    def __init__(self, acquire: Acquire, *others: object) -> None:
        self.reasons: queue.Queue[LossReason] = queue.Queue()
        # Among its attributes the collector frees this one after those that the callback needs.
        self.others = others
        # These are younger than this object, and so are collected later.
        self.hold, self.client = acquire()
        self.hold.on_lost(self.stop)

    def stop(self, reason: LossReason) -> None:
        self.reasons.put(reason)


@pytest.mark.parametrize("way", ["value", "acquired"])
def test_a_hold_that_is_lost_while_it_is_collected_tells_nothing(
    zk: zklock.Client,
    other: zklock.Client,
    ground: Ground,
    path: str,
    way: str,
    unraisable: list[typing.Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def acquire() -> tuple[zklock.Hold, zklock.Client]:
        client = zklock.Client(ground("servers"), session_timeout=4)
        return acquired(client.mutex(path)), client

    if way == "value":
        stops = Stops(lambda: (zk.mutex(path).hold(), zk))
    else:
        # The warning is about this other hold.
        stops = Stops(acquire, zk.mutex(f"{path}-2").hold())
    known, node, loss, reasons = weakref.ref(stops), stops.hold.node, stops.hold.lost, stops.reasons
    lost: list[bool] = []

    def in_the_middle(*_: object, **__: object) -> None:
        """Called in the middle of the collection, which it makes a loss."""
        if not lost:
            ground(f"delete {node}")
            lost.append(loss.wait(timeout=10))
            all_is_decided(other, ground, path)

    with warnings.catch_warnings():
        warnings.simplefilter("always", ResourceWarning)
        monkeypatch.setattr(warnings, "showwarning", in_the_middle)
        # The collector must only run here.
        gc.disable()
        try:
            del stops
            gc.collect()
        finally:
            gc.enable()
    assert known() is None and lost == [True]
    all_is_decided(other, ground, path)
    assert unraisable == [] and reasons.empty()


def test_a_hold_that_is_forgotten_after_its_loss_has_told_it(
    zk: zklock.Client, ground: Ground, path: str, blocked: threading.Event
) -> None:
    reasons: queue.Queue[LossReason] = queue.Queue()
    hold = zk.mutex(f"{path}-lost").hold()
    hold.on_lost(reasons.put)
    lose(ground, hold)
    # By the time of the servers' answer, everything that the loss has woken has run.
    zk.barrier(path).is_set()
    del hold
    gc.collect()
    blocked.set()
    assert reasons.get(timeout=10) is LossReason.NODE_DELETED


def acquired(lock: zklock.Lock) -> zklock.Hold:
    assert lock.acquire()
    assert lock.current is not None
    return lock.current


# How it is acquired, and what keeps it.
HOLD_KEEPERS: dict[str, tuple[typing.Callable[[zklock.Lock], typing.Any], typing.Callable[[typing.Any], object]]] = {
    "block": (lambda lock: lock.__enter__(), lambda hold: None),
    "acquired": (acquired, lambda hold: None),
    "guarded": (lambda lock: lock.hold(), lambda hold: hold.guarded()),
    "guarded of asyncio": (lambda lock: in_asyncio(lock.aio.hold), lambda hold: hold.guarded()),
    "confirm": (lambda lock: in_asyncio(lock.aio.hold), lambda hold: hold.confirm()),
    "commit": (lambda lock: in_asyncio(lock.aio.hold), lambda hold: hold.guarded().set_data("/", b"").commit()),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore:.*was never awaited:RuntimeWarning")
@pytest.mark.parametrize("keeper", HOLD_KEEPERS)
def test_a_callback_of_a_hold_stays_as_long_as_something_keeps_the_hold(
    zk: zklock.Client, ground: Ground, path: str, keeper: str
) -> None:
    lock = zk.mutex(path)
    acquire, keep = HOLD_KEEPERS[keeper]
    hold = acquire(lock)
    kept = keep(hold)
    stops, node = Stops(lambda: (hold, lock)), hold.node
    known, reasons = weakref.ref(stops), stops.reasons
    del stops, hold
    gc.collect()
    assert known() is not None
    ground(f"delete {node}")
    assert reasons.get(timeout=10) is LossReason.NODE_DELETED
    # The callback is called once, and then dropped.
    del kept
    without_garbage(lambda: known() is None)
    assert reasons.empty()


def test_what_acquire_got_does_not_keep_a_client_that_its_callback_has(ground: Ground, hosts: str, path: str) -> None:
    class Keeper:
        def __init__(self) -> None:
            self.client = zklock.Client(hosts, session_timeout=4)
            # This Python object of the hold goes at once, but the client keeps the hold.
            acquired(self.client.mutex(path)).on_lost(self.stop)

        def stop(self, reason: LossReason) -> None:
            pass

    known = weakref.ref(Keeper())
    without_garbage(lambda: known() is None)
    ground.expect_children(path, 0)
