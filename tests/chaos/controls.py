"""Plants bugs into copies of zklock, and checks that chaos finds them.

    python3 tests/chaos/controls.py [TEXT]      all, or those with this in their names; a copy takes minutes to build
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import planted
from planted import ROOT, Control

CONTROLS = (
    *planted.EVERYWHERE,
    Control(
        "a lease taken from reads, which a server answers by itself, as it does pings",
        "zklock-core/src/zookeeper/zookeeper.rs",
        "check_each(&client, &paths)",
        """async {
                let mut missing = Vec::new();
                for (index, path) in paths.iter().enumerate() {
                    match client.check_stat(path).await {
                        Ok(Some(_)) => {}
                        Ok(None) => missing.push(index),
                        Err(_) => return Check::Unknown,
                    }
                }
                Check::Answered { missing }
            }""",
    ),
)
COPIES = ROOT / "target/chaos"
# Long enough for each kind of fault to strike several times.
SECONDS = 600


def build(control: Control) -> pathlib.Path:
    """The worker of a copy with that mistake."""
    planted.plant(control, COPIES / "copy")
    words = ["cargo", "build", "--quiet", "-p", "zklock-tests", "--example", "zklock-worker"]
    subprocess.run(words, cwd=COPIES / "copy", check=True, env=os.environ | {"CARGO_TARGET_DIR": str(COPIES / "target"), "RUSTFLAGS": "-Awarnings"})
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


if __name__ == "__main__":
    sys.exit(planted.run(CONTROLS, is_found, sys.argv[1:]))
