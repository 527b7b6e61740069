//! The users that a server accepts by SASL: its JAAS file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A line for `zoo.cfg`. Without it the servers accept logins, but access lists cannot name users.
pub(crate) const CONFIGURATION: &str =
    "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n";

/// The system property that tells Java where the file is.
pub(crate) fn property(home: &Path) -> String {
    format!("-Djava.security.auth.login.config={}", file(home).display())
}

/// Writes the file.
pub(crate) fn write(home: &Path, users: &[(impl AsRef<str>, impl AsRef<str>)]) -> io::Result<()> {
    let mut text = "Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required".to_owned();
    for (user, password) in users {
        let _ = write!(text, "\n  user_{}=\"{}\"", user.as_ref(), password.as_ref());
    }
    fs::write(file(home), text + ";\n};\n")
}

fn file(home: &Path) -> PathBuf {
    home.join("jaas.conf")
}
