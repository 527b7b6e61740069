use ground::wire::codec::{Reader, Writer, code, opcode};
use ground::wire::creation;

use super::*;

const TICK: Duration = Duration::from_millis(400);
const SESSION: Duration = Duration::from_secs(2);
/// Longer than anything takes without faults.
const MOMENT: Duration = Duration::from_millis(300);

/// Servers that tolerate the silence of other servers for two sessions, and a leader among them.
struct Servers {
    all: Replicas,
    now: Duration,
    received: Vec<Effect>,
}

impl Servers {
    fn new() -> Self {
        let timing = Timing {
            tick: TICK,
            limit: 10,
            sessions: (TICK, SESSION * 10),
            reaping: Duration::MAX,
            second: 1000,
        };
        let mut all = Replicas::new(3, timing, Box::new(|_| 0));
        all.place("/a");
        let mut servers = Self { all, now: Duration::ZERO, received: Vec::new() };
        servers.pass(MOMENT);
        assert!(servers.all.leader().is_some());
        servers
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        while self.all.next() <= self.now {
            self.all.advance(self.all.next());
            self.received.extend(self.all.effects());
        }
        self.all.advance(self.now);
    }

    fn leader(&self) -> usize {
        self.all.leader().unwrap()
    }

    fn follower(&self) -> usize {
        (self.leader() + 1) % 3
    }

    /// The session of a new connection; `None` if the server does not answer, and 0 if the session is over.
    fn greet(&mut self, server: usize, connection: u64, session: i64) -> Option<i64> {
        assert!(self.all.connect(server, connection));
        let millis = i32::try_from(SESSION.as_millis()).unwrap();
        let greeting = Writer::default().int(0).long(0).int(millis).long(session).buffer(&[0; 16]);
        self.send(connection, greeting);
        let reply = self.reply(connection)?;
        let mut reader = Reader(&reply);
        let _ = (reader.int(), reader.int());
        reader.long()
    }

    fn send(&mut self, connection: u64, message: Writer) {
        self.all.receive(connection, message.framed()[4..].to_vec());
        self.pass(MOMENT);
    }

    /// The next message that was sent on this connection, without its length.
    fn reply(&mut self, connection: u64) -> Option<Vec<u8>> {
        let is_reply = |(to, frame): &Effect| *to == connection && frame.is_some();
        let at = self.received.iter().position(is_reply)?;
        self.received.remove(at).1.map(|frame| frame[4..].to_vec())
    }

    /// The code of the answer, if there is one.
    fn ask(&mut self, connection: u64, operation: i32, body: Writer) -> Option<i32> {
        let head = Writer::default().int(1).int(operation);
        self.send(connection, Writer([head.0, body.0].concat()));
        let reply = self.reply(connection)?;
        let mut reader = Reader(&reply);
        let _ = (reader.int(), reader.long());
        reader.int()
    }

    fn create(&mut self, connection: u64, path: &str) -> Option<i32> {
        let ephemeral = 1;
        self.ask(connection, opcode::CREATE, creation(path.as_bytes(), b"", ephemeral))
    }

    fn delete(&mut self, connection: u64, path: &str) -> Option<i32> {
        self.ask(connection, opcode::DELETE, Writer::default().buffer(path.as_bytes()).int(-1))
    }

    fn exists(&mut self, connection: u64, path: &str) -> bool {
        self.ask(connection, opcode::EXISTS, Writer::default().buffer(path.as_bytes()).boolean(false))
            == Some(0)
    }

    fn is_there(&self, path: &str) -> bool {
        self.all.created(path).is_some()
    }
}

#[test]
fn a_follower_answers_from_what_it_has_applied() {
    let mut servers = Servers::new();
    let (leader, follower) = (servers.leader(), servers.follower());
    servers.greet(leader, 1, 0).unwrap();
    servers.greet(follower, 2, 0).unwrap();
    servers.all.cut(leader, follower);
    assert_eq!(servers.create(1, "/a/new"), Some(0));
    assert!(!servers.exists(2, "/a/new"));
    assert_eq!(servers.create(2, "/a/other"), None);
    servers.all.heal();
    servers.pass(MOMENT);
    assert!(servers.is_there("/a/other") && servers.exists(1, "/a/other"));
    assert!(servers.reply(2).is_some() && servers.exists(2, "/a/new"));
}

