"""The examples in README and the documentation work as they are, except for the address of the server."""

from __future__ import annotations

import pathlib
import re

import pytest
from ground import Ground, fresh_path
from guests.programs import Start

ROOT = pathlib.Path(__file__).parents[3]
# The examples of these are files of applications, which tests/docs runs, and tests/fences; tests, which ../testing runs; and the parts
# of programs below.
APART = [f"docs/{name}.md" for name in ("recipes", "jobs", "fencing", "fencing-stores", "monitoring", "testing", "pitfalls")]
PAGES = tuple(
    page
    for page in ("README.md", "zklock-py/README.md", *sorted(f"docs/{page.relative_to(ROOT / 'docs')}" for page in ROOT.glob("docs/**/*.md")))
    if "```python" in (ROOT / page).read_text() and page not in APART
)
ADDRESS = "127.0.0.1:2181"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


EXAMPLES = [
    pytest.param(text, id=f"{page}-{number}") for page in PAGES for number, text in enumerate(blocks(page), start=1)
]


@pytest.mark.parametrize("page", PAGES)
def test_page_has_examples(page: str) -> None:
    assert blocks(page)
    # No example is left out because it is marked in another way.
    assert len(blocks(page)) == len(re.findall(r"^ *```py", (ROOT / page).read_text(), re.MULTILINE))


@pytest.mark.parametrize("text", EXAMPLES)
def test_example(text: str, start: Start, hosts: str, ground: Ground) -> None:
    # Unless it starts its own server.
    assert ADDRESS in text or "zklock.testing" in text
    done = start(text.replace(ADDRESS, hosts)).finish()
    assert (done.status, done.err) == (0, "")
    # It has printed something, and the lock is free.
    assert done.out
    for path in set(re.findall(r'"(/locks/[^"]*)"', text)):
        ground.expect_free(path)


def test_a_daemon_in_asyncio_that_has_lost_its_lock_queues_again(start: Start, hosts: str, ground: Ground) -> None:
    chroot = fresh_path("", "daemon")
    ground(f"create {chroot}")
    (text,) = [text for text in blocks("docs/getting-started/python.md") if "except zklock.LockLost as lost" in text and "await" in text]
    text = text.replace("await asyncio.sleep(0.1)", 'print("works", flush=True); await asyncio.Event().wait()')
    program = start(text.replace(ADDRESS, hosts + chroot))
    program.expect("works")
    (node,) = ground.children(f"{chroot}/locks/report")
    ground(f"delete {chroot}/locks/report/{node}")
    assert "is lost" in program.line()
    program.expect("works")


# The page has first lines for all of its examples. A wrong one says so.
FIRST, *PITFALLS = blocks("docs/pitfalls.md")


@pytest.mark.parametrize("text", PITFALLS, ids=lambda text: str(PITFALLS.index(text) + 1))
def test_pitfall(text: str, start: Start, hosts: str, ground: Ground) -> None:
    chroot = fresh_path("", "pitfall")
    ground(f"create {chroot}")
    done = start((FIRST + text).replace(ADDRESS, hosts + chroot)).finish()
    assert (done.status, done.err) == (0, "")
    for path in set(re.findall(r'"(/locks/[^"]*)"', text)):
        if "the lock stays taken" in text:
            assert ground.children(chroot + path)
        else:
            ground.expect_free(chroot + path)


def test_every_pitfall_has_a_way_out() -> None:
    for section in (ROOT / "docs/pitfalls.md").read_text().split("\n## ")[1:]:
        marks = [block.startswith("# Wrong: ") for block in re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)]
        assert marks in ([], [True, False]), section
