//! A fence for the files of a folder.
//!
//! The greatest token is in a file of the folder, under `flock`. The Python package does the same, so both can write there. The
//! file has one line, which keeps its length: `ENSEMBLE TOKEN NAME`, with a token of 19 digits. It is written in place, because the
//! lock is on the file and not on its name; only digits change, near the beginning, in one sector of the disk.

use super::stamp::Stamp;
use crate::base::error::{Error, ErrorKind};
use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

const FENCE: &str = ".zklock-fence";

/// Puts a file that is ready in the place of another, unless a later holder has written to that folder.
///
/// The staged file must be in the same file system, best in the same folder, with another name. It is synced, and renamed to
/// `target` under a lock on the file `.zklock-fence` beside the target, which keeps the greatest token. The folder is synced
/// before the lock goes. So readers see the old file or the new one, whole, also after a crash. If it fails, the staged file stays.
///
/// It blocks its thread while another holder writes. The lock works on one machine: not on NFS.
///
/// # Errors
///
/// * [`ErrorKind::StaleToken`] if a later holder has written: stop;
/// * [`ErrorKind::OtherEnsemble`] if the folder keeps the token of another ensemble. The message says how to go on;
/// * [`ErrorKind::InvalidInput`] if the folder is fenced under another name, or `target` is no file in a folder;
/// * [`ErrorKind::Refused`] for what the system refuses, or if the file with the token is damaged.
///
/// # Examples
///
/// ```no_run
/// use zklock_core::fence::{self, Stamp};
///
/// # async fn example(hold: &zklock_core::Hold) -> Result<(), Box<dyn std::error::Error>> {
/// let stamp = Stamp::of(hold).await?;
/// std::fs::write("reports/.sales.new", "1,2,3")?;
/// fence::publish(&stamp, "reports/.sales.new".as_ref(), "reports/sales.csv".as_ref())?;
/// # Ok(())
/// # }
/// ```
pub fn publish(stamp: &Stamp, staged: &Path, target: &Path) -> Result<(), Error> {
    let is_fence =
        target.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(FENCE.as_bytes()));
    if is_fence {
        let message = format!("{} is no file that can be published: give another name", target.display());
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(".".as_ref());
    let at = |path: &Path, error: io::Error| {
        Error::new(ErrorKind::Refused, format!("{}: {error}", path.display()))
    };
    // Before the lock, which others wait for.
    File::open(staged).and_then(|staged| staged.sync_all()).map_err(|error| at(staged, error))?;
    let fence = folder.join(FENCE);
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(&fence);
    let mut file = file.map_err(|error| at(&fence, error))?;
    retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))
        .map_err(|error| at(&fence, error.into()))?;
    let mut line = String::new();
    file.read_to_string(&mut line).map_err(|error| at(&fence, error))?;
    if !line.is_empty() {
        compare(stamp, &line, &fence)?;
    }
    let new = format!("{} {:019} {}\n", stamp.ensemble(), stamp.token(), stamp.name());
    let written = || -> io::Result<()> {
        let folder = File::open(folder)?;
        if new != line {
            file.write_all_at(new.as_bytes(), 0)?;
            file.sync_all()?;
            folder.sync_all()?;
        }
        std::fs::rename(staged, target)?;
        folder.sync_all()
    };
    written().map_err(|error| at(target, error))
}

