"""What must be there for a test to make sense."""

from __future__ import annotations

import inspect

import pytest
from contest import BUILT, CURATOR_THAT_DOWNGRADES

import zklock


def needs(*kinds: str) -> pytest.MarkDecorator:
    """Marks a test of kinds of locks that zklock may not have yet."""
    missing = [kind for kind in kinds if not hasattr(zklock.Client, kind)]
    return pytest.mark.skipif(bool(missing), reason=f"zklock has no {', '.join(missing)} yet")


def needs_option(name: str) -> pytest.MarkDecorator:
    """Marks a test of an option of zklock's locks that may not be there yet."""
    there = name in str(inspect.signature(zklock.Client.mutex))
    return pytest.mark.skipif(not there, reason=f"zklock's locks have no option {name} yet")


def needs_go() -> pytest.MarkDecorator:
    """Marks a test with go-zookeeper: its peer is built where Go is installed."""
    return pytest.mark.skipif(not (BUILT / "peer-go").exists(), reason="skipped: there is no Go here")


def needs_curator_that_downgrades() -> pytest.MarkDecorator:
    """Marks a test with a Curator that is newer than Debian's."""
    version = CURATOR_THAT_DOWNGRADES
    there = (BUILT / f"curator/curator-recipes-{version}.jar").exists()
    return pytest.mark.skipif(not there, reason=f"skipped: there is no Maven here to get Curator {version} with")
