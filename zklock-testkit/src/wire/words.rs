//! The four-letter words that operators type. [`report`](crate::state::report) has the answers.

const KNOWN: [&str; 18] = [
    "conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "mntr", "ruok", "srst", "srvr",
    "stat", "stmk", "wchc", "wchp", "wchs",
];

/// The word that a connection has begun with, if any.
pub(crate) fn recognise(bytes: [u8; 4]) -> Option<&'static str> {
    KNOWN.into_iter().find(|word| word.as_bytes() == bytes)
}

/// The words that are answered, if they are allowed.
const ANSWERED: [&str; 9] = ["conf", "cons", "envi", "isro", "mntr", "ruok", "srvr", "stat", "wchs"];

/// The allowed words, in the format of ZooKeeper's `4lw.commands.whitelist`.
#[derive(Debug, Clone)]
pub(crate) struct Allowed(Vec<String>);

impl Allowed {
    pub(crate) fn new(list: &str) -> Self {
        Self(list.split(',').map(|word| word.trim().to_owned()).collect())
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        ANSWERED.contains(&word) && self.0.iter().any(|allowed| allowed == "*" || allowed == word)
    }
}
