"""The reference of the C library, from zklock.h."""

from __future__ import annotations

import pathlib
import re
import typing

import comments

COMMENT = r"/\*\*(?:[^*]|\*(?!/))*\*/"
PARAMETER = re.compile(r"^@param(\[out\])? (\w+) ", re.MULTILINE)


class Entry(typing.NamedTuple):
    """Something in the header with a comment."""

    name: str
    comment: str
    declaration: str


def declared(header: str, begin: int) -> str:
    """The declaration that begins there: up to a semicolon outside of braces, or for macros the lines of `#define`."""
    if header.startswith("#", begin):
        # Macros that depend on the compiler are the header's own.
        macros = re.compile(r"(?:#define .*\n)+").match(header, begin)
        return macros[0] if macros else ""
    depth = 0
    for found in re.compile(rf"{COMMENT}|[{{}};]").finditer(header, begin):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if found[0] == ";" and not depth:
            return header[begin : found.end()]
    raise ValueError(f"no end of {header[begin : begin + 100]}")


def name_of(declaration: str) -> str:
    """`NAME(` of a function or callback, `} NAME;` of a type, or `#define NAME`."""
    if declaration.startswith("#"):
        found = re.search(r"#define (\w+)", declaration)
    elif declaration.startswith("typedef") and "(*" not in declaration:
        found = re.search(r"(\w+)(?:\[.*\])?;$", declaration)
    else:
        found = re.search(r"(zklock_\w+)\)?\(", declaration)
    assert found, declaration
    return found[1]


def entries(header: str) -> list[Entry | str]:
    """What the header declares, and the names of its chapters, in order."""
    found: list[Entry | str] = []
    at = header.index("#define ZKLOCK_H\n")
    while part := re.compile(rf"^/\* ==== (.*) ==== \*/|^({COMMENT})\n", re.MULTILINE).search(header, at):
        at = part.end()
        if part[1]:
            found.append(part[1])
            continue
        declaration = declared(header, at)
        at += len(declaration)
        if declaration:
            declaration = declaration.replace("ZKLOCK_NODISCARD\n", "").replace(" ZKLOCK_INT32", "").strip()
            found.append(Entry(name_of(declaration), comments.uncommented(part[2]), declaration))
    return found


def members(entry: Entry) -> list[Entry]:
    """The values of an enum or the members of a struct."""
    body = entry.declaration.partition("{")[2].rpartition("}")[0]
    made = []
    for comment, line in re.findall(rf"({COMMENT})\s*([^,;]+)[,;]", body):
        name = re.search(r"(\w+)(?:\[\w*\])?(?: = .*)?$", line)
        assert name, line
        made.append(Entry(name[1], comments.uncommented(comment), line))
    return made


def tagged(text: str) -> tuple[str, list[str], list[str]]:
    """The prose of a comment, its parameters, and what the function returns, each as Markdown's items."""
    prose, _, tags = text.partition("\n@")
    if text.startswith("@"):
        prose, tags = "", text[1:]
    tags, _, returned = f"@{tags}".partition("@return ")
    parts = PARAMETER.split(tags)
    parameters = [f"- `{name}`: {' '.join(about.split())}" for name, about in zip(parts[2::3], parts[3::3])]
    statuses = [f"- {status}" for status in re.split("; ", " ".join(returned.split()).removesuffix(".")) if status]
    return prose.strip(), parameters, statuses


class Page(typing.NamedTuple):
    """The reference, and where each name is explained in it."""

    markdown: str
    anchors: dict[str, str]


def page(root: pathlib.Path) -> Page:
    header = (root / "include/zklock.h").read_text()
    everything = entries(header)
    known = [entry for entry in everything if isinstance(entry, Entry) and "have_32_bits" not in entry.name]
    macros = [name for entry in known for name in re.findall(r"#define (\w+)", entry.declaration)]
    values = {member.name for entry in known if entry.declaration.startswith("typedef enum") for member in members(entry)}
    anchors = {name: f"#{name}" for name in {entry.name for entry in known} | set(macros) | values}

    def link(code: str) -> str | None:
        return anchors.get(code.removesuffix("()"))

    def shown(text: str) -> str:
        return comments.markdown(text, link, "c", level=2)

    def section(entry: Entry) -> str:
        prose, parameters, statuses = tagged(entry.comment)
        parts = [f"### {entry.name} {{ #{entry.name} }}", f"```c\n{bare(entry)}\n```", shown(prose)]
        inner = members(entry) if "{" in entry.declaration else []
        # Values have anchors of their own: statuses are looked up.
        marked = (f'<span id="{it.name}"></span>' if it.name in values else "" for it in inner)
        parts += [f"- {mark}`{it.declaration}`: {shown(' '.join(it.comment.split()))}" for mark, it in zip(marked, inner)]
        parts += ["**Parameters**\n", *map(shown, parameters)] if parameters else []
        parts += ["**Returns**\n", *map(shown, statuses)] if statuses else []
        if entry.name == "zklock_status":
            parts.append("[Errors](../errors.md) says more about each.")
        others = [name for name in re.findall(r"#define (\w+)", entry.declaration) if name != entry.name]
        return "".join(f'<span id="{name}"></span>\n' for name in others) + spaced(parts)

    top = comments.uncommented(header[: header.index("*/") + 2])
    # The name of the file, and that it is generated.
    top = top.split("\n\n", 2)[2]
    made = ["# C", "The functions and types of `zklock.h`. `man zklock_acquire` shows the same.", shown(top), "## Types and macros"]
    for entry in everything:
        if isinstance(entry, str):
            made.append(f"## Functions: {entry.lower()}")
        elif entry in known:
            made.append(section(entry))
    return Page("\n\n".join(made) + "\n", anchors)


def bare(entry: Entry) -> str:
    """A declaration without comments, which are shown below it, and with a line for each parameter if it is long."""
    text = re.sub(rf"\s*{COMMENT}", "", entry.declaration)
    head, _, parameters = text.partition("(")
    if "{" in text or max(map(len, text.split("\n"))) < 72:
        return text
    return f"{head}(" + re.sub(r",\s+", ",\n" + " " * (len(head) + 1), parameters)


def spaced(parts: list[str]) -> str:
    """Items of a list follow each other, all else has an empty line between."""
    text = ""
    for part in parts:
        text += ("\n" if part.startswith("- ") and text.rsplit("\n", 1)[-1].startswith("- ") else "\n\n") + part
    return text.strip("\n")
