//! What the tests of the command share.

mod folder;
mod process;
pub(crate) mod pty;
pub(crate) mod transcript;

use std::ffi::OsStr;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ground::Ensemble;
use ground::wire::Admin;

pub(crate) use folder::Folder;
pub(crate) use process::{
    Output, Process, children, is_alive, looks_at, of_job, only_child, open_files, signal,
};

/// The bound of every wait. Only a test that fails reaches it.
pub(crate) const SOON: Duration = Duration::from_secs(120);

/// The command under test, without the environment's own settings.
///
/// Nor with those of a configuration file that the machine has: an empty one takes its place.
pub(crate) fn zklock() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zklock"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ZKLOCK_")) {
        command.env_remove(name);
    }
    command.env("ZKLOCK_CONFIG", "/dev/null");
    command
}

/// The server that all tests share. Sessions last 1 s to 10 s there, so that one of 10 s has time on a busy machine.
pub(crate) fn servers() -> &'static Ensemble {
    static SHARED: OnceLock<Ensemble> = OnceLock::new();
    SHARED.get_or_init(|| Ensemble::builder().tick(Duration::from_millis(500)).start())
}

/// The same, on that server.
pub(crate) fn zklock_there() -> Command {
    zklock_at(&servers().connect_string())
}

pub(crate) fn zklock_at(hosts: &str) -> Command {
    let mut command = zklock();
    command.env("ZKLOCK_HOSTS", hosts);
    command
}

/// What a parent may leave to its children without a word: programs that start others with it.
pub(crate) const LEFT: [&str; 5] = [
    "env --ignore-signal=CHLD",
    "env --ignore-signal=PIPE",
    "env --block-signal",
    "prlimit --fsize=0",
    "prlimit --nofile=32",
];

/// The same command, as the child of such a parent.
pub(crate) fn left_with(left: &str, command: &Command) -> Command {
    let mut words = left.split(' ').map(OsStr::new).chain([command.get_program()]).chain(command.get_args());
    let mut child = Command::new(words.next().expect("a program"));
    child.args(words);
    with_environment_of(command, child)
}

/// A command with the environment of another.
pub(crate) fn with_environment_of(other: &Command, mut command: Command) -> Command {
    for (name, value) in other.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Runs it to its end.
pub(crate) fn output(command: &mut Command) -> Output {
    Process::start(command).output()
}

/// An operator with a client of its own.
pub(crate) fn operator() -> Admin {
    Admin::connect(servers().server(0).address())
}

/// A path that no other test uses.
pub(crate) fn path() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("/cli/{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// One that holds the mutex until it gets a line.
pub(crate) fn holder(path: &str) -> Process {
    let holder = started(path, &[], "echo held; read _");
    assert_eq!(holder.line(), "held\n");
    holder
}

/// Deletes the node of the one that holds the lock, for which nobody else waits.
pub(crate) fn delete_holder(path: &str) {
    let operator = operator();
    let [holder] = &operator.wait_for_children(path, 1, SOON)[..] else { unreachable!("as asked") };
    operator.delete(&format!("{path}/{holder}"));
}

/// `zklock run --mutex PATH OPTIONS -- sh -c SCRIPT`, ready to be started.
pub(crate) fn run(path: &str, options: &[&str], script: &str) -> Command {
    run_at(&servers().connect_string(), path, options, script)
}

/// The same, started.
pub(crate) fn started(path: &str, options: &[&str], script: &str) -> Process {
    Process::start(&mut run(path, options, script))
}

/// The same, on other servers.
pub(crate) fn run_at(hosts: &str, path: &str, options: &[&str], script: &str) -> Command {
    let mut command = zklock_at(hosts);
    command.args(["run", "--mutex", path]).args(options).args(["--", "sh", "-c", script]);
    command
}
