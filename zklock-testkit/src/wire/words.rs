//! The four-letter words that operators type. [`report`](crate::state::report) has the answers.

use crate::wire::code::opcode;

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

/// The name of an operation in `cons`.
pub(crate) fn operation(number: i32) -> &'static str {
    match number {
        opcode::CREATE | opcode::CREATE_2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => "CREA",
        opcode::DELETE => "DELE",
        opcode::EXISTS => "EXIS",
        opcode::GET_DATA => "GETD",
        opcode::SET_DATA => "SETD",
        opcode::GET_ACL => "GETA",
        opcode::SET_ACL => "SETA",
        opcode::GET_CHILDREN | opcode::GET_CHILDREN_2 => "GETC",
        opcode::SYNC => "SYNC",
        opcode::PING => "PING",
        opcode::CHECK => "CHEC",
        opcode::MULTI => "MULT",
        opcode::MULTI_READ => "MLTR",
        opcode::CHECK_WATCHES => "CHKW",
        opcode::REMOVE_WATCHES => "REMW",
        opcode::SET_WATCHES => "SETW",
        opcode::SET_WATCHES_2 => "STW2",
        opcode::ADD_WATCH => "ADDW",
        opcode::GET_EPHEMERALS => "GETE",
        opcode::GET_ALL_CHILDREN_NUMBER => "GETACN",
        opcode::WHO_AM_I => "HOMI",
        opcode::CLOSE_SESSION => "CLOS",
        _ => "NA",
    }
}
