"""Runs a command if the processor has some instructions; exits with 77, which ctest counts as skipped, if it lacks one.

    with_instructions.py "avx512f avx512vl" COMMAND…      the names are the flags of /proc/cpuinfo; none: any processor
"""

import os
import re
import sys


def main():
    wanted, command = re.split(r"[ ;]+", sys.argv[1].strip()), sys.argv[2:]
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = set(next((line.split(":")[1] for line in file if line.startswith("flags")), "").split())
    lacking = [name for name in wanted if name and name not in flags]
    if lacking:
        print("skipped: the processor has no", ", ".join(lacking))
        return 77
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
