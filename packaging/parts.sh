# Sourced by packaging/build and packaging/test. Runs the script of that name in the folder of each kind of package.
#
#   run_kinds build|test [KIND...]

packaging=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$packaging/../tests/parts.sh"
kinds=()
for folder in "$packaging"/*/; do
  [[ ! -x $folder/build || $folder == */trust/ ]] || kinds+=("$(basename "$folder")")
done
# Its checksums are of what all others have made.
kinds+=(trust)

run_kinds() { # STEP [KIND...]
  local step=$1 kind
  shift
  (($#)) || set -- "${kinds[@]}"
  for kind; do
    [[ " ${kinds[*]} " == *" $kind "* ]] || { echo "packaging/$step: no kind of package $kind: there are ${kinds[*]}" >&2; exit 2; }
    eval "$kind() { '$packaging/$kind/$step'; }"
  done
  run_parts "$@"
}
