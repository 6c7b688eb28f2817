"""Damaged files, hostile names, random events."""

import os
import subprocess
import time
import unittest

from gui_case import LOG, STRATA, VIEW, GuiCase, element

LOGS = os.path.dirname(LOG)


class Robust(GuiCase):

    def trace(self):
        path = self.path("sound.strata")
        if not os.path.exists(path):
            subprocess.run([STRATA, "import", LOG, "-o", path], check=True, capture_output=True)
        with open(path, "rb") as file:
            return file.read()

    def write(self, name, data):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_damaged_traces_are_errors_in_the_window(self):
        data = self.trace()
        middle = len(data) // 2
        for name, bytes_ in [("cut.strata", data[:middle]), ("zeros.strata", data[:200] + bytes(len(data) - 200)),
                             ("flipped.strata", data[:middle] + bytes(b ^ 0xFF for b in data[middle:middle + 4096]) +
                              data[middle + 4096:])]:
            tree = self.view("key J n\nkey j j k 2 4\nrun memory\nrun ranks\n", "--bench", self.write(name, bytes_))
            self.assertNotEqual(tree["state"]["error"] + str(tree["state"]["passes"]), "0", name)

    def test_a_trace_that_is_cut_while_it_is_open_does_not_end_the_window(self):
        path = self.write("open.strata", self.trace())
        log = os.path.join(LOGS, "compile_torch2.11.log.zst")
        script = f"key J\nexport {self.path('opened.dot')}\nwait 1500\nkey k k j F5\nopen {log}\nassert state error = \"\"\n"
        reader = self.write("script_cut.txt", script.encode())
        viewer = subprocess.Popen([VIEW, "--script", reader, path], text=True, stderr=subprocess.PIPE,
                                  env={**os.environ, "DISPLAY": self.display.name, "LIBGL_ALWAYS_SOFTWARE": "1"})
        for _ in range(300):
            if os.path.exists(self.path("opened.dot")) or viewer.poll() is not None:
                break
            try:
                viewer.wait(0.1)
            except subprocess.TimeoutExpired:
                pass
        os.truncate(path, 3000)
        errors = viewer.communicate(timeout=120)[1]
        self.assertEqual((viewer.returncode, errors), (0, ""))

    def test_settings_that_cannot_be_read_are_said_and_stay(self):
        folder = self.path("folder.conf")
        os.makedirs(folder, exist_ok=True)
        tree = self.view("assert state message contains folder.conf\nrun log\n", "--config", folder, LOG)
        self.assertEqual(tree["state"]["error"], "")
        self.assertTrue(os.path.isdir(folder))
        damaged = self.write("damaged.conf", b"\x00\xff\nleft = 1e9\nbottom = nan\nrecent = \xe2\x80\xaeevil\nbookmark.a\n" * 20)
        tree = self.view(f"screenshot {self.picture('damaged_settings')}\n", "--config", damaged)
        self.assertEqual(tree["state"]["error"], "")

    def test_a_trace_that_vanishes_while_it_is_open(self):
        self.trace()
        path = self.write("vanishes.strata", self.trace())
        opened = self.path("vanishes.dot")
        script = self.write("script_vanishes.txt", f"key J\nexport {opened}\nwait 1500\nkey k j j n F5\nrun ranks\nrun memory\n"
                            f"assert state nodes > 0\ntree {self.path('vanished.json')}\nopen {path}\n"
                            "assert state error contains vanishes.strata\nassert state nodes > 0\n".encode())
        viewer = subprocess.Popen([VIEW, "--script", script, path], text=True, stderr=subprocess.PIPE,
                                  env={**os.environ, "DISPLAY": self.display.name, "LIBGL_ALWAYS_SOFTWARE": "1"})
        for _ in range(300):
            if os.path.exists(opened) or viewer.poll() is not None:
                break
            time.sleep(0.1)
        os.remove(path)
        errors = viewer.communicate(timeout=120)[1]
        self.assertEqual((viewer.returncode, errors), (0, ""))

    def test_other_files_are_named_in_the_error(self):
        for name, data in [("empty.strata", b""), ("noise.log", bytes(range(256)) * 40), ("text.txt", b"hello\n")]:
            tree = self.view("", self.write(name, data))
            self.assertIn(name, tree["state"]["error"])
            self.assertIn("strata: error:", element(tree, "start/error")["text"])

    def test_a_folder_of_ranks_opens(self):
        tree = self.view(f"""
            run ranks
            assert count ranks/cell:* > 1
            key r
            screenshot {self.picture("folder")}
        """, os.path.join(LOGS, "llama3_fsdp2_2ranks"))
        self.assertEqual((tree["state"]["error"], tree["state"]["runs"]), ("", "2"))
        self.assertEqual(tree["state"]["run"], "2")

    def test_hostile_names_are_shown_without_harm(self):
        name = "x" * 100_000
        text = ["class GraphModule(torch.nn.Module):", '    def forward(self, a: "f32[8]"):',
                f'        {name}: "f32[8]" = torch.ops.aten.relu.default(a);  a = None',
                f'        b: "f32[8]" = torch.ops.evil\u202e.op\x1b[31m.default({name});  {name} = None',
                "        return (b,)"]
        path = self.write("hostile.txt", "\n".join(text).encode())
        self.view(f"""
            key 4
            run operators
            run costs
            run table
            run lanes
            key Space
            screenshot {self.picture("hostile")}
        """, path)

    def test_random_events_do_no_harm(self):
        for seed, log in [(1, LOG), (2, os.path.join(LOGS, "trainer_torch2.11.log.zst"))]:
            # Without pixels, whose drawing takes most of the time where there is no graphics card.
            tree = self.view(f"random 250 {seed}\nkey Escape\nresize 900 600\nrandom 50 {seed}\nwait\n", "--bench",
                             "--size", "700x500", log)
            self.assertEqual(tree["state"]["error"], "", f"seed {seed}")

    def test_ten_thousand_random_events_leave_the_window_usable(self):
        # What is drawn is measured elsewhere; without pixels the events take seconds.
        done = self.start("random 10000 11\nkey Escape\nwait\nassert state error = \"\"\nkey 1 J\n"
                          "assert state pass_index >= 0\n", "--bench", LOG)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("random 10000 11", done.stdout)


if __name__ == "__main__":
    unittest.main()
