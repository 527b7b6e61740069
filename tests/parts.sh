# Sourced by scripts that run tests. It runs parts one after another: all of them, even after one has failed.
#
#   run_parts [--needed PART] PART...
#   run_parts [--needed PART] PART... -- PART... [--then PART... [-- PART...]]
#
# After each part it prints its time, and the processor time of all processes that it has started and waited for. Unlike
# the first, the second does not depend on other load.
#
# With `--` there are several lanes, which run at the same time: half of the time tests wait. The output of a part comes when the
# part is done, so that nothing is mixed. Parts behind `--then` run one after another when all lanes have ended.
#
# A part is a function of the runner. It fails with the first command in it that fails. At the end run_parts prints a table of
# the parts: how many tests each has run (if its output was kept), its times, and whether it has passed; and below it what has failed. It
# fails if one has failed. If the part of --needed fails, nothing runs after it; it must be the first.
#
# Bash ignores `set -e` in a function that is called in `if` or before `||`: such a function goes on after a failure, and only its
# last command counts. So parts are not called like that, and run_parts refuses to be.

run_parts() {
  local ignored name=$0 needed='' results beside=() failed
  [[ ! $0 =~ (^|/)(tests/.*)$ ]] || name=${BASH_REMATCH[2]}
  [[ ${1:-} != --needed ]] || { needed=$2 && shift 2; }
  set +e
  ignored=$(set -e; false; echo ignored)
  set -e
  [[ -z $ignored ]] || { echo "$name: run_parts is called where bash ignores set -e" >&2; exit 1; }
  results=$(mktemp -d)
  # At Ctrl-C some programs end with a status of their own. Even then the next part must not begin.
  trap 'rm -rf "$results"; exit 130' INT
  if [[ $needed ]]; then
    run_part "$1"
    shift
  fi
  while (($#)) && [[ $1 != --then ]]; do
    beside+=("$1")
    shift
  done
  if [[ -e $results/failed ]]; then
    printf '%s\n' "${beside[@]}" "$@" | sed '/^--/d; /^$/d; s/$/ - - - not run/' >>"$results/table"
  else
    run_lanes "${beside[@]}"
    (($# == 0)) || run_lanes "${@:2}"
  fi
  trap - INT
  print_table "$name" "$results/table"
  [[ ! -e $results/failures ]] || cat "$results/failures"
  failed=$(cat "$results/failed" 2>/dev/null) || true
  rm -rf "$results"
  [[ ! $failed ]] || { echo "== $name: FAILED: ${failed//$'\n'/, }" && exit 1; }
}

run_lanes() { # PART... [-- PART...]
  local lane lanes parts pids=()
  [[ " $* " == *' -- '* ]] || { run_lane "$@"; return; }
  # A line each, because names of parts are words.
  mapfile -t lanes < <(sed 's/ *-- */\n/g' <<<"$*")
  for lane in "${lanes[@]}"; do
    read -ra parts <<<"$lane"
    (is_beside=1; run_lane "${parts[@]}") &
    pids+=($!)
  done
  # A lane ends well even if its parts fail.
  for lane in "${!pids[@]}"; do
    wait "${pids[lane]}" || echo "the lane ${lanes[lane]} ended early ($?)" >>"$results/failed"
  done
}

run_lane() { # PART...
  # A lane in the background would ignore Ctrl-C, and so would the programs that its tests start.
  [[ ! ${is_beside:-} ]] || { trap - INT QUIT && trap 'exit 130' INT; }
  while (($#)); do
    run_part "$1"
    shift
  done
}

run_part() {
  local part=$1 begun=$SECONDS worked status result=passed counted=- output="$results/output of $1" shell=$BASHPID
  worked=$(processor_time "$shell")
  echo "== $name $part"
  set +e
  if [[ ${is_beside:-} ]]; then
    (set -e; "$part") &>"$output" </dev/null
  else
    # On the user's terminal, and so nothing counts its tests.
    (set -e; "$part")
  fi
  status=$?
  set -e
  begun=$((SECONDS - begun)) worked=$(($(processor_time "$shell") - worked))
  {
    # One part at a time.
    flock 9
    [[ ! ${is_beside:-} ]] || { cat "$output" && counted=$(count_tests <"$output"); }
    ((status == 0)) || { result=FAILED && echo "$part" >>"$results/failed"; }
    [[ $result == passed || ! -e $output ]] || list_failures "$name" "$part" <"$output" >>"$results/failures"
    echo "== $name $part: $result"
    echo "$part $counted $begun $worked $result" >>"$results/table"
  } 9>>"$results/lock"
}

count_tests() { # in the output of a part: of libtest, of pytest, and of what we have written ourselves
  awk '/^test result: / { count += $4 + $6 } # "test result: ok. 3 passed; 0 failed; ..."
    /^[0-9]+ (failed|passed).* in [0-9.]+s/ { for (at = 1; at < NF; at++) if ($(at + 1) ~ /^(failed|passed|error)/) count += $at }
    /^ok [a-z0-9_]+ \([0-9]+ ms\)$/ { count++ }
    /^(valgrind|address|thread): [^ ]+ [0-9]+ tests$/ { count += $3 }
    END { print count ? count : "-" }'
}

list_failures() { # RUNNER PART: in the output of a part: for each failed test what its name promises, what it saw, and how to run it alone
  awk -v runner="$1 $2" '/^---- .* stdout ----$/ { test = $2 }
    test && / panicked at .*:$/ {
      seen = test " (" $NF
      for (count = 0; count < 3 && (getline line) > 0 && line !~ /^(stack backtrace:|note: .*|)$/; count++) seen = seen " " line
      module = test
      sub(/::[^:]*$/, "", module)
      print seen "); alone: " (test ~ /(^|::)tests::/ ? "cargo test --workspace " test : runner " " module)
      test = ""
    }
    /^(FAILED|ERROR) / {
      split($2, of, "::")
      print substr($0, index($0, " ") + 1) (of[2] ? "; alone: " runner " " of[1] " -k " of[2] : "")
    }'
}

print_table() { # the name of the runner, a file with a line for each part
  local part tests seconds worked result
  printf '== %-24s %6s %8s %10s  %s\n' "$1" tests seconds processor result
  while read -r part tests seconds worked result; do
    printf '== %-24s %6s %8s %10s  %s\n' "  $part" "$tests" "$seconds" "$worked" "$result"
  done <"$2"
}

processor_time() { # of the children of a shell that have ended, in seconds
  local fields
  read -ra fields <"/proc/$1/stat"
  echo $(((fields[15] + fields[16]) / $(getconf CLK_TCK)))
}
