//! The answer to each request.

use crate::access::{self, right};
use crate::code::{Code, opcode, xid};
use crate::jute::{Writer, length};
use crate::node::Node;
use crate::request::{Look, OldWatches, Request, Write};
use crate::transaction::Done;
use crate::watches::{EventType, Mode, Side};
use crate::world::{Asked, Moment, World};

type Body = Result<Writer, Code>;

/// The longest answer to a multi of reads.
const MAX_ANSWER: usize = 16 << 20;

impl World {
    pub(crate) fn answer(&mut self, moment: Moment, connection: u64, asked: Asked, request: Request) {
        let asked = match request {
            Request::Ping => Asked { xid: xid::PING, ..asked },
            _ => asked,
        };
        let none = Writer::default();
        let body = match request {
            Request::Write(write) => self.write(moment, connection, &write),
            Request::Multi(writes) => self.multi(moment, connection, &writes),
            Request::Nameless => {
                self.burn_zxid();
                Err(Code::MarshallingError)
            }
            Request::Look(look) => self.look(connection, &look),
            Request::MultiRead(looks) => self.multi_read(connection, &looks),
            Request::Exists { path, watch } => self.exists(connection, &path, watch),
            Request::GetAcl { path } => self.access_list(connection, &path),
            Request::Sync { path: None } => Ok(none.buffer(None)),
            Request::Sync { path: Some(path) } => Ok(none.text(&path)),
            Request::Ping => Ok(none),
            Request::OldWatches(old) => {
                self.watch_again(connection, &old);
                Ok(none)
            }
            Request::AddWatch { path, mode } => self.add_watch(connection, &path, mode),
            Request::RemoveWatches { path, kind } => match Side::from_number(kind) {
                None => Err(Code::MarshallingError),
                Some(side) if self.watches.remove(&path, side, connection) => Ok(none),
                Some(_) => Err(Code::NoWatcher),
            },
            Request::CheckWatches { path, kind } => match Side::from_number(kind) {
                None => Err(Code::MarshallingError),
                Some(_) if !path.is_empty() && !path.contains('/') => Err(Code::MarshallingError),
                Some(side) if self.watches.contains(&path, side, connection) => Ok(none),
                Some(_) => Err(Code::NoWatcher),
            },
            Request::Ephemerals { prefix } => Ok(self.ephemerals(connection, prefix.as_deref())),
            Request::CountBelow { path } => self
                .readable(connection, &path, right::READ)
                .map(|_| none.int(length(self.tree.count_below(&path)))),
            Request::WhoAmI => {
                let shown = self.connections[&connection].shown.iter();
                Ok(none.list(shown, |writer, id| writer.text(&id.scheme).text(id.user())))
            }
            Request::Reconfig => {
                self.next_zxid();
                Err(Code::ReconfigDisabled)
            }
            Request::CloseSession => Ok(none),
        };
        match body {
            Ok(body) => self.reply(connection, asked, Code::Ok, |head| head.and(body)),
            Err(code) => self.reply(connection, asked, code, |head| head),
        }
    }

    fn write(&mut self, moment: Moment, connection: u64, write: &Write) -> Body {
        let done = self.attempt(moment, connection, |transaction| transaction.write(write))?;
        Ok(write_done(Writer::default(), done))
    }

    /// Does all of the operations or none. The answer has a result for each operation.
    fn multi(&mut self, moment: Moment, connection: u64, writes: &[Write]) -> Body {
        let outcome = self.attempt(moment, connection, |transaction| {
            let mut all = Vec::new();
            for (index, write) in writes.iter().enumerate() {
                all.push(transaction.write(write).map_err(|code| (index, code))?);
            }
            Ok(all)
        });
        let body = match outcome {
            Ok(all) => all.into_iter().fold(Writer::default(), |writer, done| {
                let operation = match &done {
                    Done::Created(_) => opcode::CREATE,
                    Done::CreatedWithStat(..) => opcode::CREATE_2,
                    Done::Stat(_) => opcode::SET_DATA,
                    Done::Deleted => opcode::DELETE,
                    Done::Checked => opcode::CHECK,
                };
                write_done(writer.int(operation).boolean(false).int(0), done)
            }),
            Err((_, Code::MarshallingError)) => return Err(Code::MarshallingError),
            Err((failed, code)) => (0..writes.len()).fold(Writer::default(), |writer, index| {
                let code = match index.cmp(&failed) {
                    std::cmp::Ordering::Less => Code::Ok,
                    std::cmp::Ordering::Equal => code,
                    std::cmp::Ordering::Greater => Code::RuntimeInconsistency,
                };
                write_error(writer, code)
            }),
        };
        Ok(body.int(-1).boolean(true).int(-1))
    }

