"""The wheel: what it holds, and that it works where nothing else is installed."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from strata_case import read_log  # noqa: E402

BEFORE = "def forward(self, x):\n    relu = torch.relu(x)\n    return relu\n"
AFTER = BEFORE.replace("torch.relu(x)", "torch.sigmoid(x)")
GLIBC = re.compile(r"linux-vdso|ld-linux|lib(c|m|dl|pthread|rt|resolv)\.so")


class WheelTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        tool = os.path.join(ROOT, "tools", "wheel.py")
        cls.wheels = [cls.run_ok(sys.executable, "-B", tool, *PROGRAMS, "-o", os.path.join(cls.folder, name)).strip()
                      for name in ("first", "second")]
        venv = os.path.join(cls.folder, "venv")
        cls.run_ok(sys.executable, "-m", "venv", venv)
        cls.bin = os.path.join(venv, "bin")
        cls.run_ok(os.path.join(cls.bin, "pip"), "install", "--no-index", "--disable-pip-version-check", cls.wheels[0])
        for name, text in (("a.txt", BEFORE), ("b.txt", AFTER)):
            with open(os.path.join(cls.folder, name), "w", encoding="utf-8") as file:
                file.write(text)

    @classmethod
    def run_any(cls, *words):
        # Nothing of this machine's: no path to libraries, no other program.
        return subprocess.run(words, capture_output=True, text=True, cwd=cls.folder, check=False, timeout=120,
                              env={"PATH": "/usr/bin:/bin", "HOME": cls.folder, "LANG": "C.UTF-8"})

    @classmethod
    def run_ok(cls, *words):
        done = cls.run_any(*words)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def program(self):
        """The program that the installed package starts."""
        script = "from strata._program import find_program; print(find_program())"
        return self.run_ok(os.path.join(self.bin, "python"), "-c", script).strip()

    def test_the_command_and_the_module_run(self):  # PY-1
        for words in ([os.path.join(self.bin, "strata")], [os.path.join(self.bin, "python"), "-m", "strata"]):
            self.assertIn("usage: strata COMMAND", self.run_ok(*words, "--help"))
            done = self.run_any(*words, "diff", "a.txt", "b.txt", "--json")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn('"path":"target"', done.stdout.replace(" ", ""))

    def test_texts_are_compared_from_python(self):
        script = ("import sys, strata; d = strata.diff('a.txt', 'b.txt'); print(d.differs, d.summary['changed'], "
                  "'torch' in sys.modules)")
        self.assertEqual(self.run_ok(os.path.join(self.bin, "python"), "-c", script), "True 1 False\n")

    def test_import_loads_nothing_that_takes_time(self):  # PY-2
        script = "import sys, strata; print(sorted({'torch', 'subprocess', 'html', 'json'} & set(sys.modules)))"
        self.assertEqual(self.run_ok(os.path.join(self.bin, "python"), "-c", script), "[]\n")

    def test_every_library_but_glibc_comes_from_the_wheel(self):
        where = self.program()
        self.assertTrue(where.startswith(os.path.realpath(self.folder)) or where.startswith(self.folder), where)
        folder = os.path.join(os.path.dirname(where), "lib")
        loaded = [line.split() for line in self.run_ok("ldd", where).splitlines()]
        outside = [words for words in loaded if not GLIBC.search(words[0])
                   and not (len(words) > 2 and os.path.realpath(words[2]).startswith(os.path.realpath(folder)))]
        self.assertEqual(outside, [])

    def test_the_viewer_takes_only_the_system_of_the_display_from_outside(self):
        if len(PROGRAMS) == 2:
            self.skipTest("this build has no viewer")
        viewer = os.path.join(os.path.dirname(self.program()), "strata-view")
        loaded = [line.split() for line in self.run_ok("ldd", viewer).splitlines()]
        outside = {words[0] for words in loaded if not GLIBC.search(words[0])
                   and os.path.realpath(self.folder) not in os.path.realpath(words[2])}
        unknown = [name for name in outside if not re.match(r"lib(GL|X|xcb|bsd|md\b|stdc\+\+|gcc_s|z\b|expat|zstd)", name)]
        self.assertEqual(unknown, [])
        # Found beside the command; without a display it says so.
        done = self.run_any(os.path.join(self.bin, "strata"), "view", "a.txt")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("display", done.stderr)
        self.assertEqual(self.run_ok(os.path.join(self.bin, "strata"), "view", "--version"),
                         self.run_ok(viewer, "--version"))

    def test_it_is_small_complete_and_reproducible(self):  # PY-1
        contents = []
        for path in self.wheels:
            with open(path, "rb") as file:
                contents.append(file.read())
        first, second = contents
        self.assertEqual(first, second)
        self.assertLess(len(first), 15_000_000)
        self.assertRegex(os.path.basename(self.wheels[0]), r"^strata-[\d.]+-py3-none-manylinux_2_\d+_\w+\.whl$")
        with zipfile.ZipFile(self.wheels[0]) as file:
            names = file.namelist()
        libraries = [name for name in names if name.startswith("strata/_bin/lib/")]
        licences = [name for name in names if "/licenses/" in name]
        self.assertGreater(len(licences), 1)
        # Several libraries may come from one package.
        self.assertTrue(libraries)
        self.assertIn("strata/__main__.py", names)

    def test_the_action_installs_the_wheel_and_compares_whole_runs(self):
        """The commands of the composite action, with its inputs, over logs of torch.compile; one side has another operator."""
        action = os.path.join(self.folder, "action")
        shutil.copytree(os.path.join(ROOT, "docs", "examples", "graph-review"), action)
        shutil.copy(self.wheels[0], action)
        with open(os.path.join(action, "action.yml"), encoding="utf-8") as file:
            description, steps = file.read().split("\nruns:\n")
        inputs = dict(re.findall(r"(?m)^  (\w+):\n    description: .*\n    default: \"?([^\"\n]*)", description))
        log = read_log(os.path.join(ROOT, "tests", "data", "logs", "llama3_compile_torch2.11.log.zst")).decode()
        changed = log.replace("torch.ops.aten.rsqrt.default(", "torch.ops.aten.sqrt.default(")
        for path, text in (("graphs/base/a.log", log), ("graphs/head/a.log", changed),
                           (inputs["policy"], "[limit]\ntouched = 0\n")):
            path = os.path.join(self.folder, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        for head, status in (("graphs/head", 1), ("graphs/base", 0), ("graphs/missing", 2)):
            given = {**inputs, "before": "graphs/base", "after": head, "link": "https://ci.example/1"}
            result = os.path.join(self.folder, "result")
            for step in steps.split("    - name: ")[1:]:
                variables = {"GITHUB_OUTPUT": result, "RUNNER_TEMP": self.folder, "PATH": "/usr/bin:/bin"}
                for name, value in re.findall(r"(?m)^        (\w+): \$\{\{ (\S+) \}\}", step):
                    variables[name] = action if value == "github.action_path" else given[value.removeprefix("inputs.")]
                commands = re.sub("(?m)^ {8}", "", step.split("run: |\n")[1])
                done = subprocess.run(["bash", "-e", "-c", commands], cwd=self.folder, env=variables, capture_output=True,
                                      text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
            with open(result, encoding="utf-8") as file:
                self.assertEqual(file.read().splitlines()[-1], f"status={status}", done.stderr)
            with open(os.path.join(self.folder, inputs["output"], "comment.md"), encoding="utf-8") as file:
                comment = file.read()
            self.assertIn("could not be compared" if status == 2 else "### Graphs of two runs: ", comment)

    def test_a_program_that_is_missing_is_named(self):
        done = subprocess.run([os.path.join(self.bin, "strata"), "ls"], capture_output=True, text=True, check=False,
                              env={"PATH": "/usr/bin:/bin", "STRATA_BIN": "/nowhere/strata"})
        self.assertEqual((done.returncode, done.stderr), (
            2, "strata: error: no program: /nowhere/strata: STRATA_BIN must name the executable 'strata'\n"))


if __name__ == "__main__":
    # A build without the viewer has strata alone.
    PROGRAMS = [word for path in sys.argv[1:3] if os.path.exists(path) for word in ("--program", os.path.abspath(path))]
    del sys.argv[1:3]
    unittest.main()
