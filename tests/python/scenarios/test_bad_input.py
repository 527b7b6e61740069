"""Wrong arguments are reported where they come in, with advice, and leave nothing on the server.

For guarded writes see test_guarded.py, for logins and the files of TLS test_access.py, for a closed client test_close.py.
"""

# This file is about bad arguments.
# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import inspect
import math
import os
import pathlib
import sys
import threading
import typing

import pytest
from ground import Ground
from scenes import Attempt, Far, raises

import zklock

Call = typing.Callable[[], object]

# Invalid paths, and their error messages. The others are in zklock-core/src/connect/path.rs, and wrong options in options.rs.
BAD_PATHS = {"bad/relative": "is relative: a path begins with /", "/bad\0nul": "ZooKeeper forbids"}
# Values that are not text, for paths and names.
NO_TEXTS: list[typing.Any] = [b"/bytes", bytearray(b"/bytes"), 7, 1.5, True, ["/list"], pathlib.Path("/path"), object()]
# Half a character: Python text that cannot be encoded. ``os.fsdecode`` can return such text.
SURROGATES = ["/bad\ud800", "/bad\udcff/below", os.fsdecode(b"/bad\xff")]
NEGATIVE = [-1, -0.001, -math.inf, math.nan]
NO_NUMBERS: list[typing.Any] = ["4", b"4", [4], object()]


