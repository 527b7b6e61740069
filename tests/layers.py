"""Checks that imports go down the picture of each crate, which stands at the head of its lib.rs or main.rs, and never in a circle.

    python3 -B tests/layers.py [FOLDER]      all crates, or the one in that folder

A picture has three columns, with two or more spaces between them: the folder (only on its first line; `.` is `src`), the modules, and
their purpose. A module below one that is no folder in the picture (`keeper/proof.rs`) belongs to it. Unit tests may import from anywhere.
First the check tries itself on planted mistakes.
"""

from __future__ import annotations

import pathlib
import re
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parents[1]
CRATES = ("zklock-core", "zklock-core/machine", "zklock-ffi", "zklock-py", "zklock-cli", "zklock-testkit")

Module = typing.Tuple[str, ...]  # its names below the crate: () is lib.rs or main.rs
TEXT_OR_COMMENT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\b[bc]?r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\\n])'""", re.DOTALL
)
TEST_CODE = re.compile(r"#\[cfg\((?:all\()?(?:test|doctest)\b[^\]]*\]")
INNER_MODULE = re.compile(r"\bmod\s+(\w+)\s*\{")
USE = re.compile(r"\buse\s+([^;]+);")
CODE = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))? )?(?:(?:async|const|unsafe) )*(?:fn|struct|enum|union|trait|impl|type|static|const|macro_rules!)\b", re.M
)


class Import(typing.NamedTuple):
    line: int
    text: str
    at: Module  # where it stands, with modules written in the same file
    path: typing.List[str]


class Source(typing.NamedTuple):
    file: str
    imports: typing.List[Import]
    has_code: bool


class Row(typing.NamedTuple):
    number: int
    text: str


