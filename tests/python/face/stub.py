"""Compares the stub with the native module, whose docstrings, names, parameters and defaults it repeats. Its types are its own.

python stub.py            says where they differ, and fails then
python stub.py --write    writes the docstrings of the native module into the stub
"""

from __future__ import annotations

import ast
import difflib
import inspect
import pathlib
import sys
import typing

from zklock import _zklock

STUB = pathlib.Path(__file__).parents[3] / "zklock-py/python/zklock/_zklock.pyi"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def native_classes() -> dict[str, type]:
    """The public classes and their private bases, by their names in the stub."""
    public = [value for value in vars(_zklock).values() if isinstance(value, type)]
    every = {base.__name__: base for cls in public for base in cls.__mro__ if base is not object}
    return {name if cls in public else f"_{name}": cls for name, cls in every.items()}


def is_special(name: str) -> bool:
    """Python itself documents such methods."""
    return name.startswith("__") and name.endswith("__")


class Edit(typing.NamedTuple):
    """Lines of the stub, counted from 1, and their replacement. To insert is to replace no lines."""

    first: int
    last: int
    lines: list[str]


def edits(source: str) -> typing.Iterator[Edit]:
    """From the first to the last."""
    lines = source.splitlines()
    classes = native_classes()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            native = classes.pop(node.name)
            yield edit(lines, node, native.__doc__)
            for item in node.body:
                if isinstance(item, FUNCTIONS) and not is_special(item.name):
                    own = vars(native)[item.name]
                    # The documentation of a static method is that of its function.
                    yield edit(lines, item, getattr(own, "__func__", own).__doc__)
    if classes:
        raise SystemExit(f"not in the stub: {', '.join(classes)}")


def edit(lines: list[str], node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, doc: str | None) -> Edit:
    """Gives a class or a function this docstring."""
    first = node.body[0]
    indent = " " * (node.col_offset + 4)
    written = written_as(doc, indent) if doc else []
    has_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.value.value is not ...
    assert first.end_lineno is not None
    if has_doc:
        is_empty = not written and len(node.body) == 1
        return Edit(first.lineno, first.end_lineno, [f"{indent}..."] if is_empty else written)
    if isinstance(node, ast.ClassDef):
        begin = first.decorator_list[0].lineno if isinstance(first, FUNCTIONS) and first.decorator_list else None
        begin = begin or first.lineno
        return Edit(begin, begin - 1, written)
    # `def …: ...`, in which the dots are replaced.
    line = lines[first.lineno - 1]
    if not written:
        return Edit(first.lineno, first.lineno, [line])
    head = line[: first.col_offset].rstrip()
    return Edit(first.lineno, first.end_lineno, ([head] if head else []) + written)


def written_as(doc: str, indent: str) -> list[str]:
    """A docstring as it is written in a file."""
    if "\\" in doc or '"""' in doc:
        raise SystemExit(f"cannot be written as a docstring: {doc}")
    lines = doc.splitlines()
    if len(lines) == 1 and not doc.endswith('"'):
        return [f'{indent}"""{doc}"""']
    text = [f'{indent}"""{lines[0]}', *(indent + line if line else "" for line in lines[1:])]
    return [*text, f'{indent}"""']


def filled(source: str) -> str:
    """The stub with the docstrings of the native module."""
    lines = source.splitlines()
    for first, last, new in reversed(list(edits(source))):
        lines[first - 1 : last] = new
    return "\n".join(lines) + "\n"


Parameter = tuple[str, inspect._ParameterKind, object]


def native_parameters(signature: inspect.Signature) -> list[Parameter]:
    return [(one.name, one.kind, one.default) for one in signature.parameters.values() if one.name != "self"]


def stub_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Parameter]:
    given, empty = node.args, inspect.Parameter.empty

    def value(default: ast.expr | None) -> object:
        return empty if default is None else ast.literal_eval(default)

    places: list[tuple[str, inspect._ParameterKind]] = [(one.arg, inspect.Parameter.POSITIONAL_ONLY) for one in given.posonlyargs]
    places += [(one.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD) for one in given.args]
    defaults: list[object] = [empty] * (len(places) - len(given.defaults)) + [value(one) for one in given.defaults]
    found: list[Parameter] = [(name, kind, default) for (name, kind), default in zip(places, defaults)]
    found += [
        (one.arg, inspect.Parameter.KEYWORD_ONLY, value(default)) for one, default in zip(given.kwonlyargs, given.kw_defaults)
    ]
    return [one for one in found if one[0] not in ("self", "cls")]


def differences(source: str) -> typing.Iterator[str]:
    """Public members that only one side has, and functions with other parameters, another order or other defaults."""
    classes = native_classes()
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        native = classes[node.name]
        functions = [item for item in node.body if isinstance(item, FUNCTIONS)]
        in_stub = {item.name for item in functions if not item.name.startswith("_")}
        in_module = {name for name in vars(native) if not name.startswith("_")}
        yield from (f"{node.name}.{name}: only one side has it" for name in sorted(in_stub ^ in_module))
        for item in functions:
            # For overloads see stubtest, and the interpreter knows how to call other special methods.
            decorators = {one.id for one in item.decorator_list if isinstance(one, ast.Name)}
            if decorators & {"overload", "property"} or is_special(item.name) and item.name not in ("__new__", "__exit__"):
                continue
            own = native if item.name == "__new__" else inspect.getattr_static(native, item.name, None)
            if own is None:
                continue
            there, here = native_parameters(inspect.signature(getattr(own, "__func__", own))), stub_parameters(item)
            if there != here:
                yield f"{node.name}.{item.name}: the module has {there}, the stub {here}"


def main() -> int:
    source = STUB.read_text()
    different = list(differences(source))
    if different:
        print(*different, sep="\n")
        return 1
    wanted = filled(source)
    if sys.argv[1:] == ["--write"]:
        STUB.write_text(wanted)
    elif wanted != source:
        difference = difflib.unified_diff(source.splitlines(), wanted.splitlines(), "the stub", "the module", lineterm="")
        print(*difference, sep="\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
