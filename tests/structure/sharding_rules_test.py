"""docs/parallel.md lists the operators that have a sharding rule, by the file of the rule.

    sharding_rules_test.py            compares
    sharding_rules_test.py --update   writes the table
"""

import glob
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "parallel.md")
BEGIN, END = "<!-- rules -->\n", "<!-- end of rules -->"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def table():
    lines = ["| family | operators |", "|---|---|"]
    for path in sorted(glob.glob(os.path.join(ROOT, "passes", "placement", "rules", "*_rules.cc"))):
        family = os.path.basename(path)[:-len("_rules.cc")]
        rows = re.split(r"constexpr RuleEntry k\w+\[\]", read(path))[1]
        ops = sorted(re.findall(r'\{"(\w+)",', rows))
        lines.append(f"| {family} | {', '.join(f'`{op}`' for op in ops)} |")
    return "\n".join(lines) + "\n"


class ShardingRulesTest(unittest.TestCase):
    def test_the_page_lists_the_operators_with_a_rule(self):
        listed = read(PAGE).split(BEGIN)[1].split(END)[0]
        self.assertEqual(listed, table(), "run tests/structure/sharding_rules_test.py --update")


if __name__ == "__main__":
    if "--update" in sys.argv:
        text = read(PAGE)
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text.split(BEGIN)[0] + BEGIN + table() + END + text.split(END)[1])
    else:
        unittest.main()
