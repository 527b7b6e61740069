//! Starts and controls servers for tests that are not written in Rust: one command per line on stdin, one answer per
//! line on stdout.
//!
//! An answer is `ok …` or `error …`. Everything ends with stdin, and with this process, however it ends. `help` lists
//! the commands.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::time::Duration;

use ground::wire::{Admin, Mode, try_expire};
use ground::{Action, Direction, Ensemble, Gate, Hook, Kind, Message, Proxy, Server, Side, Trigger, until};

const HELP: &str = "\
start standalone [tick=MS] [max-session=MS] [version=RELEASE] [tls] [sasl=USER:PASSWORD] [real]: \
connect string (of the server in memory, unless it must do what that does not, or is to be real); \
tls: connect string for TLS, PEM files: authority, client certificate, its key, an authority that the server does not know, \
a client certificate from there, its key; \
stop; \
servers; pause I; home I: its folder; proxy I: its number P and its address; \
cut P; reset P; freeze P to-server|to-client|both; thaw P; refuse P on|off; delay P MS; \
drop-reply P KIND N [PATH]; hold-reply P KIND N [PATH]; hold-request P KIND N [PATH]; \
see-reply P KIND N [PATH]; see-request P KIND N [PATH]: the number H of a hook; \
open H; fired H; wait H MS: true or false; \
connections P; record P; messages P: what was recorded; expire P: ends the latest session through P; \
create PATH [DATA]; set PATH [DATA]; delete PATH; delete-tree PATH; exists PATH; data PATH; stat PATH; \
children PATH; wait-children PATH N MS; help";

fn main() {
    // The answer has the whole message. A backtrace on stderr would only confuse.
    std::panic::set_hook(Box::new(|_| ()));
    let mut ground = Ground::default();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let answer = catch_unwind(AssertUnwindSafe(|| ground.obey(&line))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            Err(text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default())
        });
        let answer = match answer {
            Ok(text) => format!("ok {text}"),
            Err(text) => format!("error {text}"),
        };
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{}", answer.trim_end().replace('\n', " | ")).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
}

/// An answer, or an error.
type Answer = Result<String, String>;

#[derive(Debug, Default)]
struct Ground {
    // In the order in which they must be dropped.
    admins: BTreeMap<SocketAddr, Admin>,
    proxies: Vec<Proxy>,
    hooks: Vec<(Hook, Gate)>,
    ensemble: Option<Ensemble>,
}

