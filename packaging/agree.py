"""Looks whether all that repeats the version, or the address of the repository, agrees: `packaging/version --check` calls it.

Most things take the version from Cargo.toml when they are built. These are looked at for a number of their own.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLACEHOLDER = "repository.invalid"
# What does not link the library names it.
BINDINGS = [file for file in ROOT.glob("zklock-ffi/examples/bindings/*/*") if file.suffix != ".go"]
TAG = re.compile(r"v(\d+\.\d+\.\d+)")


def run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout


def repeated(version: str, repository: str) -> list:
    """A file, how it says it, and what it must say; at each place where it says so."""
    number = re.split("[-+]", version)[0]
    major, minor, patch = number.split(".")
    abi = f"0.{minor}" if major == "0" else major
    short = re.escape(f"{major}.{minor}")
    abi_name = r"libzklock\.so\.(\d[\d.]*\d|\d)"
    return [
        # Of the workspace's own crates among its dependencies.
        ("Cargo.toml", r'^zklock-[a-z-]+ = \{ path = .* version = "=?(.*?)"', re.escape(version)),
        # It takes nothing from the workspace, because programs copy it.
        ("zklock-core/stand-ins/frames/Cargo.toml", r'^version = "(.*)"', re.escape(version)),
        ("zklock-core/stand-ins/frames/Cargo.toml", r'^repository = "(.*)"', re.escape(repository)),
        ("zklock-ffi/Cargo.toml", r"^version_suffix_components = (\d)", "2" if major == "0" else "1"),
        ("zklock-ffi/zklock.pc.in", r"^Version: (.*)", "@VERSION@"),
        ("zklock-py/pyproject.toml", r"^dynamic = (.*)", r'\["version"\]'),
        ("include/zklock.h", r'^#define ZKLOCK_VERSION "(.*)"', re.escape(number)),
        ("include/zklock.h", r"^#define ZKLOCK_VERSION_MAJOR (.*)", major),
        ("include/zklock.h", r"^#define ZKLOCK_VERSION_MINOR (.*)", minor),
        ("include/zklock.h", r"^#define ZKLOCK_VERSION_PATCH (.*)", patch),
        ("include/zklock.h", rf"own SONAME \({abi_name}", re.escape(abi)),
        ("docs/getting-started/c.md", abi_name, re.escape(abi)),
        ("docs/bindings.md", abi_name, re.escape(abi)),
        *((str(file.relative_to(ROOT)), abi_name, re.escape(abi)) for file in BINDINGS),
        ("README.md", abi_name, re.escape(abi)),
        ("README.md", r"The version is (\d+\.\d+)", short),
        ("docs/comparison.md", r"^\| in public \| version (\d+\.\d+)", short),
        ("docs/comparison.md", r"zklock is at (\d+\.\d+)", short),
        ("CHANGELOG.md", r"\A# Changelog\n(?:(?!## ).*\n)*## (.*)", rf"(Unreleased|{re.escape(version)} - \d{{4}}-\d\d-\d\d)"),
    ]


def disagreements(version: str, repository: str) -> list:
    found = []
    for file, pattern, expected in repeated(version, repository):
        places = re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"), re.M)
        if not places:
            found.append(f"{file}: nothing there looks like {pattern}")
        found += [f"{file}: says {place}, and it must match {expected}" for place in places if not re.fullmatch(expected, place)]
    return found


def members() -> list:
    command = ["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]
    return [it for it in json.loads(run(*command))["packages"] if it["name"].startswith("zklock")]


def unready(version: str, repository: str, tag: str) -> list:
    """What keeps this checkout from a release."""
    found = []
    if PLACEHOLDER in repository:
        found.append(f"Cargo.toml: set `repository`: {repository} is a placeholder")
    if not (named := TAG.fullmatch(tag)) or named[1] != version:
        found.append(f"the tag {tag} does not name the version {version}: it must be v{version}")
    if f"\n## {version} - " not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        found.append(f"CHANGELOG.md: the first entry is not `## {version} - DATE`")
    if changed := run("git", "status", "--porcelain"):
        found.append(f"not committed:\n{changed}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="packaging/version")
    parser.add_argument("version", help=argparse.SUPPRESS)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--check", action="store_true", help="whether all that repeats the version does")
    which.add_argument("--release", metavar="TAG", help="besides, whether this can be released under that tag")
    arguments = parser.parse_args()
    version = arguments.version
    repository = re.search(r'^repository = "(.*)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.M)[1]
    found = disagreements(version, repository)
    found += [f"{it['name']}: has the version {it['version']}, not {version}" for it in members() if it["version"] != version]
    if arguments.release:
        found += unready(version, repository, arguments.release)
    if found:
        sys.exit("\n".join(found))


main()
