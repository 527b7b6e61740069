//! Patches a server's snapshot of its tree, to give a directory a child counter that would otherwise take years to
//! reach.
//!
//! The format is that of `FileSnap`, `SerializeUtils`, `DataTree` and `DataNode`: a header, the sessions, the access
//! lists, the nodes with parents first, `/` for the end of the nodes, and the Adler-32 of all that. Newer servers add a
//! digest after it. It is optional and left out here, since it would describe the tree before the patch.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::wire::codec::{Reader, Writer};

/// "ZKSN"
const MAGIC: i32 = 0x5a4b_534e;

/// The bytes of a node between its data and its child counter: the number of its access list, four fields of 8 bytes,
/// and its version.
const BEFORE_COUNTER: usize = 8 + 4 * 8 + 4;
/// The fields after the counter: `aversion`, `ephemeralOwner`, `pzxid`.
const BEHIND_COUNTER: usize = 4 + 8 + 8;

/// Sets the number of the next sequential child of a node in the latest snapshot of a server that is not running.
pub(crate) fn set_sequence(data: &Path, path: &str, number: i32) -> Result<(), String> {
    let told = |error: io::Error| format!("the snapshots in {}: {error}", data.display());
    let file = latest(data).map_err(told)?.ok_or_else(|| format!("no snapshot in {}", data.display()))?;
    let snapshot = fs::read(&file).map_err(told)?;
    let patched =
        patched(&snapshot, path, number).map_err(|reason| format!("{}: {reason}", file.display()))?;
    fs::write(&file, patched).map_err(told)
}

/// The name of a snapshot is the last transaction in it, in hexadecimal digits.
fn latest(data: &Path) -> io::Result<Option<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(data.join("version-2"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("snapshot.").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        found.extend(number.map(|number| (number, entry.path())));
    }
    Ok(found.into_iter().max().map(|(_, path)| path))
}

fn patched(snapshot: &[u8], path: &str, number: i32) -> Result<Vec<u8>, String> {
    let (counter, end) = find(snapshot, path).ok_or("it is cut short, or in another format")?;
    let counter = counter.ok_or_else(|| format!("it has no node {path}"))?;
    let mut tree = snapshot[..end].to_vec();
    tree[counter..counter + 4].copy_from_slice(&number.to_be_bytes());
    let sum = i64::from(adler_32(&tree));
    Ok(Writer(tree).long(sum).buffer(b"/").0)
}

/// The positions of a node's child counter and of the end of the nodes; `None` if this is not a complete snapshot.
fn find(snapshot: &[u8], wanted: &str) -> Option<(Option<usize>, usize)> {
    let mut reader = Reader(snapshot);
    let position = |reader: &Reader<'_>| snapshot.len() - reader.0.len();
    let (magic, _version, _database) = (reader.int()?, reader.int()?, reader.long()?);
    if magic != MAGIC {
        return None;
    }
    for _session in 0..reader.int()? {
        let (_id, _timeout) = (reader.long()?, reader.int()?);
    }
    for _list in 0..reader.int()? {
        let _number = reader.long()?;
        for _entry in 0..reader.int()? {
            let (_rights, _scheme, _user) = (reader.int()?, reader.buffer()?, reader.buffer()?);
        }
    }
    let mut counter = None;
    loop {
        let path = reader.text()?;
        if path == "/" {
            return Some((counter, position(&reader)));
        }
        let _data = reader.buffer()?;
        reader.take(BEFORE_COUNTER)?;
        if path == wanted {
            counter = Some(position(&reader));
        }
        reader.int()?;
        reader.take(BEHIND_COUNTER)?;
    }
}

fn adler_32(bytes: &[u8]) -> u32 {
    const PRIME: u32 = 65_521;
    let sums = |(low, high): (u32, u32), &byte: &u8| {
        let low = (low + u32::from(byte)) % PRIME;
        (low, (high + low) % PRIME)
    };
    let (low, high) = bytes.iter().fold((1, 0), sums);
    high << 16 | low
}
