"""The conformance test finds a fence that breaks a promise, whichever it is."""

from __future__ import annotations

import contextlib
import re
import threading
import time
import typing

import pytest

import zklock
from zklock import fence
from zklock.fence import Stamp


# Mistakes of fences in which transactions run side by side.
UNLOCKED = ("locks nothing", "compares when it is called", "compares, and then writes")


class Kept(typing.NamedTuple):
    ensemble: str
    token: float
    value: str | None


class Memory:
    """A fence in memory, in which one transaction runs at a time. It is as it should be, or has one mistake."""

    def __init__(self, mistake: str = "") -> None:
        self._mistake = mistake
        self._lock = threading.RLock()
        self._kept: dict[str, Kept] = {}

    def has(self, mistake: str) -> bool:
        return self._mistake == mistake

    @contextlib.contextmanager
    def transaction(self, stamp: Stamp) -> typing.Iterator[Session]:
        with contextlib.nullcontext() if self._mistake in UNLOCKED else self._lock:
            session = Session(self, stamp)
            session.compare()
            if self.has("raises at once"):
                self.keep(stamp, session.value)
            try:
                yield session
            except BaseException:
                if not self.has("commits what failed"):
                    raise
                self.keep(stamp, session.value)
                raise
            if self.has("compares, and then writes"):
                session.compare()
                # The earlier of two holders is slower.
                time.sleep(0.5 / stamp.token)
            if not self.has("raises only by a write") or session.has_written:
                self.keep(stamp, session.value)

    def key(self, stamp: Stamp) -> str:
        return "/".join(stamp.name.split("/")[:3]) if self.has("one name") else stamp.name

    def kept(self, stamp: Stamp) -> Kept | None:
        return self._kept.get(self.key(stamp))

    def keep(self, stamp: Stamp, value: str | None) -> None:
        token = float(stamp.token) if self.has("numbers of JSON") else stamp.token
        self._kept[self.key(stamp)] = Kept(stamp.ensemble, token, value)


class Session:
    """One transaction."""

    def __init__(self, memory: Memory, stamp: Stamp) -> None:
        self._memory, self._stamp = memory, stamp
        self.has_written = False
        kept = memory.kept(stamp)
        self.value = kept.value if kept else None

    def compare(self) -> None:
        has, kept, stamp = self._memory.has, self._memory.kept(self._stamp), self._stamp
        if has("32 bits") and stamp.token >= 2**62:
            raise OverflowError(stamp.token)
        if kept is None or has("compares nothing"):
            return
        token = float(stamp.token) if has("numbers of JSON") else stamp.token
        is_stale = kept.token > token
        if has("compares texts"):
            is_stale = str(kept.token) > str(token)
        if has("refuses an equal one"):
            is_stale = kept.token >= token
        if kept.ensemble != stamp.ensemble and not has("any ensemble"):
            raise zklock.OtherEnsemble("of another ensemble", stamp.name, stamp.ensemble, kept.ensemble)
        if is_stale and not has("fences no reads"):
            if has("keeps what it refuses"):
                self._memory.keep(stamp, kept.value)
            if has("another error"):
                raise PermissionError("too late")
            written = stamp.token if has("names the wrong token") else int(kept.token)
            raise zklock.StaleToken("too late", stamp.name, stamp.token, written)

    def read(self) -> str | None:
        return self.value

    def write(self, value: str) -> None:
        memory, kept = self._memory, self._memory.kept(self._stamp)
        if memory.has("fences no reads") and kept and kept.token > self._stamp.token:
            raise zklock.StaleToken("too late", self._stamp.name, self._stamp.token, int(kept.token))
        if memory.has("compares when it is called"):
            self.compare()
        self.has_written = True
        self.value = None if memory.has("forgets") else value


CASES = {
    "forgets": "first_write",
    "refuses an equal one": "retry_after_a_lost_commit",
    "compares texts": "greater_token",
    "compares nothing": "smaller_token",
    "another error": "smaller_token",
    "names the wrong token": "smaller_token",
    "keeps what it refuses": "refused_write",
    "any ensemble": "other_ensemble",
    "one name": "other_name",
    "raises only by a write": "raised_before_the_first_write",
    "fences no reads": "fenced_read",
    "numbers of JSON": "above_2_to_53",
    "32 bits": "near_2_to_63",
    "commits what failed": "roll_back",
    "raises at once": "roll_back",
    "locks nothing": "sleeps_before_its_write",
    "compares when it is called": "sleeps_before_its_end",
    "compares, and then writes": "race",
}


@pytest.mark.parametrize("mistake", CASES)
def test_a_broken_fence_is_found(mistake: str) -> None:
    with pytest.raises(fence.Broken) as broken:
        fence.check(Memory(mistake))
    case, promised, seen = re.fullmatch(r"(\w+): promised: (.+); seen: (.+)", str(broken.value)).groups()  # type: ignore[union-attr]
    assert case == CASES[mistake], broken.value


def test_a_sound_fence_passes_and_every_case_finds_something() -> None:
    report = fence.check(Memory())
    assert sorted(report.passed) == sorted(set(CASES.values())) and report.skipped == ()


def test_a_fence_that_hangs_is_found() -> None:
    hanging = Memory()
    with hanging._lock:
        with pytest.raises(fence.Broken, match="has not ended after 0.1 s"):
            fence.check(hanging, timeout=0.1)
