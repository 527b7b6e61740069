//! Who may use the nodes that a client creates.

mod entry;

use crate::base::error::{Error, ErrorKind};
pub(crate) use entry::Entry;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// More than any access list needs. The list is sent with every node that is created.
const LONGEST_LIST: usize = 4 * 1024;

/// Who may use the nodes that a client creates: the nodes of locks and barriers, the nodes above them, limits, a chroot,
/// and what [`Guarded::create`](crate::further::Guarded::create) creates.
///
/// All clients of a lock need every right but `a` (admin) on its node. To queue there they create, list and delete children,
/// and to wait they read the children of others. So with `CreatorAll` and `ReadOpen`, all must log in as the same user; a
/// list can name several. Nodes that already exist keep their access lists. The first client that needs `/locks/report`
/// also creates `/locks`. If others have their own locks below `/locks`, an operator should create that node first.
///
/// It can be parsed from text: one of the names, or a list in the form that `zkCli` takes. An entry is a scheme, who it names,
/// and the letters of their rights: create, delete, read, write and admin.
///
/// # Examples
///
/// ```
/// use zklock::further::Access;
///
/// assert_eq!(Access::default(), Access::Open);
/// assert_eq!("read-open".parse(), Ok(Access::ReadOpen));
///
/// let list = Access::list(["sasl:billing:cdrwa", "world:anyone:r"])?;
/// assert_eq!("sasl:billing:cdrwa,world:anyone:r".parse(), Ok(list));
/// # Ok::<(), zklock::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Access {
    /// Everyone may do everything.
    #[default]
    Open,
    /// Clients logged in as the creator may do everything, all others nothing.
    CreatorAll,
    /// Clients logged in as the creator may do everything. All others may read, so they can list contenders.
    ReadOpen,
    /// Its entries decide. [`Access::list`] makes one.
    List(AccessList),
}

/// The entries of an [`Access::List`].
///
/// # Examples
///
/// ```
/// use zklock::further::Access;
///
/// let access: Access = "sasl:billing:cdrwa,world:anyone:r".parse()?;
/// assert!(matches!(access, Access::List(_)));
/// # Ok::<(), zklock::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AccessList(Arc<[Entry]>);

impl AccessList {
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.0
    }
}

impl Access {
    /// The values that have a name.
    const NAMED: [Self; 3] = [Self::Open, Self::CreatorAll, Self::ReadOpen];

    /// Makes a list of exactly these entries. Nothing is added: a client that they do not name is locked out of what it
    /// creates.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are no entries, one is wrong, or their text is longer than 4 KiB.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::further::Access;
    ///
    /// let team = Access::list(["sasl:billing:cdrwa", "x509:CN=reports,O=Shop:cdr"])?;
    /// assert_eq!("sasl:billing:cdrwa,x509:CN=reports,O=Shop:cdr".parse(), Ok(team));
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn list(entries: impl IntoIterator<Item: AsRef<str>>) -> Result<Self, Error> {
        let entries = entries.into_iter().enumerate().map(|(at, text)| {
            let place = || format!("entry {} of the access list", at + 1);
            text.as_ref().parse().map_err(|error: Error| error.within(&place()))
        });
        let entries = entries.collect::<Result<Arc<[Entry]>, _>>()?;
        if entries.is_empty() {
            return Err(invalid("the access list is empty: name at least one user of the nodes"));
        }
        let list = Self::List(AccessList(entries));
        if list.bytes() > LONGEST_LIST {
            return Err(invalid("the access list is longer than 4 KiB: name groups, or fewer users"));
        }
        Ok(list)
    }

    /// Whether it gives rights to the creator, so that the client must be logged in.
    pub(crate) fn needs_creator(&self) -> bool {
        match self {
            Self::Open => false,
            Self::CreatorAll | Self::ReadOpen => true,
            Self::List(list) => list.entries().iter().any(Entry::is_of_creator),
        }
    }

    /// Returns its bytes in a request.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Open | Self::CreatorAll | Self::ReadOpen => 0,
            Self::List(list) => list.entries().iter().map(Entry::bytes).sum(),
        }
    }
}

/// `open`, `creator-all` or `read-open`, or the entries of the list with commas between them.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open"),
            Self::CreatorAll => f.write_str("creator-all"),
            Self::ReadOpen => f.write_str("read-open"),
            Self::List(list) => list.entries().iter().enumerate().try_for_each(|(at, entry)| {
                f.write_str(if at == 0 { "" } else { "," })?;
                entry.fmt(f)
            }),
        }
    }
}