def end(text: str, start: int) -> int:
    """The end of the item that begins there: at its semicolon, or behind its braces."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth < 0 or depth == 0 and text[place] in ";}":
            return place + 1
    return len(text)


def blank(text: str, start: int, stop: int) -> str:
    return text[:start] + re.sub(r"[^\n]", " ", text[start:stop]) + text[stop:]


def leaves(tree: str) -> typing.Iterator[str]:
    """a::{b, c::{d, e}}: a::b, a::c::d, a::c::e."""
    head, brace, rest = tree.partition("{")
    if not brace:
        yield re.sub(r"::self\b", "", re.sub(r"\s+", " ", tree).strip())
        return
    depth, part = 0, ""
    for letter in rest[: rest.rindex("}")] + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if part.strip():
                yield from leaves(head.strip() + part.strip())
            part = ""
        else:
            part += letter


def read(module: Module, file: str, text: str, children: typing.Set[str]) -> Source:
    """What a file imports: in its `use` lines, and by paths elsewhere. A path may begin with the name of a child."""
    text = TEXT_OR_COMMENT.sub(lambda found: blank(found[0], 0, len(found[0])), text)
    while found := TEST_CODE.search(text):
        start = re.compile(r"\s*(#\[[^\]]*\]\s*)*").match(text, found.end())
        text = blank(text, found.start(), end(text, start.end() if start else found.end()))
    inner = [(found.end(), end(text, found.end() - 1), found[1]) for found in INNER_MODULE.finditer(text)]
    imports = []

    def add(place: int, shown: str, path: str) -> None:
        at = module + tuple(name for start, stop, name in inner if start <= place < stop)
        imports.append(Import(text.count("\n", 0, place) + 1, shown, at, re.split(r"\s*::\s*", re.sub(r" as \w+$", "", path))))

    for found in USE.finditer(text):
        for leaf in leaves(found[1]):
            add(found.start(), f"use {leaf}", leaf)
    rest = USE.sub(lambda found: blank(found[0], 0, len(found[0])), text)
    heads = "|".join(["crate", "self", "super", *sorted(children)])
    for found in re.finditer(rf"(?<!\bin )(?<!:)(?<!\w)(?:{heads})(?:\s*::\s*\w+)+", rest):
        add(found.start(), re.sub(r"\s", "", found[0]), found[0])
    return Source(file, imports, bool(CODE.search(text)))


def picture(root: str) -> typing.Tuple[typing.Dict[Module, Row], typing.Set[Module], typing.List[str]]:
    """The rows of the modules, the folders, and what is wrong with the picture."""
    block = re.search(r"^// ```text\n(.*?)^// ```", root, re.M | re.DOTALL)
    rows: typing.Dict[Module, Row] = {}
    folders: typing.Set[Module] = {()}
    wrong = [] if block else ["no picture: no comment (//) has a block ```text"]
    folder = "."
    for number, line in enumerate(block[1].splitlines() if block else (), 1):
        columns = re.split(r" {2,}", line[2:].strip())
        if not line[2:].startswith("  "):
            folder = columns.pop(0)
        below = () if folder == "." else tuple(folder.split("/"))
        folders.update(below[:depth] for depth in range(len(below) + 1))
        for name in columns[0].split() if columns else ():
            module = () if not below and name in ("lib", "main") else (*below, name)
            if module in rows:
                wrong.append(f"line {number} of the picture has {name} once more: it is in line {rows[module].number}")
            rows[module] = Row(number, f"{folder}  {columns[0]}")
    return rows, folders, wrong


def circles(edges: typing.Dict[Module, typing.Dict[Module, str]]) -> typing.Iterator[typing.List[Module]]:
    """The shortest circle through each import, except where all of its modules have been in circles before."""
    seen: typing.Set[Module] = set()
    for first in sorted(edges):
        for second in sorted(edges[first]):
            ways, reached = [[second]], {second}
            for way in ways:
                reached.update(following := sorted(edges.get(way[-1], {}).keys() - reached))
                ways += [[*way, module] for module in following]
            circle = next((way for way in ways if way[-1] == first), [])
            if circle and not seen.issuperset(circle):
                seen.update(circle)
                yield [first, *circle]


def failures(folder: str, texts: typing.Mapping[str, str]) -> typing.List[str]:
    """What is wrong with a crate, whose files are given by their paths below src."""
    main = "lib.rs" if "lib.rs" in texts else "main.rs"
    files: typing.Dict[Module, str] = {}
    for file in texts:
        names = file[: -len(".rs")].split("/")
        if "tests" not in names and (file == main or file != "main.rs"):
            files[() if file == main else tuple(names[:-1] if names[-1] == "mod" else names)] = file
    rows, folders, wrong = picture(texts[main])
    wrong = [f"{folder}/src/{main}: {what}" for what in wrong]
    sources = {}
    for module, file in files.items():
        children = {other[-1] for other in files if other and other[:-1] == module}
        sources[module] = read(module, f"{folder}/src/{file}", texts[file], children)
    uses = [use for source in sources.values() for use in source.imports if use.text.startswith("use ")]
    names = {(use.at, re.split(r" as |::| ", use.text)[-1]): use for use in uses}

    def room(module: Module) -> typing.Optional[Module]:
        """The module in the picture to which this one belongs; `None` for what only declares others, and what is missing."""
        while module not in rows:
            if not module or module[:-1] in folders:
                return None
            module = module[:-1]
        return module

    def resolve(at: Module, path: typing.Sequence[str]) -> typing.Optional[Module]:
        """The module that defines this: where a path ends, through the re-exports of lib.rs and of folders."""
        if path[0] == "crate":
            at, path = (), path[1:]
        elif path[0] not in ("self", "super") and (*at, path[0]) not in files:
            return None  # another crate
        for place, name in enumerate(path):
            if name in ("self", "super"):
                at = at[: len(at) - (name == "super")]
            elif (*at, name) in files:
                at = (*at, name)
            elif at in folders and (at, name) in names:
                return resolve(names[at, name].at, [*names[at, name].path, *path[place + 1 :]])
            else:
                break
        while at not in files:
            at = at[:-1]
        return at

    for module in rows.keys() - files.keys():
        wrong.append(f"{folder}/src/{main}: line {rows[module].number} of the picture has {module[-1]}, which is no module")
    edges: typing.Dict[Module, typing.Dict[Module, str]] = {}
    for module, source in sorted(sources.items()):
        here = room(module)
        if here is None and module not in folders:
            wrong.append(f"{source.file}: the picture in {folder}/src/{main} does not have this module")
        if here is None and module and module in folders and source.has_code:
            wrong.append(f"{source.file}: the picture has its folder, so it may hold declarations and re-exports alone")
        for use in source.imports if here is not None else ():
            target = resolve(use.at, use.path)
            there = room(target) if target is not None else None
            if target in folders and there is None:
                at = f"{sources[target].file}, which has no line in the picture: name the module in it"
                wrong.append(f"{source.file}:{use.line}: {use.text} ends at {at}")
            if there is None or there == here:
                continue
            edges.setdefault(here, {}).setdefault(there, f"{source.file}:{use.line}: {use.text}")
            if rows[there].number < rows[here].number:
                wrong.append(
                    f'{source.file}:{use.line}: {use.text} goes up: "{rows[here].text}" (line {rows[here].number} of the picture)'
                    f' knows nothing of "{rows[there].text}" (line {rows[there].number})'
                )
    # An import that goes up makes circles of many others, which are right.
    if any(" goes up: " in problem for problem in wrong):
        return wrong
    for circle in circles(edges):
        wrong.append("a circle of imports:" + "".join(f"\n  {edges[a][b]}" for a, b in zip(circle, circle[1:])))
    return wrong


def check(folder: str) -> typing.List[str]:
    source = ROOT / folder / "src"
    return failures(folder, {file.relative_to(source).as_posix(): file.read_text() for file in source.rglob("*.rs")})


# A crate without a mistake. What is written in comments, texts and tests is no import.
HONEST = {
    "lib.rs": """// ```text
