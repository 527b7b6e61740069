//! Transcripts of the other commands.

use rustix::process::Signal;
use zklock::fence::Database;

use crate::support::transcript::plain;
use crate::support::{Folder, Process, output, path, run, zklock, zklock_at, zklock_there};

#[test]
fn doctor_finds_a_healthy_server_well() {
    let path = path();
    let ended = output(zklock_there().args(["--session-timeout", "10s", "doctor", &path]));
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    let hosts = crate::support::servers().connect_string();
    let text = plain(&ended.out);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "ok configuration the file /dev/null was read");
    assert_eq!(lines[1], format!("ok server {hosts} accepts connections, in TIME"));
    assert!(lines[2].starts_with(&format!("ok server {hosts} is ZooKeeper 3.")), "{text}");
    assert!(lines[2].ends_with("standalone; it has containers"), "{text}");
    for line in [
        "ok session timeout TIME, as asked for".to_owned(),
        "ok session survives without servers: a hold TIME or longer, a job of `zklock run` TIME or longer"
            .to_owned(),
        "warning TLS not used".to_owned(),
        format!("ok rights may create and read below {path}"),
        "ok clocks the servers' and this machine's differ by TIME".to_owned(),
        format!("ok rights may delete below {path}"),
    ] {
        assert!(lines.contains(&&*line), "{line}: {text}");
    }
    assert!(
        text.contains("see --tls (Connect with TLS, and trust the authorities that the system trusts)"),
        "{text}"
    );
    assert!(text.contains(" writes a write takes TIME, the slowest of NUMBER took TIME"), "{text}");
}

#[test]
fn doctor_says_what_is_wrong_and_what_to_do() {
    let hosts = format!("127.0.0.1:1,{}", crate::support::servers().connect_string());
    let ended = output(zklock_at(&hosts).args(["--session-timeout", "20s", "doctor", "--json", &path()]));
    assert_eq!(ended.code, Some(1), "one server is out of reach");
    let found = ended.json();
    let server = &found[1];
    assert_eq!((&server["about"], &server["verdict"]), (&"server".into(), &"bad".into()));
    assert!(server["finding"].as_str().unwrap().contains("Connection refused"), "{found}");
    assert!(server["advice"].as_str().unwrap().contains("clientPort"), "{found}");
    let session = found.as_array().unwrap().iter().find(|finding| finding["about"] == "session").unwrap();
    assert_eq!(session["finding"], "timeout 10s, 20s was asked for");
    assert!(session["advice"].as_str().unwrap().contains("maxSessionTimeout"), "{found}");

    let ended = output(zklock_at("127.0.0.1:1").args(["--connect-timeout", "500ms", "doctor"]));
    assert_eq!(ended.code, Some(1));
    assert!(plain(&ended.out).contains("BAD session no session could be opened"), "{}", ended.out);
}

#[test]
fn fence_prints_the_statements_of_each_database() {
    for (name, database) in [
        ("postgresql", Database::PostgreSql),
        ("mariadb", Database::MariaDb),
        ("mysql", Database::MariaDb),
        ("sqlite", Database::Sqlite),
    ] {
        let ended = output(zklock().args(["fence", "sql", name]));
        ended.is(0, &ended.out).is_quiet();
        let statements = [database.create_table(), database.raise(), database.look()];
        assert!(statements.iter().all(|statement| ended.out.contains(statement)), "{}", ended.out);
        // All that a shell of the database would execute is the table.
        let is_executed = |line: &&str| !line.is_empty() && !line.starts_with("--");
        let executed: Vec<_> = ended.out.lines().filter(is_executed).collect();
        assert_eq!(executed, [format!("{};", database.create_table())]);
    }
    output(zklock().args(["fence", "sql", "oracle"])).is(64, "");
}

