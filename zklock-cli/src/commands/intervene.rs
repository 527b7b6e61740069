//! `zklock break`, `zklock evict` and `zklock request-release`: the ways in which an operator intervenes.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use zklock::Client;

use crate::commands::contenders::{self, Entry, Found, Subject};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{print, print_json};

/// What all of them have in common.
#[derive(Args, Debug)]
pub(crate) struct Consent {
    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Write JSON: an array of the contenders that were hit
    #[arg(long)]
    json: bool,
}

/// Take a lock away from its holders, by deleting their nodes
///
/// This breaks what the lock guards, unless the holders are known to have stopped: until they learn of it, they believe that
/// they hold the lock, while others already do. To ask them instead, use `zklock request-release`.
#[derive(Args, Debug)]
pub(crate) struct Break {
    #[command(flatten)]
    subject: Subject,

    #[command(flatten)]
    consent: Consent,
}

/// Take one contender out of the queue, by deleting its node
///
/// A waiter queues again. A holder loses the lock: see `zklock break --help-all`.
#[derive(Args, Debug)]
pub(crate) struct Evict {
    #[command(flatten)]
    subject: Subject,

    /// The contender, as `zklock ls --long` shows it: its NAME, or its IDENTITY if that is the only one
    name: String,

    #[command(flatten)]
    consent: Consent,
}

/// Ask the holders of a lock to release it
///
/// This takes nothing away. Holders that listen release the lock when they can: those of zklock that look for `wanted`, and
/// those of Curator that called `makeRevocable`.
#[derive(Args, Debug)]
pub(crate) struct RequestRelease {
    #[command(flatten)]
    subject: Subject,

    /// Write JSON: an array of the contenders that were asked
    #[arg(long)]
    json: bool,
}

impl Break {
    pub(crate) async fn execute(&self, client: &Client) -> Result<(), Failure> {
        let found = self.subject.find(client).await?;
        let holders: Vec<_> = contenders::entries(&found).into_iter().filter(|entry| entry.holds).collect();
        refuse_nobody(&holders, format!("nobody holds {}", self.subject.path))?;
        self.consent.obtain(&format!("Take the lock {} away from", self.subject.path), &holders)?;
        let mut broken = Vec::new();
        // Of the present holders, only those that were shown: another may have got the lock meanwhile.
        for Found { lock, way, .. } in &found {
            for contender in lock.contenders().await? {
                let entry = Entry::of(*way, &contender);
                let was_shown =
                    holders.iter().any(|seen| seen.node == entry.node && seen.token == entry.token);
                if was_shown && lock.evict(&contender.node).await? {
                    broken.push(entry);
                }
            }
        }
        self.consent.tell("has lost the lock", &broken)
    }
}

impl Evict {
    pub(crate) async fn execute(&self, client: &Client) -> Result<(), Failure> {
        let found = self.subject.find(client).await?;
        let named = |name: bool| {
            let all = found.iter().flat_map(|found| found.contenders.iter().map(move |one| (found, one)));
            all.filter(|(_, one)| if name { one.name == self.name } else { one.identity == self.name })
                .collect::<Vec<_>>()
        };
        let by_name = named(true);
        let matching = if by_name.is_empty() { named(false) } else { by_name };
        let [(found, contender)] = matching[..] else {
            let (path, name) = (&self.subject.path, &self.name);
            let nobody =
                format!("{name:?} neither holds {path} nor waits for it: `zklock ls {path}` shows who does");
            refuse_nobody(&matching, nobody)?;
            let count = matching.len();
            let several =
                format!("{count} contenders of {path} call themselves {name:?}: give the NAME of one");
            return Err(Failure::new(Exit::Finding, several));
        };
        let entry = Entry::of(found.way, contender);
        let verb = if entry.holds { "Take the lock {} away from" } else { "Take out of the queue of {}" };
        self.consent.obtain(&verb.replace("{}", &self.subject.path), std::slice::from_ref(&entry))?;
        let is_hit = found.lock.evict(&contender.node).await?;
        let evicted = if is_hit { vec![entry] } else { Vec::new() };
        self.consent.tell("was evicted", &evicted)
    }
}

impl RequestRelease {
    pub(crate) async fn execute(&self, client: &Client) -> Result<(), Failure> {
        let mut asked = Vec::new();
        for Found { lock, way, .. } in &self.subject.find(client).await? {
            asked.extend(lock.request_release().await?.iter().map(|contender| Entry::of(*way, contender)));
        }
        refuse_nobody(&asked, format!("nobody holds {}", self.subject.path))?;
        tell(self.json, "was asked to release the lock", &asked)
    }
}

impl Consent {
    /// Asks for consent, unless it was given before. Without a terminal nobody could answer.
    fn obtain(&self, question: &str, entries: &[Entry]) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::usage(
                "there is no terminal on which to ask: give --yes if you are certain",
            ));
        }
        let mut errors = io::stderr();
        for entry in entries {
            let _ = writeln!(errors, "{question} {}", entry.description());
        }
        let _ = write!(errors, "They may still be working. Go on? [y/N] ");
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::new(Exit::Finding, "nothing was done")),
        }
    }

    fn tell(&self, what: &str, entries: &[Entry]) -> Result<(), Failure> {
        refuse_nobody(entries, "nothing was done: it no longer existed".to_owned())?;
        tell(self.json, what, entries)
    }
}

fn refuse_nobody<T>(entries: &[T], problem: String) -> Result<(), Failure> {
    if entries.is_empty() { Err(Failure::new(Exit::Finding, problem)) } else { Ok(()) }
}

fn tell(json: bool, what: &str, entries: &[Entry]) -> Result<(), Failure> {
    if json {
        return print_json(&entries);
    }
    let lines: String = entries.iter().map(|entry| format!("{} {what}\n", entry.description())).collect();
    print(&lines)
}
