//! Jobs that run once in each period: `zklock run --every`, and `zklock jobs`.

use crate::support::transcript::plain;
use crate::support::{Output, Process, operator, output, path, run, zklock_there};

/// A period of many years does not end during a test.
const LONG: &str = "300000d";

/// The record of a run in 2100.
const FROM_THE_FUTURE: &str = "zklock-job 1
began=4102444800000
ended=4102444800001
every=86400000
offset=0
token=1
by=db9/3
outcome=done
failure=
";

fn every(path: &str, options: &[&str], script: &str) -> Output {
    output(&mut run(path, &[&["--every", LONG], options].concat(), script))
}

/// The transcript of `zklock jobs`, whose last lines are about the path.
fn jobs(path: &str) -> String {
    let ended = output(zklock_there().args(["jobs", path]));
    ended.is(0, &ended.out).is_quiet();
    plain(&ended.out).replace(path, "PATH")
}

#[test]
fn a_command_that_ends_well_is_done_in_this_period() {
    let path = path();
    assert_eq!(jobs(&path), "no job below PATH has run yet");
    every(&path, &[], "echo once").is(0, "once\n").is_quiet();
    let again = every(&path, &["--after-failure", "next"], "echo twice");
    again.is(0, "").says(&format!("zklock: the job {path} is done in this period, by "));
    again.says(": it runs again in ");
    every(&path, &["--quiet"], "echo twice").is(0, "").is_quiet();
}

#[test]
fn a_command_that_fails_runs_again_at_once_or_in_the_next_period() {
    let path = path();
    every(&path, &[], "exit 7").is(7, "");
    every(&path, &["--after-failure", "next"], "echo again").is(0, "").says("has failed in this period");
    every(&path, &["--at-most", "10ms"], "sleep 1000").is(124, "");
    let missing = output(zklock_there().args(["run", "--mutex", &path, "--every", LONG, "/no/such/program"]));
    missing.is(127, "");
    let job = &output(zklock_there().args(["jobs", "--json", &path])).json()[0];
    assert_eq!((&job["path"], &job["outcome"]), (&path.as_str().into(), &"failed".into()));
    assert_eq!(job["failure"], "exit code 127");
    every(&path, &[], "echo again").is(0, "again\n");
}

#[test]
fn jobs_shows_the_last_run_the_next_and_who_runs_it_now() {
    let folder = path();
    let job = |name: &str| format!("{folder}/{name}");
    let mut running = zklock_there();
    let arguments = ["--identity", "db7/1", "run", "--mutex", &job("c"), "--every", LONG, "sh", "-c"];
    let running = Process::start(running.args(arguments).arg("echo runs; read _"));
    running.line();
    for (name, script) in [("a", "true"), ("b", "false")] {
        let mut command = zklock_there();
        command.args(["--identity", "db8/2", "run", "--mutex", &job(name), "--every", LONG, "--", script]);
        output(&mut command);
    }
    // A period that ends in 2791 is shown in days and hours.
    let text = jobs(&folder);
    let rows: Vec<_> = text.lines().map(|line| line.split(" in ").next().unwrap()).collect();
    assert_eq!(
        rows,
        [
            "JOB LAST BEGAN TOOK BY NEXT HOLDER",
            "PATH/a done TIME ago TIME db8/2",
            "PATH/b failed TIME ago TIME db8/2",
            "PATH/c running TIME ago - db7/1",
        ]
    );
    assert!(text.ends_with("h db7/1") && text.lines().nth(1).unwrap().ends_with("h -"), "{text}");
}

#[test]
fn a_record_that_cannot_be_read_or_is_from_the_future_is_shown_among_the_others_with_the_way_out() {
    let (folder, operator) = (path(), operator());
    let job = |name: &str| format!("{folder}/{name}");
    for name in ["a", "c"] {
        assert_eq!(every(&job(name), &[], "true").code, Some(0));
    }
    for (node, data) in [("b", ""), ("b/last-run", "yesterday"), ("d", ""), ("d/last-run", FROM_THE_FUTURE)] {
        operator.create(&job(node), data);
    }
    let ended = output(zklock_there().args(["jobs", &folder]));
    ended.is(125, &ended.out).says("zklock: 2 of 4 jobs do not run: see above\n");
    let text = plain(&ended.out).replace(&folder, "PATH");
    let rows: Vec<_> = text.lines().collect();
    assert!(rows[1].starts_with("PATH/a done ") && rows[3].starts_with("PATH/c done "), "{text}");
    let told = "PATH/b unreadable - - - - - the record of the job PATH/b cannot be read, ";
    assert!(rows[2].starts_with(told), "{text}");
    assert!(rows[4].starts_with("PATH/d done in ") && rows[4].contains("in the future"), "{text}");
    let run = output(zklock_there().args(["run", "--quiet", "--every", "1d", "--mutex", &job("d"), "true"]));
    run.is(125, "").says(&format!("then delete the node {}/last-run", job("d")));
    let doctor = output(zklock_there().args(["doctor", &folder]));
    let bad: Vec<_> = doctor.out.lines().filter(|line| line.starts_with("BAD")).collect();
    assert_eq!((doctor.code, bad.len()), (Some(1), 2), "{doctor:?}");
    assert!(bad[0].contains("b/last-run") && bad[1].contains("d/last-run"), "{bad:?}");
    let jobs = output(zklock_there().args(["jobs", "--json", &folder])).json();
    assert_eq!((&jobs[0]["outcome"], &jobs[2]["outcome"]), (&"done".into(), &"done".into()));
    assert!(jobs[0]["error"].is_null() && jobs[1]["outcome"].is_null(), "{jobs}");
    assert!(jobs[1]["error"].as_str().unwrap().contains("b/last-run"), "{jobs}");
}

#[test]
fn every_and_its_options_are_for_a_mutex() {
    for (options, told) in [
        (&["--every", "1d", "--read", "/a"][..], "--mutex"),
        (&["--mutex", "/a", "--offset", "1h"], "--every"),
        (&["--mutex", "/a", "--after-failure", "next"], "--every"),
        (&["--mutex", "/a", "--every", "0.5s"], "from a second"),
        (&["--mutex", "/a", "--every", "1h", "--offset", "1h"], "less than the period"),
    ] {
        output(zklock_there().arg("run").args(options).args(["--", "true"])).is(64, "").says(told);
    }
}