fn compare(stamp: &Stamp, line: &str, fence: &Path) -> Result<(), Error> {
    let fence = fence.display();
    let Some((ensemble, written, name)) = parsed(line) else {
        let message = format!(
            "{fence} is damaged, as when the machine stops while it is written: if no earlier holder can still write, delete it"
        );
        return Err(Error::new(ErrorKind::Refused, message));
    };
    if name != stamp.name() {
        let message =
            format!("the folder of {fence} is fenced under the name {name}, and not {}", stamp.name());
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    stamp.compare(ensemble, written, &format!("delete {fence}"))
}

fn parsed(line: &str) -> Option<(&str, u64, &str)> {
    let mut words = line.strip_suffix('\n')?.splitn(3, ' ');
    let (ensemble, token, name) = (words.next()?, words.next()?, words.next()?);
    let is_whole = !ensemble.is_empty() && token.len() == 19 && !name.is_empty() && !name.contains('\n');
    is_whole.then(|| Some((ensemble, token.parse().ok()?, name)))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::sync::Barrier;
    use std::thread;

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let folder = std::env::temp_dir().join(format!("zklock-{}", crate::base::platform::uuid()));
            fs::create_dir(&folder).unwrap();
            Self(folder)
        }

        /// Publishes the token itself.
        fn publish(&self, stamp: &Stamp) -> Result<(), Error> {
            let staged = self.0.join(crate::base::platform::uuid().to_string());
            fs::write(&staged, stamp.token().to_string()).unwrap();
            let published = publish(stamp, &staged, &self.0.join("report"));
            assert_eq!(staged.exists(), published.is_err(), "what was refused stays");
            published
        }

        fn report(&self) -> String {
            fs::read_to_string(self.0.join("report")).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn stamp(token: u64) -> Stamp {
        Stamp::new("/locks/a b", "one", token).unwrap()
    }

    #[test]
    fn a_folder_refuses_what_is_late_or_not_its_own() {
        let folder = Folder::new();
        let kind = |stamp: &Stamp| folder.publish(stamp).map_err(|error| error.kind());
        assert_eq!(kind(&stamp(9)), Ok(()));
        assert_eq!(kind(&stamp(9)), Ok(()), "what may have been done is done once more");
        assert_eq!(kind(&stamp(1 << 62)), Ok(()));
        assert_eq!(kind(&stamp((1 << 62) - 1)), Err(ErrorKind::StaleToken));
        assert_eq!(
            kind(&Stamp::new("/locks/a b", "two", u64::MAX >> 1).unwrap()),
            Err(ErrorKind::OtherEnsemble)
        );
        assert_eq!(
            kind(&Stamp::new("/locks/b", "one", u64::MAX >> 1).unwrap()),
            Err(ErrorKind::InvalidInput)
        );
        assert_eq!(folder.report(), (1_u64 << 62).to_string());
        let fence = folder.0.join(FENCE);
        assert_eq!(fs::read_to_string(&fence).unwrap(), format!("one {:019} /locks/a b\n", 1_u64 << 62));
        for damaged in
            ["one 0000000000000000009 /locks/a b", "one 9 /locks/a b\n", "\n", "one 0000000000000000009 \n"]
        {
            fs::write(&fence, damaged).unwrap();
            assert_eq!(kind(&stamp(u64::MAX >> 1)), Err(ErrorKind::Refused), "{damaged:?}");
        }
        assert_eq!(folder.report(), (1_u64 << 62).to_string());
    }

    #[test]
    fn what_cannot_be_published_is_named() {
        let folder = Folder::new();
        let at = |name: &str| folder.0.join(name);
        for (staged, target, kind) in [
            ("none", "report", ErrorKind::Refused),
            ("none", "none/report", ErrorKind::Refused),
            ("none", ".zklock-fence", ErrorKind::InvalidInput),
            ("none", "..", ErrorKind::InvalidInput),
        ] {
            let error = publish(&stamp(1), &at(staged), &at(target)).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    }

    #[test]
    fn of_holders_that_race_the_last_has_the_last_word() {
        let (folder, together) = (Folder::new(), Barrier::new(8));
        thread::scope(|scope| {
            for first in 0..8 {
                let (folder, together) = (&folder, &together);
                scope.spawn(move || {
                    together.wait();
                    for token in (first..200).step_by(8) {
                        let refused = folder.publish(&stamp(token)).map_err(|error| error.kind());
                        assert!(matches!(refused, Ok(()) | Err(ErrorKind::StaleToken)), "{refused:?}");
                    }
                });
            }
        });
        assert_eq!(folder.report(), "199");
    }

    #[test]
    fn a_stamp_is_one_line_that_every_sink_can_keep() {
        let longest = "\u{e4}".repeat(255);
        assert!(Stamp::new(&longest, "one", u64::MAX >> 1).is_ok());
        for (name, ensemble, token) in [
            ("", "one", 1),
            ("/a\nb", "one", 1),
            ("/a ", "one", 1),
            (&*(longest + "a"), "one", 1),
            ("/a", "", 1),
            ("/a", "o ne", 1),
            ("/a", "one", 1 << 63),
        ] {
            let error = Stamp::new(name, ensemble, token).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
    }
}
