//! Transcripts of the commands that show who holds and who waits.

use rustix::process::Signal;

use crate::support::pty::OnTerminal;
use crate::support::transcript::plain;
use crate::support::{Process, SOON, operator, output, path, zklock_there};

/// A holder of this name, which holds until it is told to stop.
pub(crate) fn contender(name: &str, kind: &str, lock: &str) -> Process {
    let mut command = zklock_there();
    let script = "echo held; read _";
    Process::start(command.args(["--identity", name, "run", kind, lock, "--", "sh", "-c", script]))
}

/// The same, when it holds the lock.
pub(crate) fn holder(name: &str, kind: &str, lock: &str) -> Process {
    let holder = contender(name, kind, lock);
    assert_eq!(holder.line(), "held\n");
    holder
}

fn ls(path: &str) -> String {
    let ended = output(zklock_there().args(["ls", "--long", path]));
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    plain(&ended.out)
}

#[test]
fn ls_shows_the_holder_and_the_waiters_in_order() {
    let (path, operator) = (path(), operator());
    assert_eq!(ls(&path), format!("nobody holds {path} or waits for it: the node {path} does not exist"));
    operator.create_all(&path, "");
    assert_eq!(ls(&path), format!("nobody holds {path} or waits for it"));
    let holder = holder("db7/1", "--read", &path);
    let first = contender("db8/2", "--write", &path);
    operator.wait_for_children(&path, 2, SOON);
    let second = contender("db9/3", "--read", &path);
    operator.wait_for_children(&path, 3, SOON);
    assert_eq!(
        ls(&path),
        "IDENTITY AGE KIND SESSION TOKEN NAMING NAME\n\
         holds db7/1 TIME read SESSION NUMBER curator NAME\n\
         waits db8/2 TIME write SESSION NUMBER curator NAME\n\
         waits db9/3 TIME read SESSION NUMBER curator NAME"
    );
    let short = output(zklock_there().args(["ls", &path])).out;
    assert_eq!(plain(short.lines().nth(1).unwrap()), "holds db7/1 TIME read SESSION NUMBER");
    assert!(short.lines().all(|line| line.len() <= 80), "{short}");
    drop((holder, first, second));
}

#[test]
fn ls_tells_the_kinds_of_locks_that_have_one_holder_or_several() {
    for (kind, limit) in [("mutex", ""), ("election", ""), ("single-node", ""), ("semaphore", ":2")] {
        let path = path();
        let hold = || holder("db7/1", &format!("--{kind}"), &format!("{path}{limit}"));
        let holders: Vec<_> =
            std::iter::repeat_with(hold).take(if limit.is_empty() { 1 } else { 2 }).collect();
        let text = ls(&path);
        let lines: Vec<_> = text.lines().skip(1).collect();
        let expected = format!("holds db7/1 TIME {kind} SESSION NUMBER curator ");
        assert_eq!(lines.len(), holders.len(), "{text}");
        assert!(lines.iter().all(|line| line.starts_with(&expected)), "{text}");
        assert_eq!(output(zklock_there().args(["ls", "--json", &path])).json()[0]["kind"], kind);
    }
}

#[test]
fn with_a_pattern_commands_hold_show_and_break_a_home_made_lock() {
    let (path, operator) = (format!("{}/report", path()), operator());
    let above = path.strip_suffix("/report").unwrap();
    for (kind, pattern, parent) in
        [("--mutex", "{name}_lock_{sequence}", above), ("--read", "{any}-{R|W}-{sequence}", &*path)]
    {
        let mut command = zklock_there();
        command.args(["run", "--try", kind, &path, "--naming", pattern, "sh", "-c", "echo held; read _"]);
        let holder = Process::start(&mut command);
        assert_eq!(holder.line(), "held\n", "{pattern}");
        let [node] = &operator.children_or_empty(parent)[..] else { panic!("{pattern}: it has one node") };
        let here = ["--naming", pattern, &path];
        let found = output(zklock_there().args(["ls", "--json"]).args(here)).json();
        assert_eq!((&found[0]["name"], &found[0]["naming"]), (&(**node).into(), &pattern.into()));
        assert_eq!(found[0]["kind"], kind[2..]);
        for words in [&["request-release"][..], &["break", "--yes"]] {
            assert_eq!(output(zklock_there().args(words).args(here)).code, Some(0), "{words:?}");
        }
        assert_eq!(holder.output().code, Some(122));
    }
    for (words, problem) in [
        (&["--mutex", &path, "--naming", "{name}_lock_"][..], "has no {sequence}"),
        (&["--mutex", &path, "--naming", "klingon"], "use curator, kazoo, writelock, or a pattern"),
        (&["--election", &path, "--naming", "lock-{sequence}"], "an election has no naming scheme"),
        (&["--every", "1d", "--mutex", &path, "--naming", "lock-{sequence}"], "takes no --naming"),
    ] {
        output(zklock_there().arg("run").args(words).arg("true")).is(64, "").says(problem);
    }
}

