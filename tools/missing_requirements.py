"""Prints the lines of a requirements file that this Python's packages do not satisfy (names, or name==version)."""

import sys
from importlib.metadata import PackageNotFoundError, version


def missing(requirement: str) -> bool:
    name, _, wanted = requirement.partition("==")
    try:
        found = version(name)
    except PackageNotFoundError:
        return True
    # A local part as in 2.13.0+cpu says how the same version was built.
    return bool(wanted) and found.partition("+")[0] != wanted


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [line.partition("#")[0].strip() for line in file]
    print(" ".join(line for line in lines if line and missing(line)))


if __name__ == "__main__":
    main()
