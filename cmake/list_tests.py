"""Writes the ctest entries of a doctest program: one per test case.

usage: list_tests.py PROGRAM PREFIX WORKING_DIRECTORY LABELS OUTPUT
"""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def bracket(text):
    """A CMake bracket argument: nothing in it is special."""
    level = ""
    while "]" + level + "]" in text or text.endswith("]" + level):
        level += "="
    return f"[{level}[{text}]{level}]"


def test_case_filter(name):
    """doctest splits filters at commas; a backslash keeps one, and `?` and `*` match themselves."""
    return "--test-case=" + name.replace("\\", "\\\\").replace(",", "\\,")


def main():
    program, prefix, directory, labels, output = sys.argv[1:]
    xml = subprocess.run([program, "--list-test-cases", "--reporters=xml"],
                         check=True, stdout=subprocess.PIPE).stdout
    # Test cases with equal names (in two files) run together in one entry.
    names = dict.fromkeys(case.get("name") for case in ElementTree.fromstring(xml).iter("TestCase"))
    lines = []
    for name in names:
        entry = bracket(f"{prefix}: {name.strip()}")
        lines.append(f"add_test({entry} {bracket(program)} {bracket(test_case_filter(name))})")
        lines.append(f"set_tests_properties({entry} PROPERTIES WORKING_DIRECTORY {bracket(directory)}"
                     f" LABELS {bracket(labels)} FAIL_REGULAR_EXPRESSION [[test cases: +0 ]])")
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


main()
