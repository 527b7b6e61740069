"""Plants bugs into copies of zklock: a harness that finds nothing proves nothing. See controls.py of tests/chaos and of tests/simulation."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parents[1]
MACHINE = "zklock-core/machine/src"


class Control(typing.NamedTuple):
    """A mistake that somebody could make: a text that occurs once in a file, and its replacement."""

    name: str
    file: str
    text: str
    replacement: str


# Each harness has to find these, and some of its own.
EVERYWHERE = (
    Control("a lease for as long as the server said that the session lives", f"{MACHINE}/lease.rs",
        "let claimed = proven.min(sent + times::LEASE.of(self.timeout));", "let claimed = proven.max(sent + self.timeout + self.timeout / 2);"),
    Control("no lease", f"{MACHINE}/lease.rs",
        "self.until(lease).map_or(Duration::ZERO, |until| until.since(now))", "{ let _ = now; lease.timeout }"),
    Control("an answer is taken back when a server is asked for the session", f"{MACHINE}/lease.rs",
        "self.is_asked = true;", "self.is_asked = true;\n        self.claimed = self.claimed.before(self.timeout / 10 * 3);"),
    Control("a deletion trusted while others are ahead", f"{MACHINE}/contender/turn.rs",
        "alone.then_some(claim)", "Some(claim)"),
    Control("a reader that overlooks writers", f"{MACHINE}/name.rs",
        "(Self::Read, Self::Read))", "(Self::Read, _))"),
    Control("one permit more", f"{MACHINE}/contender/turn.rs",
        "u32::try_from(taken)", "u32::try_from(taken.max(1) - 1)"),
)


def plant(control: Control, copy: pathlib.Path) -> None:
    """Makes the copy equal to the tree, except for that bug."""
    copy.mkdir(parents=True, exist_ok=True)
    kinds = ("*.rs", "*.toml", "*.md", "*.txt", "Cargo.lock")
    listed = subprocess.run(["git", "ls-files", "-z", *kinds], cwd=ROOT, check=True, capture_output=True)
    for name in listed.stdout.decode().split("\0"):
        source = ROOT / name
        if not name or not source.is_file():
            continue
        target = copy / name
        text = source.read_bytes()
        if name == control.file:
            if not fits(control):
                raise SystemExit(f"{control.name}: its text is not once in {name}")
            text = text.replace(control.text.encode(), control.replacement.encode())
        # Do not touch unchanged files, so that they are not compiled again.
        if not target.exists() or target.read_bytes() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)


def run(controls: typing.Sequence[Control], is_found: typing.Callable[[Control], bool], words: typing.Sequence[str]) -> int:
    """Plants all, or those with the first word in their names. With --check it only checks that each can be planted, which takes no time."""
    if words[:1] == ["--check"]:
        stale = [control for control in controls if not fits(control)]
        for control in stale:
            print(f"{control.name}: its text is not once in {control.file}", file=sys.stderr)
        return 1 if stale else 0
    chosen = [control for control in controls if not words or words[0] in control.name]
    return 0 if chosen and all([is_found(control) for control in chosen]) else 1


def fits(control: Control) -> bool:
    return (ROOT / control.file).read_text().count(control.text) == 1
