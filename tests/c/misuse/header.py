"""What include/zklock.h says of its functions and types, from the entries that docs/site finds in it.

What it does not understand it refuses. A function that is left out is one that the library exports all the same: `run` compares them.
"""

import pathlib
import re
import sys
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "docs/site"))
from c_page import Entry, entries, members


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


def read(path):
    """The header at a path."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    header = Header([], {}, {}, set(), {})
    for entry in entries(text):
        if isinstance(entry, Entry):
            take(header, entry)
    resolve(header, of_every_function(text, header))
    return header


def of_every_function(text, header):
    """The statuses that the opening comment lists for every function."""
    listed = text.partition(" * Statuses of every function\n")[2].partition(" *\n * Three more")[0]
    statuses = set(re.findall(r"^ \* - (ZKLOCK_\w+): ", listed, flags=re.M))
    if not statuses or not statuses <= set(header.enums["zklock_status"]):
        raise NotUnderstood(f"the statuses of every function: {statuses}")
    return statuses


def take(header, entry):
    """Notes a type or a function."""
    name, declaration = entry.name, " ".join(entry.declaration.split())
    if declaration.startswith("typedef enum "):
        header.enums[name] = {key: int(number) for key, number in re.findall(r"(ZKLOCK_\w+) = (-?\d+)", declaration)}
    elif declaration.startswith("typedef struct {"):
        header.structs[name] = [parameter(member.declaration) for member in members(entry)]
    elif declaration == f"typedef struct {name} {name};":
        header.opaque.add(name)
    elif match := re.fullmatch(r"typedef void \(\*\w+\)\(([^()]*)\);", declaration):
        header.callbacks[name] = [parameter(part) for part in match[1].split(",")]
    elif match := re.fullmatch(rf"([^()]*?){name}\(([^()]*)\);", declaration):
        header.functions.append(function(entry, match[1].strip(), match[2], header))
    elif not declaration.startswith(("#define ", "typedef char ")):
        raise NotUnderstood(declaration)


def function(entry, returns, listed, header):
    """A function, checked against its comment."""
    described, said = describe(entry.comment)
    parameters = [] if listed == "void" else [parameter(part) for part in listed.split(",")]
    if [found.name for found in parameters] != [described_name for described_name, _, _ in described]:
        raise NotUnderstood(f"{entry.name}: the parameters and their @param differ")
    for found, (_, is_out, text) in zip(parameters, described):
        found.is_out, found.doc = is_out, text
    outs = [found.is_out for found in parameters]
    if outs != sorted(outs):
        raise NotUnderstood(f"{entry.name}: results come last")
    statuses = set(re.findall(r"\bZKLOCK_\w+", said)) & set(header.enums["zklock_status"])
    return Function(entry.name, returns, parameters, said, statuses, set(statuses))


def describe(comment):
    """Returns each @param of a comment as (name, whether it is [out], text), and the text after @return."""
    described, said = [], ""
    for part in re.split(r"^@", comment, flags=re.M)[1:]:
        text = " ".join(part.split())
        if entry := re.fullmatch(r"param(\[out\])? (\w+) (.*)", text):
            described.append((entry[2], bool(entry[1]), entry[3]))
        elif text.startswith("return "):
            said = text.removeprefix("return ")
        else:
            raise NotUnderstood(f"@{text}")
    return described, said


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
