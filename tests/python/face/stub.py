"""Compares the installed stub with the native module, whose docstrings, names, parameters and defaults it repeats. Its types are
its own. As a program it says where they differ, and fails then.
"""

from __future__ import annotations

import ast
import inspect
import pathlib
import sys
import typing

from zklock import _zklock

STUB = pathlib.Path(_zklock.__file__).with_name("_zklock.pyi")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def native_classes() -> dict[str, type]:
    """The public classes and their private bases, by their names in the stub."""
    public = [value for value in vars(_zklock).values() if isinstance(value, type)]
    every = {base.__name__: base for cls in public for base in cls.__mro__ if base is not object}
    return {name if cls in public else f"_{name}": cls for name, cls in every.items()}


def is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


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
    """Public members that only one side has, other docstrings, and functions with other parameters, another order or other defaults."""
    classes = native_classes()
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        native = classes[node.name]
        if ast.get_docstring(node) != inspect.getdoc(native):
            yield f"{node.name}: another docstring"
        functions = [item for item in node.body if isinstance(item, FUNCTIONS)]
        in_stub = {item.name for item in functions if not item.name.startswith("_")}
        in_module = {name for name in vars(native) if not name.startswith("_")}
        yield from (f"{node.name}.{name}: only one side has it" for name in sorted(in_stub ^ in_module))
        for item in functions:
            member = inspect.getattr_static(native, item.name, None)
            member = getattr(member, "__func__", member)
            # Python itself documents special methods.
            if not is_special(item.name) and ast.get_docstring(item) != inspect.getdoc(member):
                yield f"{node.name}.{item.name}: another docstring"
            # For overloads see stubtest, and the interpreter knows how to call other special methods.
            decorators = {one.id for one in item.decorator_list if isinstance(one, ast.Name)}
            if decorators & {"overload", "property"} or is_special(item.name) and item.name not in ("__new__", "__exit__"):
                continue
            own = native if item.name == "__new__" else member
            if own is None:
                continue
            there, here = native_parameters(inspect.signature(own)), stub_parameters(item)
            if there != here:
                yield f"{node.name}.{item.name}: the module has {there}, the stub {here}"


def main() -> int:
    different = list(differences(STUB.read_text()))
    print(*different, sep="\n", end="\n" if different else "")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
