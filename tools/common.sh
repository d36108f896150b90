# Shared by the functions behind ./dev: output, phases and paths. Sourced, never run.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
python=$venv/bin/python
release=$root/build/release

# ccache names files relative to the checkout, so that a second one, and the wheel's own build folder, find what the first compiled.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

say() { printf '\n== %s\n' "$*"; }
warn() { printf 'dev: %s\n' "$*" >&2; }
die() {
  warn "$*"
  exit 1
}

# phase TITLE COMMAND...: runs it, prints how long it took, returns its status.
phase() {
  local title=$1 start=$SECONDS status=0
  shift
  say "$title"
  "$@" || status=$?
  printf -- '-- %s: %s, %d s\n' "$title" "$([ $status = 0 ] && echo done || echo FAILED)" $((SECONDS - start))
  return $status
}

# A file that includes torch's headers takes up to 1.6 GB to compile, so memory may allow fewer jobs than cores.
jobs() {
  local cores memory
  cores=$(nproc 2>/dev/null || echo 1)
  memory=$(awk '/^MemAvailable/ {print int($2 / 1800000)}' /proc/meminfo 2>/dev/null)
  memory=${memory:-$cores}
  [ "$memory" -ge 1 ] || memory=1
  [ "$memory" -lt "$cores" ] && echo "$memory" || echo "$cores"
}
