"""What `strata` itself prints: overview, version, completion, errors.

    program_test.py STRATA
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from strata_case import StrataCase, main  # noqa: E402


class ProgramTest(StrataCase):
    def test_overview(self):
        alone, asked = self.run_strata(), self.run_strata("--help")
        self.assertEqual((alone.returncode, asked.returncode), (0, 0))
        self.assertEqual(alone.stdout, asked.stdout)
        self.assertIn("  diff ", alone.stdout)

    def test_version(self):
        self.assertRegex(self.run_strata("--version").stdout, r"^strata \d+\.\d+\.\d+\n$")

    def test_completion(self):
        script = self.run_strata("completion", "bash").stdout
        for words, expected in (("strata di", "diff"), ("strata diff --for", "--format"),
                                ("strata diff --format ", "text json md html svg"), ("strata bench im", "import"),
                                ("strata bench i", "ir import"),
                                ("strata completion ", "bash zsh")):
            typed = words.split(" ")
            done = subprocess.run(
                ["bash", "-c", f"{script}\nCOMP_WORDS=({self.strata} {' '.join(typed[1:])} '')\n"
                 f"COMP_CWORD={len(typed) - 1}\n_strata\necho ${{COMPREPLY[@]}}"],
                capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout.strip(), expected)
        self.assertEqual(self.fails("completion", "tcsh"),
                         "unknown shell 'tcsh': strata completion: bash and zsh are known")

    def test_unknown_command(self):
        self.assertEqual(self.fails("dif"),
                         "unknown command 'dif', did you mean 'diff': strata: see 'strata --help'")


if __name__ == "__main__":
    main()
