//! One entry of an access list: who it names, and what they may do.

use crate::base::error::{Error, ErrorKind};
use std::fmt;
use std::net::IpAddr;
use std::ops::BitOr;
use std::str::FromStr;

/// The number of characters in the base64 of a SHA-1 sum.
const LENGTH_OF_HASH: usize = 28;

/// The rights that an access entry gives on a node.
///
/// # Examples
///
/// ```
/// use zklock::further::Rights;
///
/// assert_eq!((Rights::CREATE | Rights::READ).to_string(), "cr");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rights(u8);

impl Rights {
    /// Read its data and list its children.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::{AccessEntry, Rights};
    /// // Everybody may see who holds and who waits.
    /// assert_eq!(AccessEntry::world(Rights::READ).to_string(), "world:anyone:r");
    /// ```
    pub const READ: Self = Self(1);
    /// Set its data.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::{AccessEntry, Rights};
    /// // Operators may list the holders, and ask them to let go.
    /// let operators = AccessEntry::sasl("operators", Rights::READ | Rights::WRITE)?;
    /// assert_eq!(operators.to_string(), "sasl:operators:rw");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub const WRITE: Self = Self(2);
    /// Create children.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::Rights;
    /// // Operators with these rights cannot queue.
    /// let rights = Rights::READ | Rights::DELETE;
    /// assert!(!rights.contains(Rights::CREATE));
    /// ```
    pub const CREATE: Self = Self(4);
    /// Delete children.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::{AccessEntry, Rights};
    /// // Operators may take the lock away from its holders.
    /// let operators = AccessEntry::sasl("operators", Rights::READ | Rights::DELETE)?;
    /// assert_eq!(operators.to_string(), "sasl:operators:dr");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub const DELETE: Self = Self(8);
    /// Set its access list.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::Rights;
    /// // What a client needs to use a lock is everything else.
    /// let all_but_admin = Rights::READ | Rights::WRITE | Rights::CREATE | Rights::DELETE;
    /// assert_eq!(all_but_admin | Rights::ADMIN, Rights::ALL);
    /// ```
    pub const ADMIN: Self = Self(16);
    /// All of these.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::{AccessEntry, Rights};
    /// assert_eq!(AccessEntry::sasl("billing", Rights::ALL)?.to_string(), "sasl:billing:cdrwa");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub const ALL: Self = Self(31);

    /// In the order in which they are written.
    const LETTERS: [(char, Self); 5] =
        [('c', Self::CREATE), ('d', Self::DELETE), ('r', Self::READ), ('w', Self::WRITE), ('a', Self::ADMIN)];

    /// Returns whether all the rights of `others` are among these.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::Rights;
    /// let rights = Rights::READ | Rights::WRITE;
    /// assert!(rights.contains(Rights::READ));
    /// assert!(!rights.contains(Rights::READ | Rights::CREATE));
    /// ```
    pub fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    fn parse(text: &str) -> Option<Self> {
        let mut rights = Self(0);
        for letter in text.chars() {
            let (_, right) = Self::LETTERS.into_iter().find(|(known, _)| *known == letter)?;
            if rights.contains(right) {
                return None;
            }
            rights = rights | right;
        }
        (rights != Self(0)).then_some(rights)
    }
}

impl BitOr for Rights {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Some of the letters `cdrwa`.
impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut letters = Self::LETTERS.iter().filter(|(_, right)| self.contains(*right));
        letters.try_for_each(|(letter, _)| write!(f, "{letter}"))
    }
}

/// One entry of an access list. A scheme and an id say who it names, and the rights say what they
/// may do.
///
/// # Examples
///
/// ```
/// use zklock::further::{AccessEntry, Rights};
///
/// let entry = AccessEntry::sasl("billing", Rights::ALL)?;
/// assert_eq!(entry.to_string(), "sasl:billing:cdrwa");
/// assert_eq!(entry, "sasl:billing:cdrwa".parse()?);
/// # Ok::<(), zklock::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AccessEntry {
    scheme: Box<str>,
    id: Box<str>,
    rights: Rights,
}

