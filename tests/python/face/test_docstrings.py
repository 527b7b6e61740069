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
import zklock.pytest_plugin
import zklock.testing

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


KINDS = ("mutex", "read_lock", "write_lock", "semaphore", "election", "single_node", "all", "any")
MODULES = (zklock, zklock.fence, zklock.prometheus, zklock.testing)
DOCUMENTED = {name: value for module in MODULES for name, value in documented(module)}
DOCS = {name: inspect.getdoc(value) or "" for name, value in DOCUMENTED.items()}
EXAMPLES = {name: doc for name, doc in DOCS.items() if ">>>" in doc}


def test_everything_public_is_seen() -> None:
    assert len(DOCUMENTED) > len(zklock.__all__) + len(zklock.fence.__all__)
    assert {"zklock", "Lock", "Lock.acquire", "Hold.token", "Guarded.create", "LockLost"} <= set(DOCUMENTED)
    main = {"zklock", "Client", "Lock", "Hold", "Loss", "Wanted", "AsyncClient", "AsyncLock", "AsyncHold"}
    main |= {"zklock.testing", "Server", "Server.expire", "Server.inject"}
    main |= {"zklock.fence", "transaction", "check", "headers", "Stamp", "Directory"}
    main |= {"AsyncObserver", *(f"Client.{kind}" for kind in KINDS), *(f"AsyncClient.{kind}" for kind in KINDS)}
    assert main <= set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_is_documented(name: str) -> None:
    doc = DOCS[name]
    assert doc and doc[0].isupper(), doc
    # The first paragraph is a sentence, or a sentence that ends where the example begins.
    assert doc.split("\n\n")[0][-1] in ".:", doc


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example(name: str, ground: typing.Any, hosts: str) -> None:
    with zklock.testing.Server() as server:
        # Some examples are about this server.
        with zklock.Client(server.hosts if "server" in EXAMPLES[name] else hosts, session_timeout=4) as zk:
            names = {"zklock": zklock, "asyncio": asyncio, "hosts": hosts, "zk": zk, "server": server}
            test = doctest.DocTestParser().get_doctest(EXAMPLES[name], names, name, None, None)
            said: list[str] = []
            results = doctest.DocTestRunner().run(test, out=said.append)
            assert results.attempted > 0 and results.failed == 0, "".join(said)
    for name in ground.children("/locks"):
        if name.startswith("doc"):
            ground.expect_free(f"/locks/{name}")


def known(refusal: str) -> set[str]:
    """The valid words that a refusal lists."""
    return set(refusal.rpartition("known are ")[2].split(", "))


def test_the_faults_of_the_documentation_are_those_of_the_server() -> None:
    with zklock.testing.Server() as server:
        doc, call = zklock.testing.Server.inject.__doc__ or "", typing.cast("typing.Any", server.inject)
        with pytest.raises(zklock.InvalidInput) as no_fault:
            call("nothing", "create")
        with pytest.raises(zklock.InvalidInput) as no_kind:
            call("freeze", "nothing")
        for fault in known(str(no_fault.value)):
            assert f'"{fault}"' in doc
            call(fault, "create", delay=1 if fault == "delay-reply" else None)
        kinds = known(str(no_kind.value))
        assert {"create", "event", "other"} < kinds
        for kind in kinds:
            # In the list of kinds.
            assert kind in doc[doc.index("``kind`` says which") :]
            call("freeze", kind)
    assert {"zklock_server", "zklock_client"} <= set((zklock.pytest_plugin.__doc__ or "").split("``"))
