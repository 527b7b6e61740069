//! Which children of a lock's node are no contenders although their names end with a sequence number.
//!
//! A child with a number and an unknown name may be a contender of a program that has made a lock of its own. So somebody
//! looks at it. One that is not ephemeral outlives its creator, so it is no contender: an order in `/orders`, say. There may
//! be thousands of those. So it is remembered for the session that a look has shown that, as long as they are listed.

use super::name::Name;
use super::protocol::Operation;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most children that are looked at, or remembered.
const AT_MOST: usize = 100_000;
/// How many are looked at in one flight.
const AT_ONCE: usize = 512;

/// The children that a look has shown not to be ephemeral, by directory.
///
/// # Examples
///
/// ```
/// use zklock_machine::lasting::Lasting;
///
/// let children = ["0000000123", "lock-0000000124", "_c_a-lock-0000000125", "settings"].map(String::from);
/// let mut lasting = Lasting::default();
/// assert_eq!(lasting.unclear("/orders", &children), ["0000000123", "lock-0000000124"]);
/// lasting.note("/orders/0000000123");
/// assert_eq!(lasting.unclear("/orders", &children), ["lock-0000000124"]);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Lasting {
    names: BTreeMap<Arc<str>, BTreeSet<String>>,
    count: usize,
}

impl Lasting {
    /// Returns the children that may be contenders of an unknown kind, as far as is known.
    pub fn unclear(&self, directory: &str, children: &[String]) -> Vec<String> {
        let known = self.names.get(directory);
        let is_known = |child: &String| known.is_some_and(|known| known.contains(child));
        let unclear = children.iter().filter(|child| Name::is_unknown(child) && !is_known(child));
        unclear.cloned().collect()
    }

    /// This node exists, and is not ephemeral.
    pub fn note(&mut self, path: &str) {
        let Some((directory, name)) = path.rsplit_once('/') else { return };
        if self.count == AT_MOST {
            *self = Self::default();
        }
        let names = match self.names.get_mut(directory) {
            Some(names) => names,
            None => self.names.entry(directory.into()).or_default(),
        };
        self.count += usize::from(names.insert(name.to_owned()));
    }

    /// Forgets the nodes of a directory that are not among its `children`. Returns whether there were any.
    pub fn forget_absent(this: &mut Arc<Self>, directory: &str, children: &[String]) -> bool {
        let Some(known) = this.names.get(directory) else { return false };
        let present: BTreeSet<_> = children.iter().filter(|child| known.contains(*child)).cloned().collect();
        let absent = known.len() - present.len();
        if absent > 0 {
            let this = Arc::make_mut(this);
            this.count -= absent;
            this.names.insert(directory.into(), present);
        }
        absent > 0
    }
}

/// Whether so many children of a directory are unclear that nobody looks at them all.
pub fn are_too_many(unclear: &[String]) -> bool {
    unclear.len() > AT_MOST
}

/// Returns the first of the looks at these children of a directory that can be sent together.
pub fn looks(directory: &str, unclear: &[String]) -> Vec<Operation> {
    let path = |name| Operation::Inspect { path: format!("{directory}/{name}") };
    unclear.iter().take(AT_ONCE).map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(numbers: std::ops::Range<usize>) -> Vec<String> {
        numbers.map(|number| format!("{number:010}")).collect()
    }

    #[test]
    fn what_is_no_longer_listed_is_forgotten() {
        let mut lasting = Arc::new(Lasting::default());
        for name in names(0..3) {
            Arc::make_mut(&mut lasting).note(&format!("/a/{name}"));
            Arc::make_mut(&mut lasting).note(&format!("/b/{name}"));
        }
        let before = lasting.clone();
        assert!(!Lasting::forget_absent(&mut lasting, "/a", &names(0..9)));
        assert!(Arc::ptr_eq(&before, &lasting));
        assert!(Lasting::forget_absent(&mut lasting, "/a", &names(2..9)));
        assert_eq!(lasting.unclear("/a", &names(0..4)), [names(0..2), names(3..4)].concat());
        assert_eq!(lasting.unclear("/b", &names(0..4)), names(3..4));
        assert_eq!(lasting.count, 4);
    }

    #[test]
    fn no_more_is_remembered_than_could_be_looked_at() {
        let mut lasting = Lasting::default();
        let all = names(0..AT_MOST);
        for name in all.iter().chain(&all) {
            lasting.note(&format!("/a/{name}"));
        }
        assert_eq!(lasting.unclear("/a", &all), [""; 0]);
        lasting.note("/b/0000000000");
        assert_eq!(lasting.count, 1);
        assert!(!are_too_many(&all) && are_too_many(&names(0..AT_MOST + 1)));
        assert_eq!(looks("/a", &all).len(), AT_ONCE);
    }
}
