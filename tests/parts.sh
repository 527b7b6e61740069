# Sourced by scripts that run tests. It runs parts one after another: all of them, even after one has failed.
#
#   run_parts [--needed PART] PART...
#
# After each part it prints its time, and the processor time of all processes that it has started and waited for. Unlike
# the first, the second does not depend on other load.
#
# A part is a function of the runner. It fails with the first command in it that fails. At the end run_parts prints which
# parts have passed and which have failed, with their times. It fails if one has failed. If the part of --needed fails,
# nothing runs after it.
#
# Bash ignores `set -e` in a function that is called in `if` or before `||`: such a function goes on after a failure, and only its
# last command counts. So parts are not called like that, and run_parts refuses to be.

run_parts() {
  local part begun worked status ignored name=$0 needed='' passed=() failed=() skipped=()
  [[ ! $0 =~ (^|/)(tests/.*)$ ]] || name=${BASH_REMATCH[2]}
  [[ ${1:-} != --needed ]] || { needed=$2 && shift 2; }
  set +e
  ignored=$(set -e; false; echo ignored)
  set -e
  [[ -z $ignored ]] || { echo "$name: run_parts is called where bash ignores set -e" >&2; exit 1; }
  # At Ctrl-C some programs end with a status of their own. Even then the next part must not begin.
  trap 'exit 130' INT
  while (($#)); do
    part=$1
    shift
    echo "== $name $part"
    begun=$SECONDS worked=$(processor_time)
    set +e
    (set -e; "$part")
    status=$?
    set -e
    begun=$((SECONDS - begun)) worked=$(($(processor_time) - worked))
    if ((status == 0)); then
      echo "== $name $part: $begun s, $worked s of processor time"
      passed+=("$part $begun s")
    else
      echo "== $name $part: FAILED ($status) after $begun s, $worked s of processor time"
      failed+=("$part $begun s")
      [[ $part != "$needed" ]] || { skipped=("$@") && break; }
    fi
  done
  trap - INT
  told "$name: passed" ${passed[@]+"${passed[@]}"}
  told "$name: FAILED" ${failed[@]+"${failed[@]}"}
  told "$name: not run" ${skipped[@]+"${skipped[@]}"}
  ((${#failed[@]} == 0)) || exit 1
}

processor_time() { # of this shell's children that have ended, in seconds
  local fields
  read -ra fields <"/proc/$$/stat"
  echo $(((fields[15] + fields[16]) / $(getconf CLK_TCK)))
}

told() { # what, of which
  local what=$1 list
  shift
  (($#)) || return 0
  printf -v list '%s, ' "$@"
  echo "== $what: ${list%, }"
}
