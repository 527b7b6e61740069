#!/usr/bin/env bash
# Tests the runner of tests: a command that fails in the middle of a section fails it, and later sections still run.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "tests/parts_itself.sh: $*: $(cat "$work/said")" >&2
  exit 1
}

runs() { # STATUS COMMAND...: its output is in $work/said
  local wanted=$1 status=0
  shift
  "$@" >"$work/said" 2>&1 || status=$?
  ((status == wanted)) || fail "$* ended with $status, not $wanted"
}

says() { grep -qE -- "$1" "$work/said" || fail "it does not say '$1'"; }
says_not() { ! grep -qE -- "$1" "$work/said" || fail "it says '$1'"; }

cat >"$work/runner" <<'RUNNER'
set -euo pipefail
source "$PARTS"
good() { echo from good; }
busy() { bash -c 'until [[ $(ps -o cputimes= $$) -ge 2 ]]; do for ((i = 0; i < 100000; i++)); do :; done; done'; }
inner() { false; echo after inner; }
bad() { echo from bad; inner; echo after bad; }
undefined() { echo "$no_such_variable"; }
counted() {
  echo 'test result: ok. 3 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s'
  echo '2 failed, 4 passed, 1 skipped, 9 deselected in 115.61s (0:01:55)'
  echo 'valgrind: scenarios/told: 4 tests'
  echo 'ok a_loss_is_told (350 ms)'
  echo '1 passed, 7 warnings in 0.1s'
}
told() {
  printf '%s\n' '---- told::a_loss_is_told stdout ----' '' "thread 'told::a_loss_is_told' (7) panicked at tests/told.rs:3:5:" \
    'assertion `left == right` failed: the state' '  left: Held' ' right: Lost' 'stack backtrace:' '   0: core::panicking'
  echo 'FAILED scenarios/test_told.py::test_a_loss - AssertionError: held'
  echo 'FAILED a_loss_is_told (told.c:7): held'
  false
}
piped() { false | cat; echo after piped; }
# Each waits for the other, so they end only if they run at the same time.
meet() { touch "$MET/$1" && timeout 60 sh -c "until [ -e '$MET/$2' ]; do sleep 0.05; done" && echo "$1 met $2"; }
left() { meet left right; }
right() { meet right left; }
killed() { kill -KILL "$shell"; } # of the lane
interruptible() { bash -c 'kill -INT $$; echo not interrupted'; }
$CALL run_parts "$@" $AFTER
RUNNER
runner() { # STATUS PART...
  local wanted=$1 call=${call:-} after=${after:-}
  shift
  CALL= AFTER= && sed "s/\$CALL/$call/; s/\$AFTER/$after/" "$work/runner" >"$work/runner.sh"
  rm -rf "$work/met" && mkdir "$work/met"
  MET=$work/met PARTS=$here/parts.sh runs "$wanted" bash "$work/runner.sh" "$@"
}

runner 0 good
says '^==   good +- +[0-9]+ +[0-9]+  passed$'
says_not FAILED
runner 0 busy
says '  busy +- +[0-9]+ +[1-9][0-9]*  passed$'
runner 0 counted -- good
says '  counted +16 +[0-9]+ +[0-9]+  passed$'
says '  good +- +[0-9]+ +[0-9]+  passed$'
runner 1 told -- good
says '^told::a_loss_is_told \(tests/told.rs:3:5: assertion `left == right` failed: the state +left: Held +right: Lost\); alone: .*runner.sh told told$'
says '^scenarios/test_told.py::test_a_loss - AssertionError: held; alone: .*runner.sh told scenarios/test_told.py -k test_a_loss$'
says '^a_loss_is_told \(told.c:7\): held$'
for part in bad undefined piped; do
  runner 1 "$part" good
  says_not '^after'
  says '^from good$'
  says "  $part .*  FAILED$"
  says '  good .*  passed$'
  says "FAILED: $part$"
done
runner 1 good bad
runner 0 left good -- right
says '^left met right$'
says '^right met left$'
says '  good .*  passed$'
runner 0 left -- right --then good
says '  good .*  passed$'
runner 1 left bad good -- right
says_not '^after'
says '  bad .*  FAILED$'
says '  good .*  passed$'
runner 1 killed good -- left -- right
says 'FAILED: the lane killed good ended early .137.'
says '  left .*  passed$'
runner 1 good -- interruptible
says_not 'not interrupted'
runner 1 --needed bad bad left -- right --then good
for part in left right good; do says "  $part +- +- +-  not run$"; done
runner 1 --needed bad bad good
says_not 'from good'
says '  good .*  not run$'
call='if ' after='; then :; fi' runner 1 good
says 'ignores set -e'
after='|| :' runner 1 good
says 'ignores set -e'

# The real runner, with a cargo that does nothing, and fails at a certain word.
mkdir "$work/bin"
cat >"$work/bin/cargo" <<'CARGO'
#!/bin/sh
echo "cargo $*${ZKLOCK_CASE:+, case $ZKLOCK_CASE}${ZKLOCK_SERVER:+, on the $ZKLOCK_SERVER server}"
case " $* " in *" $FAIL_AT "*) exit 3 ;; esac
CARGO
chmod +x "$work/bin/cargo"
export PATH=$work/bin:$PATH FAIL_AT
FAIL_AT=nowhere runs 0 "$here/run" rust model
says '  rust .*  passed$'
says '  model .*  passed$'
FAIL_AT=--doc runs 1 "$here/run" rust model # in the middle of `rust`
says_not 'cargo.*scenarios'
says 'cargo.*model'
says '  rust .*  FAILED$'
says '  model .*  passed$'
runs 2 "$here/run" no-such-section

# The chosen parts of a section run, and a part that does not exist is reported before anything runs.
FAIL_AT=nowhere runs 0 "$here/run" rust told exclusive::mutex model lease
says 'cargo.*--test scenarios -- --test-threads [0-9]+ told:: exclusive::mutex::$'
says_not 'cargo.*--doc'
says 'cargo.*-p zklock-model, case lease$'
runs 0 "$here/run" rust mutex real told
says ' mutex::$'
says ' told::, on the real server$'
says_not 'conformance'
for words in 'rust no_such_module' 'rust supp' 'real told::no_such_kind' 'c scenarios/no_such' 'python scenarios/test_no_such.py' 'interop test_no_such.py'; do
  runs 2 "$here/run" model $words
  says "no (module|program)? ?${words#* }.* there are .*"
  says_not 'cargo|=='
done
says 'test_strangers.py'
runs 2 "$here/run" rust no_such_module
says 'there are.* told'
says_not 'support|::'
runs 2 "$here/run" msrv told
says 'nothing can be chosen'