/// Parses one of the names, or entries `scheme:id:rights` separated by commas. The rights are some of the letters
/// `cdrwa`. Only the id of an `x509` entry may contain commas, and then no colons.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] if it is neither. The message names the wrong entry by its number and its scheme.
impl FromStr for Access {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(named) = Self::NAMED.into_iter().find(|named| named.to_string() == text) {
            return Ok(named);
        }
        if !text.contains(':') {
            let names: Vec<_> = Self::NAMED.iter().map(|named| format!("{:?}", named.to_string())).collect();
            // It is not quoted, because it may be anything, even a password.
            return Err(invalid(&format!(
                "the access is {}, or a list such as \"sasl:billing:cdrwa,world:anyone:r\": this is none of them",
                names.join(" or ")
            )));
        }
        Self::list(split(text))
    }
}

/// Splits a list into entries at the commas, except those within the name of a certificate.
fn split(text: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for piece in text.split(',') {
        match entries.last_mut() {
            Some(entry) if entry.starts_with("x509:") && entry.matches(':').count() == 1 => {
                entry.push(',');
                entry.push_str(piece);
            }
            _ => entries.push(piece.to_owned()),
        }
    }
    entries
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let error = text.parse::<Access>().expect_err(text);
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    }

    #[test]
    fn what_is_written_can_be_read() {
        for text in [
            "open",
            "creator-all",
            "read-open",
            "world:anyone:cdrwa",
            "auth::cdrwa",
            "digest:ann:kYo25pPOT0HKGgdUmL8MxA259qk=:cdrw,world:anyone:r",
            "sasl:zk/host@EXAMPLE.COM:cdrwa",
            "ip:10.0.0.0/8:r,ip:fe80::1:cd,ip:::1:r",
            "x509:CN=billing,O=Shop, Ltd:cdrwa,world:anyone:r",
            "another-scheme:some:thing:a",
        ] {
            assert_eq!(text.parse::<Access>().map(|access| access.to_string()).as_deref(), Ok(text));
        }
        let in_another_order: Access = "world:anyone:awrdc".parse().unwrap();
        assert_eq!(in_another_order.to_string(), "world:anyone:cdrwa");
    }

    #[test]
    fn what_is_no_list_is_named_and_no_secret_is_quoted() {
        const SECRET: &str = "s3cret";
        for (text, part) in [
            ("closed", r#""open" or "creator-all" or "read-open""#),
            ("", "or a list such as"),
            (":", "entry 1 of the access list"),
            ("world:anyone:r,", "entry 2 of the access list"),
            (
                "world:anyone:r,sasl:billing",
                "entry 2 of the access list: it is not of the form scheme:id:rights",
            ),
            ("world:anyone:r,sasl:billing:rx", "entry 2 of the access list: the sasl entry: the rights"),
            ("sasl:billing:", "the rights"),
            ("sasl:billing:rr", "the rights"),
            ("sasl::r", "names nobody"),
            ("world:everybody:r", "anyone"),
            ("auth:ann:s3cret:r", "auth::"),
            ("digest:ann:s3cret:r", "not the password"),
            ("digest:ann:r", "not the password"),
            ("ip:10.0.0:r", "address"),
            ("ip:10.0.0.1/33:r", "address"),
            ("x509::r", "names nobody"),
            ("x509:CN=a:x,world:anyone:r", "the x509 entry: the rights"),
            ("SASL:billing:r", "scheme"),
            ("sasl:a\0b:r", "NUL"),
        ] {
            let said = problem(text);
            assert!(said.contains(part) && !said.contains(SECRET), "{text}: {said}");
        }
        assert!(problem("sasl:a:r,".repeat(1000).trim_end_matches(',')).contains("4 KiB"));
        assert_eq!(Access::list([""; 0]).unwrap_err().kind(), ErrorKind::InvalidInput);
        let digest: Access = "digest:ann:kYo25pPOT0HKGgdUmL8MxA259qk=:r".parse().unwrap();
        assert!(!format!("{digest:?}").contains("kYo25"), "{digest:?}");
    }

    #[test]
    fn only_what_names_the_creator_needs_one() {
        for (text, needs) in [
            ("open", false),
            ("creator-all", true),
            ("read-open", true),
            ("sasl:a:r", false),
            ("auth::r", true),
        ] {
            assert_eq!(text.parse::<Access>().unwrap().needs_creator(), needs, "{text}");
        }
    }
}
