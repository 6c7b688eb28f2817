"""The base class of tests that run the whole program.

    from strata_case import StrataCase, main

    class LsTest(StrataCase):
        def test_a_file_that_is_not_a_trace(self):
            self.write("notes.txt", "…")
            self.assertEqual(self.fails("ls", "notes.txt"), "not a trace: …")

    if __name__ == "__main__":
        main()

The program is the first argument of the script.
"""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOGS = os.path.join(ROOT, "tests", "data", "logs")


def read_log(path):
    """The bytes of a file, decompressed if its name ends with .zst."""
    if path.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout
    with open(path, "rb") as file:
        return file.read()


def decompress_log(path, folder):
    """A copy of a log in `folder` for programs that read no compressed files; returns its path."""
    copy = os.path.join(folder, os.path.basename(path).removesuffix(".zst"))
    with open(copy, "wb") as file:
        file.write(read_log(path))
    return copy


def sets(*assignments):
    """`KEY=VALUE` texts as words of a command line, each after --set."""
    return [word for assignment in assignments for word in ("--set", assignment)]


class FolderCase(unittest.TestCase):
    """A test with files in `folder`."""

    folder = ""

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def write(self, name, content):
        """Writes a file of the folder from text or bytes; returns its path."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return path


class StrataCase(FolderCase):
    """A test with its own folder, in which the program runs."""

    strata = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_strata(self, *words, stdin=None, **environment):
        return subprocess.run([self.strata, *words], input=stdin, text=True, capture_output=True, cwd=self.folder,
                              env={**os.environ, **environment}, timeout=180, check=False)

    def fails(self, *words):
        """The message of a command that must fail with exit status 2."""
        done = self.run_strata(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertTrue(done.stderr.startswith("strata: error: "), done.stderr)
        return done.stderr[len("strata: error: "):].rstrip("\n")


def main():
    StrataCase.strata = os.path.abspath(sys.argv.pop(1))
    # A shell starts what runs in its background with Ctrl-C ignored, and programs keep it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main()
