//! Arbitrary text and bytes, wherever they can come in from outside: nothing panics, nothing is believed without reason, and
//! no error contains a secret.
//!
//! Each test throws dice, always the same: a few seconds' worth, or as many seconds as `ZKLOCK_FUZZ_SECONDS` says, then
//! with other dice each time. A failure names the seed; `ZKLOCK_FUZZ_SEED` begins with that one.

use crate::support::fake::{Fake, Over, Request, Says, buffer, certificate, panics, reply};
use crate::support::soon;
use ground::Dice;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use zklock::face::Message;
use zklock::further::{Credentials, Tls, check_lock_path};
use zklock::{Client, ClientOptions, ErrorKind};
use zklock_machine::claim::{Claim, Foreign};
use zklock_machine::name::{Name, Scheme, Sequence};
use zklock_machine::queue::{Standing, standing};

/// Repeats a test, each time with the next seed, and prints how often.
fn again_and_again(name: &str, times: u64, mut what: impl FnMut(u64)) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let long = number("ZKLOCK_FUZZ_SECONDS").map(Duration::from_secs);
    let other = u64::from(std::process::id()) << 32;
    let first = number("ZKLOCK_FUZZ_SEED").unwrap_or(if long.is_some() { other } else { 0 });
    let start = Instant::now();
    let mut done = 0;
    while long.map_or(done < times, |long| start.elapsed() < long) {
        let seed = first + done;
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| what(seed)));
        assert!(tried.is_ok(), "{name}: ZKLOCK_FUZZ_SEED={seed}");
        done += 1;
    }
    println!("fuzzing {name}: {done} inputs in {:?}", start.elapsed());
}

/// A text with a part that is doubled, left out or replaced.
fn mutated(dice: &mut Dice, text: &str, alphabet: &[&str]) -> String {
    let mut parts: Vec<String> = text.chars().map(String::from).collect();
    for _ in 0..dice.below(5) {
        let at = dice.below(parts.len() + 1);
        let end = (at + dice.below(12)).min(parts.len());
        match dice.below(3) {
            0 => drop(parts.drain(at..end)),
            1 => {
                let doubled = parts[at..end].to_vec();
                drop(parts.splice(at..at, doubled));
            }
            _ => parts.insert(at, dice.pick(alphabet).to_owned()),
        }
    }
    parts.concat()
}

const NUMBERS: [i32; 8] = [0, 1, -1, i32::MAX, i32::MIN, 1_000_000_000, -1_000_000_000, i32::MAX - (1 << 20)];
const FRONTS: [&str; 8] = [
    "_c_8ad38a9e-3c92-4c6d-9a4f-0a3f4b1f7f10-lock-",
    "_c_0123456789abcdef0123456789abcdef-__READ__",
    "_c_8ad38a9e-3c92-4c6d-9a4f-0a3f4b1f7f10-__WRIT__",
    "_c_8ad38a9e-3c92-4c6d-9a4f-0a3f4b1f7f10-latch-",
    "0123456789abcdef0123456789abcdef__lock__",
    "0123456789abcdef0123456789abcdef__rlock__",
    "x-72057594037927936-8ad38a9e-3c92-4c6d-9a4f-0a3f4b1f7f10-",
    "report_lock_",
];
const IN_NAMES: [&str; 12] = ["-", "_", "0", "9", "+", "é", "٣", "\u{0}", "_c_", "__lock__", "-lock-", "x-"];

fn some_name(dice: &mut Dice) -> String {
    let number = if dice.chance(50) { dice.throw() as i32 } else { dice.pick(&NUMBERS) };
    let text = format!("{}{}", dice.pick(&FRONTS), Sequence::new(number));
    if dice.chance(40) { mutated(dice, &text, &IN_NAMES) } else { text }
}

