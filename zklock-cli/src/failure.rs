//! Errors for people: a sentence, and the exit code that goes with it.

use std::io;

use zklock::{Error, ErrorKind};

use crate::exit::Exit;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The error of the library.
    #[error("{0}")]
    Core(#[from] Error),
    /// The error of the command line's parser.
    #[error("{0}")]
    CommandLine(#[from] clap::Error),
    /// Nobody reads our output any more. That is not worth a message.
    #[error("the output was closed")]
    OutputClosed,
    #[error("{1}")]
    Told(Exit, String),
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self::Told(exit, message.into())
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::new(Exit::Other, message)
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::OutputClosed => Exit::Done,
            Self::CommandLine(_) => Exit::Usage,
            Self::Told(exit, _) => *exit,
            Self::Core(error) => Self::exit_of(error),
        }
    }

    pub(crate) fn exit_of(error: &Error) -> Exit {
        match error.kind() {
            ErrorKind::InvalidInput => Exit::Usage,
            ErrorKind::Timeout => Exit::Timeout,
            ErrorKind::Unreachable => Exit::Unreachable,
            ErrorKind::Lost(_) | ErrorKind::StaleToken | ErrorKind::OtherEnsemble => Exit::Lost,
            _ => Exit::Other,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::other(error.to_string()),
        }
    }
}
