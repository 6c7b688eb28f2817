"""Runs a program of another build; exits with 77, which ctest counts as skipped, if it is not built.

    run_if_built.py PROGRAM [ARGUMENT…]
"""

import os
import sys


def main():
    program = sys.argv[1]
    if not os.path.exists(program):
        print(f"skipped: {program} is not built: run './dev test'")
        return 77
    os.execv(program, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
