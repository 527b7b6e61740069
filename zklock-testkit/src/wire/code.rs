//! ZooKeeper's numbers: errors and operations.

use crate::wire::kind::Kind;

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Ok = 0,
    RuntimeInconsistency = -2,
    MarshallingError = -5,
    Unimplemented = -6,
    BadArguments = -8,
    NoNode = -101,
    NoAuth = -102,
    BadVersion = -103,
    NoChildrenForEphemerals = -108,
    NodeExists = -110,
    NotEmpty = -111,
    InvalidAcl = -114,
    AuthFailed = -115,
    EphemeralOnLocalSession = -120,
    NoWatcher = -121,
    ReconfigDisabled = -123,
}

/// An operation that a client asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    /// Its name in `cons`.
    pub(crate) word: &'static str,
    pub(crate) kind: Kind,
    /// Whether it takes a transaction number, even if it fails.
    pub(crate) is_write: bool,
}

macro_rules! operations {
    ($($name:ident = $number:literal, $word:literal, $kind:ident, $is_write:literal;)+) => {
        pub(crate) mod opcode {
            $(pub(crate) const $name: i32 = $number;)+
        }

        impl Operation {
            pub(crate) fn of(number: i32) -> Self {
                let (word, kind, is_write) = match number {
                    $(opcode::$name => ($word, Kind::$kind, $is_write),)+
                    _ => ("NA", Kind::Other, false),
                };
                Self { word, kind, is_write }
            }
        }
    };
}

operations! {
    CREATE = 1, "CREA", Create, true;
    DELETE = 2, "DELE", Delete, true;
    EXISTS = 3, "EXIS", Exists, false;
    GET_DATA = 4, "GETD", GetData, false;
    SET_DATA = 5, "SETD", SetData, true;
    GET_ACL = 6, "GETA", Acl, false;
    SET_ACL = 7, "SETA", Acl, true;
    GET_CHILDREN = 8, "GETC", GetChildren, false;
    SYNC = 9, "SYNC", Sync, false;
    PING = 11, "PING", Ping, false;
    GET_CHILDREN_2 = 12, "GETC", GetChildren, false;
    CHECK = 13, "CHEC", Other, true;
    MULTI = 14, "MULT", Multi, true;
    CREATE_2 = 15, "CREA", Create, true;
    RECONFIG = 16, "NA", Other, false;
    CHECK_WATCHES = 17, "CHKW", Watches, false;
    REMOVE_WATCHES = 18, "REMW", Watches, false;
    CREATE_CONTAINER = 19, "CREA", Create, true;
    DELETE_CONTAINER = 20, "NA", Delete, true;
    CREATE_TTL = 21, "CREA", Create, true;
    MULTI_READ = 22, "MLTR", Multi, false;
    AUTH = 100, "NA", Auth, false;
    SET_WATCHES = 101, "SETW", Watches, false;
    SASL = 102, "NA", Other, false;
    GET_EPHEMERALS = 103, "GETE", Other, false;
    GET_ALL_CHILDREN_NUMBER = 104, "GETACN", Other, false;
    SET_WATCHES_2 = 105, "STW2", Watches, false;
    ADD_WATCH = 106, "ADDW", Watches, false;
    WHO_AM_I = 107, "HOMI", Other, false;
    CLOSE_SESSION = -11, "CLOS", Close, false;
    ERROR = -1, "NA", Other, false;
}

/// Numbers in replies that do not belong to a request.
pub(crate) mod xid {
    pub(crate) const EVENT: i32 = -1;
    pub(crate) const PING: i32 = -2;
}
