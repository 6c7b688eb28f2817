"""Pages of documentation show what commands print: every block that is marked `console` is run, from top to bottom.

    console_test.py STRATA PAGE…

In such a block a line `$ COMMAND` is followed by the standard output of the command. A line `…` stands for any number of
lines. Decimal numbers (times, losses) differ between machines: one matches any other. Blocks of a page share one shell.
It runs in a folder from which `configs`, `docs` and `tests` can be read, and whose folder `out` can be written.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(page):
    """(command, expected output) of the page."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        for block in BLOCK.findall(file.read()):
            for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = step.partition("\n")
                yield command, output


def pattern(output):
    lines = []
    for line in output.splitlines(keepends=True):
        if line == "…\n":
            lines.append(r"(?:[^\n]*\n)*?")
        else:
            # A number of another width moves the columns; an edit of a source moves its lines.
            parts = re.split(r"( *\d+\.\d+| +|(?<=\.cc:)\d+|(?<=\.h:)\d+)", line)
            lines += [re.escape(part) if i % 2 == 0 else r" *\d+\.\d+" if "." in part else
                      r"\d+" if part.isdigit() else " +" for i, part in enumerate(parts)]
    return re.compile("".join(lines))


class Console(unittest.TestCase):
    maxDiff = None

    def test_commands_print_what_the_page_shows(self):
        for page in PAGES:
            with self.subTest(page=page), tempfile.TemporaryDirectory() as folder:
                for name in ("configs", "docs", "tests"):
                    os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
                os.mkdir(os.path.join(folder, "out"))
                commands = list(steps(page))
                self.assertGreater(len(commands), 0)
                # One shell runs all; a zero byte ends each output.
                script = "".join(f"{command}\nprintf '\\0'\n" for command, _ in commands)
                path = f"{os.path.dirname(STRATA)}:{os.environ['PATH']}"
                done = subprocess.run(["bash", "-e"], input=script, capture_output=True, text=True, cwd=folder,
                                      env=dict(os.environ, OMP_NUM_THREADS="1", PATH=path), timeout=300, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                for (command, expected), printed in zip(commands, done.stdout.split("\0")):
                    if not pattern(expected).fullmatch(printed):
                        self.assertEqual(printed, expected, f"{page}: $ {command}")


if __name__ == "__main__":
    STRATA, PAGES = os.path.abspath(sys.argv[1]), sys.argv[2:]
    unittest.main(argv=sys.argv[:1])
