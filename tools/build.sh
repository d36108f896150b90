# ./dev build, demo and bench.

# build_preset NAME [CMAKE ARGUMENTS...]
build_preset() {
  local name=$1
  shift
  cmake --preset "$name" -S "$root" "$@" >"$root/build/$name.configure.log" 2>&1 || {
    cat "$root/build/$name.configure.log" >&2
    return 1
  }
  cmake --build "$root/build/$name" -j "$(jobs)"
}

build_core() { build_preset dev; }
build_release() { build_preset release -DPython3_EXECUTABLE="$python"; }

build() {
  mkdir -p "$root/build"
  phase "release build" build_release
}

demo() {
  phase "setup" setup && build || return
  local run=$root/runs/demo
  # The demo owns this folder: a second demo starts afresh.
  rm -rf "$run"
  say "one epoch of ResNet-20 on Fashion-MNIST: bf16, with conv1 and fc kept at fp32"
  "$release/bin/hpqf" train --model resnet20 --data fashion-mnist --precision bf16 --sensitive 'conv1,fc' \
    --epochs 1 --limit 20000 --out "$run" || return
  say "hpqf explain ${run#"$root"/}"
  "$release/bin/hpqf" explain "$run"
}

# bench [NAME [ARGUMENTS...]]: every benchmark is one file bench/NAME.py or bench/NAME.sh whose first line of text says
# what it measures.
bench() {
  local file name
  if [ $# = 0 ]; then
    echo "usage: ./dev bench NAME [ARGUMENTS...], where NAME is one of"
    for file in "$root"/bench/*.py "$root"/bench/*.sh; do
      [ -e "$file" ] || continue
      name=$(basename "${file%.*}")
      case $name in _*) continue ;; esac
      printf '  %-20s %s\n' "$name" "$(grep -m1 -oE '[A-Za-z].*' <(grep -v '^#!' "$file") | tr -d '"')"
    done
    return
  fi
  name=$1
  shift
  [ -d "$release/python" ] || die "nothing is built yet; run ./dev build first"
  if [ -f "$root/bench/$name.py" ]; then
    PYTHONPATH=$release/python "$python" "$root/bench/$name.py" "$@"
  elif [ -f "$root/bench/$name.sh" ]; then
    bash "$root/bench/$name.sh" "$@"
  else
    warn "no benchmark '$name'"
    bench >&2
    return 2
  fi
}
