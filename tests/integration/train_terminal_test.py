"""`strata train` on a terminal writes a line of progress, and nothing of it stays.

    train_terminal_test.py STRATA
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

CONFIG = """\
model = "llama3"
dim = 16
n_layers = 1
n_heads = 2
vocab_size = 24
multiple_of = 8
seq_len = 6
batch_size = 2
steps = 1500
[metrics]
log_freq = 10000
"""

CLEAR = "\x1b[K"


class TrainTerminalTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(os.path.join(self.folder.name, "config.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG)

    def on_terminal(self, columns, terminal="xterm"):
        """Output on a terminal with that number of columns."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with subprocess.Popen([self.strata, "train", "config.toml"], cwd=self.folder.name, stdin=theirs, stdout=theirs,
                              stderr=theirs, env={**os.environ, "TERM": terminal}) as process:
            os.close(theirs)
            text = b""
            while True:
                try:
                    piece = os.read(ours, 65536)
                except OSError:  # the other side is closed
                    break
                if not piece:
                    break
                text += piece
        os.close(ours)
        self.assertEqual(process.returncode, 0, text)
        return text.decode()

    def screen(self, text):
        """The lines that are left, and the longest that was ever there."""
        lines, longest = [""], 0
        for part in re.split(r"(\r\n|\r|\x1b\[K)", text):
            if part == "\r\n":
                lines.append("")
            elif part == "\r":
                lines[-1] = "\r"  # until it is cleared or written over
            elif part == CLEAR:
                lines[-1] = lines[-1].lstrip("\r")
            elif part:
                lines[-1] = part
                longest = max(longest, len(part))
        return [line for line in lines if line], longest

    def test_the_line_tells_how_far_and_how_fast_and_goes(self):
        text = self.on_terminal(120)
        self.assertRegex(text, r"\rtraining  \d+/1500  loss \d\.\d{4}  [\d.]+k? tokens/s  \d\.\d\d GiB  0:00:\d\d left\x1b\[K")
        lines, _ = self.screen(text)
        self.assertEqual(len(lines), 2, lines)  # the table's head and its first row
        self.assertEqual(lines[0].split(), ["step", "loss", "grad_norm", "lr", "tokens/s", "GiB", "s"])
        self.assertRegex(lines[1], r"^   1 +\d\.\d{6} +\d\.\d{6} +8\.0000e-04 +\d+\.\d +\d+\.\d\d +\d+\.\d\d$")

    def test_it_is_cut_to_narrow_terminals(self):
        for columns in [40, 13, 1]:
            text = self.on_terminal(columns)
            progress = re.findall(r"\r(training[^\r\x1b]*|t[^\r\x1b]*|)\x1b\[K", text)
            self.assertTrue(progress)
            self.assertLess(max(map(len, progress)), columns, progress)
            self.assertEqual(len(self.screen(text)[0]), 2)

    def test_terminals_that_cannot_rewrite_a_line_get_none(self):
        self.assertNotIn("training", self.on_terminal(80, terminal="dumb"))


if __name__ == "__main__":
    TrainTerminalTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
