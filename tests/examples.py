"""Checks that every public item of the Rust API has an example that is compiled.

    python3 -B tests/examples.py

It reads the sources: what zklock-core exports, in lib.rs or further.rs, and the public items in the `impl` blocks of that. First it tries itself.
"""

import pathlib
import re
import sys

CORE = pathlib.Path(__file__).resolve().parents[1] / "zklock-core"
# Where items are, and which `pub use` shows them to users. A file belongs to the first folder that it is in.
SHOWN = {"src": "(?:self|crate)", "machine/src": "zklock_machine"}
EXPORTERS = ("src/lib.rs", "src/further.rs")
IMPL = re.compile(r"impl(?:<[^>]*>)? (?!.* for )(\w+)")
ITEM = re.compile(r"( *)pub (?:(?:const|async) )*(fn|struct|enum|trait|type|const) (\w+)")
EXAMPLE = re.compile(r"^# Examples\n(?:.*\n)*?```(?:no_run|should_panic)?$", re.M)


def exported(text: str, path: str) -> set:
    """The names in `pub use path::{...}`, without the modules that they come from."""
    return {name for block in re.findall(rf"^pub use {path}::([^;]+);", text, re.M) for name in re.findall(r"\w+\b(?!::)", block)}


def lacking(text: str, names: set) -> list:
    """The line and name of each item that the documentation shows without an example."""
    lines, owner, found = text.splitlines(), None, []
    for at, line in enumerate(lines):
        owner = IMPL.match(line) if line.startswith("impl") else owner
        if not (item := ITEM.match(line)):
            continue
        start = next(above for above in range(at, -1, -1) if not above or not re.match(r" *(///|#\[)", lines[above - 1]))
        about = "\n".join(re.sub(r"^ *(/// ?)?", "", part) for part in lines[start:at])
        inner = owner and item[1] and item[2] in ("fn", "type", "const")
        if "#[doc(hidden)]" in about:
            # What a hidden type has is hidden, too.
            names = names if inner else names - {item[3]}
        elif (owner[1] if inner else item[3]) in names and not EXAMPLE.search(about):
            found.append((at + 1, f"{owner[1]}::{item[3]}" if inner else item[3]))
    return found


if __name__ == "__main__":
    planted = """pub struct A;\nimpl<T> A {\n    /// # Examples\n    /// ```\n    /// ```\n    pub fn f() {}\n    #[doc(hidden)]
    pub fn g() {}\n    /// # Examples\n    /// See there.\n    #[must_use]\n    pub async fn h() {}\n}\nimpl B {\n    pub fn f() {}\n}\n#[doc(hidden)]\npub struct C;\nimpl C {
    pub fn f() {}\n}"""
    assert lacking(planted, exported("pub use self::{\n    b::A, c::C,\n};", "self")) == [(1, "A"), (12, "A::h")]
    wrong = []
    for file in sorted(CORE.rglob("*.rs")):
        folder = next((folder for folder in SHOWN if CORE / folder in file.parents), None)
        if folder:
            names = set().union(*(exported((CORE / exporter).read_text(), SHOWN[folder]) for exporter in EXPORTERS))
            found = lacking(file.read_text(), names)
            wrong += [f"{file.relative_to(CORE.parent)}:{line}: {name} has no example" for line, name in found]
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    sys.exit(bool(wrong))
