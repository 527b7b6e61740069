"""Everything public is documented, and the examples in the documentation run."""

from __future__ import annotations

import asyncio
import doctest
import inspect
import types
import typing

import pytest

import zklock
import zklock.fence
import zklock.prometheus

NATIVE = (types.MethodDescriptorType, types.GetSetDescriptorType)
OWN = (types.FunctionType, property, classmethod, staticmethod)


def documented(module: types.ModuleType) -> typing.Iterator[tuple[str, object]]:
    """The module, its functions and classes, and the members that these define, each with its name."""
    yield module.__name__, module
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value) or inspect.isbuiltin(value):
            yield name, value
        if not inspect.isclass(value):
            continue
        yield name, value
        # Include the members of a private base.
        for cls in value.__mro__:
            if not cls.__module__.startswith("zklock"):
                break
            for member, defined in sorted(vars(cls).items()):
                if not member.startswith("_") and isinstance(defined, (*NATIVE, *OWN)):
                    # Of a static method, use the function: the wrapper has a text of its own.
                    yield f"{name}.{member}", defined.__func__ if isinstance(defined, staticmethod) else defined


def has_examples(documented: dict[str, object]) -> dict[str, str]:
    return {name: doc for name, value in documented.items() if ">>>" in (doc := inspect.getdoc(value) or "")}


def runs(text: str, name: str, names: dict[str, typing.Any]) -> None:
    """Runs the examples in a text, which must print what it says."""
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    results = doctest.DocTestRunner().run(test, out=said.append)
    assert results.attempted > 0
    assert results.failed == 0, "".join(said)


KINDS = ("mutex", "read_lock", "write_lock", "semaphore", "election", "single_node", "all", "any")
DOCUMENTED = {**dict(documented(zklock)), **dict(documented(zklock.fence)), **dict(documented(zklock.prometheus))}
EXAMPLES = has_examples(DOCUMENTED)


def test_everything_public_is_seen() -> None:
    assert len(DOCUMENTED) > len(zklock.__all__) + len(zklock.fence.__all__)
    assert {"zklock", "Lock", "Lock.acquire", "Hold.token", "Guarded.create", "LockLost"} <= set(DOCUMENTED)
    main = {"zklock", "Client", "Lock", "Hold", "Loss", "Wanted", "AsyncClient", "AsyncLock", "AsyncHold"}
    main |= {"zklock.fence", "transaction", "check", "headers", "Stamp", "Directory"}
    main |= {"AsyncObserver", *(f"Client.{kind}" for kind in KINDS), *(f"AsyncClient.{kind}" for kind in KINDS)}
    assert main <= set(EXAMPLES)


def assert_documented(item: object) -> None:
    doc = inspect.getdoc(item)
    assert doc and doc[0].isupper(), doc
    # The first paragraph is a sentence, or a sentence that ends where the example begins.
    assert doc.split("\n\n")[0][-1] in ".:", doc


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_is_documented(name: str) -> None:
    assert_documented(DOCUMENTED[name])


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example(name: str, ground: typing.Any, hosts: str) -> None:
    with zklock.Client(hosts, session_timeout=4) as zk:
        names = {"zklock": zklock, "asyncio": asyncio, "hosts": hosts, "zk": zk}
        runs(EXAMPLES[name], name, names)
    for name in ground.children("/locks"):
        if name.startswith("doc"):
            ground.expect_free(f"/locks/{name}")
