"""The Debian package holds what an installed program needs, and its programs run without this checkout.

    deb_test.py STRATA
"""

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77


def output_of(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=120, **options).stdout


class DebTest(unittest.TestCase):
    build = ""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.deb = output_of(os.path.join(ROOT, "tools/deb"), cls.build, cls.folder.name).strip()
        cls.root = os.path.join(cls.folder.name, "root")
        subprocess.run(["dpkg-deb", "--extract", cls.deb, cls.root], check=True)

    def installed(self, path):
        return os.path.join(self.root, "usr", path)

    def test_names_version_and_libraries_and_needs_no_libtorch(self):
        depends = output_of("dpkg-deb", "--field", self.deb, "Depends")
        for package in ["libc6", "libglfw3", "libgl1", "libsqlite3-0", "fonts-dejavu-core"]:
            self.assertIn(package, depends)
        self.assertNotIn("torch", depends)
        self.assertEqual(output_of("dpkg-deb", "--field", self.deb, "Package").strip(), "strata")

    def test_programs_run_from_where_they_are_installed(self):
        strata = self.installed("bin/strata")
        self.assertRegex(output_of(strata, "--version", cwd="/", env={}), r"\d+\.\d+")
        self.assertIn("usage: strata-view", output_of(strata, "view", "--help", cwd="/", env={}))
        missing = subprocess.run([strata, "train", "x.toml"], capture_output=True, text=True, check=False)
        self.assertEqual(missing.returncode, 2)
        self.assertIn("build with LibTorch", missing.stderr)

    @unittest.skipUnless(shutil.which("xvfb-run"), "no xvfb-run")
    def test_the_installed_viewer_makes_and_shows_a_demo(self):
        home = os.path.join(self.folder.name, "home")
        os.makedirs(home)
        script, picture = os.path.join(home, "script.txt"), os.path.join(home, "demo.png")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"key D\nassert state passes > 9\nkey J n\nassert state node != \"\"\nscreenshot {picture}\n")
        # Nothing of this checkout: neither its folder nor its libraries.
        done = subprocess.run(["xvfb-run", "-a", self.installed("bin/strata"), "view", "--script", script], cwd="/",
                              env={"PATH": "/usr/bin:/bin", "HOME": home, "LIBGL_ALWAYS_SOFTWARE": "1"},
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(os.path.getsize(picture), 20000)
        self.assertTrue(os.path.exists(os.path.join(home, ".local/state/strata/demo.strata")))

    def test_every_command_has_a_page_of_the_manual(self):
        for page, words in [("strata", "PyTorch"), ("strata-diff", "--policy"), ("strata-view", "--script")]:
            with gzip.open(self.installed(f"share/man/man1/{page}.1.gz"), "rt", encoding="utf-8") as file:
                self.assertIn(words, file.read().replace("\\-", "-"))

    def test_shell_and_desktop_know_the_programs(self):
        for path in ["share/bash-completion/completions/strata", "share/zsh/site-functions/_strata",
                     "share/icons/hicolor/scalable/apps/strata.svg", "share/mime/packages/strata.xml"]:
            self.assertGreater(os.path.getsize(self.installed(path)), 100, path)
        with open(self.installed("share/applications/strata-view.desktop"), encoding="utf-8") as file:
            self.assertIn("Exec=strata-view %f", file.read())

    def test_equal_programs_give_equal_bytes(self):
        again = os.path.join(self.folder.name, "again")
        output_of(os.path.join(ROOT, "tools/deb"), self.build, again)
        with open(self.deb, "rb") as first, open(os.path.join(again, os.path.basename(self.deb)), "rb") as second:
            self.assertEqual(first.read(), second.read())


if __name__ == "__main__":
    binary = os.path.abspath(sys.argv[1])
    if not os.path.exists(os.path.join(os.path.dirname(binary), "strata-view")):
        print("skipped: this build has no strata-view")
        sys.exit(SKIPPED)
    if not all(shutil.which(tool) for tool in ["dpkg-shlibdeps", "help2man"]):
        print("skipped: ./dev setup package installs what builds the package")
        sys.exit(SKIPPED)
    DebTest.build = os.path.dirname(os.path.dirname(binary))
    unittest.main(argv=sys.argv[:1])
