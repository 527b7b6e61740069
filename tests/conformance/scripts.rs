//! Conversations that chance would not produce: they take time, or need a certain order.

use crate::generate::{create_root, opening};
use crate::request::{Maker, OPEN, Op, Request, Then};
use crate::step::{Connect, Step, Wanted};

/// All of them, each with its name and its number of slots.
pub(crate) fn all() -> Vec<(&'static str, usize, Vec<Step>)> {
    vec![("sessions that expire", 4, expiry()), ("sequence numbers", 2, sequence())]
}

/// Two sessions fall silent, one without its connection. Watchers are told of the end of their nodes.
fn expiry() -> Vec<Step> {
    let brief = |slot| Step::Connect(Connect { slot, timeout: 0, ..Connect::usual(slot, Wanted::New) });
    let watch = |slot, request| Step::Send { slot, requests: vec![request] };
    let mut steps = vec![opening(0), opening(1), create_root(), create(0, "@/a", 0)];
    steps.extend([brief(2), brief(3)]);
    steps.extend([
        create(2, "@/a/one", 1),
        create(2, "@/a/q-", 3),
        create(3, "@/b", 1),
        create(3, "@/kept", 0),
    ]);
    steps.extend([
        watch(0, Request::At(Op::Exists, "@/a/one".to_owned(), Then::Watch(true))),
        watch(0, Request::At(Op::GetData, "@/b".to_owned(), Then::Watch(true))),
        watch(0, Request::At(Op::GetChildren, "@/a".to_owned(), Then::Watch(true))),
        watch(1, Request::At(Op::AddWatch, "@".to_owned(), Then::Number(1))),
        Step::HangUp { slot: 2 },
        Step::Await { slot: 0, events: 3 },
        // Do not compare the times of their changes: it is chance which of the two ended first.
        watch(0, Request::At(Op::GetChildren, "@".to_owned(), Then::Watch(false))),
        watch(0, Request::At(Op::GetChildren, "@/a".to_owned(), Then::Watch(false))),
        Step::Connect(Connect::usual(2, Wanted::Of(2))),
        Step::Connect(Connect::usual(3, Wanted::Of(3))),
        Step::Word("mntr"),
    ]);
    steps
}

/// Sequence numbers count the nodes that were ever created in the parent, and start again when the parent is created
/// again.
fn sequence() -> Vec<Step> {
    let delete = |path: &str| Step::Send {
        slot: 1,
        requests: vec![Request::At(Op::Delete, path.to_owned(), Then::Number(-1))],
    };
    vec![
        opening(0),
        opening(1),
        create_root(),
        create(0, "@/a", 0),
        create(0, "@/a/q-", 2),
        create(0, "@/a/x", 0),
        delete("@/a/x"),
        create(1, "@/a/q-", 3),
        create(1, "@/a/", 2),
        delete("@/a/q-0000000000"),
        delete("@/a/q-0000000002"),
        delete("@/a/0000000003"),
        create(0, "@/a/other-", 2),
        delete("@/a/other-0000000004"),
        delete("@/a"),
        create(0, "@/a", 0),
        create(0, "@/a/q-", 2),
    ]
}

fn create(slot: usize, path: &str, flags: i32) -> Step {
    let (maker, data, acl) = (Maker::Create2, Some(3), OPEN);
    Step::Send { slot, requests: vec![Request::Create { maker, path: path.to_owned(), data, acl, flags }] }
}
