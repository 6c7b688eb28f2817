"""The command line of ./dev, without building anything."""

import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERBS = ["demo", "build", "test", "bench", "setup", "format", "lint", "sanitize", "fuzz", "package",
         "install", "clean"]


def dev(*arguments):
    return subprocess.run([os.path.join(ROOT, "dev"), *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


class Dev(unittest.TestCase):

    def test_alone_it_lists_its_verbs(self):
        result = dev()
        self.assertEqual(result.returncode, 0)
        self.assertEqual(re.findall(r"^  (\w+)  +\S", result.stdout, re.MULTILINE), VERBS)

    def test_each_verb_explains_itself(self):
        for verb in VERBS:
            result = dev(verb, "--help")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertTrue(result.stdout.startswith(f"usage: ./dev {verb}"), result.stdout)

    def test_an_unknown_verb_is_an_error(self):
        result = dev("frobnicate")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertTrue(result.stderr.startswith("dev: error: no verb 'frobnicate'\n"), result.stderr)

    def test_an_unknown_preset_is_an_error(self):
        result = dev("build", "fast")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr,
                         "dev: error: no preset 'fast': release, debug, asan, tsan, no-runtime, fuzz\n")


if __name__ == "__main__":
    unittest.main()
