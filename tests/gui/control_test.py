"""The window stops, steps and inspects a training that runs under control."""

import os
import socket
import subprocess
import sys
import time
import unittest

from gui_case import STRATA, VIEW, GuiCase

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
steps = 4
[optimizer]
lr = 0.01
"""

if "train" not in subprocess.run([STRATA, "--help"], capture_output=True, text=True, check=False).stdout:
    print("skipped: this build does not train")
    sys.exit(77)


class ControlTest(GuiCase):

    def setUp(self):
        self.socket = self.path("control")
        self.trace = self.path("run.strata")
        for path in (self.socket, self.trace):
            if os.path.exists(path):
                os.remove(path)
        with open(self.path("config.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIG)

    def train(self, *options):
        process = subprocess.Popen(
            [STRATA, "train", self.path("config.toml"), "--metrics", self.path("metrics.jsonl"), "--threads", "1",
             "--passes", "dce,canonicalize", "--trace", self.trace, *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def metrics(self):
        with open(self.path("metrics.jsonl"), encoding="utf-8") as file:
            return file.read()

    def test_breaks_at_a_node_shows_its_value_steps_and_runs_on(self):
        self.train().communicate(timeout=120)
        alone = self.metrics()
        process = self.train("--control", self.socket, "--control-wait")
        tree = self.view(f"""
            await state control = stopped
            assert live/control/status contains stopped
            run open-all
            wait
        """, "--attach", self.socket)
        self.assertEqual(tree["state"]["control"], "stopped")
        # The end of the first client lets the training run on.
        process.communicate(timeout=120)
        self.assertEqual(self.metrics(), alone)

        os.remove(self.trace)
        process = self.train("--control", self.socket, "--control-wait")
        picture = self.picture("control")
        self.view(f"""
            await state control = stopped
            click live/control/command
            type break step 2
            key Enter
            await state breakpoints = 1
            key Escape
            key F10
            await state control_steps = 1
            await state control = stopped
            open {self.trace}
            await state passes > 0
            await state graph != ""
            run live
            goto mm
            key Ctrl+B
            await state breakpoints = 2
            key F10
            await state control_node = mm
            assert state node = mm
            await node/value/histogram exists
            assert node/value/field:least exists
            await node/value/matrix contains "image 12 ×"
            click node/value/slice
            type "0:2, 0:3"
            key Enter
            await node/value/matrix contains "slice [0:2, 0:3] 2 × 3"
            type "12:"
            key Enter
            await node/value/slice-error exists
            screenshot {self.picture("slice_error")}
            type ""
            key Ctrl+A Delete Enter
            await node/value/matrix contains "image 12 ×"
            key Escape
            assert graph/union/breakpoint:mm exists
            assert graph/union/stopped:mm exists
            screenshot {picture}
            key F11
            await state control_node != mm
            assert graph/union/breakpoint:mm exists
            assert graph/union/stopped:mm absent
            key Shift+F11
            await state control_node = mm
            click live/control/delete:1
            await state breakpoints = 1
            key Ctrl+B
            await state breakpoints = 0
            assert graph/union/breakpoint:* absent
            click live/control/command
            type set optimizer.lr 0.01
            key Enter
            await live/control/answer:0 contains lr
            key Escape
            click live/control/detach
            await state control = ""
        """, "--attach", self.socket, "--size", "1600x1000")
        self.assert_picture(picture, 1600, 1000)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0)
        self.assertEqual([line.split('"loss"')[1] for line in self.metrics().splitlines() if '"loss"' in line],
                         [line.split('"loss"')[1] for line in alone.splitlines() if '"loss"' in line])

    def test_a_stop_is_shown_also_without_a_tab(self):
        process = self.train("--control", self.socket, "--control-wait")
        tree = self.view(f"""
            await state control = stopped
            click live/control/command
            type break step 2
            key Enter
            await state breakpoints = 1
            key Escape
            key F10
            await state control_steps = 1
            await state control = stopped
            open {self.trace}
            await state passes > 0
            await state graph != ""
            run close-tab
            key F11
            await state control_node != ""
            key F11
            await graph/union/stopped:* exists
        """, "--attach", self.socket)
        self.assertEqual(tree["state"]["tab"], "none")
        self.assertEqual(tree["state"]["node"], tree["state"]["control_node"])
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0)

    def results(self):
        """Metrics and parameters, byte for byte."""
        with open(self.path("metrics.jsonl"), "rb") as metrics, open(self.path("p.safetensors"), "rb") as parameters:
            return metrics.read(), parameters.read()

    def test_a_training_with_a_window_attached_has_the_same_bits(self):
        save = ["--save", self.path("p.safetensors"), "--profile", "1", "--values", "last"]
        for ranks in [], ["--set", "parallelism.data_parallel_shard_degree=2"]:
            with self.subTest(ranks=ranks):
                self.train(*save, *ranks).communicate(timeout=120)
                alone = self.results()
                for path in (self.trace, self.path("metrics.jsonl"), self.path("p.safetensors")):
                    os.remove(path)
                process = self.train("--control", self.socket, "--control-wait", *save, *ranks)
                # Every command of the window that moves or looks at the training; nodes stop one rank only.
                at_nodes = "" if ranks else """
                    goto mm
                    key Ctrl+B
                    await state breakpoints = 2
                    key F10
                    await state control_node = mm
                    await node/value/histogram exists
                    key F11
                    await state control_node != mm
                    key Shift+F11
                    await state control_node = mm
                    click live/control/command
                    type back step 1
                    key Enter Escape
                    await state control_steps = 1
                    click live/control/command
                    type delete all
                    key Enter Escape
                    await state breakpoints = 0
                """
                self.view(f"""
                    await state control = stopped
                    click live/control/command
                    type break step 3
                    key Enter Escape
                    await state breakpoints = 1
                    key F10
                    await state control_steps = 2
                    await state control = stopped
                    open {self.trace}
                    await state nodes > 0
                    run live
                    {at_nodes}
                    click live/control/step
                    await state control = stopped
                    click live/control/detach
                    await state run_status = finished
                """, "--attach", self.socket)
                errors = process.communicate(timeout=60)[1]
                self.assertEqual(process.returncode, 0, errors)
                self.assertEqual(self.results(), alone)
                for path in (self.trace, self.path("metrics.jsonl"), self.path("p.safetensors")):
                    os.remove(path)

    def test_saves_and_stops_from_the_window_and_completes_commands(self):
        process = self.train("--control", self.socket, "--control-wait", "--set", "checkpoint.enable=true",
                             "--set", f'dump_folder="{self.path("out")}"')
        self.view(f"""
            await state control = stopped
            open {self.trace}
            run live
            click live/control/command
            type br
            key Tab
            await live/control/command = break
            await live/control/choices contains breaks
            type " st"
            key Tab
            await live/control/command = "break step "
            type 3
            key Enter
            await state breakpoints = 1
            type continue
            key Enter
            await state control_steps = 2
            await state control = stopped
            await state pass = canonicalize
            await state removed > 0
            type break op aten.m
            key Tab
            await live/control/choices contains aten.mm.default
            screenshot {self.picture("live_completion")}
            key Escape
            assert live/control/progress = 50
            await live/progress = 50
            assert live/step text "2 of 4"
            click live/control/save
            await live/control/saved contains step-2
            screenshot {self.picture("live_save")}
            click live/control/stop
            await state run_status = interrupted
            assert state control != stopped
            await live/control/stop disabled
            screenshot {self.picture("live_stopped")}
        """, "--attach", self.socket)
        errors = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 2, errors)
        self.assertIn("stopped by a client of --control: after step 2 of 4: continue with --resume", errors)
        self.assertTrue(os.path.isdir(self.path("out/checkpoint/step-2")))

    def test_measured_times_of_a_training_are_lanes(self):
        self.train("--profile", "2").communicate(timeout=120)
        tree = self.view(f"""
            await state passes > 0
            run lanes
            click lanes/times
            click lanes/times:Measured
            wait
            assert lanes/words contains "Measured: "
            assert lanes/words contains "one after the other"
            assert lanes/lane:forward exists
            assert lanes/lane:backward exists
        """, self.trace, "--size", "1600x1000")
        self.assertEqual(tree["state"]["error"], "")
        spans = [item for item in tree["elements"] if "/span:" in item["name"] and item["text"] == "forward"]
        widest = max(spans, key=lambda item: item["rect"][2])["name"]
        tree = self.view(f"""
            await state passes > 0
            run lanes
            click lanes/times
            click lanes/times:Measured
            wait
            click {widest}
            assert state node = {widest.split(":")[-1]}
            scroll lanes/lane:forward 10
            screenshot {self.picture("lanes_measured")}
        """, self.trace, "--size", "1600x1000")

    def test_a_run_that_dies_while_attached_is_said(self):
        process = self.train("--control", self.socket, "--control-wait")
        told, script = self.path("told.dot"), self.path("dies.txt")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"await state control = stopped\ntree {told}\nawait state control = failed\n"
                       "assert live/control/status contains ended\nassert live/control/detach exists\n")
        viewer = subprocess.Popen([VIEW, "--script", script, "--attach", self.socket],
                                  env={**os.environ, "DISPLAY": self.display.name, "LIBGL_ALWAYS_SOFTWARE": "1"},
                                  stderr=subprocess.PIPE, text=True)
        for _ in range(600):
            if os.path.exists(told) or viewer.poll() is not None:
                break
            time.sleep(0.1)
        process.kill()
        errors = viewer.communicate(timeout=60)[1]
        self.assertEqual((viewer.returncode, errors), (0, ""))

    def test_what_is_no_training_is_said(self):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(self.socket)
        listener.listen()
        told = self.path("asked.json")
        script = self.path("no.txt")
        with open(script, "w", encoding="utf-8") as file:
            file.write("await state control = failed\nassert live/control/status contains \"not an answer\"\n"
                       f"tree {told}\n")
        viewer = subprocess.Popen([VIEW, "--script", script, "--attach", self.socket],
                                  env={**os.environ, "DISPLAY": self.display.name, "LIBGL_ALWAYS_SOFTWARE": "1"},
                                  stderr=subprocess.PIPE, text=True)
        connection, _ = listener.accept()
        connection.sendall(b"\x00 no JSON\n")
        errors = viewer.communicate(timeout=60)[1]
        connection.close()
        self.assertEqual((viewer.returncode, errors), (0, ""))


if __name__ == "__main__":
    unittest.main()
