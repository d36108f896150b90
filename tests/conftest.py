"""Tests run against a build tree: --build-dir (default build/release)."""
import ctypes
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption("--build-dir", default=str(ROOT / "build" / "release"), help="build tree with the program and the package")
    parser.addoption("--all-samples", action="store_true", help="every one of torch's test inputs instead of a few of each operator and module")


def pytest_configure(config):
    # Before test modules are imported: they import the package from the build tree.
    sys.path.insert(0, str(pathlib.Path(config.getoption("--build-dir")).resolve() / "python"))


@pytest.fixture(scope="session")
def build_dir(request) -> pathlib.Path:
    return pathlib.Path(request.config.getoption("--build-dir")).resolve()


@pytest.fixture(scope="session")
def program(build_dir) -> str:
    """The command line of the build tree."""
    path = build_dir / "bin" / "hpqf"
    if not path.exists():
        pytest.skip(f"{path} is not built; name another build tree with --build-dir")
    return str(path)


@pytest.fixture
def hpqf(program, tmp_path):
    """Runs it in the test's own folder."""
    def run(*arguments, **options):
        return subprocess.run(
            [program, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, **options
        )

    return run


@pytest.fixture(scope="session")
def core_library(build_dir) -> ctypes.CDLL:
    """The torch-free library, through its C functions."""
    path = build_dir / "libhpqf_core.so"
    if not path.exists():
        pytest.skip(f"{path} is not built; name another build tree with --build-dir")
    library = ctypes.CDLL(str(path))
    library.hpqf_last_error.restype = ctypes.c_char_p
    return library