impl Ground {
    fn obey(&mut self, line: &str) -> Answer {
        let (command, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let words: Words<'_> = Words(rest.split_whitespace().collect());
        match command {
            "" => Ok(String::new()),
            "help" => Ok(HELP.to_owned()),
            "start" => self.start(&words),
            "stop" => {
                *self = Self::default();
                Ok(String::new())
            }
            "servers" => Ok(self.ensemble()?.connect_string()),
            "tls" => self.tls(),
            "pause" => {
                self.server_of(words.at(0)?)?.pause();
                Ok(String::new())
            }
            "home" => Ok(self.server_of(words.at(0)?)?.home().display().to_string()),
            "proxy" => {
                let proxy = Proxy::before(self.server_of(words.at(0)?)?);
                let address = proxy.address();
                self.proxies.push(proxy);
                Ok(format!("{} {address}", self.proxies.len()))
            }
            "drop-reply" | "hold-reply" | "hold-request" | "see-reply" | "see-request" => {
                self.hook(command, &words)
            }
            "open" => {
                self.hook_of(&words)?.1.open();
                Ok(String::new())
            }
            "fired" => Ok(self.hook_of(&words)?.0.fired().to_string()),
            "wait" => Ok(self.hook_of(&words)?.0.wait(words.millis(1)?).to_string()),
            "cut" | "reset" | "freeze" | "thaw" | "refuse" | "delay" | "connections" | "record"
            | "messages" | "expire" => self.proxy(command, &words),
            "create" | "set" | "delete" | "delete-tree" | "exists" | "data" | "stat" | "children"
            | "wait-children" => self.operate(command, rest, &words),
            _ => Err(format!("no command: {command}; try help")),
        }
    }

    fn start(&mut self, words: &Words<'_>) -> Answer {
        if words.at(0)? != "standalone" {
            return Err(format!("standalone, not {}", words.0[0]));
        }
        let mut builder = Ensemble::builder();
        for option in &words.0[1..] {
            builder = match option.split_once('=') {
                Some(("tick", value)) => builder.tick(millis(value)?),
                Some(("max-session", value)) => builder.max_session_timeout(millis(value)?),
                Some(("version", value)) => builder.version(value),
                Some(("sasl", value)) => {
                    builder.sasl(&[value.split_once(':').ok_or("no password: sasl=USER:PASSWORD")?])
                }
                None if *option == "tls" => builder.tls(true),
                None if *option == "real" => builder.real(),
                _ => return Err(format!("no option: {option}")),
            };
        }
        *self = Self::default();
        let ensemble = builder.try_start()?;
        let text = ensemble.connect_string();
        self.ensemble = Some(ensemble);
        Ok(text)
    }

    fn tls(&self) -> Answer {
        let ensemble = self.ensemble()?;
        let files = ensemble.certificates();
        let files = [
            files.authority(),
            files.client(),
            files.client_key(),
            files.stranger(),
            files.intruder(),
            files.intruder_key(),
        ];
        let files = files.iter().map(|file| file.display().to_string());
        Ok(join(std::iter::once(ensemble.tls_connect_string()).chain(files)))
    }

    fn proxy(&self, command: &str, words: &Words<'_>) -> Answer {
        let proxy = self.proxy_of(words.at(0)?)?;
        match command {
            "cut" => proxy.cut(),
            "reset" => proxy.reset(),
            "freeze" => proxy.freeze(match words.at(1)? {
                "to-server" => Direction::ToServer,
                "to-client" => Direction::ToClient,
                "both" => Direction::Both,
                other => return Err(format!("to-server, to-client or both, not {other}")),
            }),
            "thaw" => proxy.thaw(),
            "refuse" => proxy.refuse(match words.at(1)? {
                "on" => true,
                "off" => false,
                other => return Err(format!("on or off, not {other}")),
            }),
            "delay" => proxy.delay(words.millis(1)?),
            "connections" => return Ok(proxy.connections().to_string()),
            "record" => proxy.record(),
            "messages" => return Ok(join(proxy.messages().iter().map(described))),
            _ => {
                let (id, password, _) = proxy.session().pop().ok_or("no session went through this proxy")?;
                let address = self.ensemble()?.leader().address();
                // The server may be busy with the end of the client's own connection, or give the session back to it.
                let gone = || matches!(try_expire(address, id, &password), Ok(false));
                let ended = until(Duration::from_secs(20), gone);
                return if ended { Ok(format!("{id:#x}")) } else { Err(format!("session {id:#x} lives on")) };
            }
        }
        Ok(String::new())
    }

    fn hook(&mut self, command: &str, words: &Words<'_>) -> Answer {
        let (what, side) = command.split_once('-').unwrap_or_default();
        let kind = Kind::from_str(words.at(1)?)?;
        let gate = Gate::new();
        let action = match what {
            "drop" => Action::DropReplyAndReset,
            "hold" => Action::Pause(gate.clone()),
            _ => Action::Pass,
        };
        let trigger = if side == "reply" { Trigger::reply(kind) } else { Trigger::request(kind) };
        let mut trigger = trigger.nth(words.number(2)?.max(1)).then(action);
        trigger.path = words.0.get(3).map(ToString::to_string);
        let hook = self.proxy_of(words.at(0)?)?.on(trigger);
        self.hooks.push((hook, gate));
        Ok(self.hooks.len().to_string())
    }

    fn operate(&mut self, command: &str, rest: &str, words: &Words<'_>) -> Answer {
        let path = words.at(0)?;
        // The rest of the line, so that data may contain spaces.
        let data =
            rest.trim_start().strip_prefix(path).map_or("", |data| data.strip_prefix(' ').unwrap_or(data));
        let admin = self.admin()?;
        Ok(match command {
            "create" => admin.create_mode(path, data, Mode::Persistent),
            "set" => admin.set(path, data).version.to_string(),
            "delete" => {
                admin.delete(path);
                String::new()
            }
            "delete-tree" => {
                admin.delete_tree(path);
                String::new()
            }
            "exists" => admin.stat(path).is_some().to_string(),
            "data" => String::from_utf8_lossy(&admin.data(path)).into_owned(),
            "stat" => {
                let stat = admin.stat(path).ok_or_else(|| format!("no node {path}"))?;
                format!(
                    "czxid={:#x} mzxid={:#x} version={} cversion={} owner={:#x} children={}",
                    stat.czxid,
                    stat.mzxid,
                    stat.version,
                    stat.cversion,
                    stat.ephemeral_owner,
                    stat.num_children
                )
            }
            "children" => join(admin.children(path)),
            _ => join(admin.wait_for_children(path, words.number(1)?, words.millis(2)?)),
        })
    }

    /// An operator on the leader, so that it reads the latest state.
    fn admin(&mut self) -> Result<&Admin, String> {
        let address = self.ensemble()?.leader().address();
        Ok(self.admins.entry(address).or_insert_with(|| Admin::connect(address)))
    }

    fn ensemble(&self) -> Result<&Ensemble, String> {
        self.ensemble.as_ref().ok_or_else(|| "nothing is started".to_owned())
    }

    fn server_of(&self, word: &str) -> Result<&Server, String> {
        numbered(self.ensemble()?.servers(), word)
    }

    fn proxy_of(&self, word: &str) -> Result<&Proxy, String> {
        numbered(&self.proxies, word)
    }

    fn hook_of(&self, words: &Words<'_>) -> Result<&(Hook, Gate), String> {
        numbered(&self.hooks, words.at(0)?)
    }
}

/// The first is number 1.
fn numbered<'a, T>(all: &'a [T], word: &str) -> Result<&'a T, String> {
    let index = word.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    index.and_then(|index| all.get(index)).ok_or_else(|| format!("no such number: {word}"))
}

/// The arguments of a command.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn at(&self, index: usize) -> Result<&'a str, String> {
        self.0.get(index).copied().ok_or_else(|| format!("a word is missing after {:?}; try help", self.0))
    }

    fn number(&self, index: usize) -> Result<usize, String> {
        let word = self.at(index)?;
        word.parse().map_err(|_| format!("no number: {word}"))
    }

    fn millis(&self, index: usize) -> Result<Duration, String> {
        millis(self.at(index)?)
    }
}

fn millis(word: &str) -> Result<Duration, String> {
    word.parse().map(Duration::from_millis).map_err(|_| format!("no milliseconds: {word}"))
}

fn join(words: impl IntoIterator<Item = impl Into<String>>) -> String {
    words.into_iter().map(Into::into).collect::<Vec<String>>().join(" ")
}

/// `request:create:/a` or `reply:create:/a:-101`.
fn described(message: &Message) -> String {
    let kind = format!("{:?}", message.kind).to_lowercase();
    match message.side {
        Side::Request => format!("request:{kind}:{}", message.path),
        Side::Reply => format!("reply:{kind}:{}:{}", message.path, message.error),
    }
}
