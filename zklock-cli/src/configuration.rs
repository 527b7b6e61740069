//! The configuration file: options of the connection, one on each line. Variables and the command line override them.

use std::fmt::Display;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use zklock::ClientOptions;
use zklock::face::{Value, unknown};

use crate::connect::{Source, check, options};
use crate::failure::Failure;

const NAME: &str = "zklock.conf";
const OF_ALL_USERS: &str = "/etc/zklock.conf";

/// More than any configuration has.
const LONGEST: u64 = 64 * 1024;

/// The text about it in `zklock --help-all` and the man page.
pub(crate) const HELP: &str = "\
Configuration file:
  You can put the options under Connection into a file, one per line,
  such as hosts = zk1:2181,zk2:2181. A line that begins with # is a
  comment. The file is the one that --config names, otherwise
  $XDG_CONFIG_HOME/zklock.conf (~/.config/zklock.conf), otherwise
  /etc/zklock.conf. With --config /dev/null, no file is read. If no
  other user can read the file (chmod 600), it may also contain
  auth = USER:PASSWORD, sasl = USER:PASSWORD and pass-phrase = TEXT,
  as may the variables ZKLOCK_AUTH, ZKLOCK_SASL and ZKLOCK_PASS_PHRASE.
  Options override variables, and variables override the file.";

/// The options of the file, and which file was read.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    pub(crate) source: Source,
    pub(crate) options: Vec<(String, String)>,
}

impl Configuration {
    /// Reads the file of this name, or otherwise the first file that exists in the usual places.
    pub(crate) fn read(named: Option<&Path>) -> Result<Self, Failure> {
        if let Some(file) = named {
            return match File::open(file) {
                Ok(open) => Self::of(file, open),
                Err(error) => Err(unreadable(file, error)),
            };
        }
        let mut source = Source::default();
        for file in usual_places() {
            match File::open(&file) {
                Ok(open) => return Self::of(&file, open),
                Err(error) if error.kind() == ErrorKind::NotFound => source.missing.push(file),
                // It may be meant for other users, a service's user for example.
                Err(error) => source.unreadable.push(format!("{}: {error}", file.display())),
            }
        }
        Ok(Self { source, ..Self::default() })
    }

    fn of(file: &Path, open: File) -> Result<Self, Failure> {
        let metadata = open.metadata().map_err(|error| unreadable(file, error))?;
        let mut bytes = Vec::new();
        open.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| unreadable(file, error))?;
        if bytes.len() as u64 > LONGEST {
            return Err(Failure::usage(format!("{}: too long: is it the right file?", file.display())));
        }
        let mut configuration =
            Self { source: Source { file: Some(file.to_owned()), ..Source::default() }, ..Self::default() };
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            configuration
                .add_line(line, file, &metadata)
                .map_err(|problem| Failure::usage(format!("{}:{}: {problem}", file.display(), number + 1)))?;
        }
        Ok(configuration)
    }

    /// Adds the option on a line. No error quotes the line: a password may be on it.
    fn add_line(&mut self, line: &[u8], file: &Path, metadata: &Metadata) -> Result<(), String> {
        let line =
            std::str::from_utf8(line).map_err(|_| "this line is not in UTF-8: save the file so")?.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let (name, value) =
            line.split_once('=').ok_or("this line has no =: write name = value, or # before a comment")?;
        let (name, value) = (name.trim(), value.trim());
        let option = options().find(|option| option.name == name);
        if option.is_none() && name != "hosts" {
            return Err(
                unknown(name, ["hosts"].into_iter().chain(options().map(|option| option.name))).to_string()
            );
        }
        if value.is_empty() {
            return Err(format!("{name} has no value: write {name} = value, or take the line out"));
        }
        if self.options.iter().any(|(other, _)| other == name) {
            return Err(format!("{name} has a line already: take one of them out"));
        }
        match option {
            Some(option) => check(option, value).map_err(|problem| problem.to_string())?,
            None => ClientOptions::new(value).check().map_err(|problem| format!("hosts: {problem}"))?,
        }
        let mut value = value.to_owned();
        match (option.map(|option| option.value), file.parent()) {
            (Some(Value::Secret(_)), _) => check_private(name, file, metadata)?,
            // Relative to the file's folder, because `zklock` is started from anywhere.
            (Some(Value::File), Some(folder)) => value = folder.join(value).to_string_lossy().into_owned(),
            _ => {}
        }
        self.options.push((name.to_owned(), value));
        Ok(())
    }
}

fn unreadable(file: &Path, error: impl Display) -> Failure {
    Failure::usage(format!("the configuration file {} cannot be read: {error}", file.display()))
}

fn usual_places() -> Vec<PathBuf> {
    let folder =
        |variable| std::env::var_os(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let own = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
    own.map(|own| own.join(NAME)).into_iter().chain([PathBuf::from(OF_ALL_USERS)]).collect()
}

/// Checks who may use a file with secrets, as OpenSSH does for keys. But the group may read a file of root's, so that
/// services can share one.
fn check_private(name: &str, file: &Path, metadata: &Metadata) -> Result<(), String> {
    let allowed = if metadata.uid() == 0 { 0o740 } else { 0o700 };
    let mode = metadata.mode() & 0o777;
    if mode & !allowed == 0 {
        return Ok(());
    }
    let file = file.display();
    Err(format!(
        "{name} is a secret, and other users may use this file (its mode is {mode:o}): run `chmod 600 {file}`"
    ))
}
