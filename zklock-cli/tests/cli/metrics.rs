//! The figures of a run, as a file for node_exporter.

use std::fs;
use std::path::Path;

use ground::until;
use rustix::process::Signal;

use crate::support::{Folder, SOON, holder, left_with, output, path, run, started};

/// The value of a series in a file; `None` while there is none.
fn value(file: &Path, metric: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let series = format!("{metric}{{client=\"report\",lock=\"report\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&series)).map(str::to_owned)
}

fn names(folder: &Folder) -> Vec<String> {
    let files = fs::read_dir(folder.path()).unwrap();
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn metrics_file_says_what_is_waited_for_and_held_and_how_it_ended() {
    let (folder, path) = (Folder::new(), path());
    let file = folder.path().join("report.prom");
    let there = |metric: &str, expected: &str| {
        let is_there = || value(&file, metric).as_deref() == Some(expected);
        assert!(until(SOON, is_there), "{metric}: {:?}", fs::read_to_string(&file));
    };
    let mut other = holder(&path);
    let options = ["--metrics-file", file.to_str().unwrap()];
    let mut process = started(&path, &options, "echo held; read line");
    there("zklock_lock_waiting", "1");
    other.signal_to_the_end(Signal::TERM);
    assert_eq!(process.line(), "held\n");
    let is = |metric: &str, expected: &str| {
        assert_eq!(value(&file, metric).as_deref(), Some(expected), "{metric}");
    };
    // It was written before the command began.
    is("zklock_lock_held", "1");
    is("zklock_lock_waiting", "0");
    process.signal_to_the_end(Signal::TERM);
    process.output();
    is("zklock_lock_held", "0");
    is("zklock_lock_hold_seconds_count", "1");
    assert_eq!(names(&folder), ["report.prom"], "no draft is left");
}

#[test]
fn metrics_file_that_cannot_be_read_is_refused_before_the_command_runs() {
    for name in ["/tmp/report.txt", "/tmp/.prom"] {
        output(&mut run(&path(), &["--metrics-file", name], "echo the command ran"))
            .is(64, "")
            .says("node_exporter reads files whose names end in .prom");
    }
}

#[test]
fn a_command_runs_although_its_metrics_file_cannot_be_written() {
    let folder = Folder::new();
    let inner = folder.path().join("textfiles");
    let file = inner.join("report.prom");
    let script = format!("rm -rf {}; exit 5", inner.display());
    let zklock = run(&path(), &["--metrics-file", file.to_str().unwrap()], &script);
    let tells = |left: &str| {
        let ended = output(&mut left_with(left, &zklock));
        assert_eq!(ended.code, Some(5), "{ended:?}");
        assert_eq!(ended.told().matches("the metrics cannot be written to").count(), 1, "{ended:?}");
    };
    tells("env");
    fs::create_dir(&inner).unwrap();
    // The folder disappears during the run.
    tells("env");
    fs::create_dir(&inner).unwrap();
    tells("prlimit --fsize=0");
    assert_eq!(names(&folder), [""; 0], "no draft is left");
}