#[test]
fn names() {
    const SCHEMES: [Scheme; 5] =
        [Scheme::Mutex, Scheme::Read, Scheme::Write, Scheme::KazooLock, Scheme::WriteLock];
    again_and_again("names", 20_000, |seed| {
        let dice = &mut Dice::new(seed);
        let mut children: Vec<String> = (0..dice.below(12)).map(|_| some_name(dice)).collect();
        let mut claim = Claim::new("/a", dice.pick(&SCHEMES));
        claim.foreign = if dice.chance(50) { Foreign::Refuse } else { Foreign::IgnoreUnknown };
        let own = format!("_c_ours-lock-{}", Sequence::new(dice.below(100) as i32));
        if dice.chance(90) {
            children.push(own.clone());
        }
        let names: Vec<Name<'_>> = children.iter().filter_map(|child| Name::parse(child)).collect();
        for name in &names {
            assert!(name.text.ends_with(&name.sequence.to_string()));
            let _ = name.uuid();
            for other in &names {
                assert_eq!(name.compare(other), other.compare(name).reverse(), "{name:?} {other:?}");
            }
        }
        let me = names.iter().find(|name| name.text == own);
        let in_the_way = |name: &&Name<'_>| {
            let excludes = claim.scheme.role().excludes(name.scheme.role());
            excludes && name.text != own && me.is_some_and(|me| !me.sequence.is_before(name.sequence))
        };
        match standing(&children, &own, &claim) {
            Standing::Absent => assert!(me.is_none()),
            Standing::Holds => {
                assert!(me.is_some() && !names.iter().any(|name| in_the_way(&name)), "{children:?}");
            }
            Standing::Waits { nearest, second, alone } => {
                let is_in_the_way = |text| names.iter().filter(in_the_way).any(|name| name.text == text);
                assert!(is_in_the_way(nearest) && second.is_none_or(is_in_the_way), "{children:?}");
                assert!(second != Some(nearest) && !(alone && second.is_some()), "{children:?}");
            }
            Standing::Foreign { name } => {
                assert!(claim.foreign == Foreign::Refuse && children.iter().any(|child| child == name));
            }
        }
    });
}

#[test]
fn hosts_and_paths() {
    const ALPHABET: [&str; 16] =
        [",", ":", "[", "]", "/", "//", ".", "..", " ", "\u{0}", "é", "\u{ffff}", "0", "65536", "-1", "@"];
    again_and_again("hosts", 20_000, |seed| {
        let dice = &mut Dice::new(seed);
        let text = mutated(dice, "zk1:2181,[::1]:2182,10.0.0.1/apps/billing", &ALPHABET);
        match ClientOptions::new(&text).checked() {
            Ok(options) => drop(format!("{options:?}")),
            Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text:?}"),
        }
        let path = mutated(dice, "/locks/report", &ALPHABET);
        if check_lock_path(&path).is_ok() {
            assert!(path.starts_with('/') && !path.ends_with('/') && !path.contains('\0'), "{path:?}");
        }
    });
}

