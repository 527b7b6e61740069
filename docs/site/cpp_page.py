"""The reference of the classes for C++, from zklock.hpp and the files that it includes."""

from __future__ import annotations

import pathlib
import re
import typing

import comments

TOKEN = re.compile(
    r"(?P<comment>/\*\*(?:[^*]|\*(?!/))*\*/)|(?P<behind>///<.*)|(?P<skipped>//.*|/\*(?:[^*]|\*(?!/))*\*/|^#.*)"
    r"|(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<end>[{};])",
    re.MULTILINE,
)
# These classes come first: most programs need no others.
START = {"client", "error", "hold", "job", "lock"}
TYPE = re.compile(r"(?:^|\n|> )\s*(?:class|struct|enum class) (?:\[\[nodiscard\]\] )?(\w+)")


class Entry:
    """A class or one of its members, with all overloads."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.declarations: list[tuple[str, str]] = []
        self.members: dict[str, Entry] = {}
        self.values = ""
        self.fields: list[str] = []

    def member(self, name: str) -> Entry:
        return self.members.setdefault(name, Entry(name))


def anchor(within: str, member: str) -> str:
    return f"{within}.{member.replace('~', 'destructor-')}"


def named(declaration: str) -> str:
    """The name of a function, variable or alias."""
    alias = re.search(r"using (\w+) =", declaration)
    function = re.search(r"(operator[^\w\s(]+|~?\w+)\(", declaration)
    variable = re.search(r"(\w+)(?: = .*)?$", declaration)
    found = alias or function or variable
    assert found, declaration
    return found[1]


def balanced(text: str, at: int) -> int:
    """The end of the block that begins before this place."""
    depth = 1
    for found in TOKEN.finditer(text, at):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    raise ValueError(f"no end of {text[at : at + 100]}")


def read(text: str, at: int, into: Entry, is_public: bool = True) -> int:
    """Reads a block, and returns where it ends."""
    statement, comment = "", ""
    last: Entry | None = None
    while found := TOKEN.search(text, at):
        statement += text[at : found.start()]
        at = found.end()
        if found["comment"]:
            comment = comments.uncommented(found[0])
        elif found["behind"] and last:
            last.declarations[-1] = (last.declarations[-1][0], found[0].removeprefix("///<").strip())
        elif found["string"]:
            statement += found[0]
        if not found["end"]:
            continue
        for access in re.findall(r"\b(public|private|protected):(?!:)", statement):
            is_public = access == "public"
        head = " ".join(re.sub(r"\b(?:public|private|protected):(?!:)", "", statement).split())
        if found[0] == "}":
            return at
        if not head:
            continue
        statement, said, comment, last = "", comment, "", None
        kind = TYPE.search(head)
        if found[0] == "{" and head.startswith("namespace"):
            at = read(text, at, into) if head == "namespace zklock" else balanced(text, at)
        elif found[0] == "{" and kind:
            entry = into.member(kind[1]) if is_public else Entry("")
            begin = at
            at = balanced(text, at) if head.startswith("enum") else read(text, at, entry, "class " not in head)
            entry.values = text[begin : at - 1] if head.startswith("enum") else ""
            # What is inherited from `detail` is not for users.
            entry.declarations.append((re.sub(r"\s:\s(?:public detail::|std::int32).*", "", head), said))
            last = entry
        else:
            if found[0] == "{":
                at = balanced(text, at)
            # What a constructor does with its arguments is its own affair.
            head = re.split(r"\s:\s", head)[0].removeprefix("inline ")
            if is_public and said:
                into.member(named(head)).declarations.append((head, said))
            elif is_public and re.fullmatch(r"[\w:<>, ]+", head) and not head.startswith("using "):
                into.fields.append(f"    {head};")
    return at


def page(root: pathlib.Path, c_anchors: dict[str, str]) -> str:
    top = (root / "include/zklock.hpp").read_text()
    everything = Entry("zklock")
    for file in re.findall(r'#include "(zklock/.*)"', top):
        read((root / "include" / file).read_text(), 0, everything)
    anchors = {f"{entry.name}::{member}": f"#{anchor(entry.name, member)}" for entry in everything.members.values() for member in entry.members}
    anchors |= {name: f"#{name}" for name in everything.members}

    def link(code: str, within: str = "") -> str | None:
        code = code.removesuffix("()").removeprefix("zklock::")
        if code in c_anchors:
            return f"c.md{c_anchors[code]}"
        return anchors.get(f"{within}::{code}") or anchors.get(code)

    def shown(entry: Entry, within: str) -> list[str]:
        parts = []
        for declaration, comment in entry.declarations:
            declaration = declaration.replace("detail::span", "std::chrono::duration<...>").replace("detail::borrowed", "lock")
            # Those of a struct that need no comment.
            declaration = "\n".join([f"{declaration} {{", *entry.fields, "};"]) if entry.fields else declaration
            parts += [f"```cpp\n{declaration}\n```", comments.markdown(comment, lambda code: link(code, within), "cpp")]
        values = re.findall(r"(\w+) = (\w+),(?: *///< (.*))?", entry.values)
        items = [f"- `{name}`: {f'{about} ' if about else ''}In C, {comments.inline(in_c, link)}." for name, in_c, about in values]
        return [*parts, "\n".join(items)]

    text = comments.uncommented(top[: top.index("*/") + 2]).split("\n\n", 1)[1]
    made = ["# C++", "The classes of `zklock.hpp`, all in the namespace `zklock`.", comments.markdown(text, link, "cpp", level=2), "## Classes and functions"]
    for entry in sorted(everything.members.values(), key=lambda entry: (entry.name not in START, entry.name)):
        made += [f"### {entry.name} {{ #{entry.name} }}", *shown(entry, entry.name)]
        for member in entry.members.values():
            made += [f"#### {entry.name}::{member.name} {{ #{anchor(entry.name, member.name)} }}", *shown(member, entry.name)]
    return "\n\n".join(made) + "\n"
