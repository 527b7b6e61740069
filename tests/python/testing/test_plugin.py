"""The fixtures for pytest, in an environment where zklock is installed."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

pytest_plugins = ("pytester",)
# Whole runs of pytest, with processes of their own.
pytestmark = pytest.mark.timeout(180)

GUIDE = pathlib.Path(__file__).parents[3] / "docs/testing.md"

# Each test has its own server, and the next one sees that it has ended.
HAS_ITS_OWN = """
import pytest, zklock, zklock.testing

seen = []

@pytest.mark.parametrize("number", range(8))
def test_is_new(number, zklock_server, zklock_client):
    assert isinstance(zklock_server, zklock.testing.Server) and isinstance(zklock_client, zklock.Client)
    assert zklock_server.children("/") == ["zookeeper"]
    assert [session.id for session in zklock_server.sessions()] == [zklock_client.session_id]
    zklock_server.put("/here")
    for before in seen:
        with pytest.raises(zklock.Closed):
            before.sessions()
    seen.append(zklock_server)
"""


@pytest.fixture
def inner(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with a user's tests. Their warnings are errors, too."""
    pytester.makeini("[pytest]\nfilterwarnings = error\naddopts = -p no:cacheprovider\n")
    return pytester


def test_the_guide_has_tests_that_pass(inner: pytest.Pytester) -> None:
    """Those in docs/testing.md, unchanged: they need no ZooKeeper, and nothing from this folder."""
    (tests,) = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    inner.makepyfile(tests)
    count = len(re.findall(r"^(?:async )?def test_", tests, re.MULTILINE))
    assert count >= 3
    inner.runpytest_subprocess().assert_outcomes(passed=count)


@pytest.mark.parametrize("processes", ["0", "2"])
def test_each_test_has_its_own(inner: pytest.Pytester, processes: str) -> None:
    inner.makepyfile(HAS_ITS_OWN)
    inner.runpytest_subprocess("--numprocesses", processes).assert_outcomes(passed=8)


def test_server_can_be_made_otherwise(inner: pytest.Pytester) -> None:
    inner.makeconftest(
        """
        import pytest, zklock.testing

        @pytest.fixture
        def zklock_server():
            with zklock.testing.Server(tick=0.1, manual_clock=True) as server:
                yield server
        """
    )
    inner.makepyfile("def test_tick(zklock_client):\n    assert zklock_client.session_timeout == 2.0\n")
    inner.runpytest_inprocess().assert_outcomes(passed=1)


def test_names_of_others_stay(inner: pytest.Pytester) -> None:
    """A user's own fixtures and modules keep their names."""
    inner.makepyfile(testing="name = 'mine'", quickstart="name = 'mine'", pytest_plugin="name = 'mine'")
    inner.makepyfile(
        """
        import pytest, quickstart, testing, pytest_plugin

        @pytest.fixture
        def server():
            return "mine"

        def test_mine(server):
            assert {server, testing.name, quickstart.name, pytest_plugin.name} == {"mine"}
        """
    )
    inner.runpytest_subprocess().assert_outcomes(passed=1)


def test_can_be_switched_off(inner: pytest.Pytester) -> None:
    inner.makepyfile("def test_fixtures(zklock_server, zklock_client): ...")
    inner.runpytest_subprocess("-p", "no:zklock").assert_outcomes(errors=1)


@pytest.mark.parametrize(
    ("imports", "others"),
    [
        ("zklock, zklock.testing, zklock.quickstart", {"pytest"}),
        ("zklock", {"zklock.testing", "zklock.pytest_plugin"}),
    ],
)
def test_what_is_for_tests_is_not_imported_by_others(tmp_path: pathlib.Path, imports: str, others: set[str]) -> None:
    program = f"import sys, {imports}; assert not {others!r} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20, cwd=tmp_path)