// .       face             what others see
// client  client           what users call
//         spec kinds
// low     pool slot        what all stand on
// ```
pub use self::{client::Client, face::Face as View};""",
    "face.rs": "use crate::{Client, client::{kinds::{self, Kind}, spec::Spec}};",
    "client/mod.rs": "mod client; pub use self::client::Client;",
    "client/client.rs": "use super::spec::Spec; fn f<'a>(c: char) { c == '\"'; crate::low::pool::f(); }",
    "client/spec.rs": "//! use crate::face;\n/* crate::face::f() */ const A: &str = \"crate::face::f()\"; pub(in crate::client) struct Spec;",
    "client/kinds.rs": "use super::spec::Spec; #[cfg(test)] mod tests { use crate::{Client, View}; } mod inner { use super::super::spec::A; }",
    "low/mod.rs": "pub mod pool; pub mod slot;",
    "low/pool.rs": "#[cfg(test)] mod tests; mod part; use part::Part;",
    "low/pool/part.rs": "use super::Pool;",
    "low/pool/tests.rs": "use crate::Client;",
    "low/slot.rs": "use crate::low::pool::Pool;",
}
FACE, CLIENT, SPEC, LOW = '".  face" (line 1)', '"client  client" (line 2)', '"client  spec kinds" (line 3', '"low  pool slot" (line 4'
# What is written at the head of a file, and what the check must say.
PLANTED = (
    (
        "low/slot.rs",
        "use crate::{low::pool, client::{kinds::Kind, spec::Spec}};",
        f"low/slot.rs:1: use crate::client::spec::Spec goes up: {LOW} of the picture) knows nothing of {SPEC})",
    ),
    (
        "low/pool/part.rs",
        "\nfn f() { crate::Client::new() }",
        f"low/pool/part.rs:2: crate::Client::new goes up: {LOW} of the picture) knows nothing of {CLIENT}",
    ),
    (
        "client/spec.rs",
        '#[cfg(feature = "tls")] use super::super::View as Seen;',
        f"client/spec.rs:1: use super::super::View as Seen goes up: {SPEC} of the picture) knows nothing of {FACE}",
    ),
    (
        "low/pool.rs",
        "use super::slot::Slot;",
        "a circle of imports:\n  crate/src/low/pool.rs:1: use super::slot::Slot\n  crate/src/low/slot.rs:1: use crate::low::pool::Pool",
    ),
    ("client/mod.rs", "pub fn f() {}", "client/mod.rs: the picture has its folder, so it may hold declarations and re-exports alone"),
    ("low/more.rs", "", "low/more.rs: the picture in crate/src/lib.rs does not have this module"),
    ("lib.rs", "// ```text\n// .  face ghost\n// ```\n", "line 1 of the picture has ghost, which is no module"),
    ("lib.rs", "// ```text\n// .  face face\n// ```\n", "line 1 of the picture has face once more"),
    ("face.rs", "use crate::low;", "use crate::low ends at crate/src/low/mod.rs, which has no line in the picture"),
)


def check_itself() -> None:
    if found := failures("crate", HONEST):
        raise SystemExit("tests/layers.py finds mistakes where none are: " + "\n".join(found))
    for file, text, wanted in PLANTED:
        found = failures("crate", {**HONEST, file: text + HONEST.get(file, "")})
        if not any(wanted in failure for failure in found):
            raise SystemExit(f"tests/layers.py overlooks {text!r} in {file}: it says {found}, not {wanted!r}")


if __name__ == "__main__":
    check_itself()
    wrong = [failure for folder in sys.argv[1:] or CRATES for failure in check(folder)]
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    sys.exit(bool(wrong))
