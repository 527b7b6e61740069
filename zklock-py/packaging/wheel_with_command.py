"""The build backend: maturin's, with the command `zklock` in what it builds, and docstrings in the stub.

maturin builds an extension module or a program, and not both. An entry point in Python that calls into the extension module
would do without this file, but not as well: `zklock run` starts itself again as the warden and as the guardian of its job, by
/proc/self/exe, which would be the interpreter; it counts on the default action of signals, which Python changes; and it has to be
there within milliseconds, with one small process for each.

maturin puts what is in a folder of a certain name into the wheel. So the program is compiled, laid there for as long as maturin
runs, and taken away again. So are the licences and the bill of materials, for maturin's own has not what the program brings. A
source distribution gets the sources of the program.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import typing

import maturin
import stub
import third_party
from maturin import get_requires_for_build_editable as get_requires_for_build_editable
from maturin import get_requires_for_build_sdist as get_requires_for_build_sdist
from maturin import get_requires_for_build_wheel as get_requires_for_build_wheel

# Where a frontend calls a backend: the folder of pyproject.toml.
PROJECT = pathlib.Path.cwd()
# Named as the extension module is: maturin looks for it.
DATA = PROJECT / "zklock._zklock.data"
CRATE = "zklock-cli"
# What maturin looks for by pyproject.toml.
THIRD_PARTY = (PROJECT / "THIRD-PARTY.txt", PROJECT / "zklock-py.cdx.json")

Settings = typing.Optional[typing.Mapping[str, typing.Any]]


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    words = maturin.get_maturin_pep517_args(config_settings)
    # Packed as tightly as the format allows.
    packed = {"maturin.build-args": words if "--compression-level" in words else [*words, "--compression-level", "9"]}
    with command_in_place(config_settings), docstrings_in_place():
        return maturin.build_wheel(wheel_directory, packed, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    with command_in_place(config_settings):
        return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    with third_party_in_place(config_settings):
        return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    # Left by a build of a wheel that was killed, they would go along.
    remove()
    name = maturin.build_sdist(sdist_directory, config_settings)
    add_sources(pathlib.Path(sdist_directory, name))
    return name


@contextlib.contextmanager
def command_in_place(config_settings: Settings) -> typing.Iterator[None]:
    # pip shows this with -v alone. Writing to /dev/tty would spoil pip's own line there, and still say nothing in the log of a job.
    print("Compiling the extension module and the command zklock: this takes several minutes", flush=True)
    program = compiled(maturin.get_maturin_pep517_args(config_settings))
    with third_party_in_place(config_settings):
        (DATA / "scripts").mkdir(parents=True)
        shutil.copy2(program, DATA / "scripts" / "zklock")
        yield


@contextlib.contextmanager
def docstrings_in_place() -> typing.Iterator[None]:
    without = stub.STUB.read_text(encoding="utf-8")
    stub.STUB.write_text(stub.whole(), encoding="utf-8")
    try:
        yield
    finally:
        stub.STUB.write_text(without, encoding="utf-8")


@contextlib.contextmanager
def third_party_in_place(config_settings: Settings) -> typing.Iterator[None]:
    # What was left by a build that was killed.
    remove()
    try:
        target = options(maturin.get_maturin_pep517_args(config_settings)).target
        third_party.write(PROJECT, ["zklock-py", CRATE], target, maturin._get_env())
        yield
    finally:
        remove()


def remove() -> None:
    shutil.rmtree(DATA, ignore_errors=True)
    for file in THIRD_PARTY:
        file.unlink(missing_ok=True)


def sources() -> pathlib.Path:
    """Beside this project in the repository, and in it in a source distribution."""
    found = [folder / CRATE for folder in (PROJECT, PROJECT.parent) if (folder / CRATE / "Cargo.toml").exists()]
    if not found:
        sys.exit(f"{CRATE} is not there: build from the repository, or from a whole source distribution")
    return found[0]


def options(words: typing.Sequence[str]) -> argparse.Namespace:
    """What these arguments of maturin mean for cargo."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--profile", default="release")
    parser.add_argument("--target")
    parser.add_argument("--zig", action="store_true")
    parser.add_argument("--compatibility", "--manylinux", default="")
    for name in ("--locked", "--frozen", "--offline"):
        parser.add_argument(name, dest="cargo", action="append_const", const=name, default=[])
    return parser.parse_known_args(words)[0]


