"""Plants bugs into copies of zklock, and sees whether chaos finds them: a harness that finds nothing proves nothing.

    python3 tests/chaos/controls.py [TEXT]      all, or those with this in their names; a copy takes minutes to build
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIES = ROOT / "target/chaos"
MACHINE = "zklock-core/machine/src"
# Enough for each kind of fault to come some times.
SECONDS = 600


class Control(typing.NamedTuple):
    """A mistake that somebody could make: a text that stands once in a file, and what it is replaced by."""

    name: str
    file: str
    text: str
    replacement: str


CONTROLS = (
    Control(
        "a lease for as long as the server said that the session lives",
        f"{MACHINE}/lease.rs",
        "let claimed = proven.min(sent + self.timeout / 2);",
        "let claimed = proven.max(sent + self.timeout + self.timeout / 2);",
    ),
    Control(
        "no lease",
        f"{MACHINE}/lease.rs",
        "if self.gaps == lease.gaps { lease.until().since(now) } else { Duration::ZERO }",
        "{ let _ = now; lease.timeout }",
    ),
    Control(
        "a deletion trusted while others are ahead",
        f"{MACHINE}/contender/turn.rs",
        "let our_turn_in = alone.then_some(claim);",
        "let our_turn_in = Some(claim);",
    ),
    Control(
        "a reader that overlooks writers",
        f"{MACHINE}/name.rs",
        "(Self::Read, Self::Read))",
        "(Self::Read, _))",
    ),
    Control(
        "one permit more",
        f"{MACHINE}/contender/turn.rs",
        "u32::try_from(taken)",
        "u32::try_from(taken.max(1) - 1)",
    ),
)


def build(control: Control) -> pathlib.Path:
    """The worker of a copy with that mistake."""
    copy = COPIES / "copy"
    copy.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "-z", "*.rs", "*.toml", "*.md", "Cargo.lock"], cwd=ROOT, check=True, capture_output=True)
    for name in listed.stdout.decode().split("\0"):
        source = ROOT / name
        if not name or not source.is_file():
            continue
        target = copy / name
        text = source.read_bytes()
        if name == control.file:
            if text.count(control.text.encode()) != 1:
                raise SystemExit(f"{control.name}: its text is not once in {name}")
            text = text.replace(control.text.encode(), control.replacement.encode())
        # What is as it was is not compiled anew.
        if not target.exists() or target.read_bytes() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)
    words = ["cargo", "build", "--quiet", "-p", "zklock-tests", "--example", "zklock-worker"]
    subprocess.run(words, cwd=copy, check=True, env=os.environ | {"CARGO_TARGET_DIR": str(COPIES / "target"), "RUSTFLAGS": "-Awarnings"})
    return COPIES / "target/debug/examples/zklock-worker"


def is_found(control: Control) -> bool:
    worker = build(control)
    begun = time.monotonic()
    words = [str(ROOT / "tests/chaos/run"), "--workers", "rust=12", "--seconds", str(SECONDS), "--until-found"]
    done = subprocess.run(words, env=os.environ | {"CHAOS_RUST": str(worker)}, stdout=subprocess.PIPE, text=True)
    found = [line for line in done.stdout.splitlines() if line.startswith("found after")]
    shown = next((line for line in done.stdout.splitlines() if line.startswith("TROUBLE")), "")
    print(f"{control.name}: {found[0] if found else 'NOT FOUND'} ({time.monotonic() - begun:.0f} s in all)\n  {shown}", flush=True)
    return bool(found)


def main() -> int:
    chosen = [control for control in CONTROLS if sys.argv[1:] == [] or sys.argv[1] in control.name]
    return 0 if chosen and all([is_found(control) for control in chosen]) else 1


if __name__ == "__main__":
    sys.exit(main())
