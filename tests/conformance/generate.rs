//! Random conversations, with few paths, so that operations collide.
//!
//! Requests that end a real server, or that depend on a race inside it, are left out, each with its reason.

use crate::request::Then::{Nothing, Number, Watch};
use crate::request::{Acl, BROKEN, Data, EMPTY, Maker, NULL, OPEN, Op, Request};
use crate::step::{Connect, Password, Seen, Step, Wanted};
use ground::Dice;

const PATHS: [&str; 14] = [
    "@",
    "@/a",
    "@/a",
    "@/a",
    "@/b",
    "@/b",
    "@/a/c",
    "@/a/c",
    "@/a/d",
    "@/b/c",
    "@/a/c/e",
    "@/q-0000000000",
    "@/q-0000000001",
    "@/a/q-0000000001",
];
const SEQUENCES: [&str; 5] = ["@/q-", "@/q-", "@/a/q-", "@/b/q-", "@/a/"];
const ODD: [&str; 21] = [
    "",
    "x",
    "/",
    "//",
    "@/",
    "@/a/",
    "@//x",
    "@/../x",
    "@/.",
    "@/a/..",
    "@/...",
    "@/nul\0",
    "@/\u{1}",
    "@/\u{7f}",
    "@/\u{e000}",
    "@/\u{1f600}",
    "@/\u{fc}",
    BROKEN,
    "/zookeeper",
    "/zookeeper/quota",
    "/zookeeper/config",
];
const WORDS: [&str; 10] = ["ruok", "srvr", "mntr", "wchs", "isro", "nope", "envi", "stat", "conf", "cons"];

/// Lists other than the open one. kazoo's `CREATOR_ALL_ACL` names null. A second null is compared with the first.
const ACLS: [Acl; 24] = [
    Some(&[(1, "world", "anyone")]),
    Some(&[(30, "world", "anyone")]),
    Some(&[(31, "auth", "")]),
    Some(&[(31, "auth", "")]),
    BOB,
    BOB,
    Some(&[(28, "ip", "127.0.0.0/8"), (2, "ip", "127.0.0.1"), (1, "ip", "0.0.0.0/0")]),
    Some(&[(31, "ip", "10.1.2.3"), (9, "world", "anyone")]),
    Some(&[(31, "world", "anyone"), (31, "world", "anyone"), (1, "world", "anyone")]),
    Some(&[(31, "nobody's", "x")]),
    Some(&[(31, "world", "someone")]),
    Some(&[(31, "ip", "1.2.3.4/33")]),
    Some(&[(31, "digest", "bob")]),
    Some(&[(0, "world", "anyone")]),
    Some(&[(31, "auth", NULL), (1, "world", "anyone")]),
    Some(&[(31, "auth", NULL), (1, "world", "anyone")]),
    Some(&[(31, "auth", NULL), (31, "auth", NULL)]),
    Some(&[(31, "world", NULL)]),
    Some(&[(31, "digest", NULL)]),
    Some(&[(31, "ip", NULL)]),
    Some(&[(31, NULL, "x")]),
    Some(&[(31, "nobody's", NULL)]),
    EMPTY,
    None,
];
const BOB: Acl = Some(&[(31, "digest", "bob:ikIaKsbtGweaHnb/jKn7OHqbunM="), (1, "world", "anyone")]);

/// A generator, and its idea of the conversation so far.
struct Author {
    dice: Dice,
    is_connected: Vec<bool>,
}

/// The conversation of a seed: its number of slots, and its steps.
pub(crate) fn conversation(seed: u64, length: usize) -> (usize, Vec<Step>) {
    let mut dice = Dice::new(seed);
    let slots = 3 + dice.below(3);
    let mut author = Author { dice, is_connected: vec![true; slots] };
    let mut steps: Vec<Step> = (0..slots).map(opening).collect();
    steps.push(create_root());
    // Most conversations start with some nodes. Otherwise most answers would be that there is no node.
    for path in ["@/a", "@/b", "@/a/c", "@/a/c/e"] {
        if author.dice.chance(65) {
            let (data, acl) = (author.data(), author.acl(95));
            let flags = author.dice.pick(&[0, 0, 0, 1]);
            let node = Request::Create { maker: Maker::Create, path: path.to_owned(), data, acl, flags };
            let slot = author.dice.below(slots);
            steps.push(Step::Send { slot, requests: vec![node] });
        }
    }
    while steps.len() < length {
        steps.push(author.step());
    }
    (slots, steps)
}

/// The tree of the conversation.
pub(crate) fn create_root() -> Step {
    let (path, data) = ("@".to_owned(), Some(0));
    let root = Request::Create { maker: Maker::Create2, path, data, acl: OPEN, flags: 0 };
    Step::Send { slot: 0, requests: vec![root] }
}

/// A first connection, with a new session.
pub(crate) fn opening(slot: usize) -> Step {
    Step::Connect(Connect::usual(slot, Wanted::New))
}

