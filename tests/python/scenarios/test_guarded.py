"""Promise 2, its other half: a list of guarded writes is done completely or not at all, and not once the hold is lost."""

from __future__ import annotations

import typing

import pytest
from ground import Ground
from scenes import SOON, Attempt, ConnectFar, Far, Stat, expire, hook, lose, raises

import zklock

# In ZooKeeper's protocol -1 means any version. No node has these versions.
NO_VERSIONS = [-1, -2, -(2**31), -(2**31) - 1, 2**31, 2**40, 2**70]


@pytest.fixture
def state(path: str) -> str:
    """The path of the guarded node: at the top, where it needs no parent."""
    return path.replace("/", "-").replace("-", "/", 1) + "-state"


def data(ground: Ground, node: str) -> str:
    return ground(f"data {node}")


def test_a_guarded_write_is_done_while_the_lock_is_held(
    zk: zklock.Client, ground: Ground, path: str, state: str
) -> None:
    child = f"{state}/child"
    with zk.mutex(path) as hold:
        hold.guarded().create(state, b"0").commit()
        hold.guarded().set_data(state, b"1", 0).create(child, data=bytearray(b"c")).commit()
        assert data(ground, state) == "1" and data(ground, child) == "c"
        hold.guarded().delete(child).set_data(state, b"2").commit()
        assert data(ground, state) == "2" and ground.children(state) == []
        hold.guarded().create(child).commit()
        assert data(ground, child) == ""
        hold.guarded().delete(child, version=0).commit()
        # Any bytes are allowed: a NUL among them, or none at all.
        hold.guarded().set_data(path=state, data=b"a\0b", version=2).commit()
        assert data(ground, state) == "a\0b"
        hold.guarded().set_data(state, b"", version=3).commit()
        assert data(ground, state) == ""
        # The nodes persist, and belong to no session.
        assert Stat.of(ground, state).owner == 0
    assert Stat.of(ground, state).version == 4
    raises(zklock.NotHeld, hold.guarded().set_data(state, b"late").commit).says(path)
    assert data(ground, state) == ""


def test_writes_that_are_not_committed_are_not_done(zk: zklock.Client, ground: Ground, path: str, state: str) -> None:
    with zk.mutex(path) as hold:
        guarded = hold.guarded()
        assert guarded.create(state) is guarded and guarded.delete(state) is guarded
        assert guarded.create(state, b"x").set_data(state, b"y", 0) is guarded
        assert "4 writes" in repr(guarded) and path in repr(guarded)
        assert ground(f"exists {state}") == "false"
        # Writes are executed in their order, and each may rely on those before it.
        guarded.commit()
        assert data(ground, state) == "y"
        # An empty list of writes is only a check.
        hold.guarded().commit()


def test_a_guarded_write_is_done_whole_or_not_at_all(
    zk: zklock.Client, ground: Ground, path: str, state: str
) -> None:
    other = f"{state}-other"
    ground(f"create {state} before")
    with zk.mutex(path) as hold:
        for conflict in (
            hold.guarded().create(other).set_data(state, b"after", 7),
            hold.guarded().set_data(state, b"after").create(state),
            hold.guarded().create(other).delete(state, 7),
            hold.guarded().set_data(state, b"after", 0).delete(other),
            hold.guarded().set_data(state, b"after").create(f"{other}/below"),
        ):
            raises(zklock.Conflict, conflict.commit).says("number 2", "nothing was written")
            assert ground(f"exists {other}") == "false"
            assert data(ground, state) == "before" and Stat.of(ground, state).version == 0
        # A conflict does not lose the hold.
        assert hold.state is zklock.HoldState.HELD


@pytest.mark.parametrize("version", NO_VERSIONS)
def test_a_version_that_no_node_can_have_is_not_taken_for_any_version(
    zk: zklock.Client, ground: Ground, path: str, state: str, version: int
) -> None:
    ground(f"create {state} before")
    with zk.mutex(path) as hold:
        guarded = hold.guarded()
        for write in (
            lambda: guarded.set_data(state, b"after", version),
            lambda: guarded.delete(state, version),
        ):
            raises(zklock.InvalidInput, write).says(f"version={version}", "leave it out")
            guarded.commit()
            assert data(ground, state) == "before"


