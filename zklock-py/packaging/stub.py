"""Writes the docstrings of the native module into its stub, where editors look for them. In the repository they stand once, in the
comments of the sources.

As a program it prints the stub with docstrings. Tests compare what is installed with the module.
"""

from __future__ import annotations

import ast
import pathlib
import re
import typing

# A class, the methods of a class, a method or a function, with its comment. See noun.rs for those of two classes, and what they have.
ITEM = re.compile(
    r"(?P<doc>(?:^ *///.*\n)*)(?:^ *#\[(?:(?!\]\n)[\s\S])*\]\n)*"
    r"^ {0,8}(?:pub\(crate\) )?(?:struct (?P<cls>\w+)|(?:impl )?(?P<of>\w+)(?:\((?P<has>[\w :,]+)\))? \{$|fn (?P<function>\w+))",
    re.MULTILINE,
)


PROJECT = pathlib.Path(__file__).resolve().parents[1]
# In a source distribution the crate has a folder of its own.
CRATE = next(folder for folder in (PROJECT, PROJECT / "zklock-py") if (folder / "src").exists())
STUB = PROJECT / "python/zklock/_zklock.pyi"


def whole() -> str:
    """The stub with docstrings."""
    return documented(STUB.read_text(encoding="utf-8"), docs(CRATE / "src"))


def docs(sources: pathlib.Path) -> dict[str, str]:
    """The docstrings in these sources, as ``Client`` or ``Client.close``."""
    found = {}
    for file in sorted(sources.glob("**/*.rs")):
        classes, of = ["", ""], [""]
        for item in ITEM.finditer(file.read_text(encoding="utf-8")):
            doc = "\n".join(line.strip()[3:].removeprefix(" ") for line in item["doc"].splitlines())
            if item["of"]:
                halves = {"both": classes[-2:], "blocking": classes[-2:-1], "asyncio": classes[-1:]}
                of = halves.get(item["of"], [item["of"]])
                if "aio" in (item["has"] or ""):
                    found.update({f"{one}.aio": "This object for asyncio." for one in of})
            elif item["cls"]:
                classes.append(item["cls"])
            if doc and (item["cls"] or item["function"]):
                found.update({item["cls"] or f"{one}.{item['function']}": doc for one in of})
    return found


def documented(stub: str, docs: typing.Mapping[str, str]) -> str:
    """A stub that has no docstrings, with these."""
    lines = stub.splitlines()
    for cls in reversed(ast.parse(stub).body):
        if not isinstance(cls, ast.ClassDef):
            continue
        native = cls.name.lstrip("_")
        for item in reversed(cls.body):
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and f"{native}.{item.name}" in docs:
                at = item.end_lineno
                lines[at - 1] = lines[at - 1].removesuffix(" ...")
                lines[at:at] = written(docs[f"{native}.{item.name}"], " " * 8)
        first = cls.body[0]
        at = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", []))]) - 1
        lines[at:at] = written(docs[native], " " * 4)
    return "\n".join(lines) + "\n"


def written(doc: str, indent: str) -> list[str]:
    """A docstring as it is written in a file."""
    if "\\" in doc or '"""' in doc:
        raise SystemExit(f"cannot be written as a docstring: {doc}")
    first, *rest = doc.splitlines()
    if not rest and not doc.endswith('"'):
        return [f'{indent}"""{doc}"""']
    return [f'{indent}"""{first}', *(indent + line if line else "" for line in rest), f'{indent}"""']


if __name__ == "__main__":
    print(whole(), end="")