impl Author {
    fn step(&mut self) -> Step {
        let slot = self.dice.below(self.is_connected.len());
        if !self.is_connected[slot] {
            return self.connect(slot);
        }
        match self.dice.weighted(&[90, 5, 2, 3]) {
            0 => self.send(slot),
            1 => self.connect(slot),
            2 => {
                self.is_connected[slot] = false;
                Step::HangUp { slot }
            }
            _ => Step::Word(self.dice.pick(&WORDS)),
        }
    }

    fn connect(&mut self, slot: usize) -> Step {
        let other = self.dice.below(self.is_connected.len());
        let wanted = self.dice.pick(&[
            Wanted::New,
            Wanted::New,
            Wanted::Of(slot),
            Wanted::Of(slot),
            Wanted::Of(slot),
            Wanted::Of(other),
            Wanted::Of(other),
            Wanted::Unheard,
        ]);
        let password = match self.dice.below(12) {
            0 => Password::Wrong,
            1 => Password::Short,
            2 => Password::Null,
            _ => Password::Right,
        };
        let seen = match self.dice.below(12) {
            0 => Seen::Future,
            1..4 => Seen::Nothing,
            _ => Seen::Last,
        };
        if let Wanted::Of(other) = wanted {
            self.is_connected[other] = false;
        }
        self.is_connected[slot] = wanted != Wanted::Unheard && seen != Seen::Future;
        Step::Connect(Connect {
            slot,
            wanted,
            password,
            seen,
            timeout: self.dice.pick(&[30_000, 30_000, 30_000, 12_345, 100_000, 0, -5]),
            read_only: self.dice.pick(&[Some(false), Some(false), Some(true), None]),
            cut: self.dice.chance(3).then(|| 20 + self.dice.below(25)),
        })
    }

    fn send(&mut self, slot: usize) -> Step {
        let first = self.request();
        let mut requests = vec![first];
        // A flight of several requests. Only the last may race with those around it.
        let count = if self.dice.chance(25) { 1 + self.dice.below(4) } else { 0 };
        for _ in 0..count {
            let next = self.request();
            let last = requests.last().expect("a flight has one at least");
            // A real server answers pings, and failures to read, in the same order as all others.
            if last.is_alone() || last.may_close() || next.is_alone() {
                break;
            }
            requests.push(next);
        }
        if requests.iter().any(Request::is_fatal) {
            self.is_connected[slot] = false;
        }
        Step::Send { slot, requests }
    }

    fn request(&mut self) -> Request {
        match self.dice.weighted(&[60, 10, 10, 6, 5, 4, 2]) {
            0 => self.simple(),
            1 => {
                let count = self.dice.pick(&[0, 1, 1, 2, 2, 3, 4]);
                let parts = (0..count).map(|_| self.part()).collect();
                if self.dice.chance(2) { Request::MultiRead(parts) } else { Request::Multi(parts) }
            }
            2 => self.watch(),
            3 => {
                let count = self.dice.below(4);
                let parts = (0..count).map(|_| self.read_part()).collect();
                if self.dice.chance(5) { Request::Multi(parts) } else { Request::MultiRead(parts) }
            }
            4 => self.authenticate(),
            5 => self.unusual(),
            _ => Request::Close,
        }
    }

    fn simple(&mut self) -> Request {
        let watch = self.dice.chance(50);
        match self.dice.weighted(&[22, 10, 10, 2, 7, 6, 5, 5, 2, 4, 2, 2, 1, 2, 2]) {
            0 => self.create(),
            1 => Request::At(Op::Delete, self.path(), Number(self.version())),
            2 => self.set_data(),
            3 => Request::At(Op::Check, self.path(), Number(self.version())),
            4 => Request::At(Op::Exists, self.path(), Watch(watch)),
            5 => Request::At(Op::GetData, self.path(), Watch(watch)),
            6 => Request::At(Op::GetChildren, self.path(), Watch(watch)),
            7 => Request::At(Op::GetChildren2, self.path(), Watch(watch)),
            8 => Request::At(Op::GetAcl, self.path(), Nothing),
            9 => Request::SetAcl(self.own_path(), self.acl(35), self.version()),
            10 => Request::At(Op::Count, self.path(), Nothing),
            11 => Request::At(Op::Ephemerals, self.path(), Nothing),
            12 => Request::At(Op::Sync, self.path(), Nothing),
            13 => Request::Ping,
            _ => Request::WhoAmI,
        }
    }

    /// One operation of a `multi`.
    fn part(&mut self) -> Request {
        match self.dice.weighted(&[45, 20, 20, 15]) {
            0 => self.create(),
            1 => Request::At(Op::Delete, self.path(), Number(self.version())),
            2 => self.set_data(),
            _ => Request::At(Op::Check, self.path(), Number(self.version())),
        }
    }

