"""The programs to which docs/fencing.md leads in other languages than Python refuse what comes too late, in the same fences."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import typing

import psycopg
import pytest
from page import ADDRESS, ROOT

import zklock
from zklock import fence
from zklock.fence import Stamp

PAGE = (ROOT / "docs/fencing.md").read_text()
PROGRAMS = {"c": "zklock-ffi/examples/fenced_postgresql.c", "rust": "tests/fences/pay.rs"}
LATER = 2**62
Program = typing.Callable[[], "subprocess.CompletedProcess[str]"]


def in_c(folder: pathlib.Path, text: str) -> list[str]:
    command = re.match(r"// (cc (\w+)\.c .*)\n", text)
    assert command
    (folder / f"{command[2]}.c").write_text(text)
    subprocess.run(["sh", "-ec", f"{command[1]} -Wall -Wextra -Werror"], cwd=folder, check=True, timeout=120)
    return [str(folder / command[2])]


def in_rust(folder: pathlib.Path, text: str) -> list[str]:
    sqlx = re.match("// Cargo.toml: (.*)\n", text)
    assert sqlx
    (folder / "src").mkdir()
    (folder / "src/main.rs").write_text(text)
    core = f'zklock = {{ path = "{ROOT}/zklock-core" }}'
    tokio = 'tokio = { version = "1", features = ["macros", "rt-multi-thread"] }'
    package = '[package]\nname = "pay"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n[dependencies]\n'
    (folder / "Cargo.toml").write_text(package + "\n".join([core, tokio, sqlx[1]]))
    target = ROOT / "target/fences/rust"
    built = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    subprocess.run(["cargo", "build", "--quiet"], cwd=folder, env=built, check=True, timeout=1800)
    return [str(target / "debug/pay")]


LANGUAGES = {"c": in_c, "rust": in_rust}
# Its client of PostgreSQL takes minutes to compile.
LONG = pytest.mark.skipif(not os.environ.get("ZKLOCK_LONG"), reason="only with --long")


@pytest.mark.timeout(2000)
@pytest.mark.parametrize("language", ["c", pytest.param("rust", marks=LONG)])
def test_a_transaction_is_refused_after_a_later_holder(
    language: str, tmp_path: pathlib.Path, zookeeper: str, shop: psycopg.Connection
) -> None:
    text = (ROOT / PROGRAMS[language]).read_text()
    assert ADDRESS in text and f"(../{PROGRAMS[language]})" in PAGE
    words = LANGUAGES[language](tmp_path, text.replace(ADDRESS, zookeeper))
    shop.execute(fence.create_table("postgresql"))
    shop.execute("CREATE TABLE account (name TEXT PRIMARY KEY, amount BIGINT)")
    shop.execute("INSERT INTO account VALUES ('anna', 100)")

    def amount() -> object:
        return shop.execute("SELECT amount FROM account").fetchall()

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    for expected in (110, 120):
        done = run()
        assert (done.returncode, done.stderr) == (0, "") and amount() == [(expected,)]
    # It is the fence of Python.
    with zklock.Client(zookeeper) as zk, zk.mutex("/locks/account") as hold:
        ensemble = hold.ensemble_id()
    with psycopg.connect("dbname=shop") as other, fence.transaction(other, Stamp("/locks/account", LATER, ensemble)):
        pass
    done = run()
    assert done.returncode == 1 and "a later holder has written" in done.stderr and amount() == [(120,)]


def test_the_command_and_python_share_the_fence_of_a_folder(tmp_path: pathlib.Path, zookeeper: str) -> None:
    (script,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    script = script.replace("./make-the-report", "echo done")
    (tmp_path / "reports").mkdir()
    folder = fence.Directory(tmp_path / "reports")

    def run() -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "ZKLOCK_HOSTS": zookeeper, "ZKLOCK_CONFIG": "/dev/null"}
        return subprocess.run(
            ["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    assert run().returncode == 0
    with zklock.Client(zookeeper) as zk, zk.mutex("/locks/reports") as hold:
        assert folder.read(hold, "sales.txt") == b"done\n"
        folder.write(hold, "sales.txt", b"by Python\n")
        ensemble = hold.ensemble_id()
    assert run().returncode == 0
    folder.raise_token(Stamp("/locks/reports", LATER, ensemble))
    refused = run()
    assert refused.returncode == 122 and str(LATER) in refused.stderr
    assert (tmp_path / "reports/sales.txt").read_text() == "done\n"
