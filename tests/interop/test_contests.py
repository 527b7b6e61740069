"""One queue for the locks of all libraries that see each other's nodes, and, in their naming schemes, of those that do not see ours."""

from __future__ import annotations

import typing

import pytest
from contest import CURATORS, Side, contend, foreign_side, zklock_side
from ground import Ground
from kinds import needs_curator_that_downgrades, needs_go, only_with_long
from register import REST, Rules

Figures = typing.Callable[[str], None]

LINGERS = ("--linger=3600", REST)
DOWNGRADING = ("python",) * 4


def beside(library: str, *words: str, kind: str, name: str = "", marks: typing.Any = (), **more: typing.Any) -> typing.Any:
    """A contest of our faces with a library. ``words`` are options of ours; ``theirs`` and ``their_options`` belong to the other
    side, which has the same kind unless they say so."""
    return pytest.param(_sides(library, kind, *words, **more), id=f"{kind.partition(':')[0]}-{name or library}", marks=marks)


def _sides(
    library: str,
    kind: str,
    *words: str,
    theirs: str = "",
    their_options: typing.Sequence[str] = (),
    **ours: typing.Any,
) -> tuple[Side, Side]:
    return foreign_side(library, theirs or kind, *their_options), zklock_side(kind, *words, **ours)


CONTESTS = [
    beside("curator", kind="mutex"),
    beside("curator", kind="mutex", theirs="selector", name="curators-leader-selector"),
    beside("writelock", kind="mutex"),
    beside("go", kind="mutex", marks=needs_go()),
    beside("curator", *LINGERS, kind="mutex", their_options=[REST], name="curator-that-lingers"),
    beside("kazoo", "--naming=kazoo", *LINGERS, kind="mutex", their_options=[REST], name="kazoo-that-lingers"),
    beside("kazoo", "--naming=kazoo", kind="mutex"),
    # It was told of our nodes.
    beside(
        "kazoo", "--foreign=ignore-unknown", kind="mutex", their_options=["--extra-lock-patterns=-lock-"], name="kazoo-that-was-told"
    ),
    beside("writelock", "--naming=writelock", kind="mutex", name="writelock-in-its-naming"),
    # In the layout of LeaderLatch.
    beside("curator", kind="election"),
    beside("curator", kind="rw"),
    beside("curator", *LINGERS, kind="rw", their_options=[REST], name="curator-that-lingers"),
    beside("kazoo", "--naming=kazoo", kind="rw"),
    # Curator recognises our readers that were writers. (Debian's own Curator does it wrong itself: see CURATOR-621.)
    beside("curator", kind="downgrade", theirs="rw", faces=DOWNGRADING),
    # We recognise Curator's, whose nodes do not have their own number.
    beside("curator-that-downgrades", kind="downgrade", faces=DOWNGRADING, marks=needs_curator_that_downgrades()),
    # In the layout of InterProcessSemaphoreV2, and of InterProcessSemaphoreMutex, a semaphore with one lease.
    beside("curator", kind="semaphore:3"),
    # Two of Curator's can have one lease each while they wait for another, and even then the head of the queue must get two.
    beside("curator", kind="semaphore:4:2", name="curator-with-two-each"),
    beside("curator", kind="semaphore-mutex"),
    # An old release of legacy services, and the newest, each with its own ZooKeeper client.
    *(
        beside(f"curator-{version}", kind=kind, marks=only_with_long())
        for version in CURATORS
        for kind in ("mutex", "rw", "semaphore:3")
    ),
]


@pytest.mark.parametrize("sides", CONTESTS)
def test_both_sides_have_their_turns_in_one_queue(ground: Ground, path: str, figures: Figures, sides: tuple[Side, Side]) -> None:
    foreign, ours = sides
    kind, *numbers = ours.kind.split(":")
    limit = int(numbers[0]) if numbers else 1
    lingers = ours.options[-len(LINGERS) :] == LINGERS

    def shows(peak: int, together: set[frozenset[str]]) -> bool:
        if kind == "semaphore":
            return peak == limit
        if kind in ("rw", "downgrade"):
            # Readers of both sides were inside at once, so the read side is not just a mutex.
            return peak > 1 and any(foreign.programs[0] in pair and len(pair) == 2 for pair in together)
        return True

    # The first to get its lease need not be the first to report that. The stay is long enough that the permits run out.
    is_semaphore = kind == "semaphore"
    rules = Rules(limit=limit, ordered=not is_semaphore, lingers=lingers, downgrades=kind == "downgrade")
    outcome = contend(ground, path, sides, rules, stay=0.1 if is_semaphore else 0.001, shows=shows)
    figures(f"{outcome.figures}; {outcome.peak} leases of {limit} at once" if is_semaphore else outcome.figures)
    assert shows(outcome.peak, outcome.together), outcome
