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
    Control("a lease taken from reads, which a server answers by itself, as it does pings", "zklock-core/src/zookeeper/zookeeper.rs",
        "check_each(&client, &paths)", """async {
                let mut missing = Vec::new();
                for (index, path) in paths.iter().enumerate() {
                    match client.check_stat(path).await {
                        Ok(Some(_)) => {}
                        Ok(None) => missing.push(index),
                        Err(_) => return Check::Unknown,
                    }
                }
                Check::Answered { missing }
            }"""),
)
# Workers that run jobs find these.
OF_JOBS = (
    Control("a job's record written without the guard of the hold", "zklock-core/src/hold/grant.rs",
        """        tokio::select! {
            biased;
            // Nothing has been sent yet, so it is certain that nothing was written.
            reason = loss.clone().come() => return Err(reason.map_or_else(
                || self.not_held(),
                |reason| Error::lost(reason, self.path()),
            )),
            () = self.session().connected() => self.check_not_lost()?,
        }
        match self.session().commit(self.holding.nodes.clone(), writes).await {""",
        """        let each = writes.into_iter().map(|write| match write {
            Write::SetData { path, data, .. } => Write::SetData { path, data, version: None },
            other => other,
        });
        match self.slot.session().await?.commit(Vec::new(), each.collect()).await {"""),
    Control("a job's period taken from the client's clock", "zklock-core/src/client/job.rs",
        "if let Some(last) = &last {", "let now = std::time::SystemTime::now();\n        if let Some(last) = &last {"),
    Control("a job's record obeyed although it is from the future", "zklock-core/src/client/job.rs",
        "last.check(self.spec.path(), now)?;", "let _ = last.check(self.spec.path(), now);"),
    Control("a job that is recorded as running taken for done", "zklock-core/src/client/record.rs",
        "self.outcome == RunOutcome::Done", "!matches!(self.outcome, RunOutcome::Failed(_))"),
    Control("a job that is done not recorded as done", "zklock-core/src/client/run.rs",
        "let text = Record { outcome, ..self.record.clone() }.to_text();", "let _ = outcome;\n        let text = self.record.to_text();"),
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
    workers = ("rust-once=12", "--pace", "500") if control in OF_JOBS else ("rust=12",)
    words = [str(ROOT / "tests/chaos/run"), "--workers", *workers, "--seconds", str(SECONDS), "--until-found"]
    done = subprocess.run(words, env=os.environ | {"CHAOS_RUST": str(worker)}, stdout=subprocess.PIPE, text=True)
    found = [line for line in done.stdout.splitlines() if line.startswith("found after")]
    shown = next((line for line in done.stdout.splitlines() if line.startswith("TROUBLE")), "")
    print(f"{control.name}: {found[0] if found else 'NOT FOUND'} ({time.monotonic() - begun:.0f} s in all)\n  {shown}", flush=True)
    return bool(found)


if __name__ == "__main__":
    sys.exit(planted.run((*CONTROLS, *OF_JOBS), is_found, sys.argv[1:]))
