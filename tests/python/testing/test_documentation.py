"""The documentation of the embedded server is true."""

from __future__ import annotations

import typing

import pytest
from face.test_docstrings import assert_documented, documented, has_examples, runs

import zklock
import zklock.pytest_plugin
import zklock.testing
from zklock.testing import Server

DOCUMENTED = dict(documented(zklock.testing))
EXAMPLES = has_examples(DOCUMENTED)


def test_all_is_seen() -> None:
    assert {"Server.inject", "Server.hosts", "Injected.wait", "Session"} <= set(DOCUMENTED)
    assert {"zklock.testing", "Server", "Server.expire", "Server.inject"} <= set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_is_documented(name: str) -> None:
    assert_documented(DOCUMENTED[name])


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example(name: str, server: Server, zk: zklock.Client) -> None:
    runs(EXAMPLES[name], name, {"zklock": zklock, "server": server, "zk": zk})


def known(refusal: str) -> set[str]:
    """The valid words that a refusal lists."""
    return set(refusal.rpartition("known are ")[2].split(", "))


def test_words_of_the_documentation_are_those_of_the_server(server: Server) -> None:
    doc = Server.inject.__doc__ or ""
    call: typing.Any = server.inject
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


def test_fixtures_say_what_they_are() -> None:
    doc = zklock.pytest_plugin.__doc__ or ""
    assert "zklock_server" in doc and "zklock_client" in doc
