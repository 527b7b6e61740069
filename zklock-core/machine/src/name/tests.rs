use super::*;

const UUID: &str = "01234567-89ab-4cde-8f01-23456789abcd";

fn parsed(text: &str) -> Option<(Scheme, i32)> {
    Name::parse(text).map(|name| (name.scheme, name.sequence.0))
}

#[test]
fn the_names_that_other_libraries_write_are_recognised() {
    let hex = "0123456789abcdef0123456789abcdef";
    let table = [
        (format!("_c_{UUID}-lock-0000000007"), Scheme::Mutex, 7),
        (format!("_c_{hex}-lock-0000000007"), Scheme::Mutex, 7),
        (format!("_c_{UUID}-__READ__0000000007"), Scheme::Read, 7),
        (format!("_c_{UUID}-__WRIT__0000000007"), Scheme::Write, 7),
        (format!("_c_{UUID}-latch-0000000007"), Scheme::Latch, 7),
        (format!("{hex}__lock__0000000007"), Scheme::KazooLock, 7),
        (format!("{hex}__rlock__0000000007"), Scheme::KazooRead, 7),
        ("x-72057594037927936-0000000007".into(), Scheme::WriteLock, 7),
        ("x--72057594037927936-0000000007".into(), Scheme::WriteLock, 7),
        (format!("x-1-{UUID}-0000000007"), Scheme::WriteLock, 7),
    ];
    for (text, scheme, sequence) in table {
        assert_eq!(parsed(&text), Some((scheme, sequence)), "{text}");
    }
}

#[test]
fn negative_and_wide_numbers_are_read_as_the_server_writes_them() {
    for value in [0, 7, -1, -999_999_999, -1_000_000_000, i32::MIN, i32::MAX, 1_500_000_000, -1_500_000_000] {
        let sequence = Sequence::new(value);
        assert_eq!(Sequence::parse(&sequence.to_string()), Some(sequence));
        for front in [format!("_c_{UUID}-lock-"), "x-5-".into(), format!("{}__lock__", "a".repeat(32))] {
            let text = format!("{front}{sequence}");
            assert_eq!(parsed(&text).map(|(_, number)| number), Some(value), "{text}");
        }
    }
}

#[test]
fn a_number_is_read_in_the_form_of_the_server_and_in_no_other() {
    for text in [
        "+000000001",
        "-000000000",
        "-0000000001",
        "00000000001",
        "000000001",
        "0000 00001",
        "-2147483649",
        "",
    ] {
        assert_eq!(Sequence::parse(text), None, "{text}");
    }
}

#[test]
fn other_children_are_no_contenders() {
    for text in [
        "",
        "lock",
        &companion(Uuid::from_random(0)),
        "0000000001",
        "-lock-0000000001",
        "_c_-lock-0000000001",
        "_c_id-lock-1",
        "_c_id-lock-00000000001",
        "_c_id-lock-+000000001",
        "_c_id-lock-2147483648",
        "_c_id-lock-000000000x",
        "_c_id-lease-0000000001",
        "short__lock__0000000001",
        "x-0000000001",
        "x--0000000001",
        "x-1--0000000001",
        "y-1-0000000001",
        "_c_-__READ__0000000001",
        "-000000001",
        "naïve",
        "ééééé",
    ] {
        assert_eq!(parsed(text), None, "{text}");
    }
}

#[test]
fn the_order_wraps() {
    let order = [i32::MAX - 1, i32::MAX, i32::MIN, i32::MIN + 1].map(Sequence::new);
    for (i, left) in order.iter().enumerate() {
        for (j, right) in order.iter().enumerate() {
            assert_eq!(left.is_before(*right), i < j, "{left} before {right}");
        }
    }
}

#[test]
fn our_own_names_are_recognised() {
    let uuid = Uuid::from_random(0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF);
    for scheme in KNOWN[..7].iter().map(|form| form.scheme) {
        let text = format!("{}0000000000", scheme.prefix(uuid, -7));
        assert_eq!(parsed(&text), Some((scheme, 0)), "{text}");
        assert!(scheme.sees(scheme), "{text}");
    }
    let lease = format!("{}0000000000", Scheme::Lease.prefix(uuid, 7));
    assert_eq!(Name::parse_lease(&lease).map(|name| name.scheme), Some(Scheme::Lease));
}

