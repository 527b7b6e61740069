"""Promise 2, its other half: a list of guarded writes is done completely or not at all, and not once the hold is lost."""

from __future__ import annotations

import gc
import typing

import pytest
from ground import Ground
from scenarios.test_bad_input import BAD_PATHS
from scenes import SOON, Face, Far, hook, lose, raises, stat

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
    zk: zklock.Client, ground: Ground, path: str, state: str, face: Face
) -> None:
    child = f"{state}/child"
    hold = face(face.of(zk).mutex(path).hold, timeout=SOON)
    # An empty list of writes is only a check.
    assert face(hold.guarded().commit) == ()
    assert face(hold.guarded().create(state, b"0").set_data(state, b"1", 0).create(child).commit) == (0, 1, 0)
    assert data(ground, state) == "1" and data(ground, child) == ""
    assert face(hold.guarded().delete(child, version=0).set_data(state, bytearray(b"2")).commit) == (None, 2)
    assert data(ground, state) == "2" and ground.children(state) == []
    # Any bytes are allowed: a NUL among them, or none at all.
    for bytes in (b"a\0b", b""):
        face(hold.guarded().set_data(path=state, data=bytes).commit)
        assert data(ground, state) == bytes.decode()
        assert face(hold.read, state).data == bytes
    # The nodes persist, and belong to no session.
    assert (stat(ground, state)["owner"], stat(ground, state)["version"]) == (0, 4)
    late = hold.guarded().set_data(state, b"late")
    face(hold.release)
    raises(zklock.NotHeld, lambda: face(late.commit)).says(path)
    raises(zklock.NotHeld, lambda: face(hold.confirm)).says("already released")
    assert data(ground, state) == ""


def test_writes_that_are_not_committed_are_not_done(
    zk: zklock.Client, ground: Ground, path: str, state: str, face: Face
) -> None:
    hold = face(face.of(zk).mutex(path).hold, timeout=SOON)
    with pytest.warns(RuntimeWarning, match="never committed"):
        guarded = hold.guarded()
        assert guarded.create(state) is guarded
        del guarded
        gc.collect()
    face(hold.release)
    assert ground(f"exists {state}") == "false"


def test_a_conflict_says_which_write_and_nothing_is_written(
    zk: zklock.Client, ground: Ground, path: str, state: str, face: Face
) -> None:
    other = f"{state}-other"
    ground(f"create {state} before")
    hold = face(face.of(zk).mutex(path).hold, timeout=SOON)
    writes = hold.guarded().set_data(state, b"").create(f"{state}-new").create(f"{other}/child")
    error = raises(zklock.Conflict, lambda: face(writes.commit)).says("nothing was written", "number 3").error
    assert isinstance(error, zklock.Conflict) and (error.index, error.path) == (2, f"{other}/child")
    assert data(ground, state) == "before" and stat(ground, state)["version"] == 0
    for version in (hold.guarded().set_data(state, b"", 7), hold.guarded().delete(state, 7)):
        raises(zklock.Conflict, lambda: face(version.commit))
    # A conflict does not lose the hold.
    assert hold.state is zklock.HoldState.HELD
    face(hold.release)
    own = zklock.Conflict("of a program's own")
    assert (str(own), own.index, own.path) == ("of a program's own", None, None)
    assert str(zklock.Conflict()) == ""


def test_a_guarded_write_whose_reply_is_lost_is_uncertain(
    far: Far, ground: Ground, path: str, state: str, face: Face
) -> None:
    ground(f"create {state}")
    hold = face(face.of(far.zk).mutex(path).hold, timeout=SOON)
    gone = hook(far.proxy, "drop-reply", "multi", state)
    raises(zklock.Uncertain, lambda: face(hold.guarded().set_data(state, b"x").commit)).says(
        "read whether they were done, then decide"
    )
    gone.wait()
    assert face(hold.read, state) == zklock.NodeData(b"x", 1)
    # The hold outlives a broken connection.
    assert face(hold.confirm) > 0
    face(hold.release)


def test_a_hold_reads_nodes_whatever_became_of_it(far: Far, ground: Ground, path: str, state: str, face: Face) -> None:
    hold = face(face.of(far.zk).mutex(path).hold, timeout=SOON)
    assert face(hold.read, state) is None
    ground(f"create {state} before")
    node = face(hold.read, state)
    assert node == (b"before", 0) and isinstance(node, zklock.NodeData)
    raises(zklock.InvalidInput, lambda: face(hold.read, "relative")).says("is relative")
    with pytest.raises(TypeError):
        face(hold.read, b"/bytes")
    lose(ground, hold)
    assert face(hold.read, state) == (b"before", 0)
    far.proxy("freeze", "both")
    raises(zklock.Unreachable, lambda: face(hold.read, state)).says(state)
    far.proxy("thaw")
    far.zk.close()
    raises(zklock.Closed, lambda: face(hold.read, state))


def test_guarded_writes_that_cannot_be_are_named_and_nothing_is_written(
    zk: zklock.Client, ground: Ground, path: str, state: str
) -> None:
    with zk.mutex(path) as hold:
        for wrong, says in BAD_PATHS.items():
            for write in (
                hold.guarded().create(state).create(wrong),
                hold.guarded().create(state).set_data(wrong, b""),
                hold.guarded().create(state).delete(wrong),
            ):
                raises(zklock.InvalidInput, write.commit).says(says)
        much = hold.guarded().create(state).create(f"{state}-much", b"x" * (512 * 1024))
        raises(zklock.InvalidInput, much.commit).says("512 KiB")
        assert ground(f"exists {state}") == "false"
        # The most data that fits.
        hold.guarded().create(state).create(f"{state}-much", b"x" * (511 * 1024)).commit()
        assert len(data(ground, f"{state}-much")) == 511 * 1024


def test_an_argument_that_is_wrong_adds_no_write(zk: zklock.Client, ground: Ground, path: str, state: str) -> None:
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
        for number in NO_VERSIONS:
            for refused in (lambda: guarded.set_data(state, b"after", number), lambda: guarded.delete(state, number)):
                raises(zklock.InvalidInput, refused).says(f"version={number}", "leave it out")
        with pytest.raises(TypeError, match="data is bytes"):
            guarded.set_data(state, None)  # type: ignore[arg-type]
        assert "0 writes" in repr(guarded)
        guarded.commit()
        assert ground(f"exists {state}") == "false"


def test_a_hold_knows_its_ensemble_and_covers_nothing_once_it_is_released(
    zk: zklock.Client, ground: Ground, path: str, face: Face
) -> None:
    """For what a lease covers see ../face/test_gate.py."""
    hold = face(face.of(zk).mutex(path).hold, timeout=SOON)
    assert face(hold.ensemble_id) == face(face.of(zk).ensemble_id) == ground("data /zklock-ensemble")
    face(hold.release)
    raises(zklock.NotHeld, lambda: hold.ensure(0)).says(path)