#[test]
fn fence_publishes_for_the_last_holder_alone() {
    let (path, folder) = (path(), Folder::new());
    let command = env!("CARGO_BIN_EXE_zklock");
    let publish = |text: &str, before: &str| {
        let script = format!("echo {text} > staged && {before} {command} fence publish staged report");
        output(run(&path, &["--fence"], &script).current_dir(folder.path()))
    };
    for text in ["one", "other"] {
        publish(text, "").is(0, "");
    }
    publish("cut", "prlimit --fsize=25").is(125, "").says("no room for the token");
    // The fence is as it was.
    publish("other", "").is(0, "");
    // As a holder whose token was the first.
    publish("late", "ZKLOCK_TOKEN=1").is(122, "").says("a later holder of").says("this one is 1");
    publish("late", "ZKLOCK_ENSEMBLE=other").is(122, "").says("cannot be compared");
    // The inner lock has a token of its own, which the outer one's ensemble need not have given.
    publish("late", &format!("{command} run --mutex {path}/inner --")).is(64, "").says("--ensemble");
    assert_eq!(std::fs::read_to_string(folder.path().join("report")).unwrap(), "other\n");
    output(zklock().args(["fence", "publish", "a", "b"])).is(64, "").says("--ensemble");
}

#[test]
fn bench_measures_both() {
    let ended = output(zklock_there().args(["bench", "--json", "--count", "20", &path()]));
    ended.is(0, &ended.out).is_quiet();
    for figures in ended.json().as_array().unwrap() {
        assert_eq!(figures["count"], 20);
        assert!(figures["min"].as_u64().unwrap() > 0 && figures["p99"].as_u64() <= figures["max"].as_u64());
    }
    let ended = output(zklock_there().args(["bench", "--count", "5", &path()]));
    assert!(ended.out.starts_with("free lock (acquire and release), 5 times: median "), "{}", ended.out);
    assert!(ended.out.contains("\nhand-over (release to grant), 5 times: median "), "{}", ended.out);
}

#[test]
fn testing_is_a_server() {
    let server = Process::start(zklock().args(["testing", "--listen", "127.0.0.1:0"]));
    let hosts = server.line();
    let ended = output(zklock_at(hosts.trim()).args(["run", "--mutex", "/a", "--", "echo", "ran"]));
    ended.is(0, "ran\n").is_quiet();
    let taken = output(zklock().args(["testing", "--listen", hosts.trim()]));
    taken.is(125, "").says("--listen 127.0.0.1:0");
    server.signal(Signal::INT);
    assert_eq!(server.output().code, None, "Ctrl-C ends it");
}

#[test]
fn completions_and_manual_come_from_the_same_source() {
    for shell in ["bash", "zsh", "fish"] {
        let ended = output(zklock().args(["completions", shell]));
        assert_eq!(ended.code, Some(0));
        assert!(ended.out.contains("kill-after") && !ended.out.contains("__warden"), "{shell}");
    }
    for (words, parts) in [
        (&["man"][..], &[".TH zklock 1", "Exit codes", "/etc/zklock.conf", "chmod 600"][..]),
        (
            &["man", "run"],
            &["ZKLOCK", "after\\-failure", "metrics\\-file", "session\\-timeout", "single\\-node"],
        ),
        (&["--help-all"], &["122  the lock was lost"]),
    ] {
        let page = output(zklock().args(words)).out;
        assert!(parts.iter().all(|part| page.contains(part)), "{parts:?}: {page}");
    }
    output(zklock().args(["man", "fly"])).is(64, "");
}

#[test]
fn help_is_a_screen_and_help_all_has_the_rest() {
    let whole = output(zklock().arg("--help")).out;
    let (first, further) = whole.split_once("\nFurther:\n").expect("the other commands");
    for name in ["run", "ls", "doctor", "break"] {
        assert!(
            first.contains(&format!("\n  {name} ")) && !further.contains(&format!("  {name} ")),
            "{whole}"
        );
    }
    let all = output(zklock().arg("--help-all")).out;
    let (_, commands) = all.split_once("Commands:\n").expect("all commands");
    let names: Vec<_> = commands
        .lines()
        .map_while(|line| line.strip_prefix("  ")?.split_whitespace().next().map(str::to_owned))
        .collect();
    assert_eq!(names.len(), 17, "{all}");
    for name in &names {
        assert!(whole.contains(&format!("\n  {name} ")), "{name}: {whole}");
        let screen = output(zklock().args([name, "--help"])).out;
        assert!(screen.lines().count() <= 24, "{screen}");
        assert!(screen.contains("--help-all") && !screen.contains("--session-timeout"), "{screen}");
        let all = output(zklock().args([name, "--help-all"])).out;
        assert!(all.contains("--session-timeout") && all.lines().count() > 60, "{all}");
    }
}