    fn read_part(&mut self) -> Request {
        let op = if self.dice.chance(50) { Op::GetData } else { Op::GetChildren };
        Request::At(op, self.path(), Watch(false))
    }

    fn create(&mut self) -> Request {
        let maker = match self.dice.weighted(&[40, 40, 12, 8]) {
            0 => Maker::Create,
            1 => Maker::Create2,
            2 => Maker::Container,
            _ => Maker::Ttl(self.dice.pick(&[1, 60_000, 0, 1 << 50])),
        };
        let flags = match maker {
            _ if self.dice.chance(3) => self.dice.pick(&[-1, 4, 5, 6, 7, 99]),
            Maker::Container => 4,
            // Without a time to live, `createTTL` of another mode ends a real server.
            Maker::Ttl(_) => self.dice.pick(&[5, 5, 6, 0]),
            _ => self.dice.pick(&[0, 0, 1, 1, 2, 3]),
        };
        let is_sequence = matches!(flags, 2 | 3 | 6);
        let path = if is_sequence && self.dice.chance(85) {
            self.dice.pick(&SEQUENCES).to_owned()
        } else {
            self.path()
        };
        Request::Create { maker, path, data: self.data(), acl: self.acl(80), flags }
    }

    fn watch(&mut self) -> Request {
        // A watch on null would stay in a real server's tables, and break them.
        let path = Some(self.path()).filter(|path| path != NULL).unwrap_or_default();
        match self.dice.weighted(&[35, 25, 20, 20]) {
            0 => Request::At(Op::AddWatch, path, Number(self.dice.pick(&[0, 0, 0, 1, 1, 1, 2, -1]))),
            1 => Request::At(Op::RemoveWatches, path, Number(self.dice.pick(&[1, 2, 3, 3, 3, 0, 9]))),
            2 => Request::At(Op::CheckWatches, path, Number(self.dice.pick(&[1, 2, 3, 3, 3, 0, 9]))),
            _ => {
                let second = self.dice.chance(50);
                let mut list = || {
                    let count = self.dice.pick(&[0, 1, 1, 2, 3]);
                    (0..count).map(|_| self.dice.pick(&PATHS).to_owned()).collect()
                };
                let lists = (0..if second { 5 } else { 3 }).map(|_| list()).collect();
                Request::SetWatches { second, ago: self.dice.pick(&[0, 0, 1, 3, 10, 1000, -100]), lists }
            }
        }
    }

    fn authenticate(&mut self) -> Request {
        let (scheme, credentials) = self.dice.pick(&[
            ("digest", "bob:pw"),
            ("digest", "bob:pw"),
            ("digest", "bob:pw"),
            ("digest", "eve:pw"),
            ("digest", "eve"),
            ("ip", "1.2.3.4"),
            ("world", "anyone"),
            ("nobody's", "x"),
        ]);
        Request::Auth(scheme, credentials)
    }

    fn unusual(&mut self) -> Request {
        match self.dice.weighted(&[25, 50, 8, 8, 9]) {
            0 => Request::Other(self.dice.pick(&[0, 10, 16, 20, 23, 99, 108, 1000, -1, -2])),
            1 => {
                let request = match self.dice.below(4) {
                    0 => self.part(),
                    1 => Request::Multi(vec![self.part()]),
                    2 => self.watch(),
                    _ => self.simple(),
                };
                Request::Truncated(Box::new(request), self.dice.below(12))
            }
            2 => Request::NoHeader,
            3 => Request::Length(self.dice.pick(&[-1, 0, 0x7fff_ffff, 0x0100_0000])),
            _ => Request::Sasl,
        }
    }

    fn path(&mut self) -> String {
        match self.dice.below(100) {
            0 => NULL.to_owned(),
            1 => format!("@/{}", "long".repeat(1500)),
            2..7 => self.dice.pick(&ODD).to_owned(),
            _ => self.dice.pick(&PATHS).to_owned(),
        }
    }

    fn set_data(&mut self) -> Request {
        // The root's own data is put right before each conversation.
        let path = if self.dice.chance(1) { "/".to_owned() } else { self.own_path() };
        Request::SetData(path, self.data(), self.version())
    }

    /// A path of this conversation, or none at all: changes of other paths would outlive it.
    fn own_path(&mut self) -> String {
        let path = self.path();
        let is_shared = path == "/" || path.starts_with("/zookeeper");
        if is_shared { "@".to_owned() } else { path }
    }

    fn version(&mut self) -> i32 {
        self.dice.pick(&[-1, -1, -1, -1, -1, 0, 0, 0, 1, 2, 7, -2])
    }

    fn data(&mut self) -> Data {
        self.dice.pick(&[None, Some(0), Some(1), Some(7), Some(100), Some(3000)])
    }

    fn acl(&mut self, open: usize) -> Acl {
        if self.dice.chance(open) { OPEN } else { self.dice.pick(&ACLS) }
    }
}
