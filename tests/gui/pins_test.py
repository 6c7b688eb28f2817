"""Matches are pinned and broken in the window, and `strata diff --pins` reads what was said."""

import glob
import json
import os
import shutil
import subprocess
import unittest

from gui_case import LOG, STRATA, GuiCase, element


class PinsTest(GuiCase):

    def setUp(self):
        self.log = self.path("trainer.log.zst")
        shutil.copy(LOG, self.log)
        for path in self.pins():
            os.remove(path)

    def pins(self):
        return glob.glob(self.log + ".*.pins.toml")

    def test_a_broken_match_becomes_two_nodes_and_is_kept_for_the_command_line(self):
        tree = self.view(f"""
            key J n
            await state status = changed
            assert node/break-match exists
            key E
            await state vetoes = 1
            assert state status = added
            assert state removed = 1
            assert node/match contains "no node of the graph before"
            screenshot {self.picture("broken_match")}
        """, self.log)
        node = tree["state"]["node"]
        self.assertEqual(len(self.pins()), 1)
        selector = f"{self.log}#pass={tree['state']['pass_index']}"
        done = subprocess.run([STRATA, "diff", f"{selector}:before", f"{selector}:after", "--pins", self.pins()[0],
                               "--format", "json"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        diff = json.loads(done.stdout)
        self.assertEqual([diff["summary"]["deleted"], diff["summary"]["inserted"]], [1, 1])
        again = self.view(f"goto {node}\nassert state status = added\n", f"{selector}")
        self.assertEqual(again["state"]["vetoes"], "1")

    def test_two_nodes_are_pinned_and_what_was_said_is_taken_back(self):
        tree = self.view(f"""
            key J n
            await state status = changed
            key E
            await state vetoes = 1
            key N
            await state status = removed
            key n
            await state status = added
            assert node/pin-match exists
            screenshot {self.picture("pin_match")}
            key e
            await state pins = 1
            assert state vetoes = 0
            assert state status = changed
            assert node/match contains "Pinned by hand"
            assert state removed = 0
            click node/forget-match
            await state pins = 0
            assert state status = changed
            assert node/forget-match absent
        """, self.log)
        self.assertIn("any more", tree["state"]["message"])
        self.assertEqual(self.pins(), [])

    def test_what_cannot_be_pinned_is_said(self):
        tree = self.view("""
            key J
            key Escape
            key e
            assert state message contains "Select a node of the graph before"
            key E
            assert state message = "Select a node first"
            goto arg0_1
            key n
            key e
            await state error contains "different kinds"
        """, self.log)
        self.assertEqual(tree["state"]["pins"], "0")
        self.assertEqual(self.pins(), [])

    def test_random_events_keep_no_pins(self):
        self.view("key J n\nrandom 60 3\nwait\n", self.log)
        self.assertEqual(self.pins(), [])

    def test_damaged_pins_are_an_error_and_the_log_still_opens(self):
        self.view("key J n\nawait state status = changed\nkey E\nawait state vetoes = 1\n", self.log)
        with open(self.pins()[0], "a", encoding="utf-8") as file:
            file.write("same = 3\n")
        tree = self.view("key J\n", self.log)
        self.assertIn(".pins.toml", tree["state"]["error"])
        self.assertGreater(int(tree["state"]["passes"]), 1)
        self.assertTrue(element(tree, "passes/pass:1"))


if __name__ == "__main__":
    unittest.main()
