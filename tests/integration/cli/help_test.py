"""The help of each command: its examples use options that it has, and say which file is missing where they have none.

    help_test.py STRATA
"""

import os
import re
import shlex
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from strata_case import StrataCase, main  # noqa: E402

# Commands that wait, measure, or need a display.
NOT_RUN = {"attach", "bench", "calibrate", "view"}
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


class HelpTest(StrataCase):
    def setUp(self):
        super().setUp()
        self.helps = {}

    def help_of(self, command):
        if command not in self.helps:
            self.helps[command] = self.run_strata(*command.split(), "--help").stdout
        return self.helps[command]

    def commands(self):
        found = re.findall(r"^  ([a-z-]+) {2,}", self.help_of(""), flags=re.M)
        self.assertGreater(len(found), 25)
        return found

    def examples(self, command):
        """(text, words of the call of strata) of each example."""
        for line in re.split(r"\nexamples?:\n", self.help_of(command))[-1].splitlines():
            call = re.search(r"strata (.*)", line)
            if call is not None:
                yield line.strip(), shlex.split(re.split(r" (?:\||>>?|&&) |\)$", call.group(1))[0])

    def test_examples_use_options_that_exist(self):
        benches = re.findall(r"^  ([a-z]+) {2,}", self.help_of("bench"), flags=re.M)
        checked = 0
        for command in self.commands() + [f"bench {name}" for name in benches]:
            for example, words in self.examples(command):
                with self.subTest(example=example):
                    called = " ".join(words[:2 if words[0] == "bench" else 1])
                    known = set(OPTION.findall(self.help_of(called).partition("\nexample")[0]))
                    self.assertLessEqual({word.partition("=")[0] for word in words if OPTION.match(word)}, known)
                    checked += 1
        self.assertGreater(checked, 90)

    def test_examples_name_the_file_that_is_missing(self):
        for command in set(self.commands()) - NOT_RUN:
            for example, words in self.examples(command):
                if "--follow" in words:
                    continue  # waits for the folder
                with self.subTest(example=example):
                    done = self.run_strata(*words)
                    if done.returncode != 0:
                        self.assertEqual(done.returncode, 2)
                        self.assertRegex(done.stderr, r"^strata: error: (no such file|cannot create folder): ")


if __name__ == "__main__":
    main()