impl AccessEntry {
    /// Makes an entry for everyone.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::further::{Access, AccessEntry, Rights};
    ///
    /// // The team uses the locks, and everybody may look.
    /// let entries = [AccessEntry::sasl("billing", Rights::ALL)?, AccessEntry::world(Rights::READ)];
    /// assert_eq!(Access::list(entries)?.to_string(), "sasl:billing:cdrwa,world:anyone:r");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn world(rights: Rights) -> Self {
        Self { scheme: "world".into(), id: "anyone".into(), rights }
    }

    /// Makes an entry for every identity that the client has when it creates the node.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::further::{Access, AccessEntry, Rights};
    ///
    /// // Like `Access::ReadOpen`, but only for readers in the own network.
    /// let entries = [AccessEntry::creator(Rights::ALL), AccessEntry::ip("10.0.0.0/8", Rights::READ)?];
    /// assert_eq!(Access::list(entries)?.to_string(), "auth::cdrwa,ip:10.0.0.0/8:r");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn creator(rights: Rights) -> Self {
        Self { scheme: "auth".into(), id: "".into(), rights }
    }

    /// Makes an entry for a user with a password, given by its hash: the base64 of the SHA-1 sum of
    /// `user:password`, as `printf %s user:password | openssl dgst -sha1 -binary | base64` prints
    /// it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the user is empty, or the hash is not one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::{AccessEntry, Rights};
    /// assert!(AccessEntry::digest("ann", "kYo25pPOT0HKGgdUmL8MxA259qk=", Rights::READ).is_ok());
    /// assert!(AccessEntry::digest("ann", "the password itself", Rights::READ).is_err());
    /// ```
    pub fn digest(user: &str, hash: &str, rights: Rights) -> Result<Self, Error> {
        Self::new("digest", &format!("{user}:{hash}"), rights)
    }

    /// Makes an entry for a SASL user: for `DIGEST-MD5` the user's name, for Kerberos the principal
    /// as the servers shorten it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the name is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::{AccessEntry, Rights};
    /// let by_password = AccessEntry::sasl("billing", Rights::ALL)?;
    /// let by_kerberos = AccessEntry::sasl("billing@EXAMPLE.COM", Rights::ALL)?;
    /// assert_ne!(by_password, by_kerberos);
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn sasl(user: &str, rights: Rights) -> Result<Self, Error> {
        Self::new("sasl", user, rights)
    }

    /// Makes an entry for all clients with this address, or in this network, for example
    /// `10.0.0.0/8`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it is neither.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::{AccessEntry, Rights};
    /// assert!(AccessEntry::ip("10.0.0.0/8", Rights::ALL).is_ok());
    /// assert!(AccessEntry::ip("db7.example.com", Rights::ALL).is_err());
    /// ```
    pub fn ip(address: &str, rights: Rights) -> Result<Self, Error> {
        Self::new("ip", address, rights)
    }

    /// Makes an entry for the subject of a client certificate, for example `CN=billing,O=Shop`,
    /// written as the servers write it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the name is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::{AccessEntry, Rights};
    /// let entry = AccessEntry::x509("CN=billing,O=Shop", Rights::ALL)?;
    /// assert_eq!(entry.to_string(), "x509:CN=billing,O=Shop:cdrwa");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn x509(name: &str, rights: Rights) -> Result<Self, Error> {
        Self::new("x509", name, rights)
    }

    /// Makes an entry of any scheme, even one that only your servers have.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the id does not fit the scheme, or the scheme contains
    /// anything but lowercase letters, digits and hyphens.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::{AccessEntry, Rights};
    /// // The servers have a provider for groups of a directory service.
    /// let entry = AccessEntry::new("ldap", "billing", Rights::ALL)?;
    /// assert_eq!(entry.to_string(), "ldap:billing:cdrwa");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn new(scheme: &str, id: &str, rights: Rights) -> Result<Self, Error> {
        let entry = Self { scheme: scheme.into(), id: id.into(), rights };
        match entry.problem() {
            None => Ok(entry),
            Some(problem) => Err(invalid(problem)),
        }
    }

    /// Returns the scheme, for example `sasl`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::AccessEntry;
    /// let entry: AccessEntry = "digest:ann:kYo25pPOT0HKGgdUmL8MxA259qk=:cdrwa".parse()?;
    /// assert_eq!(entry.scheme(), "digest");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns the id: who the entry is for, in the form of its scheme.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::AccessEntry;
    /// let entry: AccessEntry = "sasl:billing@EXAMPLE.COM:cdrwa".parse()?;
    /// assert_eq!(entry.id(), "billing@EXAMPLE.COM");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the rights that it gives.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::further::{AccessEntry, Rights};
    /// let entry: AccessEntry = "sasl:reports:cdr".parse()?;
    /// assert!(!entry.rights().contains(Rights::WRITE));
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn rights(&self) -> Rights {
        self.rights
    }

    pub(super) fn is_of_creator(&self) -> bool {
        &*self.scheme == "auth"
    }

    /// Returns its bytes in a request.
    pub(super) fn bytes(&self) -> usize {
        self.scheme.len() + self.id.len() + 12
    }

    /// Returns what is wrong with it, if anything. The text does not quote the id, which may be a
    /// password by mistake.
    fn problem(&self) -> Option<String> {
        let scheme = &*self.scheme;
        let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if scheme.is_empty() || !scheme.chars().all(fits) {
            return Some(
                "the scheme must consist of lowercase letters, digits and hyphens, such as sasl".to_owned(),
            );
        }
        let problem = if self.id.contains('\0') {
            "there is a NUL in it: leave it out"
        } else {
            match scheme {
                "world" if &*self.id != "anyone" => "it is world:anyone and the rights",
                "auth" if !self.id.is_empty() => {
                    "it names the creator of the node: write auth:: and the rights"
                }
                "digest" if !is_hashed(&self.id) => {
                    "it is the user, a colon and the hash of both, which has 28 characters, and not the password"
                }
                "ip" if !is_network(&self.id) => "it is an address, or a network such as 10.0.0.0/8",
                "auth" => return None,
                _ if self.id.is_empty() => "it names nobody: put the name between the colons",
                _ => return None,
            }
        };
        Some(format!("the {scheme} entry: {problem}"))
    }
}