#[test]
fn ls_writes_json() {
    let path = path();
    let _holder = holder("db7/1", "--mutex", &path);
    let entry = &output(zklock_there().args(["ls", "--json", &path])).json()[0];
    assert_eq!((&entry["holds"], &entry["identity"]), (&true.into(), &"db7/1".into()));
    let kind = (&entry["lock"], &entry["role"], &entry["naming"]);
    assert_eq!(kind, (&"queue".into(), &"exclusive".into(), &"curator".into()));
    let stat = operator().stat(entry["node"].as_str().unwrap()).expect("the node is there");
    assert_eq!(entry["token"], stat.czxid);
    output(zklock_there().args(["ls", "--json", "/cli/nobody"])).is(0, "[]\n");
}

#[test]
fn watch_writes_a_line_for_each_change() {
    let path = path();
    let watch = Process::start(zklock_there().args(["ls", "--watch", "--interval", "50ms", &path]));
    assert_eq!(watch.line(), "nobody\n");
    let mut holder = contender("db7/1", "--mutex", &path);
    assert_eq!(plain(&watch.line()), "holds db7/1 token NUMBER NAME");
    let _waiter = contender("db8/2", "--mutex", &path);
    assert_eq!(plain(&watch.line()), "waits db8/2 token NUMBER NAME");
    holder.write("\n");
    let both = [watch.line(), watch.line()].map(|line| plain(&line));
    assert_eq!(both, ["gone db7/1 token NUMBER NAME", "holds db8/2 token NUMBER NAME"]);
    watch.signal(Signal::INT);
    assert_eq!(watch.output().code, None, "it ends by the signal");
}

#[test]
fn watch_redraws_a_terminal() {
    let path = path();
    let mut command = zklock_there();
    command.args(["ls", "--watch", "--interval", "50ms", &path]);
    let mut terminal = OnTerminal::start(&command);
    terminal.shows("\x1b[H");
    terminal.shows(&format!("nobody holds {path}"));
    let mut holder = contender("db7/1", "--mutex", &path);
    terminal.shows("db7/1");
    holder.write("\n");
    terminal.shows(&format!("nobody holds {path}"));
    terminal.types("\x03");
    assert_eq!(terminal.code(), None, "Ctrl-C ends it");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let mut shell = std::process::Command::new("bash");
    let line = format!(
        "'{}' ls --watch --interval 10ms {} | head -1; echo ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_zklock"),
        "/cli/quiet"
    );
    let mut process = Process::start(
        shell.args(["-c", &line]).env("ZKLOCK_HOSTS", crate::support::servers().connect_string()),
    );
    assert_eq!(process.line(), "nobody\n");
    // It notices when it writes.
    let mut holder = holder("db7/1", "--mutex", "/cli/quiet");
    assert_eq!(process.line(), "0\n");
    holder.write("\n");
    process.status();
    assert_eq!(process.output().errors, "");
}

#[test]
fn tree_shows_the_locks_below_a_path() {
    let top = path();
    let tree = || plain(&output(zklock_there().args(["tree", &top])).out);
    let nobody = format!("nobody holds a lock below {top} or waits for one");
    assert_eq!(tree(), format!("{nobody}: the node {top} does not exist"));
    operator().create_all(&format!("{top}/empty/deep"), "");
    assert_eq!(tree(), nobody);
    let (mutex, semaphore) = (format!("{top}/a/report"), format!("{top}/b/licences"));
    let report = holder("db7/1", "--mutex", &mutex);
    let waiter = contender("db8/2", "--mutex", &mutex);
    operator().wait_for_children(&mutex, 2, SOON);
    let permit = holder("db9/3", "--semaphore", &format!("{semaphore}:1"));
    assert_eq!(
        tree(),
        format!("LOCK KIND WAITING HOLDERS\n{mutex} mutex NUMBER db7/1\n{semaphore} semaphore NUMBER db9/3")
    );
    let found = output(zklock_there().args(["tree", "--json", &top])).json();
    assert_eq!((&found[0]["path"], &found[0]["waiting"]), (&mutex.into(), &1.into()));
    assert_eq!(found[1]["holders"][0]["identity"], "db9/3");
    drop((report, waiter, permit));
}

#[test]
fn what_cannot_be_shown_is_named() {
    let said = "error: invalid value 'report' for '<PATH>': the path \"report\" is relative";
    output(zklock_there().args(["ls", "report"])).is(64, "").says(said);
    let nowhere = ["--hosts", "127.0.0.1:1", "--connect-timeout", "500ms", "ls", "/a"];
    output(zklock_there().args(nowhere)).is(123, "").says("zklock: no session could be opened");
}