#[test]
fn a_session_ends_when_nothing_is_heard_of_it() {
    let mut servers = Servers::new();
    servers.greet(servers.follower(), 1, 0).unwrap();
    assert_eq!(servers.create(1, "/a/mine"), Some(0));
    servers.pass(SESSION / 2);
    assert!(servers.is_there("/a/mine"));
    servers.pass(SESSION);
    assert!(!servers.is_there("/a/mine") && servers.all.sessions().is_empty());
}

#[test]
fn a_leader_that_is_cut_off_ends_sessions_that_live_on() {
    let mut servers = Servers::new();
    let leader = servers.leader();
    let session = servers.greet(servers.follower(), 1, 0).unwrap();
    assert_eq!(servers.create(1, "/a/mine"), Some(0));
    (0..3).filter(|other| *other != leader).for_each(|other| servers.all.cut(leader, other));
    servers.pass(SESSION + 2 * TICK);
    assert_eq!(servers.greet(leader, 2, session), Some(0), "the leader says that it is over");
    servers.all.kill(leader);
    servers.pass(SESSION);
    assert!(servers.is_there("/a/mine") && servers.all.sessions() == [session]);
    assert_eq!(servers.greet(servers.leader(), 3, session), Some(session));
}

/// Whether a deletion that a follower could not pass on is executed once it can.
fn late_deletion_is_done(is_asked_again: bool) -> bool {
    let mut servers = Servers::new();
    let (leader, follower) = (servers.leader(), servers.follower());
    let session = servers.greet(follower, 1, 0).unwrap();
    assert_eq!(servers.create(1, "/a/lock"), Some(0));
    servers.all.cut(leader, follower);
    assert_eq!(servers.delete(1, "/a/lock"), None);
    if is_asked_again {
        assert_eq!(servers.greet(follower, 2, session), None);
    }
    assert_eq!(servers.greet(leader, 3, session), Some(session));
    assert!(servers.exists(3, "/a/lock"));
    servers.all.heal();
    servers.pass(MOMENT);
    !servers.is_there("/a/lock")
}

#[test]
fn a_late_write_is_refused_unless_its_server_was_asked_for_the_session_once_more() {
    assert!(!late_deletion_is_done(false));
    assert!(late_deletion_is_done(true));
}

#[test]
fn a_server_that_lost_a_deletion_shows_the_node_while_the_others_decide() {
    let mut servers = Servers::new();
    let (leader, follower) = (servers.leader(), servers.follower());
    servers.greet(leader, 1, 0).unwrap();
    servers.greet(follower, 2, 0).unwrap();
    assert_eq!(servers.create(1, "/a/gone"), Some(0));
    assert!(servers.all.lose_deletions(follower, 1) && !servers.all.lose_deletions(leader, 1));
    assert_eq!(servers.delete(1, "/a/gone"), Some(0));
    assert!(servers.exists(2, "/a/gone") && !servers.exists(1, "/a/gone") && !servers.is_there("/a/gone"));
    assert_eq!(servers.delete(2, "/a/gone"), Some(code::NO_NODE));
    assert!(servers.exists(2, "/a/gone"));
    // The next is not lost.
    assert_eq!((servers.create(1, "/a/other"), servers.delete(1, "/a/other")), (Some(0), Some(0)));
    assert!(!servers.exists(2, "/a/other") && !servers.all.nodes().contains(&"/a/gone".to_owned()));

    servers.all.kill(follower);
    servers.all.start(follower);
    servers.pass(SESSION);
    servers.greet(follower, 3, 0).unwrap();
    assert!(!servers.exists(3, "/a/gone"));
}
