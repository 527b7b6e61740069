"""The stub matches the native module, and its types are those that programs expect."""

from __future__ import annotations

import ast
import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import zklock
from zklock import _zklock

HERE = pathlib.Path(__file__).parent
TESTS = HERE.parent
ROOT = TESTS.parents[1]
SOURCE = ROOT / "zklock-py/python"
EXAMPLES = ROOT / "zklock-py/examples"
STUB = pathlib.Path(_zklock.__file__).with_name("_zklock.pyi")

newest = pytest.mark.skipif(sys.version_info < (3, 10), reason="the type checkers need a newer interpreter")


def expect_success(*arguments: str, cwd: pathlib.Path) -> str:
    """Runs a module, which must find nothing wrong, and returns its output."""
    environment = {**os.environ, "MYPYPATH": os.pathsep.join([str(SOURCE), str(TESTS)])}
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_docstrings_are_those_of_the_module() -> None:
    public = [value for value in vars(_zklock).values() if isinstance(value, type)]
    every = {base.__name__: base for cls in public for base in cls.__mro__ if base is not object}
    # The stub names private bases in its own way.
    native = {name if cls in public else f"_{name}": cls for name, cls in every.items()}
    for node in ast.parse(STUB.read_text()).body:
        if not isinstance(node, ast.ClassDef):
            continue
        assert ast.get_docstring(node) == inspect.getdoc(native[node.name]), node.name
        for item in node.body:
            # Python itself documents special methods.
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and not item.name.startswith("__"):
                member = inspect.getattr_static(native[node.name], item.name)
                assert ast.get_docstring(item) == inspect.getdoc(getattr(member, "__func__", member)), item.name


def test_package_is_typed() -> None:
    installed = pathlib.Path(zklock.__file__).parent
    assert (installed / "py.typed").exists()
    # Beyond what is in the repository there are docstrings alone.
    source, lines = (SOURCE / "zklock/_zklock.pyi").read_text(), iter(STUB.read_text().replace(": ...\n", ":\n").splitlines())
    assert all(line in lines for line in source.replace(": ...\n", ":\n").splitlines()) and '"""' not in source


@pytest.mark.parametrize(
    ("line", "changed", "named"),
    [
        ('    CLOSED = "closed"\n', '    CLOSED = "closed"\n    ENDED = "ended"\n', "ConnectionState"),
        ('    NODE_DELETED = "its node was deleted"\n', '    NODE_DELETED = "gone"\n', "LossReason"),
        ("    losses: int\n", "    lost: int\n", "Stats"),
    ],
)
def test_a_package_whose_halves_disagree_is_not_imported(
    tmp_path: pathlib.Path, line: str, changed: str, named: str
) -> None:
    shutil.copytree(pathlib.Path(zklock.__file__).parent, tmp_path / "zklock")
    values = tmp_path / "zklock/_values.py"
    assert values.read_text().count(line) == 1
    values.write_text(values.read_text().replace(line, changed))
    program = [sys.executable, "-c", "import zklock; print(zklock.__file__)"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("ImportError: ") and named in done.stderr


@newest
def test_stub_agrees_with_the_module(tmp_path: pathlib.Path) -> None:
    expect_success("mypy.stubtest", "zklock", cwd=tmp_path)


@newest
def test_mypy(tmp_path: pathlib.Path) -> None:
    strict = ("mypy", "--strict", "--explicit-package-bases", f"--cache-dir={tmp_path}")
    expect_success(*strict, str(SOURCE / "zklock"), str(EXAMPLES), str(TESTS), cwd=tmp_path)


@newest
def test_pyright() -> None:
    arguments = ("--project", str(HERE), "--pythonpath", sys.executable, "--outputjson")
    report = json.loads(expect_success("pyright", *arguments, cwd=HERE))
    # The checker does not report files that it does not find.
    checked = [file for folder in (EXAMPLES, TESTS) for file in folder.rglob("*.py")]
    assert report["summary"]["filesAnalyzed"] >= len(checked) > 10