def test_a_guarded_write_is_refused_when_an_operator_has_deleted_the_node(
    zk: zklock.Client, ground: Ground, path: str, state: str
) -> None:
    ground(f"create {state} before")
    lock = zk.mutex(path)
    hold = lock.hold(timeout=SOON)
    ground(f"delete {hold.node}")
    for _ in range(2):
        raises(zklock.LockLost, hold.guarded().set_data(state, b"stale").commit).says(path)
        assert Stat.of(ground, state).version == 0 and hold.valid_for() == 0
    assert hold.state is zklock.HoldState.LOST and hold.lost.reason is zklock.LossReason.NODE_DELETED
    # The next holder can write. The lost hold cannot, even with writes that were prepared earlier.
    stale = hold.guarded().set_data(state, b"stale")
    with lock as following:
        following.guarded().set_data(state, b"next").commit()
        raises(zklock.LockLost, stale.commit)
    assert data(ground, state) == "next"


def test_a_guarded_write_is_refused_when_the_session_has_expired(
    far: Far, ground: Ground, path: str, state: str
) -> None:
    ground(f"create {state} before")
    hold = far.zk.mutex(path).hold(timeout=SOON)
    stale = hold.guarded().set_data(state, b"stale")
    expire(far.proxy)
    # At first the holder may not know of the loss. Then the write gets no answer, which does not count as success.
    with pytest.raises((zklock.LockLost, zklock.Uncertain)):
        stale.commit()
    assert hold.lost.wait(SOON) and hold.lost.reason is zklock.LossReason.SESSION_EXPIRED
    raises(zklock.LockLost, stale.commit)
    assert Stat.of(ground, state).version == 0


def test_a_guarded_write_that_was_late_is_refused_after_the_next_has_the_lock(
    connect_far: ConnectFar, zk: zklock.Client, ground: Ground, path: str, state: str
) -> None:
    far, proxy = connect_far(session_timeout=1)
    ground(f"create {state} before")
    hold = far.mutex(path).hold(timeout=SOON)
    stale = hold.guarded().set_data(state, b"stale")
    proxy("freeze", "both")
    # A write that is on its way when the lock passes on.
    writing = Attempt(stale.commit)
    with zk.mutex(path, timeout=SOON) as following:
        assert hold.valid_for() == 0 and following.token > hold.token
        proxy("thaw")
        assert isinstance(writing.error(), (zklock.LockLost, zklock.Uncertain))
        assert hold.lost.wait(SOON)
        raises(zklock.LockLost, stale.commit)
        assert Stat.of(ground, state).version == 0
        following.guarded().set_data(state, b"next", 0).commit()
    assert data(ground, state) == "next"


@pytest.mark.parametrize("lost", ["drop-reply", "drop-request"])
def test_a_guarded_write_whose_reply_is_lost_is_uncertain(
    far: Far, ground: Ground, path: str, state: str, lost: str
) -> None:
    ground(f"create {state}")
    with far.zk.mutex(path) as hold:
        gone = hook(far.proxy, lost, "multi", state)
        raises(zklock.Uncertain, hold.guarded().set_data(state, b"x").commit).says(
            "read whether they were done, then decide"
        )
        gone.wait()
        written = lost == "drop-reply"
        assert hold.read(state) == (zklock.NodeData(b"x", 1) if written else zklock.NodeData(b"", 0))
        assert Stat.of(ground, state).version == (1 if written else 0)
        # The hold outlives a broken connection.
        assert hold.confirm() > 0
        hold.guarded().set_data(state, b"y").commit()
    assert data(ground, state) == "y"


def test_a_commit_gives_versions_and_a_conflict_says_which_write(
    zk: zklock.Client, ground: Ground, path: str, state: str
) -> None:
    other = f"{state}-other"
    with zk.mutex(path) as hold:
        assert hold.guarded().commit() == ()
        assert hold.guarded().create(state, b"a").set_data(state, b"b").create(other).commit() == (0, 1, 0)
        assert hold.guarded().delete(other).set_data(state, b"c", 1).commit() == (None, 2)
        assert Stat.of(ground, state).version == 2
        for index, writes in enumerate(
            [
                hold.guarded().delete(other).set_data(state, b""),
                hold.guarded().set_data(state, b"").set_data(other, b""),
                hold.guarded().set_data(state, b"").create(f"{state}-new").create(f"{other}/child"),
            ]
        ):
            with pytest.raises(zklock.Conflict) as caught:
                writes.commit()
            assert caught.value.index == index and (caught.value.path or "").startswith(other)
            assert f"number {index + 1}, of {caught.value.path}, was refused" in str(caught.value)
    own = zklock.Conflict("of a program's own")
    assert (str(own), own.index, own.path) == ("of a program's own", None, None)
    assert str(zklock.Conflict()) == ""


