"""docs/python.md shows what works: its blocks run from top to bottom, in one folder.

A block `py` that begins with the comment `# NAME.py` is that file; any other is run, in a process of its own. A block
`console` is run, and its output compared as on every page. Blocks `sh` are not run.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "support"), os.path.join(HERE, "..", "cli")]
import torch_python  # noqa: E402

torch_python.need()

import console_test  # noqa: E402

ROOT = torch_python.ROOT
PAGE = os.path.join(ROOT, "docs", "python.md")
BLOCK = re.compile(r"^```(py|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w./]+\.(?:py|ini))\n")


class Docs(unittest.TestCase):
    maxDiff = None

    def test_blocks_run(self):  # PY-34
        with open(PAGE, encoding="utf-8") as file:
            blocks = BLOCK.findall(file.read())
        self.assertGreater(len(blocks), 3)
        with tempfile.TemporaryDirectory() as folder:
            bin_folder = os.path.join(folder, "bin")
            os.mkdir(bin_folder)
            self.write(os.path.join(bin_folder, "strata"),
                       f'#!/bin/sh\nexec "{sys.executable}" -m strata "$@"\n')
            os.chmod(os.path.join(bin_folder, "strata"), 0o755)
            env = {**os.environ, "STRATA_BIN": STRATA, "PYTHONPATH": os.path.join(ROOT, "python"),
                   "PATH": f"{bin_folder}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
            env.pop("CI", None)  # golden graphs are not updated there
            for kind, block in blocks:
                if kind == "py":
                    named = FILE.match(block)
                    self.write(os.path.join(folder, named[1] if named else "block.py"), block)
                    if not named:
                        self.run_ok([sys.executable, "-B", "block.py"], folder, env)
                else:
                    self.check_console(block, folder, env)

    @staticmethod
    def write(path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run_ok(self, words, folder, env):
        done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=env, check=False, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def check_console(self, block, folder, env):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = step.partition("\n")
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=folder, env=env, check=False,
                                  timeout=240)
            # 1: the graphs differ, or a test fails, as the page shows.
            may_differ = command.startswith(("strata diff", "python -m pytest"))
            self.assertIn(done.returncode, (0, 1) if may_differ else (0,), done.stderr)
            if not console_test.pattern(expected).fullmatch(done.stdout):
                self.assertEqual(done.stdout, expected, f"$ {command}\n{done.stderr}")


if __name__ == "__main__":
    STRATA = os.path.abspath(sys.argv.pop(1))
    unittest.main()