def is_type_error(call: Call, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        call()


def is_no_text(call: Call) -> None:
    """A ``ValueError``, as Python itself raises for such a name."""
    with pytest.raises(ValueError, match="surrogates not allowed"):
        call()


def is_negative(call: Call, seconds: float) -> str:
    text = str(raises(zklock.InvalidInput, call).says("not negative").error)
    assert ("NaN" if math.isnan(seconds) else f"{seconds} s") in text
    return text


def test_a_bad_path_is_refused_before_anything_is_sent(far: Far, ground: Ground) -> None:
    zk, proxy = far
    unconnected = zklock.Client("127.0.0.1:1")
    proxy("record")
    for client in (zk, zk.aio, unconnected):
        for path, says in BAD_PATHS.items():
            raises(zklock.InvalidInput, lambda: client.mutex(path)).says(says)
        for path in (None, *NO_TEXTS):
            is_type_error(lambda: client.mutex(path), "'str'")
        for path in SURROGATES:
            is_no_text(lambda: client.mutex(path))
    assert "request:create" not in proxy("messages") and "/bad" not in proxy("messages")
    assert ground("exists /bad") == "false"
    # Code that does not know zklock sees a ValueError.
    with pytest.raises(ValueError):
        zk.mutex("relative")


@pytest.mark.parametrize(
    ("write", "shown"),
    [
        (lambda host, port: [f"{host}:{port}"], "{host}:{port}"),
        (lambda host, port: [(host, int(port)), f"{host}:{port}"], "{host}:{port},{host}:{port}"),
        (lambda host, port: iter([f"{host}:{port},{host}:{port}", (host, int(port))]), ",".join(["{host}:{port}"] * 3)),
        (lambda host, port: [f"{host}:{port}", "/"], "{host}:{port}/"),
    ],
)
def test_hosts_may_be_listed(hosts: str, path: str, write: typing.Callable[[str, str], typing.Any], shown: str) -> None:
    host, _, port = hosts.partition(":")
    with zklock.Client(write(host, port)) as client:
        assert shown.format(host=host, port=port) in repr(client)
        with client.mutex(path):
            pass


def test_a_client_without_hosts_uses_those_of_the_environment(hosts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZKLOCK_HOSTS", hosts)
    with zklock.Client() as client:
        assert hosts in repr(client)
    monkeypatch.setenv("ZKLOCK_HOSTS", "")
    raises(zklock.InvalidInput, zklock.Client).says("ZKLOCK_HOSTS")
    monkeypatch.delenv("ZKLOCK_HOSTS")
    raises(zklock.InvalidInput, zklock.Client).says("ZKLOCK_HOSTS")


def test_lists_of_hosts_that_are_none_are_named() -> None:
    client: typing.Any = zklock.Client
    wrong: list[object] = [2181, b"zk1:2181", [b"zk1"], [2181], ("zk1", 2181), [("zk1",)], [("zk1", "2181")]]
    wrong += [[("zk1", 65536)], [("zk1", -1)], [(b"zk1", 2181)], [None], [["zk1", 2181]]]
    for hosts in wrong:
        is_type_error(lambda: client(hosts), "a list of such, or of pairs of a host and a port")
    for empty in ("", "zk1:70000", [], ["zk1", ""], ["/app"], [("", 2181)]):
        raises(zklock.InvalidInput, lambda: client(empty)).says("write host:port,host:port")
    raises(zklock.InvalidInput, lambda: client(["zk1/app", "zk2"])).says("must come after the last host")

    def broken() -> typing.Iterator[str]:
        yield "zk1"
        raise LookupError

    with pytest.raises(LookupError):
        client(broken())


def test_bad_options_are_named_one_by_one(hosts: str) -> None:
    make = zklock.Client
    untyped: typing.Any = make
    for wrong in NO_TEXTS:
        # A list of hosts is allowed, but this is not a host.
        if wrong == ["/list"]:
            continue
        is_type_error(lambda: make(wrong), "hosts is a string")
    for wrong in NO_TEXTS:
        for name in ("chroot", "identity"):
            is_type_error(lambda: untyped(hosts, **{name: wrong}), "'str'")
    for text in SURROGATES:
        is_no_text(lambda: make(text))
        for name in ("chroot", "identity"):
            is_no_text(lambda: untyped(hosts, **{name: text}))
    for path, says in BAD_PATHS.items():
        raises(zklock.InvalidInput, lambda: make(hosts, chroot=path)).says("chroot", says)
    raises(zklock.InvalidInput, lambda: make(hosts, session_timeout=10_000)).says("in seconds", "session_timeout=10 for")
    for seconds in (1000.0, 2147484, 1e300, math.inf):
        raises(zklock.InvalidInput, lambda: make(hosts, session_timeout=seconds)).says("session_timeout", "in seconds")
    for wrong in (None, *NO_NUMBERS):
        for name in ("session_timeout", "connect_timeout", "try_timeout", "loss_timeout"):
            if wrong is None and name == "loss_timeout":
                continue  # the default
            is_type_error(lambda: untyped(hosts, **{name: wrong}), "number")
    raises(zklock.InvalidInput, lambda: make(hosts, loss_timeout=0.999)).says("a loss timeout of 999ms")
    raises(zklock.InvalidInput, lambda: make(hosts, server_version=(3, 3))).says("version 3.3", "3.4 or later")
    for wrong in ("3.4", 3.4, (3,), (3, 4, 14)):
        with pytest.raises((TypeError, ValueError)):
            untyped(hosts, server_version=wrong)
    is_type_error(lambda: untyped(hosts, sessiontimeout=10), "did you mean session_timeout")
    options = list(inspect.signature(make).parameters.values())[1:] if sys.version_info >= (3, 10) else []
    assert hosts in repr(untyped(hosts, **{one.name: one.default for one in options}))


@pytest.mark.parametrize("seconds", NEGATIVE)
def test_a_timeout_that_is_negative_is_named_with_what_is_allowed(zk: zklock.Client, path: str, seconds: float) -> None:
    for make in (zk.mutex, zk.aio.mutex):
        is_negative(lambda: make(path, timeout=seconds), seconds)
    for call in (zk.mutex(path).hold, zk.connect):
        is_negative(lambda: call(seconds), seconds)
    assert zk.stats().grants == 0
    client: typing.Any = zklock.Client
    for name in ("connect_timeout", "session_timeout", "try_timeout", "loss_timeout"):
        # The message must not recommend None, which would be refused as well.
        assert "None" not in is_negative(lambda: client("zk1", **{name: seconds}), seconds)


QUEUES = ("mutex", "read_lock", "write_lock")
# Calls of a client that are refused, and a part of the error.
REFUSED = [
    *((f"{kind}(path, {name}='klingon')", f"{name}.*klingon") for kind in QUEUES for name in ("naming", "foreign")),
    ("write_lock(path, naming='writelock')", "kazoo"),
    ("mutex(path, naming='{name}_lock_')", "naming: .*has no {sequence}"),
    *((f"{kind}(path, linger={time})", "linger of .*not negative") for kind in QUEUES for time in ("-1", "-0.001", "math.nan", "-math.inf")),
    *((f"{kind}(path, max_local_handoffs={turns})", "max_local_handoffs") for kind in QUEUES for turns in (-1, 2**32)),
    ("mutex(path, metrics_name='')", "metrics name"),
    *((f"mutex(path).acquire({time})", rf"write acquire\(timeout={time}\)") for time in (5, 0.5, -1)),
    *((f"semaphore(path, {given})", "") for given in ("5, permits=6", "5, permits=0", "0", "-1", "5, permits=-1", "2**32")),
    ("semaphore('permits', 5)", "permits"),
    ("semaphore(path, 5, limit_at='limit')", "limit"),
    ("set_limit(path, -1)", "-1"),
    *((f"double_barrier(path, {members})", "") for members in (0, -1, 2**40)),
    *((f"{kind}('no/slash'{given})", "no/slash") for kind, given in (("barrier", ""), ("double_barrier", ", 1"))),
    ("barrier(path).wait(timeout=-1)", "-1"),
    ("double_barrier(path, 1).enter(timeout=-1)", ""),
    ("double_barrier(path, 1, timeout=-1)", ""),
    *((f"{kind}([])", "one lock at least") for kind in ("all", "any")),
    *((f"{kind}.observe()", "observe") for kind in ("semaphore(path, 2)", "all([zk.mutex(path)])")),
    *((f"job(path, {every})", "") for every in ("0", "-1", "'tomorrow'", "'0.5s'")),
    ("job(path, '1d', offset='1d')", ""),
    ("job(path, '1d', after_failure='never')", "next"),
    ("job(path, '1d', timeout=-1)", ""),
]
WRONG_TYPES = [
    *(f"{kind}(path, {name}=None)" for kind in QUEUES for name in ("naming", "foreign")),
    *(f"{kind}(path, {name}={wrong})" for kind in QUEUES for name in ("linger", "max_local_handoffs") for wrong in ("'5'", [1])),
    *(f"{kind}({wrong})" for kind in ("all", "any") for wrong in ("zk.mutex(path)", "[path]", "None", "path")),
    "job(path, None)",
]


def test_arguments_that_make_no_sense_are_refused_at_once(zk: zklock.Client, hosts: str, path: str) -> None:
    for client in (zk, zk.aio, zklock.Client(hosts)):
        names = {"zk": client, "path": path, "math": math}
        for call, says in REFUSED:
            with pytest.raises(zklock.InvalidInput, match=says or None):
                assert not eval(f"zk.{call}", names), call
        for call in WRONG_TYPES:
            with pytest.raises(TypeError):
                assert not eval(f"zk.{call}", names), call
    # A time beyond the end of the clock means for ever.
    for kind in (zk.mutex, zk.read_lock, zk.write_lock, zk.aio.mutex):
        assert kind(path, linger=math.inf, max_local_handoffs=2**32 - 1).path == path


def test_the_name_of_another_library_is_answered_with_ours(zk: zklock.Client) -> None:
    for client in (zk, zk.aio):
        for name, ours in (("lock", "mutex"), ("rwlock", "read_lock"), ("Mutex", "has no attribute 'Mutex'")):
            with pytest.raises(AttributeError, match=ours):
                getattr(client, name)


def test_other_timeouts_that_are_no_numbers_are_refused(zk: zklock.Client, path: str) -> None:
    lock = zk.mutex(path)
    with lock.hold() as hold:
        for wrong in NO_NUMBERS:
            for call in (zk.connect, lock.hold, hold.lost.wait, hold.wanted.wait):
                is_type_error(lambda: call(wrong), "timeout=.* a number of seconds")
            is_type_error(lambda: zk.mutex(path, timeout=wrong), "timeout=.* a number of seconds")
            is_type_error(lambda: lock.acquire(timeout=wrong), "timeout=.* a number of seconds")
        untyped: typing.Any = zk.mutex
        for wrong in ("yes", None, 2, [True]):
            is_type_error(lambda: untyped(path, reentrant=wrong), "bool")
    assert zk.stats().grants == 1


def test_a_wait_for_a_loss_takes_what_an_event_takes(zk: zklock.Client, path: str) -> None:
    event = threading.Event()
    with zk.mutex(path) as hold:
        for seconds in (0, -1, -math.inf, math.nan, 0.001, False):
            assert hold.lost.wait(seconds) is hold.wanted.wait(seconds) is event.wait(seconds) is False


def test_a_callback_that_is_none_is_refused(zk: zklock.Client, path: str) -> None:
    with zk.mutex(path) as hold:
        untyped: typing.Any = hold
        for wrong in (None, "print", 7, object()):
            is_type_error(lambda: untyped.on_lost(wrong), "on_lost takes a function")
            is_type_error(lambda: untyped.on_wanted(wrong), "on_wanted takes a function")
            is_type_error(lambda: typing.cast("typing.Any", zk).on_connection(wrong), "on_connection takes a function")
        is_type_error(lambda: untyped.on_lost(), "callback")


def test_what_is_given_by_others_cannot_be_made(zk: zklock.Client) -> None:
    for name in ("Lock", "Hold", "BaseHold", "Loss", "Wanted", "Guarded", "AsyncClient", "AsyncLock", "AsyncHold"):
        is_type_error(getattr(zklock, name), f"cannot create 'zklock.{name}'")
    # Nor can attributes be changed.
    for thing in (zk, zk.mutex("/bad-not")):
        with pytest.raises(AttributeError):
            thing.path = "/other"  # type: ignore[union-attr, misc]
        with pytest.raises(AttributeError):
            thing.more = 1  # type: ignore[union-attr]


def test_a_chroot_that_is_missing_is_named_and_made_if_that_is_wanted(hosts: str, ground: Ground) -> None:
    # The argument replaces the chroot in the hosts.
    missing = zklock.Client(f"{hosts}/bad-chroot", chroot="/bad-chroot/other")
    raises(zklock.Refused, missing.connect).says("the chroot /bad-chroot/other does not exist: create it")
    assert ground("exists /bad-chroot") == "false"
    with zklock.Client(hosts, chroot="/bad-chroot/made", create_chroot=True) as zk, zk.mutex("/below") as hold:
        assert hold.path == "/below" and hold.node.startswith("/below/")
        assert len(ground.children("/bad-chroot/made/below")) == 1


def test_a_kind_takes_the_options_of_its_signature_and_names_the_nearest_to_another_one(zk: zklock.Client, path: str) -> None:
    kinds: list[tuple[typing.Callable[..., zklock.Lock], typing.Any]] = [
        *((kind, (path,)) for kind in (zk.mutex, zk.read_lock, zk.write_lock, zk.election, zk.single_node)),
        *((kind, ([zk.mutex(path)],)) for kind in (zk.all, zk.any)),
        (zk.semaphore, (path, 1)),
    ]
    for kind, given in kinds:
        options = [one for one in inspect.signature(kind).parameters.values() if one.kind is one.KEYWORD_ONLY]
        assert kind(*given, **{one.name: one.default for one in options}).path == path
        is_type_error(lambda: kind(*given, cancels=False), 'no option "cancels"; did you mean cancel')
        is_type_error(lambda: kind(*given, cancel="no"), "argument 'cancel': ")
    is_type_error(lambda: zk.semaphore(path, 1, linger=5), 'no option "linger"; there are permits, limit_at, timeout, ')  # type: ignore[call-arg]


def test_an_address_with_colons_is_told_from_its_port() -> None:
    for address in ("::1", "[::1]"):
        assert '"[::1]:2181,[::1]:2182"' in repr(zklock.Client([(address, 2181), "[::1]:2182"]))


def test_no_blocking_is_not_taken_for_blocking(zk: zklock.Client, other: zklock.Client, path: str) -> None:
    """In ``threading`` ``None`` is an error before Python 3.12, and false since then, but never true."""
    acquire: typing.Any = other.mutex(path).acquire
    with zk.mutex(path):
        assert Attempt(lambda: acquire(None)).result() is False
    with pytest.raises(ValueError):
        acquire(None, 1)
