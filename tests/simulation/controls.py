"""Plants bugs into copies of zklock, and checks that the simulation finds them.

    python3 tests/simulation/controls.py [TEXT]      all, or those with this in their names
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import planted
from planted import MACHINE, ROOT, Control

MEMBER, NODE = "zklock-core/src/client/membership.rs", "zklock-core/src/client/membership/node.rs"
BARRIER = f"{MACHINE}/barrier.rs"
CONTROLS = (
    *planted.EVERYWHERE,
    Control("the end of a session believed for the end of its nodes, at a release", "zklock-core/src/hold/hold.rs",
        "grant.is_gone().await.is_ok()", "true"),
    Control("a lost reply taken for a creation that was not done", f"{MACHINE}/contender/enter.rs",
        "_ => self.retry(Step::Recover(Phase::Queue), now),", "_ => self.retry(Step::Enter, now),"),
    Control("a deletion that nobody has answered is not tried again", f"{MACHINE}/contender.rs",
        "self.delete_again(step, outcomes, now);", "self.flow.state = State::Gone;"),
    Control("a watch that is silent for ever is believed", "zklock-core/src/zookeeper/silence.rs",
        "() = clock::sleep_until(since + (longest - soon)) => {}", "() = { drop(clock::sleep_until(since + (longest - soon))); std::future::pending() } => {}"),
    Control("a silence in which all seems well is believed", "zklock-core/src/zookeeper/silence.rs",
        "Ok(Finding::Same) => WatchEvent::Changed,", "Ok(Finding::Same) => std::future::pending().await,"),
    *(Control(f"barrier: {name}", file, text, replacement) for name, file, text, replacement in (
        ("any ready lets in", NODE, "|czxid| opened > czxid", "|_| true"),
        ("opens without the others", NODE, "guards.into_iter().map(", "guards.into_iter().take(1).map("),
        ("one too few opens", BARRIER, "others().count() + 1 >= members", "others().count() + 2 >= members"),
        ("waits for the next round", BARRIER, "filter(|name| self.stayed.contains(*name)).filter(entered)", "filter(|name| !name.is_empty() || entered(name))"),
        ("leaves before the others", BARRIER, "members.filter(|name| self.stayed", "members.skip(1).filter(|name| self.stayed"),
        ("no cleaning of a creation in doubt", NODE, "self.may_exist = true;", "self.may_exist = self.is_created;"),
        ("gives up with its session", MEMBER, "Err(Failure::SessionOver) => {}", "Err(Failure::SessionOver) if members == 0 => {}"),
        ("forgets in its next session whom it waits for", MEMBER, "take(&mut node.others)", "take(&mut node.others)).map(|_| Default::default()"),
        ("ready deleted under one that joins", "zklock-core/src/zookeeper/operations.rs", "add_delete(opened, Some(*version))", "add_delete(opened, Some(*version).filter(|_| false))"),
        ("a lost deletion taken for an operator's", NODE, "Ok(is_sent || outcome == Outcome::Done)", "Ok(outcome == Outcome::Done)"),
    )),
)
COPY = ROOT / "target/simulation-copy"
SEEDS = 20_000


def plant(control: Control, copy: pathlib.Path) -> None:
    planted.plant(control, copy)
    kernel = sorted(path.relative_to(ROOT) for path in (ROOT / "tests/simulation/kernel").iterdir())
    (copy / "tests/simulation/kernel").mkdir(exist_ok=True)
    for name in ("tests/simulation/run", "tests/parts.sh", *kernel):
        (copy / name).write_bytes((ROOT / name).read_bytes())


def build(control: Control) -> None:
    plant(control, COPY)
    subprocess.run(["bash", "tests/simulation/run", "build"], cwd=COPY, check=True)


def is_found(control: Control) -> bool:
    build(control)
    begun = time.monotonic()
    words = ["bash", "tests/simulation/run", "--seeds", str(SEEDS), "--bad", "1"]
    done = subprocess.run(words, cwd=COPY, env=os.environ, stdout=subprocess.PIPE, text=True)
    seeds = re.search(r"^(\d+) seeds", done.stdout, re.MULTILINE)
    bad = next((line for line in done.stdout.splitlines() if line.startswith("BAD")), "")
    found = f"found after {seeds[1]} seeds" if bad and seeds else "NOT FOUND"
    print(f"{control.name}: {found}, {time.monotonic() - begun:.0f} s\n  {bad}", flush=True)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(planted.run(CONTROLS, is_found, sys.argv[1:]))
