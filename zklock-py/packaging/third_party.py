"""Writes what is compiled into a package, for its users' lawyers and scanners.

    python third_party.py FOLDER CRATE... [--target TRIPLE]

Writes FOLDER/THIRD-PARTY.txt, the licences of all crates that these ones need, and FOLDER/CRATE.cdx.json with the name of the first
one, a bill of materials (CycloneDX 1.5). Both are the same bytes for the same Cargo.lock.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import subprocess
import typing

TEXTS = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)", re.IGNORECASE)


Environment = typing.Optional[typing.Mapping[str, str]]


def said(*command: str, env: Environment) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=env).stdout


def host(env: Environment) -> str:
    return re.search("^host: (.*)$", said("rustc", "-vV", env=env), re.MULTILINE)[1]


def write(folder: pathlib.Path, crates: typing.Sequence[str], target: str | None, env: Environment = None) -> None:
    """Of crates in the workspace of the current folder."""
    target = target or host(env)
    tree = ["cargo", "tree", "--edges", "normal", "--prefix", "none", "--format", "{p}", "--target", target]
    tree += [word for crate in crates for word in ("--package", crate)]
    # With the features that are compiled, which `cargo metadata` does not know.
    needed = {tuple(line.split()[:2]) for line in said(*tree, env=env).splitlines() if line}
    metadata = json.loads(said("cargo", "metadata", "--format-version", "1", "--filter-platform", target, env=env))
    packages = {it["id"]: it for it in metadata["packages"] if (it["name"], f"v{it['version']}") in needed}
    edges = {it["id"]: [other["pkg"] for other in it["deps"] if other["pkg"] in packages] for it in metadata["resolve"]["nodes"]}
    parts = sorted(packages.values(), key=lambda it: (it["name"], it["version"]))
    (described,) = (it for it in parts if it["name"] == crates[0])
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(described)},
        "components": [component(it) for it in parts if it is not described],
        "dependencies": [{"ref": name(it), "dependsOn": sorted(name(packages[other]) for other in edges[it["id"]])} for it in parts],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{crates[0]}.cdx.json").write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    (folder / "THIRD-PARTY.txt").write_text(notices(parts, metadata["workspace_root"]), encoding="utf-8")


def name(package: dict[str, typing.Any]) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package: dict[str, typing.Any]) -> dict[str, typing.Any]:
    called = {key: package[key] for key in ("name", "version")}
    return {"type": "library", "bom-ref": name(package), **called, "purl": name(package), "licenses": [{"expression": package["license"]}]}


def notices(parts: typing.Sequence[dict[str, typing.Any]], workspace: str) -> str:
    # Some crates only name this licence, whose text is the same for all.
    apache = (pathlib.Path(workspace) / "LICENSE-APACHE").read_text(encoding="utf-8")
    by_text: dict[str, list[str]] = {}
    for it in parts:
        folder = pathlib.Path(it["manifest_path"]).parent
        found = {file.read_text(encoding="utf-8") for file in folder.iterdir() if file.is_file() and TEXTS.match(file.name)}
        if not found and "Apache-2.0" not in it["license"]:
            raise SystemExit(f"{it['name']} {it['version']} has no text of its licence, {it['license']}")
        # Without white space that differs from crate to crate.
        for text in {"\n".join(line.strip() for line in text.strip().splitlines()) for text in found or {apache}}:
            by_text.setdefault(text, []).append(f"{it['name']} {it['version']} ({it['license']})")
    texts = [line for text, crates in sorted(by_text.items(), key=lambda it: it[1]) for line in ("", "=" * 100, *crates, "-" * 100, text)]
    return "\n".join(["What is compiled into zklock, and its licences.", *texts, ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("crates", nargs="+")
    parser.add_argument("--target")
    given = parser.parse_args()
    write(given.folder, given.crates, given.target)