#[test]
fn a_mark_is_read_with_dashes_or_without_and_in_no_other_form() {
    let of = |mark: &str| Name::parse(&format!("_c_{mark}-lock-0000000007")).unwrap().uuid();
    assert_eq!(of(UUID).unwrap().to_string(), UUID);
    assert_eq!(of(&UUID.replace('-', "")).unwrap().to_string(), UUID);
    for other in [format!("{{{UUID}}}"), format!("urn:uuid:{UUID}"), "id".to_owned()] {
        assert_eq!(of(&other), None, "{other}");
    }
}

#[test]
fn contenders_for_several_locks_under_one_node_are_recognised_and_nothing_else() {
    for text in
        ["report_lock_0000000001", "a_lock_b_lock_2147483647", "r_lock_-000000001", "é_lock_-2147483648"]
    {
        assert!(Name::is_of_several_locks(text) && Name::parse(text).is_none(), "{text}");
    }
    let ours = format!("_c_{UUID}-lock-0000000001");
    for text in
        ["_lock_0000000001", "report_lock_1", "report_lock_", "report-lock-0000000001", "report_lock", &ours]
    {
        assert!(!Name::is_of_several_locks(text), "{text}");
    }
}

#[test]
fn the_order_of_the_queue_is_that_of_the_numbers() {
    let texts = [i32::MIN, 3, i32::MAX].map(|number| format!("_c_u-lock-{}", Sequence::new(number)));
    let [wrapped, _, last] = texts.each_ref().map(|text| Name::parse(text).unwrap());
    assert_eq!(last.compare(&wrapped), Ordering::Less);
    assert_eq!(wrapped.compare(&last), Ordering::Greater);
    assert_eq!(last.compare(&last), Ordering::Equal);
}

#[test]
fn numbers_are_young_or_used_up_or_neither() {
    let told = |value| {
        let sequence = Sequence::new(value);
        (sequence.is_young(), sequence.is_used_up())
    };
    let last = i32::MAX - (1 << 20);
    for (value, expected) in [
        (0, (true, false)),
        (i32::MAX / 2 - 1, (true, false)),
        (i32::MAX / 2, (false, false)),
        (last, (false, false)),
        (last + 1, (false, true)),
        (i32::MAX, (false, true)),
        (-1, (false, true)),
        (i32::MIN, (false, true)),
    ] {
        assert_eq!(told(value), expected, "{value}");
    }
}

#[test]
fn marks_say_which_session_and_which_attempt_they_are_of() {
    let mark = Uuid::of_attempt(0x0123_4567_89ab_cdef, 5);
    assert_eq!(mark.session(), Uuid::of_attempt(0x0123_4567_89ab_cdef, 6).session());
    assert_ne!(mark.session(), Uuid::of_attempt(0x1123_4567_89ab_cdef, 5).session());
    assert_eq!((mark.attempt(), mark.next().attempt()), (5, 5));
    assert_ne!(mark, mark.next());
    assert_eq!(format!("{mark:?}"), mark.to_string());
}

#[test]
fn what_users_call_namings_and_roles() {
    let namings: Vec<_> = Naming::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(namings, ["curator", "kazoo", "writelock"]);
    let roles: Vec<_> = Role::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(roles, ["exclusive", "read", "write"]);
    for (one, other) in [(Role::Read, Role::Write), (Role::Write, Role::Write), (Role::Exclusive, Role::Read)]
    {
        assert!(one.excludes(other) && other.excludes(one));
    }
    assert!(!Role::Read.excludes(Role::Read));
}

#[test]
fn a_mark_that_is_not_of_its_naming_makes_no_contender() {
    for mark in ["abc".to_owned(), "0".repeat(33), "g".repeat(32)] {
        assert_eq!(parsed(&format!("{mark}__lock__0000000001")), None, "{mark}");
    }
    assert!(Name::is_holder_of_kazoos_semaphore("0123456789abcdef0123456789abcdef"));
    for text in ["0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdeg"] {
        assert!(!Name::is_holder_of_kazoos_semaphore(text), "{text}");
    }
}