#[test]
fn pem_and_passwords() {
    const ALPHABET: [&str; 9] =
        ["-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----", "-", "\n", "\r", "=", "A", "é", "\u{0}"];
    let (certificate, key) = &certificate();
    // The bytes that differ from key to key: those after the part that states the key's type.
    let secret: String = key.lines().filter(|line| !line.starts_with('-')).collect();
    let secrets: Vec<&str> = (48..secret.len() - 12).map(|at| &secret[at..at + 12]).collect();
    let tells = |text: &str| secrets.iter().any(|secret| text.contains(secret));
    assert!(tells(key));
    Tls::new(certificate).unwrap().identity(certificate, key).unwrap();
    let file = std::env::temp_dir().join(format!("zklock-fuzz-{}", std::process::id()));
    again_and_again("PEM", 1_000, |seed| {
        let dice = &mut Dice::new(seed);
        let (authorities, own) = (mutated(dice, certificate, &ALPHABET), mutated(dice, key, &ALPHABET));
        let tls = Tls::new(&authorities).and_then(|tls| tls.identity(certificate, &own));
        match tls {
            Ok(tls) => assert!(!tells(&format!("{tls:?}")), "it tells the key"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                assert!(!tells(&format!("{error} {error:?}")), "it tells the key: {error}");
            }
        }
        let mut login = "user:correct-horse\n#comment\n".to_owned();
        (0..dice.below(6)).for_each(|_| login = mutated(dice, &login, &["\n", ":", "\r", "\u{0}", "é"]));
        std::fs::write(&file, &login).unwrap();
        let said = match Credentials::from_file(&file) {
            Ok(credentials) => format!("{credentials:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!said.contains("correct") && !said.contains("horse"), "{said}");
    });
    std::fs::remove_file(&file).unwrap();
}

/// What one process of ours says to another arrives as it was said. Anything else is refused.
#[test]
fn messages() {
    const ALPHABET: [&str; 10] =
        [" ", "%", "%0", "\n", "\u{0}", "é", "-file ", " hosts ", " key ", "digest "];
    let options = ClientOptions::new("zk1:2181/apps");
    let options = options.credentials(Credentials::digest("user", "correct horse").unwrap());
    again_and_again("messages", 20_000, |seed| {
        let dice = &mut Dice::new(seed);
        let bytes: Vec<u8> = (0..dice.below(40)).map(|_| dice.throw() as u8).collect();
        let said = options.pass_on(Message::new("options").bytes("any", &bytes));
        let line = String::from_utf8(said.to_line()).unwrap();
        let mut received = [line.as_bytes(), b"leave"].concat();
        assert_eq!(Message::take(&mut received).unwrap(), Some(said));
        assert!(matches!(Message::take(&mut received), Ok(None)) && received == b"leave");
        let mut received = mutated(dice, &line, &ALPHABET).into_bytes();
        while let Ok(Some(message)) = Message::take(&mut received) {
            assert_eq!(Message::take(&mut message.to_line()).unwrap().as_ref(), Some(&message));
            assert_eq!(format!("{message:?}"), "Message", "it may tell a password");
            let problem = ClientOptions::passed_on(&message).err().map(|error| error.kind());
            assert!(matches!(problem, None | Some(ErrorKind::InvalidInput)), "{problem:?}");
        }
    });
}

/// A reply that is more or less what a server would write. More than half of the requests get a good one.
fn some_reply(dice: &mut Dice, request: &Request, created: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut stat = [0_u8; 68];
    (stat[7], stat[51]) = (9, 77);
    let body = match request.operation {
        1 | 15 | 19 | 21 => {
            let path = [&request.path[..], b"0000000001"].concat();
            created.push(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec());
            [buffer(&path), stat.to_vec()].concat()
        }
        3 | 5 => stat.to_vec(),
        4 => [buffer(b"data"), stat.to_vec()].concat(),
        8 => {
            let names: Vec<u8> = created.iter().flat_map(|name| buffer(name)).collect();
            [&(created.len() as u32).to_be_bytes()[..], &names].concat()
        }
        14 => {
            [&[0, 0, 0, 13, 0, 0, 0, 0, 0][..], &[0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff]].concat()
        }
        _ => Vec::new(),
    };
    let error = if dice.chance(10) { dice.pick(&[-101, -110, -112, -102, -6, -4242, i32::MIN]) } else { 0 };
    let mut bytes = reply(request.number, error, &body);
    if dice.chance(40) {
        // Mostly after the length: a wrong length soon ends the connection.
        let first = if dice.chance(90) { 4 } else { 0 };
        let at = first + dice.below(bytes.len() - first);
        match dice.below(5) {
            0 => bytes[at] = dice.throw() as u8,
            1 => {
                let number = dice.pick(&NUMBERS).to_be_bytes();
                bytes.iter_mut().skip(at).zip(number).for_each(|(byte, new)| *byte = new);
            }
            2 => bytes.truncate(at),
            3 => {
                let event = [&[0, 0, 0, 2, 0, 0, 0, 3][..], &buffer(&request.path)].concat();
                bytes.extend(reply(-1, 0, &event));
            }
            _ => {
                bytes.truncate(at);
                let length = (at.max(4) - 4) as u32;
                bytes.iter_mut().zip(length.to_be_bytes()).for_each(|(byte, new)| *byte = new);
            }
        }
    }
    bytes
}

/// Against a server that answers like this, an acquire ends in time, with a hold or an error.
#[test]
fn replies() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let panicked = panics();
    again_and_again("replies", 20, |seed| {
        let state = Arc::new(Mutex::new((Dice::new(seed), Vec::new())));
        let over = if seed % 2 == 0 { Over::Tcp } else { Over::Tls };
        let fake = Fake::that_opens(over, move |request| {
            let (dice, created) = &mut *state.lock().unwrap();
            Says::Once(some_reply(dice, request, created))
        });
        runtime.block_on(async {
            let bound = Duration::from_millis(100);
            let options = fake.options().connect_timeout(bound).server_version(3, 9);
            let Ok(client) = soon(Client::connect(options)).await else { return };
            for lock in [client.mutex("/a").unwrap(), client.read_lock("/a/b").unwrap()] {
                if let Ok(hold) = soon(lock.acquire_timeout(bound)).await {
                    let _ = tokio::time::timeout(bound, hold.release()).await;
                }
            }
        });
        assert_eq!(panics(), panicked);
    });
}
