"""The tests in docs/testing.md, unchanged: they need no ZooKeeper, and nothing from this folder."""

from __future__ import annotations

import pathlib
import re

GUIDE = pathlib.Path(__file__).parents[3] / "docs/testing.md"

[EXAMPLE] = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
# Its functions are tests of this module.
exec(compile(EXAMPLE, str(GUIDE), "exec"))


def test_the_guide_has_tests() -> None:
    assert sum(name.startswith("test_") for name in globals()) > 3
