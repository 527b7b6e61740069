"""Marks for tests whose requirements not every machine meets."""

from __future__ import annotations

import os

import pytest
from contest import BUILT, CURATOR_THAT_DOWNGRADES


def needs_go() -> pytest.MarkDecorator:
    """Marks a test with go-zookeeper, whose peer is only built if Go is installed."""
    return pytest.mark.skipif(not (BUILT / "peer-go").exists(), reason="skipped: there is no Go here")


def only_with_long() -> pytest.MarkDecorator:
    """Marks a test that only runs with --long."""
    return pytest.mark.skipif(not os.environ.get("ZKLOCK_LONG"), reason="skipped: only with --long")


def needs_curator_that_downgrades() -> pytest.MarkDecorator:
    """Marks a test with a Curator that is newer than Debian's."""
    version = CURATOR_THAT_DOWNGRADES
    there = (BUILT / f"curator/curator-recipes-{version}.jar").exists()
    return pytest.mark.skipif(not there, reason=f"skipped: there is no Maven here to get Curator {version} with")
