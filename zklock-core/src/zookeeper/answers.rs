//! The meaning of the library's errors for a request. Only what a server answered counts as an
//! answer.

use super::paths::parent;
use super::rights;
use crate::base::failure::Failure;
use crate::machine::protocol::{Outcome, Refusal};
use crate::zookeeper::ensemble::{Write, text_of};
use zookeeper_client::{Error, MultiWriteError};

pub(super) fn source_of(error: MultiWriteError) -> Error {
    match error {
        MultiWriteError::OperationFailed { source, .. } | MultiWriteError::RequestFailed { source } => source,
    }
}

/// Returns the outcome of a request that ended with this error.
pub(super) fn outcome(error: &Error) -> Outcome {
    match error {
        Error::NoNode => Outcome::NoNode,
        Error::NodeExists => Outcome::NodeExists,
        Error::NotEmpty => Outcome::NotEmpty,
        Error::SessionExpired => Outcome::SessionOver,
        Error::NoAuth => Outcome::Refused(Refusal::Denied),
        // With any other error, the request may have been executed, or may yet be.
        _ => refusal(error).map_or(Outcome::Unknown, |why| Outcome::Refused(Refusal::Answer(why))),
    }
}

/// Returns what is wrong, and what to do, when a server refuses a request whatever the state of the nodes; `None` if it does
/// not do that with this error.
fn refusal(error: &Error) -> Option<String> {
    let why = match error {
        Error::InvalidAcl => {
            "the servers do not take the access list that the client gives its nodes: they do not know one \
             of its schemes or ids, or the list is for the creator and the client is not logged in"
        }
        Error::NoChildrenForEphemerals => {
            "a node of this path is ephemeral, so it can have no children: take another path"
        }
        Error::UnexpectedErrorCode(EPHEMERAL_ON_LOCAL_SESSION) => {
            "the servers open local sessions (localSessionsEnabled), and a local session cannot hold a lock: \
             set localSessionsUpgradingEnabled=true there"
        }
        Error::Unimplemented => {
            "it does not know the request, so it is older than 3.5: if the options state the servers' version, state 3.4"
        }
        Error::QuotaExceeded => {
            "the quota of a node above it is used up: delete nodes there, or have the quota raised (setquota)"
        }
        Error::MarshallingError => {
            "a server could not read the request: if it is older than 3.5, state its version in the options"
        }
        Error::BadArguments(problem) => {
            return Some(format!("ZooKeeper does not accept such a request ({problem}): correct the path"));
        }
        _ => return None,
    };
    Some(why.to_owned())
}

/// Returns what is wrong with a write that was refused, and what to do.
pub(super) fn refusal_of_write(error: &Error, write: &Write) -> String {
    match (error, write) {
        (Error::NoAuth, _) => rights::of_write(write),
        (Error::NoNode, Write::Create { path, .. }) => {
            format!("the node above it, {}, does not exist: create that first", parent(path))
        }
        (Error::NoNode, Write::SetData { .. }) => "the node does not exist: create it first".to_owned(),
        (Error::NoNode, Write::Delete { .. }) => {
            "the node does not exist, so leave this write out: it may have been deleted before".to_owned()
        }
        (Error::NodeExists, _) => "the node exists already: set its data, or delete it first".to_owned(),
        (Error::NotEmpty, _) => "the node has children: delete those first".to_owned(),
        (
            Error::BadVersion,
            Write::SetData { version: Some(version), .. } | Write::Delete { version: Some(version), .. },
        ) => format!(
            "the node does not have the version {version}: it has been written to, or was created again, so \
             read it again"
        ),
        _ => refusal(error).unwrap_or_else(|| error.to_string()),
    }
}

/// The answer of a server with local sessions, which the library does not know.
const EPHEMERAL_ON_LOCAL_SESSION: i32 = -120;

/// How the library's error begins if a string in a reply is not UTF-8.
const NOT_UTF8: &str = "invalid utf8 bytes";

/// Returns the outcome of a listing. One that arrived but cannot be read will be no better next
/// time.
pub(super) fn listing(directory: &str, error: &Error) -> Outcome {
    match error {
        Error::UnexpectedError(problem) if problem.starts_with(NOT_UTF8) => {
            Outcome::Refused(Refusal::Answer(unreadable(directory)))
        }
        error => outcome(error),
    }
}

fn unreadable(directory: &str) -> String {
    format!(
        "the list of the children of {directory} cannot be read: delete the child whose name is not UTF-8"
    )
}

pub(super) fn read_failure(directory: &str, error: &Error) -> Failure {
    match listing(directory, error) {
        Outcome::SessionOver => Failure::SessionOver,
        Outcome::Refused(Refusal::Denied) => Failure::Refused(rights::to_read(directory)),
        Outcome::Refused(refusal) => Failure::Refused(text_of(&refusal)),
        _ => Failure::Unknown,
    }
}

/// Whether it is the server's answer to one of several writes.
pub(super) fn is_answer(error: &Error) -> bool {
    let also = matches!(error, Error::NodeExists | Error::NotEmpty | Error::BadVersion);
    also || !matches!(outcome(error), Outcome::Unknown | Outcome::SessionOver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_server_answered_counts_as_an_answer() {
        assert_eq!(outcome(&Error::NoNode), Outcome::NoNode);
        assert_eq!(outcome(&Error::NodeExists), Outcome::NodeExists);
        assert_eq!(outcome(&Error::NoAuth), Outcome::Refused(Refusal::Denied));
        for error in [
            Error::ConnectionLoss,
            Error::ClientClosed,
            Error::Timeout,
            Error::UnexpectedError("reset".into()),
            Error::SessionMoved,
            // The session lives on at the servers until it times out.
            Error::AuthFailed,
            Error::NotReadOnly,
            Error::Throttled,
            Error::UnexpectedErrorCode(-7),
            Error::RuntimeInconsistent,
            Error::UnmarshalError { entity: "stat", reason: &"short" },
        ] {
            assert_eq!(outcome(&error), Outcome::Unknown, "{error}");
        }
        assert_eq!(outcome(&Error::SessionExpired), Outcome::SessionOver);
    }
}
