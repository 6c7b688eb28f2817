"""What Ctrl-C, SIGTERM and SIGHUP leave behind: nothing unfinished.

    interrupt_test.py STRATA
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from strata_case import LOGS, ROOT, StrataCase, main, read_log  # noqa: E402

LOG = os.path.join(LOGS, "compile_torch2.11.log.zst")
CONFIG = os.path.join(ROOT, "configs", "demo_llama3.toml")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Case(StrataCase):
    def setUp(self):
        super().setUp()
        self.tmp = self.path("tmp")
        os.mkdir(self.tmp)

    def start(self, *arguments, variables=(), **options):
        program = subprocess.Popen([self.strata, *arguments], cwd=self.folder, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "TMPDIR": self.tmp, **dict(variables)}, **options)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        return program

    def wait_for(self, program, condition):
        while not condition():
            self.assertIsNone(program.poll(), "ended too early")
            time.sleep(0.005)

    def left(self):
        return sorted(name for _, folders, files in os.walk(self.folder) for name in folders + files)


class InterruptTest(Case):
    def test_import_leaves_nothing(self):
        for number in SIGNALS:
            program = self.start("import", "-", "-o", "o.strata")
            self.wait_for(program, lambda: "o.strata.partial" in self.left())
            program.send_signal(number)
            self.assertEqual((program.wait(), self.left()), (-number, ["tmp"]))

    def test_report_and_export_of_a_log_leave_nothing(self):
        os.mkdir(self.path("there"))
        for arguments in (["report", "-", "-o", "o.html"], ["export", "-", "--fx", "o"],
                          ["export", "-", "--torch-trace", "there"]):
            program = self.start(*arguments)
            self.wait_for(program, lambda: os.listdir(self.tmp))
            program.send_signal(signal.SIGINT)
            self.assertEqual((program.wait(), self.left()), (-signal.SIGINT, ["there", "tmp"]))

    def test_what_was_ignored_at_the_start_stays_ignored(self):
        program = self.start("import", "-", "-o", "o.strata",
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for(program, lambda: "o.strata.partial" in self.left())
        program.send_signal(signal.SIGHUP)
        _, errors = program.communicate(read_log(LOG).decode())
        self.assertEqual((program.returncode, self.left()), (0, ["o.strata", "tmp"]), errors)


class TrainTest(Case):
    def steps(self):
        for name in ("m.jsonl", "m.jsonl.partial"):
            if os.path.exists(self.path(name)):
                with open(self.path(name), encoding="utf-8") as file:
                    return [json.loads(line)["step"] for line in file.read().splitlines()]
        return []

    def test_a_training_stops_after_its_step(self):
        program = self.start("train", CONFIG, "--set", "steps=1000000", "--trace", "t.strata",
                             "--metrics", "m.jsonl", "--save", "p.safetensors")
        self.wait_for(program, lambda: len(self.steps()) > 2)
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate()
        self.assertEqual(program.returncode, -signal.SIGINT, errors)
        self.assertEqual(self.left(), ["m.jsonl", "t.strata", "tmp"])
        done = len(self.steps())
        self.assertEqual(self.steps(), list(range(1, done + 1)))
        self.assertEqual(errors, "strata: stopping at the next step or pass; again to stop at once\n"
                         f"strata: error: interrupted: after step {done} of 1000000: trace and metrics hold the "
                         "steps done, checkpoints continue with --resume\n")
        sound = subprocess.run([self.strata, "check", self.path("t.strata")], capture_output=True, check=False)
        self.assertEqual(sound.returncode, 0, sound.stdout)
        listed = subprocess.run([self.strata, "ls", self.path("t.strata"), "--json"], capture_output=True, check=True)
        run = json.loads(listed.stdout)["runs"][0]
        self.assertEqual({entry["last_step"] for entry in run["executed"]}, {done})
        self.assertEqual(run["status"], "interrupted")
        self.assertEqual(run["ended"], errors.splitlines()[1].removeprefix("strata: error: "))

    def test_ctrl_c_does_not_end_the_compiler_of_kernels(self):
        """It goes to all programs of the terminal's group, so to a compiler among them."""
        compiler = self.path("slow_compiler")
        with open(compiler, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\ntouch {self.path("compiling")}\nsleep 0.5\nexec c++ "$@"\n')
        os.chmod(compiler, 0o755)
        program = self.start("train", CONFIG, "--set", "steps=1000000", start_new_session=True,
                             variables={"CXX": compiler, "XDG_CACHE_HOME": self.path("cache")})
        self.wait_for(program, lambda: os.path.exists(self.path("compiling")))
        os.killpg(program.pid, signal.SIGINT)
        _, errors = program.communicate()
        self.assertEqual(program.returncode, -signal.SIGINT, errors)
        self.assertNotIn("without fused kernels", errors)
        self.assertIn("strata: error: interrupted: ", errors)

    def test_a_checkpoint_is_written_and_the_training_goes_on_from_it(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            command = ["train", CONFIG, "--set", "checkpoint.enable=true", "--set", "dump_folder=out", "--resume", "--overwrite", "--metrics", "m.jsonl", "--set"]
            program = self.start(*command, "steps=1000000")
            self.wait_for(program, lambda: len(self.steps()) > 2 and "m.jsonl.partial" in self.left())
            program.send_signal(number)
            _, errors = program.communicate()
            done = len(self.steps())
            self.assertEqual(program.returncode, -number, errors)
            self.assertEqual(errors, "strata: stopping at the next step or pass; again to stop at once\n"
                             f"strata: error: interrupted: after step {done} of 1000000: continue with --resume\n")
            self.assertEqual(os.listdir(self.path("out/checkpoint")), [f"step-{done}"])
            program = self.start(*command, f"steps={done + 2}")
            _, errors = program.communicate()
            self.assertEqual((program.returncode, errors), (0, ""))
            self.assertEqual(self.steps(), list(range(1, done + 3)))
            os.remove(self.path("m.jsonl"))


if __name__ == "__main__":
    if not os.path.exists(os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "strata-runtime")):
        del TrainTest  # a build without LibTorch
    main()
