"""The reference of the Python package, from the stub of the native module and the pure modules."""

from __future__ import annotations

import ast
import pathlib
import re
import runpy
import textwrap
import typing

MODULES = ["zklock", "zklock.fence", "zklock.testing", "zklock.prometheus", "zklock.pytest_plugin"]
Definition = typing.Union[ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef]


class Source:
    """The modules, each read once."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.read: dict[str, ast.Module] = {}

    def module(self, name: str) -> ast.Module:
        if name not in self.read:
            path = self.folder / name.replace(".", "/")
            files = [path.with_suffix(".pyi"), path.with_suffix(".py"), path / "__init__.py"]
            file = next(file for file in files if file.exists())
            # The stub, with its docstrings.
            program = self.folder.parent / "packaging/stub.py"
            self.read[name] = ast.parse(runpy.run_path(str(program))["whole"]() if file.suffix == ".pyi" else file.read_text())
        return self.read[name]

    def public(self, module: str) -> list[str]:
        """`__all__`, or for a module without one what is defined there."""
        tree = self.module(module)
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return [name for name in ast.literal_eval(node.value) if not name.startswith("__")]
        return [node.name for node in tree.body if isinstance(node, typing.get_args(Definition)) and not node.name.startswith("_")]

    def definitions(self, module: str, name: str) -> tuple[str, list[Definition]]:
        """Where a name is defined, through imports; several for overloads."""
        tree = self.module(module)
        found = [node for node in tree.body if isinstance(node, typing.get_args(Definition)) and node.name == name]
        if found:
            return module, found
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
                is_package = (self.folder / module.replace(".", "/")).is_dir()
                parts = module.split(".")[: None if is_package and node.level == 1 else -1]
                return self.definitions(".".join([*parts, node.module or ""]), name)
        raise LookupError(f"{module}.{name}")

    def written_out(self, module: str, signature: str) -> str:
        """Names that only the stub has are replaced by what they mean."""
        for node in self.module(module).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.startswith("_"):
                name, value = node.targets[0].id, ast.unparse(node.value)
                meaning = name.lstrip("_").removeprefix("Any") if value.startswith(("TypeVar", "ParamSpec")) else value
                signature = re.sub(rf"\b{name}\b", meaning, signature)
        return re.sub(r"\b_Base(Lock|Client)\b", r"\1", signature)


class Member(typing.NamedTuple):
    """A documented member of a class."""

    owner: str  # the class or private base that has it
    signatures: list[str]
    docstring: str
    is_method: bool


def place(module: str, name: str) -> tuple[int, str, bool]:
    """For the order: what is for asyncio comes behind what it is like."""
    like = re.sub("^(Async|Base)", "", name)
    return MODULES.index(module), like, name != like


def signature(node: Definition) -> str:
    """The head of a function, with a line for each parameter if it is long."""
    assert not isinstance(node, ast.ClassDef)
    head = f"{'async ' if isinstance(node, ast.AsyncFunctionDef) else ''}def {node.name}"
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    parameters = re.sub(r"^(self|cls)(, /)?(, |$)", "", ast.unparse(node.args))
    if any(ast.unparse(mark) == "property" for mark in node.decorator_list):
        return f"{node.name}: {ast.unparse(node.returns) if node.returns else 'Any'}"
    marks = "".join(f"@{name}\n" for mark in node.decorator_list if (name := ast.unparse(mark)) in ("staticmethod", "classmethod"))
    # Parameters end where no bracket of a type is open.
    parts, depth = [""], 0
    for character in parameters:
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    parts = [re.sub(r"^(\w+: [^=]*)=", r"\1 = ", part.strip()) for part in parts if part]
    whole = f"{marks}{head}({', '.join(parts)}){result}"
    lines = "".join(f"    {part},\n" for part in parts)
    return whole if len(whole) < 100 else f"{marks}{head}(\n{lines}){result}"


def prose(docstring: str, link: typing.Callable[[str], str | None]) -> str:
    """A docstring as Markdown: examples and indented code are fenced, and names lead to where they are explained."""

    def marked(found: re.Match[str]) -> str:
        target = link(found[1])
        return f"[`{found[1]}`]({target})" if target else f"`{found[1]}`"

    made = []
    for part in re.split(r"\n\n+", docstring):
        if part.startswith(">>>"):
            made.append(f"```pycon\n{part}\n```")
        elif part.startswith("    "):
            made.append(f"```\n{textwrap.dedent(part)}\n```")
        else:
            made.append(re.sub(r"``?([^`]+)``?", marked, re.sub("::$", ":", part)))
    # Code with empty lines in it is one block.
    return "\n\n".join(made).replace("\n```\n\n```\n", "\n\n")


def page(folder: pathlib.Path) -> str:
    source = Source(folder)
    places = {(module, name): source.definitions(module, name) for module in MODULES for name in source.public(module)}
    anchors: set[str] = set()
    explained: dict[tuple[str, str], str] = {}

    def code(module: str, heads: list[str]) -> str:
        return "```python\n" + source.written_out(module, "\n".join(heads)) + "\n```"

    def private_bases(module: str, node: ast.ClassDef) -> list[ast.ClassDef]:
        """Those whose methods a class has, unless another class has shown them."""
        names = [ast.unparse(base).partition("[")[0] for base in node.bases]
        parents = [source.definitions(module, name)[1][0] for name in names if name.startswith("_Base")]
        return [parent for parent in parents if isinstance(parent, ast.ClassDef) and not any(owner == parent.name for owner, _ in explained)]

    def body_of(module: str, node: ast.ClassDef) -> list[tuple[str, ast.stmt]]:
        """The members, with those of private bases."""
        members = []
        for base in node.bases:
            name = ast.unparse(base).partition("[")[0]
            if name.lstrip("_").startswith("Base"):
                where, (parent, *_) = source.definitions(module, name)
                assert isinstance(parent, ast.ClassDef)
                members += [(name, member) for _, member in body_of(where, parent)]
        return members + [(node.name, member) for member in node.body]

    def members(module: str, node: ast.ClassDef) -> dict[str, Member]:
        found: dict[str, Member] = {}
        body = body_of(module, node)
        for at, (base, member) in enumerate(body):
            if isinstance(member, typing.get_args(Definition)) and not isinstance(member, ast.ClassDef):
                said = ast.get_docstring(member) or ""
                if member.name.startswith("_") or ("overload" not in map(ast.unparse, member.decorator_list) and not said):
                    continue
                before = found.get(member.name, Member(base, [], "", True))
                found[member.name] = Member(base, [*before.signatures, signature(member)], said or before.docstring, True)
            elif isinstance(member, (ast.Assign, ast.AnnAssign)):
                target = member.target if isinstance(member, ast.AnnAssign) else member.targets[0]
                after = body[at + 1][1] if at + 1 < len(body) else None
                said = str(after.value.value) if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
                name = ast.unparse(target)
                if not name.startswith("_") and (said or isinstance(member, ast.Assign)):
                    found[name] = Member(base, [ast.unparse(member)], " ".join(said.split()), False)
        return found

    sections: list[tuple[str, str, ast.ClassDef | None, list[Definition]]] = []
    for (module, name), (where, nodes) in sorted(places.items(), key=lambda it: place(*it[0])):
        anchors.add(f"{module}.{name}")
        cls = nodes[0] if isinstance(nodes[0], ast.ClassDef) else None
        if cls:
            anchors |= {f"{module}.{name}.{member}" for member in members(where, cls)}
        sections.append((module, where, cls, nodes))

    def link(code: str, within: str = "", module: str = "zklock") -> str | None:
        name = re.sub(r"\(.*\)$", "", code).removeprefix("@").removeprefix("zk.")
        for full in (f"{module}.{within}.{name}", f"{module}.{name}", f"zklock.{name}", name):
            if full in anchors:
                return f"#{full}"
        return None

    made = ["# Python"]
    for module in MODULES:
        said = ast.get_docstring(source.module(module)) or ""
        made += [f"## {module} {{ #{module} }}", prose(said, lambda it: link(it, module=module))]
        for of, where, node, nodes in sections:
            if of != module:
                continue
            name = nodes[0].name
            full = f"{module}.{name}"
            said = next(filter(None, map(ast.get_docstring, nodes)), "")
            made.append(f"### {name} {{ #{full} }}")
            if node is None:
                overloads = [it for it in nodes if "overload" in map(ast.unparse, it.decorator_list)] or nodes
                made += [code(where, [signature(it) for it in overloads]), prose(said, lambda it: link(it, module=module))]
                continue
            bases = [ast.unparse(base) for base in node.bases]
            said += "".join(f"\n\n{ast.get_docstring(parent)}" for parent in private_bases(where, node))
            shown = ", ".join(base for base in bases if not re.match(r"_|typing\.|Generic|BaseHold|BaseGuarded", base))
            makers = [it for it in node.body if isinstance(it, ast.FunctionDef) and it.name in ("__new__", "__init__")]
            heads = [re.sub(r"\)(?: -> .*)?$", ")", signature(it)).replace(f"def {it.name}", f"class {name}") for it in makers]
            made.append(code(where, heads or [f"class {name}({shown})" if shown else f"class {name}"]))
            made.append(prose(said, lambda it: link(it, name, module)))
            if name == "Error":
                made.append("[Errors](../errors.md) says more about each.")
            values, elsewhere = [], []
            for member, it in members(where, node).items():
                first = explained.setdefault((it.owner, member), name)
                if first != name:
                    elsewhere.append(f'<span id="{full}.{member}"></span>[`{member}`](#{module}.{first}.{member})')
                elif it.is_method:
                    made += [f"#### {name}.{member} {{ #{full}.{member} }}", code(where, it.signatures)]
                    made.append(prose(it.docstring, lambda it: link(it, name, module)))
                else:
                    text = f": {prose(it.docstring, lambda it: link(it, name, module))}" if it.docstring else ""
                    values.append(f'- <span id="{full}.{member}"></span>`{it.signatures[0]}`{text}')
            made.append("\n".join(values))
            if elsewhere:
                made.append(f"Explained above: {', '.join(elsewhere)}.")
    return "\n\n".join(made) + "\n"
