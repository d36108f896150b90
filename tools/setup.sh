# ./dev setup: installs what is missing, by package name. A second call with everything there takes well under 2 s.

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "root rights are needed for: $*  (run it as root, then ./dev setup again)"
  fi
}

# The first Python 3.10+ that has headers and the venv module, "" if there is none.
find_python() {
  local candidate
  for candidate in python3 /usr/bin/python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
    candidate=$(command -v "$candidate") || continue
    if "$candidate" - 2>/dev/null <<'PY'; then
import ensurepip, os, sys, sysconfig, venv
header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
sys.exit(0 if sys.version_info >= (3, 10) and os.path.exists(header) else 1)
PY
      echo "$candidate"
      return
    fi
  done
}

has() {  # has PROBE: for systems without dpkg
  case $1 in
    cmd:*) command -v "${1#cmd:}" >/dev/null ;;
    header:*) command -v g++ >/dev/null && echo "#include <${1#header:}>" | g++ -std=c++20 -x c++ -M - >/dev/null 2>&1 ;;
    file:*) [ -e "${1#file:}" ] ;;
    python:*) [ -n "$(find_python)" ] ;;
  esac
}

# Lines "package|what for" of tools/system_packages.txt that this system lacks.
missing_system() {
  local package probe purpose installed=""
  if command -v dpkg-query >/dev/null; then
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null | sed -n 's/ installed$//p')
  fi
  while IFS='|' read -r package probe purpose; do
    package=${package//[[:space:]]/}
    probe=${probe//[[:space:]]/}
    case $package in '' | '#'*) continue ;; esac
    case $probe in
      # Any Python with headers will do (pyenv, conda, ...): the distribution's packages are only the remedy.
      python:*) has "$probe" && continue ;;
      *)
        if [ -n "$installed" ]; then
          grep -qx -- "$package" <<<"$installed" && continue
        else
          has "$probe" && continue
        fi
        ;;
    esac
    echo "$package|${purpose# }"
  done <"$root/tools/system_packages.txt"
}

setup_system() {
  local missing package purpose packages=()
  missing=$(missing_system)
  if [ -z "$missing" ]; then
    echo "system packages: all there"
    return
  fi
  if ! command -v apt-get >/dev/null; then
    warn "this system has no apt-get, so nothing is installed. Missing, by their Debian names:"
    sed 's/^\([^|]*\)|\(.*\)/       \1: \2/' <<<"$missing" >&2
    grep -qv '|optional:' <<<"$missing" || return 0
    die "install what is not optional with this system's package manager, then run ./dev setup again"
  fi
  as_root apt-get update -qq || return
  while IFS='|' read -r package purpose; do
    case $purpose in
      optional:*) apt-cache show "$package" >/dev/null 2>&1 || { warn "no package $package here; $purpose" && continue; } ;;
    esac
    packages+=("$package")
  done <<<"$missing"
  [ ${#packages[@]} -gt 0 ] || return 0
  echo "system packages to install: ${packages[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
}

setup_cmake_version() {
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*//p')
  [ "$(printf '%s\n3.25\n' "$version" | sort -V | head -n1)" = 3.25 ] ||
    die "cmake $version is too old: 3.25 or newer is needed. Install a newer one ('pip install cmake' has it), then run ./dev setup again"
}

setup_python() {
  local base missing
  if [ ! -x "$python" ]; then
    base=$(find_python)
    [ -n "$base" ] || die "no Python 3.10 or newer with headers and the venv module; install python3-dev and python3-venv"
    echo "creating .venv with $base"
    "$base" -m venv "$venv" || {
      rm -rf "$venv"
      die "the virtual environment could not be made; see the message above"
    }
  fi
  missing=$("$python" "$root/tools/missing_requirements.py" "$root/tools/requirements.txt")
  if [ -z "$missing" ]; then
    echo "Python packages: all there"
    return
  fi
  # shellcheck disable=SC2086  # one word per package
  echo "Python packages to install into .venv:" $missing
  local quiet=()
  [ -t 1 ] || quiet=(--progress-bar off --quiet)
  # shellcheck disable=SC2086
  "$python" -m pip install --disable-pip-version-check "${quiet[@]}" $missing
}

setup() {
  setup_system && setup_cmake_version && setup_python
}
