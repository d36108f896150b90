# ./dev test: every phase runs even when one before it failed, except that nothing is tested that did not build.
# What the phases find lies as XML in build/results; tools/test_summary.py adds it up into the last line.
results=$root/build/results
outcomes=() # NAME=STATUS for tools/test_summary.py

# GTest writes one XML file per executable, ctest one entry per executable: a crashed executable has only the latter.
ctest_preset() {
  local name=$1
  mkdir -p "$results/$name"
  GTEST_OUTPUT="xml:$results/$name/" ctest --test-dir "$root/build/$name" --output-on-failure --timeout 1800 \
    --output-junit "$results/$name/ctest.junit" --no-tests=error
}

run_pytest() {
  "$python" -m pytest "$root/tests" -q -rs --build-dir "$release" --junitxml "$results/pytest.xml"
}

# What a user types, into a folder of its own; then the package must work with nothing but that folder and torch.
pip_install() {
  local target=$root/build/pip
  rm -rf "$target"
  CMAKE_BUILD_PARALLEL_LEVEL=$(jobs) "$python" -m pip install "$root" --no-build-isolation --no-deps --target "$target" \
    --config-settings=build-dir="$root/build/wheel" --config-settings=cmake.define.CMAKE_CXX_COMPILER=c++ \
    --disable-pip-version-check --quiet || return   # c++, as in build/release: ccache then has every object already
  (cd / && PYTHONPATH=$target "$python" "$root/tools/package_smoke.py" "$target")
}

# as_test NAME TITLE COMMAND...: a phase whose status the summary is told; the next one runs all the same.
as_test() {
  local name=$1 status=0
  shift
  phase "$@" || status=$?
  outcomes+=("$name=$status")
}

summary() {
  say "summary"
  # The set-up itself may be what failed, so the system's python3 must do.
  "$(command -v "$python" || command -v python3)" "$root/tools/test_summary.py" "$results" "${outcomes[@]}"
}

run_tests() {
  rm -rf "$results"
  mkdir -p "$results"
  local needed
  for needed in setup build_core build_release; do
    phase "${needed//_/ }" "$needed" || {
      outcomes+=("$needed=1")
      summary
      return 1
    }
  done
  as_test dev "tests of the torch-free rooms under ASan and UBSan" ctest_preset dev
  as_test release "tests of everything, and of the installed package (C++)" ctest_preset release
  as_test pytest "pytest tests/" run_pytest
  as_test pip_install "pip install . and import" pip_install
  summary
}
