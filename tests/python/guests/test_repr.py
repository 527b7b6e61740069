"""The ``repr`` of objects: it has the information that helps to find a mistake."""

from __future__ import annotations

import re

from ground import Ground
from scenes import eventually, lose

import zklock

SECONDS = r"\d\.\d{3} s"


def says(thing: object, pattern: str) -> None:
    assert re.fullmatch(pattern, repr(thing)), repr(thing)


def test_of_a_client(ground: Ground, path: str) -> None:
    proxy = ground.proxy("1")
    name = f'"{re.escape(proxy.hosts)}"'
    client = zklock.Client(proxy.hosts, session_timeout=4)
    says(client, f"<zklock.Client {name} not connected yet>")
    says(client.aio, f"<zklock.AsyncClient {name} not connected yet>")
    client.connect()
    session = client.session_id
    assert session is not None
    says(client, f"<zklock.Client {name} session {session:#x} of 4s, 0 held, 0 owed, 0 granted, 0 lost>")
    hold = client.mutex(path).hold()
    says(client, f"<zklock.Client {name} session .*, 1 held, 0 owed, 1 granted, 0 lost>")
    lose(ground, hold)
    eventually(lambda: client.stats()[2:4] == (1, 0))
    says(client.aio, f"<zklock.AsyncClient {name} session .*, 0 held, 0 owed, 1 granted, 1 lost>")
    proxy("refuse", "on")
    proxy("expire")
    # The client learns that its session is over, but gets no answer about the next.
    proxy("hold-reply", "connect", "2")
    proxy("refuse", "off")
    eventually(lambda: "without a session" in repr(client))
    client.close()
    says(client, f"<zklock.Client {name} closed>")


def test_of_a_lock(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    lock, again = zk.mutex(path), zk.mutex(f"{path}-again", reentrant=True)
    says(lock, f'<zklock.Lock "{path}" not held here>')
    says(again.aio, f'<zklock.AsyncLock reentrant "{path}-again" not held here>')
    with lock as hold, again:
        says(lock, f'<zklock.Lock "{path}" held with token {hold.token} for {SECONDS} at least>')
        says(lock.aio, f'<zklock.AsyncLock "{path}" held with token {hold.token} for {SECONDS} at least>')
        says(again, f'<zklock.Lock reentrant "{path}-again" held with token .*>')
        says(other.mutex(path), f'<zklock.Lock "{path}" not held here>')
    says(lock, f'<zklock.Lock "{path}" not held here>')


def test_of_a_lock_of_each_kind(zk: zklock.Client, path: str) -> None:
    rest = f'"{path}" not held here>'
    says(zk.read_lock(path), f"<zklock.Lock read {rest}")
    says(zk.write_lock(path, reentrant=True), f"<zklock.Lock write reentrant {rest}")
    says(zk.semaphore(path, 5), f"<zklock.Lock semaphore of 5 {rest}")
    says(zk.semaphore(path, 5, permits=2).aio, f"<zklock.AsyncLock 2 of semaphore of 5 {rest}")
    says(zk.election(path), f"<zklock.Lock election {rest}")
    says(zk.single_node(path), f"<zklock.Lock single-node {rest}")
    both = zk.all([zk.mutex(path), zk.mutex(f"{path}-2")])
    says(both, f'<zklock.Lock all "{path}, {path}-2" not held here>')
    with both as hold:
        says(both, f'<zklock.Lock all "{path}, {path}-2" held with token {hold.token} for {SECONDS} at least>')
    says(zk.election(path).observe(), f'<zklock.Observer of "{path}">')


def test_of_barriers(zk: zklock.Client, path: str) -> None:
    says(zk.barrier(path), f'<zklock.Barrier "{path}">')
    says(zk.barrier(path).aio, f'<zklock.AsyncBarrier "{path}">')
    meeting = zk.double_barrier(f"{path}-2", 1)
    says(meeting, f'<zklock.DoubleBarrier "{path}-2" of 1 members>')
    says(meeting.aio, f'<zklock.AsyncDoubleBarrier "{path}-2" of 1 members>')
    with meeting as member:
        says(member, f'<zklock.Member of "{path}-2", node {member.node.rpartition("/")[2]}>')


def test_of_a_hold_and_its_loss(zk: zklock.Client, ground: Ground, path: str) -> None:
    hold = zk.mutex(path).hold()
    rest = f"token {hold.token}, node {re.escape(hold.node.rpartition('/')[2])}>"
    says(hold, f'<zklock.Hold of "{path}" held for {SECONDS} at least, {rest}')
    says(hold.lost, "<zklock.Loss not set>")
    says(hold.wanted, "<zklock.Wanted not set>")
    hold.release()
    says(hold, f'<zklock.Hold of "{path}" released, {rest}')
    says(hold.lost, "<zklock.Loss not set>")
    hold = zk.mutex(path).hold()
    lose(ground, hold)
    says(hold, f'<zklock.Hold of "{path}" lost: its node was deleted, token .*>')
    says(hold.lost, "<zklock.Loss set: its node was deleted>")


def test_of_a_hold_at_risk(ground: Ground, path: str) -> None:
    proxy = ground.proxy("1")
    with zklock.Client(proxy.hosts, session_timeout=10) as client:
        hold = client.mutex(path).hold()
        proxy("refuse", "on")
        proxy("cut")
        eventually(lambda: hold.state is zklock.HoldState.AT_RISK)
        says(hold, f'<zklock.Hold of "{path}" at risk, held for {SECONDS}, token .*>')
        proxy("refuse", "off")
        eventually(lambda: hold.state is zklock.HoldState.HELD)
        hold.release()


def test_of_guarded_writes(zk: zklock.Client, path: str) -> None:
    with zk.mutex(path) as hold:
        says(hold.guarded(), f'<zklock.Guarded by the hold of "{path}", 0 writes>')
        guarded = hold.guarded().create("/of-repr").delete("/of-repr")
        says(guarded, f'<zklock.Guarded by the hold of "{path}", 2 writes>')
        guarded.commit()


async def test_in_asyncio(zk: zklock.Client, path: str) -> None:
    lock = zk.aio.mutex(path)
    coroutine = lock.acquire()
    says(coroutine, "<AsyncLock.acquire not awaited yet>")
    assert await coroutine
    says(coroutine, "<AsyncLock.acquire over>")
    await lock.release()
    hold = await lock.hold()
    says(hold, f'<zklock.AsyncHold of "{path}" held for {SECONDS} at least, token .*>')
    says(hold.guarded(), f'<zklock.AsyncGuarded by the hold of "{path}", 0 writes>')
    await hold.release()
    says(hold, f'<zklock.AsyncHold of "{path}" released, token .*>')


def test_of_values(zk: zklock.Client, path: str) -> None:
    lock = zk.mutex(path)
    with lock as hold:
        says(hold.state, "<HoldState.HELD: 'held'>")
        (contender,) = lock.contenders()
        says(
            contender,
            rf"Contender\(name='_c_.*', identity='.*/\d+', session=\d+, token={hold.token}, .*, naming='curator', "
            rf"node='{path}/_c_.*', role='exclusive', holds=True\)",
        )
        says(zk.stats(), r"Stats\(sessions=1, grants=1, losses=0, owed=0, .*\)")
    says(zklock.LossReason.NODE_DELETED, "<LossReason.NODE_DELETED: 'its node was deleted'>")
