"""Writes the script of a page: the given files, in their order, in one strict scope, without comment lines and
indentation. Strings and templates of the sources stay within a line, so this changes no meaning.

usage: bundle.py OUT FILE…
"""

import os
import sys


def code_lines(path):
    in_comment = False
    with open(path, encoding="utf-8") as file:
        for line in map(str.strip, file):
            if in_comment or line.startswith("/*"):
                in_comment = not line.endswith("*/")
            elif line and not line.startswith("//"):
                yield line


def main():
    out, *paths = sys.argv[1:]
    lines = [line for path in paths for line in code_lines(path)]
    if out.endswith(".js"):
        lines = ['"use strict";', "(() => {", *lines, "})();"]
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


main()