/// `scheme:id:rights`.
impl fmt::Display for AccessEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.scheme, self.id, self.rights)
    }
}

/// Without the hash of a password.
impl fmt::Debug for AccessEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id =
            if &*self.scheme == "digest" { self.id.split(':').next().unwrap_or_default() } else { &self.id };
        write!(f, "{}:{id}:{}", self.scheme, self.rights)
    }
}

/// `scheme:id:rights`; the id may have colons.
impl FromStr for AccessEntry {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parts = text.split_once(':').and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once(':')?)));
        let Some((scheme, (id, letters))) = parts else {
            return Err(invalid(
                "it is not of the form scheme:id:rights, such as sasl:billing:cdrwa".to_owned(),
            ));
        };
        // The scheme first: the error about the rights names it.
        let entry = Self { scheme: scheme.into(), id: id.into(), rights: Rights::ALL };
        if let Some(problem) = entry.problem() {
            return Err(invalid(problem));
        }
        match Rights::parse(letters) {
            Some(rights) => Ok(Self { rights, ..entry }),
            None => Err(invalid(format!(
                "the {scheme} entry: the rights, after the last colon, are some of the letters cdrwa, each once"
            ))),
        }
    }
}

fn is_hashed(id: &str) -> bool {
    id.split_once(':').is_some_and(|(user, hash)| {
        let is_digit = |letter: char| letter.is_ascii_alphanumeric() || letter == '+' || letter == '/';
        let digits = hash.strip_suffix('=').unwrap_or_default();
        !user.is_empty() && hash.len() == LENGTH_OF_HASH && digits.chars().all(is_digit)
    })
}

fn is_network(id: &str) -> bool {
    let (address, bits) = match id.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (id, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= most))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
