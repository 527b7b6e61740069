"""Parses include/zklock.h, in the form in which cbindgen writes it.

What it does not understand it refuses: a function that is left out would be one that nobody tests.
"""

import re
from dataclasses import dataclass


class NotUnderstood(Exception):
    """The header has a construct for which there is no rule."""


@dataclass
class Parameter:
    """One parameter of a function, or one member of a struct."""

    type: str
    name: str
    doc: str
    is_out: bool = False


@dataclass
class Function:
    """One function, with the facts from its documentation."""

    name: str
    returns: str
    parameters: list
    said: str
    """The text after @return."""
    own: set
    """The statuses in that text."""
    listed: set
    """These with the statuses of every function, and of the functions to which the text refers."""

    @property
    def looks(self):
        """Whether it returns what it sees of a handle. A status for its failure is then in its message."""
        return self.returns not in ("void", "zklock_status") and any("zklock_" in found.type for found in self.parameters)

    @property
    def says_status(self):
        """Whether a status comes of it."""
        return self.returns == "zklock_status" or self.looks


@dataclass
class Header:
    """Everything in the header that the rules need."""

    functions: list
    enums: dict
    structs: dict
    opaque: set
    callbacks: dict


COMMENT = r"/\*\*(?P<doc>(?:[^*]|\*(?!/))*)\*/\s*"


