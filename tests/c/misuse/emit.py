"""Writes the matrix in C: a caller for each function, the arguments, the cells. matrix.h has the types."""

ORDER = ("kind", "version", "path", "data", "length", "reserved")


def emit(matrix, values):
    """The text of the C file."""
    parts = ["/* Written by generate.py from zklock.h. */", '#include "matrix.h"', "#include <limits.h>"]
    parts.append(frees(matrix.header))
    parts += [stub(name, parameters) for name, parameters in matrix.header.callbacks.items()]
    parts += [caller(matrix, function) for function in matrix.header.functions]
    parts += [f'_Static_assert(sizeof({name}) < BLOCK_BYTES, "no room for it");' for name in matrix.header.structs]
    parts += [statuses(function) for function in matrix.header.functions]
    entries = [entry(matrix, function, values) for function in matrix.header.functions]
    parts.append(table("function", "functions", entries))
    parts.append(table("char *", "texts", [f'"{text}"' for text in matrix.texts]))
    parts.append("static const char half_a_mebibyte[512 * 1024 + 1];")
    parts += [array(at, writes) for at, writes in enumerate(matrix.arrays)]
    parts.append(table("zklock_write *", "arrays", [f"writes_{at}" for at in range(len(matrix.arrays))]))
    parts.append(table("cell", "cells", [cell(matrix, *given) for given in matrix.cells]))
    return "\n".join(parts) + "\n"


def frees(header):
    """Frees a handle of any kind."""
    cases = " ".join(f"case {name.removeprefix('zklock_').upper()}: {name}_free(handle); break;" for name in sorted(header.opaque))
    return f"void free_handle(kind kind, void *handle) {{ switch (kind) {{ {cases} case KINDS: break; }} }}"


def table(of, name, entries):
    """An array and its length."""
    is_pointer = of.endswith("*")
    declared = f"const {of}const {name}[]" if is_pointer else f"const {of} {name}[]"
    lines = ",\n    ".join(entries)
    return f"{declared} = {{\n    {lines},\n}};\nconst size_t {name}_count = sizeof {name} / sizeof *{name};\n"


def stub(name, parameters):
    """A callback that does nothing."""
    listed = ", ".join(f"{found.type} {found.name}" for found in parameters)
    ignored = " ".join(f"(void){found.name};" for found in parameters)
    return f"static void on_{name}({listed}) {{ {ignored} }}"


def caller(matrix, function):
    """Calls the function with values from a table."""
    given = []
    for at, parameter in enumerate(function.parameters):
        what, detail = matrix.kind(parameter)
        if what == "callback":
            given.append(f"values[{at}].pointer ? on_{detail} : NULL")
        elif what in ("handle", "text", "array", "locks", "clients", "names", "context", "out", "room"):
            given.append(f"values[{at}].pointer")
        else:
            given.append(f"({parameter.type})values[{at}].number")
    call = f"{function.name}({', '.join(given)})"
    if function.looks:
        safe = {"const char *": "!*it", "zklock_state": "it == ZKLOCK_STATE_LOST", "zklock_reason": "it == ZKLOCK_REASON_OTHER"}.get(function.returns, "!it")
        looks = f'forget_error(); {function.returns} it = {call}; zklock_status status = looked("{function.name}");'
        body = f"{looks} CHECK(status == ZKLOCK_OK || ({safe})); return (answer){{status, NULL}};"
        return f"static answer call_{function.name}(const value *values) {{ {body} }}"
    body = {
        "void": f"{call}; return (answer){{NOTHING, NULL}};",
        "const char *": f"return (answer){{NOTHING, {call}}};",
    }.get(function.returns, f"return (answer){{{call}, NULL}};")
    return f"static answer call_{function.name}(const value *values) {{ (void)values; {body} }}"


def statuses(function):
    """The statuses that the function lists."""
    listed = ", ".join(sorted(function.listed)) or "NOTHING"
    return f"static const int64_t listed_{function.name}[] = {{{listed}}};"


def entry(matrix, function, values):
    """The description of a function for the program."""
    outs = []
    for at, parameter in enumerate(function.parameters):
        what, kind = matrix.kind(parameter)
        # What looks at a handle writes a safe value in any case.
        if what == "out" and not function.looks:
            type_of = parameter.type.removesuffix("*").strip()
            outs.append(f"{{{at}, sizeof({type_of}), {kind}}}")
    panics, text = "ZKLOCK_INTERNAL", "NULL"
    if function.returns == "void":
        panics = "NOTHING"
    elif function.returns == "const char *" and not function.looks:
        panics, text = "NOTHING", values[function.name][1]
    elif not function.says_status:
        panics = values[function.name][1]
    says = int(function.says_status)
    listed = ", ".join(outs) or "{0, 0, KINDS}"
    kinds = [matrix.kind(parameter)[0] for parameter in function.parameters]
    waits = kinds.index("timeout") if "timeout" in kinds else -1
    known = f"listed_{function.name}, {max(len(function.listed), 1)}, {waits}"
    return f'{{"{function.name}", call_{function.name}, {says}, {{{listed}}}, {len(outs)}, {known}, {panics}, {text}}}'


def array(at, writes):
    """The writes, followed by an invalid one."""
    rows = ", ".join("{" + ", ".join(str(write[member]) for member in ORDER) + "}" for write in writes)
    return f"static const zklock_write writes_{at}[] = {{{rows}, {{0, 0, NULL, NULL, 0, {{0, 0}}}}}};"


def cell(matrix, function, what, place, arguments, wanted, text):
    """One cell."""
    at = matrix.header.functions.index(function)
    given = ", ".join(f"{{{source}, {number}}}" for source, number in arguments) or "{NULL_POINTER, 0}"
    quoted = what.replace("\\", "\\\\").replace('"', '\\"')
    return f'{{&functions[{at}], "{quoted}", {place}, {{{given}}}, {len(arguments)}, {wanted}, {text}}}'