def compiled(words: typing.Sequence[str]) -> str:
    """Compiles the program as maturin, with these arguments, compiles the extension module, and returns where it is."""
    asked = options(words)
    target, cargo = asked.target, ["cargo", "build"]
    if asked.zig:
        # Linked with a C library that is no newer than the wheel says.
        cargo = ["cargo-zigbuild", "build"]
        target = f"{target or third_party.host(maturin._get_env())}.{c_library(asked.compatibility)}"
    command = [*cargo, "--manifest-path", str(sources() / "Cargo.toml"), *asked.cargo]
    # The extension module is named for its features: with the same ones, zklock-core and all that it needs are compiled once.
    command += ["--package", CRATE, "--package", "zklock-py", "--bin", "zklock"]
    command += ["--config", f'profile.{asked.profile}.package.{CRATE}.strip="symbols"']
    command += ["--profile", asked.profile, "--message-format", "json-render-diagnostics"]
    command += ["--target", target] if target else []
    print("Running", *command, flush=True)
    result = subprocess.run(command, stdout=subprocess.PIPE, env=maturin._get_env(), check=False)
    if result.returncode != 0:
        sys.exit(f"the command zklock could not be compiled: cargo ended with code {result.returncode}")
    messages = (json.loads(line) for line in result.stdout.splitlines())
    (program,) = (message["executable"] for message in messages if message.get("executable"))
    return program


def c_library(compatibility: str) -> str:
    newer = re.fullmatch(r"manylinux_(\d+)_(\d+)", compatibility)
    return ".".join(newer.groups()) if newer else "2.17"


def add_sources(distribution: pathlib.Path) -> None:
    """Writes a source distribution once more, with the sources of the program, as a member of its workspace."""
    before = io.BytesIO(distribution.read_bytes())
    with tarfile.open(fileobj=before) as old, tarfile.open(distribution, "w:gz") as new:
        top, like = "", None
        for member in old:
            content = old.extractfile(member)
            text = content.read() if content else b""
            top, _, name = member.name.partition("/")
            # To Cargo this file is one of the crate; pip looks for it beside pyproject.toml.
            if "packaging/" in name:
                continue
            if name == "Cargo.toml":
                like = member
                text, count = re.subn(rb"(?m)^members = \[", b'members = ["%s", ' % CRATE.encode(), text)
                if count != 1:
                    sys.exit("the workspace of the source distribution is not as expected")
            add(new, member, member.name, text)
        this = pathlib.Path(__file__).parent
        for file in sorted(this.glob("*.py")):
            add(new, like, f"{top}/{this.name}/{file.name}", file.read_bytes())
        crate = sources()
        manifest = (crate / "Cargo.toml").read_text()
        # The tests stay behind, and Cargo would look for what they need.
        manifest = re.sub(r"(?ms)^\[dev-dependencies\]\n.*?(?=^\[)", "", manifest)
        add(new, like, f"{top}/{CRATE}/Cargo.toml", manifest.encode())
        for file in sorted(crate.glob("src/**/*.rs")):
            add(new, like, f"{top}/{CRATE}/{file.relative_to(crate).as_posix()}", file.read_bytes())


def add(archive: tarfile.TarFile, like: tarfile.TarInfo, name: str, text: bytes) -> None:
    """With the times and rights of another file, which are the same in every build."""
    member = tarfile.TarInfo(name)
    member.mode, member.mtime, member.type, member.size = like.mode, like.mtime, like.type, len(text)
    archive.addfile(member, io.BytesIO(text))
