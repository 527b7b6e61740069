//! A fence for the files of a folder.
//!
//! The greatest token is in a file of the folder, under `flock`. The Python package does the same, so both can write there. The
//! file has one line, which keeps its length: `ENSEMBLE TOKEN NAME`, with a token of 19 digits. It is written in place, because the
//! lock is on the file and not on its name; only digits change, near the beginning, in one sector of the disk.

use super::stamp::Stamp;
use crate::base::error::{Error, ErrorKind};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat, renameat};
use rustix::io::retry_on_intr;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const FENCE: &str = ".zklock-fence";

/// Replaces a file with a new one that is ready, unless a later holder has written to that folder.
///
/// The staged file must be in the same file system, best in the same folder, with another name. This call syncs it, and renames
/// it to `target`. It keeps its permissions. Meanwhile the call locks the file `.zklock-fence` in the target's folder, which keeps
/// the greatest token. It syncs the folder before it unlocks that file. So readers see the old file or the new one, always
/// complete, even after a crash. If the call fails, the staged file stays.
///
/// It blocks its thread while another holder writes. It works on one machine, on a local file
/// system. It does not work on NFS.
///
/// # Errors
///
/// * [`ErrorKind::StaleToken`] if a later holder has written: stop the work;
/// * [`ErrorKind::OtherEnsemble`] if the folder keeps the token of another ensemble. The message says how to go on;
/// * [`ErrorKind::InvalidInput`] if the folder is fenced under another name, if `target` does not name a file in a folder, or
///   if `staged` is not a regular file or is the target itself;
/// * [`ErrorKind::Refused`] if the system refuses an operation, or if the file with the token is
///   damaged.
///
/// # Examples
///
/// ```no_run
/// use zklock::fence::{self, Stamp};
///
/// # async fn example(hold: &zklock::Hold) -> Result<(), Box<dyn std::error::Error>> {
/// let stamp = Stamp::of(hold).await?;
/// std::fs::write("reports/.sales.new", "1,2,3")?;
/// fence::publish(&stamp, "reports/.sales.new".as_ref(), "reports/sales.csv".as_ref())?;
/// # Ok(())
/// # }
/// ```
pub fn publish(stamp: &Stamp, staged: &Path, target: &Path) -> Result<(), Error> {
    let at = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| Error::new(ErrorKind::Refused, format!("{path}: {error}"))
    };
    let wrong = |path: &Path, problem| {
        Err(Error::new(ErrorKind::InvalidInput, format!("{} {problem}", path.display())))
    };
    let is_last = |name: &&OsStr| target.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes());
    let is_fence = |name: &OsStr| name.as_encoded_bytes().starts_with(FENCE.as_bytes());
    let Some(name) = target.file_name().filter(is_last).filter(|name| !is_fence(name)) else {
        return wrong(target, "is no file that can be published: give another name");
    };
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(".".as_ref());
    // What is renamed is in this folder, even if another folder takes its name while this call waits.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, parent, flags, Mode::empty()).map_err(|error| at(parent)(error.into()))?;
    let folder = File::from(folder);
    let ready = staged.symlink_metadata().map_err(at(staged))?;
    let is_staged = |other: &Metadata| (other.dev(), other.ino()) == (ready.dev(), ready.ino());
    if !ready.is_file() {
        return wrong(staged, "is not a regular file");
    }
    if target.symlink_metadata().is_ok_and(|target| is_staged(&target)) {
        return wrong(staged, "is in place already, so no fence has seen it: write to another file");
    }
    // Before the lock, which others wait for.
    File::open(staged).and_then(|staged| staged.sync_all()).map_err(at(staged))?;
    let fence = parent.join(FENCE);
    let file = locked(&folder).map_err(at(&fence))?;
    let publish = || {
        if is_staged(&file.metadata().map_err(at(&fence))?) {
            return wrong(staged, "keeps the token: write to another file");
        }
        keep(stamp, &file, &folder, &fence, at(&fence))?;
        renameat(CWD, staged, &folder, name).map_err(io::Error::from).map_err(at(target))?;
        folder.sync_all().map_err(at(parent))
    };
    let published = publish();
    // To close the file is not enough: a process that was forked meanwhile has it open too.
    let _ = flock(&file, FlockOperation::Unlock);
    published
}

/// Opens the file with the token, and locks it.
fn locked(folder: &File) -> io::Result<File> {
    // A pipe would wait for its other end.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    loop {
        let file = File::from(openat(folder, FENCE, flags, Mode::from_raw_mode(0o666))?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("is not a regular file"));
        }
        retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        // One that was deleted while this call waited, to reset the fence, fences nothing any more.
        if file.metadata()?.nlink() > 0 {
            return Ok(file);
        }
    }
}

/// Compares the token with what the file has, and keeps it.
fn keep(
    stamp: &Stamp,
    file: &File,
    folder: &File,
    fence: &Path,
    refused: impl Fn(io::Error) -> Error,
) -> Result<(), Error> {
    let mut line = String::new();
    (&*file).read_to_string(&mut line).map_err(&refused)?;
    if !line.is_empty() {
        compare(stamp, &line, fence)?;
    }
    let new = format!("{} {:019} {}\n", stamp.ensemble(), stamp.token(), stamp.name());
    if new != line && file.write_at(new.as_bytes(), 0).map_err(&refused)? < new.len() {
        // As it was. To write the rest would end a process that does not expect the signal of `ulimit -f`.
        file.write_at(line.as_bytes(), 0).and_then(|_| file.set_len(line.len() as u64)).map_err(&refused)?;
        return Err(refused(io::Error::other("no room for the token: see ulimit -f, and the disk")));
    }
    // Also what was written before: that writer may have been killed before it was synced.
    file.sync_all().and_then(|()| if new == line { Ok(()) } else { folder.sync_all() }).map_err(refused)
}