def test_a_hold_reads_nodes_whatever_became_of_it(far: Far, ground: Ground, path: str, state: str) -> None:
    hold = far.zk.mutex(path).hold(timeout=SOON)
    assert hold.read(state) is None
    ground(f"create {state} before")
    node = hold.read(state)
    assert node == (b"before", 0) and isinstance(node, zklock.NodeData)
    raises(zklock.InvalidInput, lambda: hold.read("relative")).says("is relative")
    with pytest.raises(TypeError):
        hold.read(b"/bytes")  # type: ignore[arg-type]
    expire(far.proxy)
    assert hold.read(state) == (b"before", 0)
    assert hold.lost.wait(SOON)
    raises(zklock.LockLost, hold.release)
    assert hold.read(state) == (b"before", 0)
    far.proxy("freeze", "both")
    raises(zklock.Unreachable, lambda: hold.read(state)).says(state)
    far.proxy("thaw")
    far.zk.close()
    raises(zklock.Closed, lambda: hold.read(state))


def test_guarded_writes_that_cannot_be_are_named_and_nothing_is_written(
    zk: zklock.Client, ground: Ground, path: str, state: str
) -> None:
    bad = {
        "": "is empty",
        "relative": "is relative: a path begins with /",
        "/bad//write": "contains //: leave one out",
        "/bad/": "ends with /: leave that out",
        "/bad/../up": "no relative paths",
        "/bad\0write": "ZooKeeper forbids",
        "/bad" + "x" * 3000: "shorten it",
    }
    with zk.mutex(path) as hold:
        for wrong, says in bad.items():
            for write in (
                hold.guarded().create(state).create(wrong),
                hold.guarded().create(state).set_data(wrong, b""),
                hold.guarded().create(state).delete(wrong),
            ):
                raises(zklock.InvalidInput, write.commit).says(says)
        much = hold.guarded().create(state).create(f"{state}-much", b"x" * (512 * 1024))
        raises(zklock.InvalidInput, much.commit).says("512 KiB")
        assert ground(f"exists {state}") == "false"
        assert hold.state is zklock.HoldState.HELD
        # The most data that fits.
        hold.guarded().create(state).create(f"{state}-much", b"x" * (511 * 1024)).commit()
        assert len(data(ground, f"{state}-much")) == 511 * 1024


def test_an_argument_of_the_wrong_type_adds_no_write(zk: zklock.Client, ground: Ground, path: str, state: str) -> None:
    with zk.mutex(path) as hold:
        guarded = hold.guarded()
        writes: list[typing.Any] = [guarded.create, guarded.set_data]
        for write in writes:
            for wrong in ("text", 7, [1], memoryview(b"x")):
                with pytest.raises(TypeError, match="data is bytes, not .*: encode it first"):
                    write(state, wrong)
        calls: list[typing.Any] = [guarded.create, guarded.delete, lambda node: guarded.set_data(node, b"")]
        for node in (None, b"/bytes", 7):
            for call in calls:
                with pytest.raises(TypeError, match="str"):
                    call(node)
        for version in ("1", 1.0, b"1"):
            with pytest.raises(TypeError, match="integer"):
                guarded.delete(state, version)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="data is bytes"):
            guarded.set_data(state, None)  # type: ignore[arg-type]
        assert "0 writes" in repr(guarded)
        guarded.commit()
        assert ground(f"exists {state}") == "false"


def test_a_hold_is_confirmed_by_the_quorum(far: Far, ground: Ground, path: str) -> None:
    zk, proxy = far
    with pytest.raises(zklock.LockLost):
        with zk.mutex(path) as hold:
            assert 0 < hold.confirm() <= hold.valid_for() + 0.5
            proxy("record")
            assert hold.confirm() > 0
            assert "request:multi:" in proxy("messages")
            lose(ground, hold)
            raises(zklock.LockLost, hold.confirm).says(path)
    with zk.mutex(path) as hold:
        proxy("freeze", "both")
        # While the lease lasts, the result is unknown.
        raises(zklock.Unreachable, hold.confirm).says(path)
        proxy("thaw")
        hold.release()
        raises(zklock.NotHeld, hold.confirm).says("released before")
