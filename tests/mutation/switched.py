"""Many mutants in one program. Each is chosen when the program runs, so that it need not be compiled for each of them."""

from __future__ import annotations

import pathlib
import re
import typing

import tree_sitter
import tree_sitter_rust

from changes import Mutant

# What the program asks at each place that can change. It is in the crate's root.
CHOICE = """
#[doc(hidden)]
pub(crate) fn mutant(number: usize) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("ZKLOCK_MUTANT").ok()?.parse().ok()) == Some(number)
}
"""
RUST = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))


class Place(typing.NamedTuple):
    """A part of a file, and how to write it so that a mutant can be chosen. `written` gets the text of the part, in which others may be."""

    begin: int
    end: int
    number: int
    written: typing.Callable[[str], str]


def place(mutant: Mutant, number: int) -> Place | None:
    """Finds where to write the choice; `None` if this change cannot be chosen when the program runs."""
    text = mutant.text()
    source = text.encode()
    begin, end = (len(text[:offset].encode()) for offset in (mutant.begin, mutant.end))
    node = RUST.parse(source).root_node.descendant_for_byte_range(begin, end)
    assert node
    chosen = f"crate::mutant({number})"
    between = source[begin:end].decode()
    around = node.parent

    def here(written: typing.Callable[[str], str], of: tree_sitter.Node | None = None) -> Place:
        return Place(of.start_byte if of else begin, of.end_byte if of else end, number, written)

    if "match guard" in mutant.name:
        if "let " in between:
            return None
        return here(lambda now: f"({chosen} || ({now}))" if mutant.replacement == "true" else f"(!{chosen} && ({now}))")
    if "delete match arm" in mutant.name:
        while node and node.type != "match_arm":
            node = node.parent
        pattern = node and node.child_by_field_name("pattern")
        # An arm with a condition does not count for the compiler, which wants the others to be exhaustive.
        if not node or not pattern or not any(is_wildcard(arm) for arm in node.parent.named_children):
            return None
        condition = pattern.child_by_field_name("condition")
        if not condition:
            return here(lambda now: f"{now} if !{chosen}", pattern)
        return None if b"let " in condition.text else here(lambda now: f"(!{chosen} && ({now}))", condition)
    if around and around.type in ("binary_expression", "compound_assignment_expr") and around.child_by_field_name("operator") == node:
        left, right = (around.child_by_field_name(side).text.decode() for side in ("left", "right"))
        return here(lambda now: f"(if {chosen} {{ {left} {mutant.replacement} {right} }} else {{ {now} }})", around)
    if around and around.type == "unary_expression" and not mutant.replacement:
        operand = source[end : around.end_byte].decode()
        return here(lambda now: f"(if {chosen} {{ {operand} }} else {{ {now} }})", around)
    if mutant.whole_function:
        return here(lambda now: f"if {chosen} {{ return {mutant.replacement}; }} {now}")
    return None


def is_wildcard(arm: tree_sitter.Node) -> bool:
    pattern = arm.child_by_field_name("pattern")
    return pattern is not None and pattern.text == b"_"


def written(text: str, places: list[Place]) -> str:
    """Returns the file with all these choices in it."""
    source = text.encode()

    def within(begin: int, end: int, those: list[Place]) -> str:
        parts, at = [], begin
        while those:
            # The outermost of those that begin first.
            first = min(those, key=lambda place: (place.begin, -place.end))
            inside = [place for place in those if place is not first and place.end <= first.end]
            those = [place for place in those if place is not first and place.end > first.end]
            parts += [source[at : first.begin].decode()]
            now = within(first.begin, first.end, inside)
            parts += [f"/*[{first.number}*/{first.written(now)}/*{first.number}]*/"]
            at = first.end
        return "".join((*parts, source[at:end].decode()))

    return within(0, len(source), places)


def refused(messages: list[dict], copy: pathlib.Path) -> set[int]:
    """Returns the mutants in which the compiler has found an error."""
    found: set[int] = set()
    for message in messages:
        told = message.get("message") or {}
        if told.get("level") == "error":
            for span in told["spans"]:
                file = copy / span["file_name"]
                # A span may be in the source of the standard library, which need not be here.
                if file.exists():
                    found |= around(file, span["byte_start"], span["byte_end"])
    return found


def around(file: pathlib.Path, begin: int, end: int) -> set[int]:
    """Returns the innermost mutant around that place, or all mutants within it."""
    text = file.read_bytes().decode()
    begin, end = (len(text.encode()[:offset].decode()) for offset in (begin, end))
    spans = {int(mark[1]): (mark.start(), text.find(f"/*{mark[1]}]*/")) for mark in re.finditer(r"/\*\[(\d+)\*/", text)}
    outer = [number for number, (first, last) in spans.items() if first <= begin and end <= last]
    if outer:
        return {min(outer, key=lambda number: spans[number][1] - spans[number][0])}
    return {number for number, (first, last) in spans.items() if begin <= first and last <= end}