    /// A short request can ask for the same long node many times, so the answer is limited.
    fn multi_read(&mut self, connection: u64, looks: &[Look]) -> Body {
        let mut body = Writer::default();
        for look in looks {
            let operation = match look {
                Look::Data { .. } => opcode::GET_DATA,
                Look::Children { .. } => opcode::GET_CHILDREN,
            };
            body = match self.look(connection, look) {
                Ok(found) => body.int(operation).boolean(false).int(0).and(found),
                Err(code) => write_error(body, code),
            };
            if body.length() > MAX_ANSWER {
                return Err(Code::MarshallingError);
            }
        }
        Ok(body.int(-1).boolean(true).int(-1))
    }

    fn look(&mut self, connection: u64, look: &Look) -> Body {
        match look {
            Look::Data { path, watch } => {
                let node = self.readable(connection, path, right::READ)?;
                let body = node.stat().write(Writer::default().buffer(node.data.as_deref()));
                if *watch {
                    self.watches.watch_data(path, connection);
                }
                Ok(body)
            }
            Look::Children { path, watch, with_stat } => {
                let node = self.readable(connection, path, right::READ)?;
                let body = Writer::default().list(node.children.iter(), |writer, name| writer.text(name));
                let body = if *with_stat { node.stat().write(body) } else { body };
                if *watch {
                    self.watches.watch_children(path, connection);
                }
                Ok(body)
            }
        }
    }

    /// A client can set a watch on a node that does not exist. No right is needed, as in the version that is imitated.
    fn exists(&mut self, connection: u64, path: &str, watch: bool) -> Body {
        if path.contains('\0') {
            return Err(Code::BadArguments);
        }
        if watch {
            self.watches.watch_data(path, connection);
        }
        let node = self.tree.node(path).ok_or(Code::NoNode)?;
        Ok(node.stat().write(Writer::default()))
    }

    fn access_list(&self, connection: u64, path: &str) -> Body {
        let node = self.readable(connection, path, right::READ | right::ADMIN)?;
        let may_see_all = self.readable(connection, path, right::ADMIN).is_ok();
        let body = Writer::default().list(node.access.iter(), |writer, entry| {
            if may_see_all { entry.write(writer) } else { entry.veiled().write(writer) }
        });
        Ok(node.stat().write(body))
    }

    fn ephemerals(&self, connection: u64, prefix: Option<&str>) -> Writer {
        let session = self.connections[&connection].session.unwrap_or(0);
        let prefix = prefix.filter(|prefix| !matches!(prefix.trim(), "" | "/")).unwrap_or("");
        let all: Vec<_> = self.tree.ephemerals(session).filter(|path| path.starts_with(prefix)).collect();
        Writer::default().list(all.iter(), |writer, path| writer.text(path))
    }

    fn add_watch(&mut self, connection: u64, path: &str, mode: i32) -> Body {
        let mode = match mode {
            0 => Mode::Persistent,
            1 => Mode::Recursive,
            _ => return Err(Code::MarshallingError),
        };
        self.watches.watch_on(path, connection, mode);
        Ok(Writer::default().int(0))
    }

    /// A client has come back on a new connection. It gets its watches back, and at once any events that it missed.
    fn watch_again(&mut self, connection: u64, old: &OldWatches) {
        for path in &old.data {
            match self.tree.node(path).map(|node| node.mzxid > old.zxid) {
                None => self.notify(connection, EventType::Deleted, path),
                Some(true) => self.notify(connection, EventType::DataChanged, path),
                Some(false) => self.watches.watch_data(path, connection),
            }
        }
        for path in &old.exist {
            match self.tree.node(path) {
                Some(_) => self.notify(connection, EventType::Created, path),
                None => self.watches.watch_data(path, connection),
            }
        }
        for path in &old.child {
            match self.tree.node(path).map(|node| node.pzxid > old.zxid) {
                None => self.notify(connection, EventType::Deleted, path),
                Some(true) => self.notify(connection, EventType::ChildrenChanged, path),
                Some(false) => self.watches.watch_children(path, connection),
            }
        }
        for (paths, mode) in [(&old.persistent, Mode::Persistent), (&old.recursive, Mode::Recursive)] {
            for path in paths {
                self.watches.watch_on(path, connection, mode);
            }
        }
    }

    /// The node, if the connection has one of these rights.
    fn readable(&self, connection: u64, path: &str, rights: i32) -> Result<&Node, Code> {
        let node = self.tree.node(path).ok_or(Code::NoNode)?;
        access::check(&node.access, rights, &self.connections[&connection].shown)?;
        Ok(node)
    }
}

fn write_done(writer: Writer, done: Done) -> Writer {
    match done {
        Done::Created(path) => writer.text(&path),
        Done::CreatedWithStat(path, stat) => stat.write(writer.text(&path)),
        Done::Stat(stat) => stat.write(writer),
        Done::Deleted | Done::Checked => writer,
    }
}

fn write_error(writer: Writer, code: Code) -> Writer {
    writer.int(opcode::ERROR).boolean(false).int(code as i32).int(code as i32)
}
