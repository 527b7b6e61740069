# Sourced by scripts that run tests. It runs parts one after another: all of them, even after one has failed.
#
#   run_parts [--needed PART] PART...
#   run_parts [--needed PART] PART... -- PART... [-- PART...] [--then PART...]
#
# After each part it prints its time, and the processor time of all processes that it has started and waited for. Unlike
# the first, the second does not depend on other load.
#
# With `--` there are several lanes, which run at the same time: half of the time tests wait. The output of a part comes when the
# part is done, so that nothing is mixed. Parts behind `--then` run one after another when all lanes have ended.
#
# A part is a function of the runner. It fails with the first command in it that fails. At the end run_parts prints which
# parts have passed and which have failed, with their times. It fails if one has failed. If the part of --needed fails,
# nothing runs after it; it must be the first.
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
    printf '%s\n' "${beside[@]}" "$@" | sed '/^--/d' >"$results/not run"
  else
    run_lanes "${beside[@]}"
    (($# == 0)) || run_lane "${@:2}"
  fi
  trap - INT
  told "$name: passed" "$results/passed"
  told "$name: FAILED" "$results/failed"
  told "$name: not run" "$results/not run"
  failed=$(cat "$results/failed" 2>/dev/null) || true
  rm -rf "$results"
  [[ ! $failed ]] || exit 1
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
  local part=$1 begun=$SECONDS worked status shell=$BASHPID
  worked=$(processor_time "$shell")
  echo "== $name $part"
  set +e
  if [[ ${is_beside:-} ]]; then
    (set -e; "$part") &>"$results/output of $part" </dev/null
  else
    (set -e; "$part")
  fi
  status=$?
  set -e
  begun=$((SECONDS - begun)) worked=$(($(processor_time "$shell") - worked))
  {
    # One part at a time.
    flock 9
    [[ ! ${is_beside:-} ]] || cat "$results/output of $part"
    if ((status == 0)); then
      echo "== $name $part: $begun s, $worked s of processor time"
      echo "$part $begun s" >>"$results/passed"
    else
      echo "== $name $part: FAILED ($status) after $begun s, $worked s of processor time"
      echo "$part $begun s" >>"$results/failed"
    fi
  } 9>>"$results/lock"
}

processor_time() { # of the children of a shell that have ended, in seconds
  local fields
  read -ra fields <"/proc/$1/stat"
  echo $(((fields[15] + fields[16]) / $(getconf CLK_TCK)))
}

told() { # what, the file that says of which
  local list
  [[ -e $2 ]] || return 0
  mapfile -t list <"$2"
  printf -v list '%s, ' "${list[@]}"
  echo "== $1: ${list%, }"
}