fn compare(stamp: &Stamp, line: &str, fence: &Path) -> Result<(), Error> {
    let fence = fence.display();
    let Some((ensemble, written, name)) = parsed(line) else {
        let message = format!(
            "{fence} is damaged, for example because the machine stopped while it was written: if no earlier \
             holder can still write, delete it"
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
    use crate::base::clock;
    use std::fs;
    use std::os::fd::{AsRawFd, RawFd};
    use std::path::PathBuf;
    use std::sync::Barrier;
    use std::thread;
    use std::time::Duration;

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
        folder.publish(&stamp(1)).unwrap();
        fs::create_dir(at("folder")).unwrap();
        fs::create_dir(at("piped")).unwrap();
        for pipe in [at("pipe"), at("piped").join(FENCE)] {
            assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        std::os::unix::fs::symlink("report", at("link")).unwrap();
        fs::hard_link(at("report"), at("other")).unwrap();
        let there = || fs::read_dir(&folder.0).unwrap().count();
        let before = there();
        for (staged, target, kind) in [
            ("none", "report", ErrorKind::Refused),
            ("none", "none/report", ErrorKind::Refused),
            ("none", ".zklock-fence", ErrorKind::InvalidInput),
            ("none", "..", ErrorKind::InvalidInput),
            ("report", "new/", ErrorKind::InvalidInput),
            ("report", "new/.", ErrorKind::InvalidInput),
            ("report", "report", ErrorKind::InvalidInput),
            ("report", "other", ErrorKind::InvalidInput),
            ("folder", "new", ErrorKind::InvalidInput),
            ("link", "new", ErrorKind::InvalidInput),
            (FENCE, "new", ErrorKind::InvalidInput),
            ("report", "folder", ErrorKind::Refused),
            ("pipe", "new", ErrorKind::InvalidInput),
            ("report", "pipe/report", ErrorKind::Refused),
            ("report", "piped/report", ErrorKind::Refused),
        ] {
            let error = publish(&stamp(1), &at(staged), &at(target)).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
        assert_eq!(there(), before);
    }

    /// Lets a call of [`publish`] wait for the fence, does this meanwhile with the descriptor of the call, and lets it go on.
    fn while_it_waits<T>(
        folder: &Folder,
        token: u64,
        meanwhile: impl FnOnce(RawFd) -> T,
    ) -> (T, Result<(), Error>) {
        let fence = folder.0.join(FENCE);
        let ours = File::open(&fence).unwrap();
        flock(&ours, FlockOperation::LockExclusive).unwrap();
        thread::scope(|scope| {
            let call = scope.spawn(|| folder.publish(&stamp(token)));
            let started = clock::now();
            let theirs = loop {
                let is_theirs = |number: &RawFd| {
                    let link = fs::read_link(format!("/proc/self/fd/{number}"));
                    *number != ours.as_raw_fd() && link.is_ok_and(|path| path == fence)
                };
                let numbers = fs::read_dir("/proc/self/fd").unwrap().flatten();
                let found =
                    numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is_theirs);
                if let Some(number) = found {
                    break number;
                }
                assert!(clock::now().since(started) < Duration::from_secs(30), "it does not open the fence");
                thread::yield_now();
            };
            let done = meanwhile(theirs);
            drop(ours);
            (done, call.join().unwrap())
        })
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_was_forked_meanwhile_keeps_nobody_out() {
        let folder = Folder::new();
        folder.publish(&stamp(1)).unwrap();
        // The child of a fork has the same.
        let inherit = |theirs| {
            use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
            let this = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
            pidfd_getfd(&this, theirs, PidfdGetfdFlags::empty()).unwrap()
        };
        let (inherited, published) = while_it_waits(&folder, 2, inherit);
        published.unwrap();
        let next = File::open(folder.0.join(FENCE)).unwrap();
        flock(&next, FlockOperation::NonBlockingLockExclusive).unwrap();
        drop(inherited);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_fence_that_is_deleted_while_others_wait_for_it_is_made_again() {
        let folder = Folder::new();
        folder.publish(&stamp(1)).unwrap();
        let reset = |_| {
            fs::remove_file(folder.0.join(FENCE)).unwrap();
            folder.publish(&stamp(9)).unwrap();
        };
        let late = while_it_waits(&folder, 5, reset).1;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::StaleToken);
        assert_eq!(folder.report(), "9");
    }

    #[test]
    fn what_was_compared_in_one_folder_is_not_written_to_another() {
        let folder = Folder::new();
        folder.publish(&stamp(1)).unwrap();
        let old = Folder(folder.0.with_extension("old"));
        let exchange = |_| {
            fs::rename(&folder.0, &old.0).unwrap();
            fs::create_dir(&folder.0).unwrap();
            folder.publish(&stamp(9)).unwrap();
            // Where the call finds it.
            for staged in fs::read_dir(&old.0).unwrap().flatten() {
                if !["report", FENCE].contains(&&*staged.file_name().to_string_lossy()) {
                    fs::copy(staged.path(), folder.0.join(staged.file_name())).unwrap();
                }
            }
        };
        let late = while_it_waits(&folder, 5, exchange).1;
        late.unwrap();
        assert_eq!((folder.report(), old.report()), ("9".to_owned(), "5".to_owned()));
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
