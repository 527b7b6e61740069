"""The examples in README and the documentation work as they are, except for the address of the server."""

from __future__ import annotations

import pathlib
import re
import typing

import pytest
from ground import Ground

ROOT = pathlib.Path(__file__).parents[3]
# The examples of recipes.md are files of applications, which tests/docs runs.
PAGES = tuple(
    page
    for page in ("README.md", "zklock-py/README.md", *sorted(f"docs/{page.relative_to(ROOT / 'docs')}" for page in ROOT.glob("docs/**/*.md")))
    if "```python" in (ROOT / page).read_text() and page != "docs/recipes.md"
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
def test_example(text: str, run: typing.Callable[..., typing.Any], hosts: str, ground: Ground) -> None:
    # Unless it starts its own server.
    assert ADDRESS in text or "zklock.testing" in text
    done = run(text.replace(ADDRESS, hosts))
    assert (done.status, done.err) == (0, "")
    # It has printed something, and the lock is free.
    assert done.out
    for path in set(re.findall(r'"(/locks/[^"]*)"', text)):
        ground.expect_free(path)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text()):
        if not link.startswith("https://"):
            assert (ROOT / page).parent.joinpath(link).exists(), link