def read(path):
    """The header at a path."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    before, rest = split(text, 'extern "C" {\n#endif')
    functions, after = split(rest, "#ifdef __cplusplus\n}")
    if "zklock_" in re.sub(r"/[/*].*", "", after).replace("ZKLOCK_H", ""):
        raise NotUnderstood('something is declared after extern "C"')
    header = Header([], {}, {}, set(), {})
    read_types(before, header)
    read_functions(functions, header)
    resolve(header, of_every_function(before, header))
    return header


def of_every_function(text, header):
    """The statuses that the opening comment lists for every function."""
    _, chapter = split(text, " * Statuses of every function\n")
    listed = chapter.partition(" *\n * Three more")[0]
    statuses = set(re.findall(r"^ \* - (ZKLOCK_\w+): ", listed, flags=re.M))
    if not statuses or not statuses <= set(header.enums["zklock_status"]):
        raise NotUnderstood(f"the statuses of every function: {statuses}")
    return statuses


def split(text, mark):
    """The texts before and after a mark, which must occur once."""
    parts = text.split(mark)
    if len(parts) != 2:
        raise NotUnderstood(f"{mark!r} stands there {len(parts) - 1} times")
    return parts


def read_types(text, header):
    """Every typedef before the functions."""
    text = re.sub(r"\A/\*.*?\*/", "", text, flags=re.S)
    forms = {
        "enum": r"typedef enum (?P<name>\w+) ZKLOCK_INT32 \{(?P<body>[^}]*)\} (?P=name);",
        "struct": r"typedef struct \{(?P<body>[^}]*)\} (?P<name>\w+);",
        "opaque": r"typedef struct (?P<name>\w+) (?P=name);",
        "check": r"typedef char (?P<name>\w+)\[(?P<body>[^\]]*)\];",
        "callback": r"typedef void \(\*(?P<name>\w+)\)\((?P<body>[^()]*)\);",
    }
    found = 0
    for form, pattern in forms.items():
        for match in re.finditer(COMMENT + pattern, text):
            found += 1
            name = match["name"]
            if form == "enum":
                header.enums[name] = enum(name, match["body"])
            elif form == "struct":
                header.structs[name] = members(name, match["body"])
            elif form == "opaque":
                header.opaque.add(name)
            elif form == "callback":
                header.callbacks[name] = [parameter(part) for part in match["body"].split(",")]
    typedefs = len(re.findall(r"^\s*typedef\b", text, flags=re.M))
    if found != typedefs:
        raise NotUnderstood(f"{typedefs} typedefs, of which {found} could be read")


def enum(name, body):
    """The names of an enum with their numbers."""
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    parts = [part.strip() for part in body.split(",") if part.strip()]
    entries = [re.fullmatch(r"(ZKLOCK_\w+) = (-?\d+)", part) for part in parts]
    if not all(entries):
        raise NotUnderstood(f"an entry of {name}: {parts}")
    return {entry[1]: int(entry[2]) for entry in entries}


def members(name, body):
    """The members of a struct."""
    found = list(re.finditer(COMMENT + r"(?P<declaration>[^;/]*);", body))
    if len(found) != body.count(";") - sum(match["doc"].count(";") for match in found):
        raise NotUnderstood(f"a member of {name}")
    result = [parameter(match["declaration"]) for match in found]
    for member, match in zip(result, found):
        member.doc = plain(match["doc"])
    return result


def read_functions(text, header):
    """Parses the prototypes. There must be nothing else."""
    text = re.sub(r"\A // __cplusplus", "", text)
    text = re.sub(r"^/\* ==== [\w ]+ ==== \*/$", "", text, flags=re.M)
    at = 0
    pattern = re.compile(r"\s*" + COMMENT + r"(?P<returns>[^;()]*?)(?P<name>zklock_\w+)\((?P<list>[^()]*)\);")
    while match := pattern.match(text, at):
        header.functions.append(function(match, header))
        at = match.end()
    if text[at:].strip():
        raise NotUnderstood(f"not a prototype with its comment: {text[at:].strip()[:200]!r}")


def function(match, header):
    """One prototype, checked against its comment."""
    name, doc = match["name"], match["doc"]
    described, said = describe(doc)
    listed = " ".join(match["list"].split())
    parameters = [] if listed == "void" else [parameter(part) for part in listed.split(",")]
    if [found.name for found in parameters] != [described_name for described_name, _, _ in described]:
        raise NotUnderstood(f"{name}: the parameters and their @param differ")
    for found, (_, is_out, text) in zip(parameters, described):
        found.is_out, found.doc = is_out, text
    outs = [found.is_out for found in parameters]
    if outs != sorted(outs):
        raise NotUnderstood(f"{name}: results come last")
    statuses = set(re.findall(r"\bZKLOCK_\w+", said)) & set(header.enums["zklock_status"])
    returns = " ".join(match["returns"].removeprefix("ZKLOCK_NODISCARD").split())
    return Function(name, returns, parameters, said, statuses, set(statuses))


def describe(doc):
    """Returns each @param of a comment as (name, whether it is [out], text), and the text after @return."""
    parts = re.split(r"^ \* @", doc, flags=re.M)
    described, said = [], ""
    for part in parts[1:]:
        text = plain(part)
        if entry := re.fullmatch(r"param(\[out\])? (\w+) (.*)", text):
            described.append((entry[2], bool(entry[1]), entry[3]))
        elif text.startswith("return "):
            said = text.removeprefix("return ")
        else:
            raise NotUnderstood(f"@{text}")
    return described, said


def plain(comment):
    """The text of a comment in one line."""
    return " ".join(re.sub(r"^ *\*", "", comment, flags=re.M).split())


def parameter(declaration):
    """A type and a name."""
    match = re.fullmatch(r"((?:const )?\w+ \*{0,2}(?:const \*)?)(\w+)(\[\d+\])?", " ".join(declaration.split()))
    if not match:
        raise NotUnderstood(f"a declaration: {declaration!r}")
    return Parameter(match[1].strip() + (match[3] or ""), match[2], "")


def resolve(header, of_every):
    """Adds the statuses of every function, and of the functions to which a list refers."""
    by_name = {found.name: found for found in header.functions}
    for found in header.functions:
        if found.says_status:
            found.listed |= of_every | {"ZKLOCK_OK"}
        for other in re.findall(r"zklock_\w+", "".join(re.findall(r"everything that ([\w, ]+) returns?", found.said))):
            if other not in by_name:
                raise NotUnderstood(f"{found.name} refers to {other}, which is not there")
            found.listed |= by_name[other].own
