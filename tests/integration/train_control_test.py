"""A training under control of another program stops, shows values and goes back, and trains as if it had not.

    train_control_test.py STRATA
"""

import json
import os
import pty
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

CONFIG = """\
model = "llama3"
dim = 16
n_layers = 2
n_heads = 4
n_kv_heads = 2
vocab_size = 24
multiple_of = 8
seq_len = 6
batch_size = 2
steps = 6
[optimizer]
lr = 0.01
"""


class TrainControlTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(self.path("config.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def start(self, out, *options):
        command = [self.strata, "train", "config.toml", "--metrics", f"{out}.jsonl", "--save", f"{out}.safetensors",
                   "--threads", "1", "--passes", "dce,canonicalize", *options]
        process = subprocess.Popen(command, cwd=self.folder.name, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
            process.communicate()

    def finish(self, process, code=0):
        output, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, code, output + errors)
        return output + errors

    def attach(self, commands, code=0):
        done = subprocess.run([self.strata, "attach", "control", "--batch", "-"], cwd=self.folder.name, timeout=30,
                              input=commands, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def train_alone(self, out="alone", *options):
        self.finish(self.start(out, *options))

    def train_controlled(self, commands, out="controlled", *options):
        process = self.start(out, "--control", "control", "--control-wait", *options)
        shown = self.attach(commands)
        errors = self.finish(process)
        self.assertFalse(os.path.exists(self.path("control")))
        return shown + errors

    def assert_same_training(self):
        self.train_alone()
        for end in ["jsonl", "safetensors"]:
            self.assertEqual(self.read(f"alone.{end}"), self.read(f"controlled.{end}"), end)

    def test_stops_at_passes_steps_and_nodes_without_changing_a_bit(self):
        shown = self.train_controlled("""\
            # before the first pass
            status
            assert state == stopped
            assert pass == dce
            break pass canonicalize
            continue
            assert pass == canonicalize
            step pass
            assert steps_done == 0
            break op mm
            break step 4
            continue
            assert graph == step
            assert op == aten.mm.default
            print layers.0.attention.qkv_linear.wq.weight
            assert statistics.elements == 256
            step node 5
            assert nodes_done > 5
            delete 2
            continue
            assert steps_done == 3
            print layers.0.attention.qkv_linear.wq.weight.grad histogram
            assert statistics.nan == 0
            step
            assert steps_done == 4
            continue
            assert state == finished
            """)
        self.assertIn("breakpoint 2: op mm", shown)
        self.assert_same_training()

    def test_the_prompt_completes_words_and_brings_lines_back(self):
        process = self.start("prompt", "--control", "control", "--control-wait")
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder.name)
            os.execv(self.strata, [self.strata, "attach", "control"])
        shown = ""

        def await_text(text):
            nonlocal shown
            while text not in shown:
                ready, _, _ = select.select([terminal], [], [], 20)
                self.assertTrue(ready, shown)
                shown += os.read(terminal, 4096).decode()
            shown = shown[shown.index(text) + len(text):]

        await_text("(strata) ")
        os.write(terminal, b"wh\t\n")
        await_text("where ")
        await_text("(strata) ")
        os.write(terminal, b"br\t o\tmx\x7fm\n")
        await_text("break op mm")
        await_text("breakpoint 1: op mm")
        os.write(terminal, b"\x1b[A\x1b[A\n")
        await_text("where ")
        os.write(terminal, b"quit\n")
        os.waitpid(pid, 0)
        os.close(terminal)
        self.finish(process)

    def test_goes_back_to_nodes_and_steps_bit_for_bit(self):
        self.train_controlled("""\
            break step 4
            continue
            delete all
            break op mm
            continue
            assert steps_done == 3
            step node 20
            back 10
            step node 10
            back step 1
            assert steps_done == 1
            continue
            assert steps_done == 1
            assert node == mm
            delete all
            step
            assert steps_done == 2
            back step 0
            assert steps_done == 0
            continue
            assert state == finished
            """)
        self.assert_same_training()

    def test_a_value_of_an_earlier_node_is_computed_again(self):
        process = self.start("controlled", "--control", "control", "--control-wait")
        first = self.attach("break op mm\ncontinue\ndelete all\nprint mm [0, :]\nstep node 40\nprint mm [0, :]\nstatus\n"
                            "assert nodes_done >= 41\n")
        rows = [line for line in first.splitlines() if line.startswith("  ")]
        self.assertEqual(len(rows), 2, first)
        self.assertEqual(rows[0], rows[1])
        self.finish(process)
        self.assert_same_training()

    def test_a_learning_rate_is_changed_and_recorded(self):
        shown = self.train_controlled("break step 3\ncontinue\nset optimizer.lr 0.02\ncontinue\n", "controlled",
                                      "--trace", "t.strata")
        self.assertIn("optimizer.lr 0.01 -> 0.02 from step 3 on", shown)
        self.train_alone()
        alone, controlled = ([json.loads(line) for line in self.read(f"{out}.jsonl").splitlines()]
                             for out in ["alone", "controlled"])
        self.assertEqual([step["loss"] for step in alone[:3]], [step["loss"] for step in controlled[:3]])
        self.assertEqual([step["lr"] for step in controlled[:4]], [0.01, 0.01, 0.02, 0.02])
        with sqlite3.connect(self.path("t.strata")) as trace:
            [attributes] = trace.execute("SELECT attributes FROM event WHERE kind = 'control'").fetchall()
        self.assertEqual(json.loads(attributes[0]), {"step": 3, "before": 0.01, "after": 0.02})
        self.assertNotEqual(alone[3]["loss"], controlled[3]["loss"])

    def test_a_changed_rate_is_there_again_after_going_back(self):
        self.train_controlled("break step 3\nbreak step 5\ncontinue\nset optimizer.lr 0.02\ncontinue\nback step 1\n"
                              "assert lr == 0.01\ncontinue\ncontinue\nassert lr == 0.02\ncontinue\n")
        self.train_controlled("break step 3\ncontinue\nset optimizer.lr 0.02\ncontinue\n", "straight")
        self.assertEqual(self.read("straight.jsonl"), self.read("controlled.jsonl"))

    def test_a_client_that_goes_leaves_the_training_alone(self):
        process = self.start("controlled", "--control", "control", "--control-wait")
        self.attach("break op mm\ncontinue\n")  # and leaves while the training is stopped
        self.finish(process)
        self.assert_same_training()

    def test_an_interrupt_ends_a_stopped_training(self):
        process = self.start("controlled", "--control", "control", "--control-wait")
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        for _ in range(500):
            if os.path.exists(self.path("control")):
                break
            time.sleep(0.02)
        client.connect(self.path("control"))
        client.sendall(b'{"id": 1, "command": "break step 2"}\n{"id": 2, "command": "continue"}\n')
        lines = client.makefile("r")
        self.assertTrue(json.loads(lines.readline())["ok"])
        answer = json.loads(lines.readline())
        self.assertEqual((answer["id"], answer["data"]["steps_done"]), (2, 1))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertFalse(os.path.exists(self.path("control")))

    CHECKPOINTS = ["--set", "checkpoint.enable=true", "--set", "checkpoint.interval=100", "--set", "dump_folder=\"d\""]

    def test_a_checkpoint_is_saved_between_steps_and_changes_nothing(self):
        shown = self.train_controlled("""\
            break step 3
            continue
            save
            assert step == 2
            break op mm
            continue
            assert nodes_done > 0
            save
            delete all
            step
            assert steps_done == 3
            """, "controlled", *self.CHECKPOINTS)
        self.assertIn("checkpoint of step 2: d/checkpoint/step-2", shown)
        self.assertIn("a checkpoint is written when this step has ended", shown)
        for step in [2, 3]:
            self.assertTrue(os.path.isdir(self.path(f"d/checkpoint/step-{step}")))
        self.assert_same_training()

    def test_a_training_is_stopped_with_a_checkpoint_and_resumes(self):
        self.train_alone()
        process = self.start("controlled", "--control", "control", "--control-wait", *self.CHECKPOINTS)
        shown = self.attach("break step 4\ncontinue\nbreak op mm\ncontinue\nback step 2\nstop\nassert state == finished\n")
        self.assertIn("finished", shown)
        # Steps that were taken back are computed again: the checkpoint is that of the last recorded step.
        errors = self.finish(process, 2)
        self.assertIn("stopped by a client of --control: after step 3 of 6: continue with --resume", errors)
        self.assertTrue(os.path.isdir(self.path("d/checkpoint/step-3")))
        self.finish(self.start("controlled", "--resume", *self.CHECKPOINTS))
        for end in ["jsonl", "safetensors"]:
            self.assertEqual(self.read(f"alone.{end}"), self.read(f"controlled.{end}"), end)

    def test_a_training_is_stopped_between_passes(self):
        process = self.start("controlled", "--control", "control", "--control-wait")
        self.attach("stop\nassert state == finished\n")
        self.assertIn("stopped by a client of --control: before pass 0 'dce'", self.finish(process, 2))

    def test_mistakes_are_errors_with_their_line_and_assertions_fail_with_one(self):
        for commands, code, message in [
            ("status\nfly\n", 2, "-:2: fly: no such command"),
            ("print x\n", 2, "no step has begun"),
            ("save\n", 2, "no step has begun"),
            ("break step 2\ncontinue\nsave\n", 2, "no checkpoints are configured"),
            ("break step 3\ncontinue\nback step 1\nsave\n", 2, "was taken back"),
            ("assert state == stopped\n", 2, "nothing was answered"),
            ("status\nassert state == running\n", 1, "assertion failed"),
            ("status\nassert speed == 1\n", 2, "no such field"),
            ("step pass 3\nbreak step 2\ncontinue\nprint nothing\n", 2, "no such value"),
            ("break step 2\ncontinue\nback step 3\n", 2, "not done yet"),
            ("break step 2\ncontinue\nset optimizer.beta1 1\n", 2, "only the learning rate"),
        ]:
            with self.subTest(commands):
                process = self.start("mistakes", "--control", "control", "--control-wait")
                self.assertIn(message, self.attach(commands, code))
                self.finish(process)
        missing = subprocess.run([self.strata, "attach", "nowhere", "--wait", "0", "--batch", "-"],
                                 cwd=self.folder.name, input="", capture_output=True, text=True)
        self.assertEqual(missing.returncode, 2)
        self.assertIn("strata train --control nowhere", missing.stderr)

    def test_several_ranks_stop_between_steps(self):
        for degree, size in [("data_parallel_shard_degree", 2), ("pipeline_parallel_degree", 2)]:
            ranks = ["--set", f"parallelism.{degree}={size}"]
            if degree.startswith("pipeline"):
                ranks += ["--set", "parallelism.pipeline_parallel_schedule=GPipe"]
            with self.subTest(degree):
                self.train_controlled("step pass\nbreak step 3\ncontinue\nassert steps_done == 2\nback step 1\n"
                                      "print layers.0.attention.qkv_linear.wq.weight\ncontinue\ncontinue\n",
                                      "controlled", *ranks)
                self.train_alone("alone", *ranks)
                self.assertEqual(self.read("alone.safetensors"), self.read("controlled.safetensors"))


if __name__ == "__main__":
    TrainControlTest.strata = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1])
