"""Opens a log, steps through its passes, selects nodes, looks at the picture."""

import json
import os
import subprocess
import unittest

from gui_case import LOG, VIEW, GuiCase, element, names


class First(GuiCase):

    def test_opens_a_log_and_shows_passes_graph_and_node(self):
        picture = self.picture("first")
        tree = self.view(f"""
            assert passes/pass:1 exists
            key J J
            assert state pass_index > 0
            key n
            assert state status != same
            assert node/status contains ed
            screenshot {picture}
        """, LOG)
        self.assert_picture(picture, 1600, 1000)
        state = tree["state"]
        self.assertGreater(int(state["passes"]), 3)
        self.assertGreater(int(state["drawn"]), 0)
        self.assertGreater(len(names(tree, "graph/union/node:")), 0)
        self.assertEqual(element(tree, "node/name")["text"], state["node"])
        node = element(tree, f"graph/union/node:{state['node']}")
        self.assertTrue(node["selected"])

    def test_clicks_select_passes_and_nodes_and_open_slabs(self):
        tree = self.view("""
            key J
            key Escape
            click graph/union/node:*
            assert state node != ""
            key Escape
            assert state node = ""
            run close-all
            assert count graph/union/node:* <= 2
            click graph/union/slab:*
            assert count graph/union/slab:* > 1
            key Ctrl+Z
            click passes/pass:1
        """, LOG)
        self.assertEqual(tree["state"]["pass_index"], "1")
        self.assertTrue(element(tree, "passes/pass:1")["selected"])

    def test_a_click_meets_the_part_of_a_row_that_is_not_scrolled_out(self):
        self.view("""
            resize 1280 420
            click passes/pass:0
            assert state pass_index = 0
            click passes/pass:3
            assert state pass_index = 3
        """, LOG)

    def test_the_row_of_the_pass_that_is_shown_is_wholly_in_sight(self):
        heights = range(400, 440, 8)
        trees = [self.path(f"tree_{height}.json") for height in heights]
        self.view("click passes/pass:0\n" + "".join(f"""
            resize 1280 {height}
            key j j j
            wait
            tree {tree}
            key k k k
            wait
        """ for height, tree in zip(heights, trees)), LOG)
        for path in trees:
            with open(path, encoding="utf-8") as file:
                tree = json.load(file)
            row = next(found for found in tree["elements"]
                       if found["name"].startswith("passes/pass:") and found["selected"])
            self.assertIn(row["rect"][3], (26, 44), path)

    def test_conditions_paths_and_dumps_of_scripts(self):
        dump = self.path("dump.json")
        self.view(f"""
            wait pass:1
            assert passes/pass:1.role == row
            key J
            wait state.pass_index > 0
            key Ctrl-F
            type mm
            wait state.hits > 0
            wait hit:* exists
            wait idle
            assert state.error == ""
            assert search/field.enabled == true
            dump {dump}
        """, LOG)
        with open(dump, encoding="utf-8") as file:
            elements = json.load(file)["elements"]
        for one in elements:
            self.assertEqual(sorted(one), ["box", "enabled", "name", "rect", "role", "selected", "state", "text"])
            self.assertEqual(one["box"], one["rect"])
            self.assertEqual("selected" in one["state"], one["selected"])
            self.assertEqual("disabled" in one["state"], not one["enabled"])
        self.assertTrue(any(one["state"] == ["selected"] for one in elements))
        done = self.start('wait pass:1\nassert state.nodes == "no such"\n', LOG)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Astrata: error: .*:2: state nodes is '\d+', not == 'no such'\n\Z")
        done = self.start("assert pass:1.role == button\n", LOG)
        self.assertRegex(done.stderr, r"\Astrata: error: .*:1: pass:1.role is 'row', not == 'button'\n\Z")

    def test_a_picture_without_a_script(self):
        picture = self.path("alone.png")
        environment = {**os.environ, "DISPLAY": self.display.name, "LIBGL_ALWAYS_SOFTWARE": "1"}
        for words in ([], ["--script", self.path("quits.txt")]):
            with open(self.path("quits.txt"), "w", encoding="utf-8") as file:
                file.write("key J\nquit\n")
            done = subprocess.run([VIEW, *words, "--size", "900x600", "--screenshot", picture, LOG], env=environment,
                                  capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assert_picture(picture, 900, 600)
            os.remove(picture)
        done = subprocess.run([VIEW, "--screenshot", "a.jpg"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (
            2, "strata: error: 'a.jpg' is not a PNG file: --screenshot: end its name with .png\n"))

    def test_a_link_selects_pass_and_node(self):
        before = self.view("key J\nkey n\n", LOG)["state"]
        after = self.view("", f"{LOG}#{before['link']}")["state"]
        self.assertEqual((after["pass"], after["node"]), (before["pass"], before["node"]))

    def test_the_wheel_zooms_and_a_drag_pans(self):
        tree = self.view("""
            key J
            scroll graph/union/stage 3 ctrl
            drag graph/union/stage -120 -80
            key Space
        """, LOG)
        self.assertLessEqual(int(tree["state"]["zoom"]), 100)

    def test_names_may_begin_after_any_slash(self):
        tree = self.view("""
            assert count pass:* >= 2
            assert count passes/pass:* >= 2
            key J
            run open-all
            assert count union/node:* >= 5
            goto mm_14
            key Escape
            click node:mm*
            assert state node contains mm
            assert union/node:mm_14 exists
            key 5j
        """, LOG)
        rows = [name for name in names(tree) if "/pass:" in name]
        self.view(f"assert count pass:* = {len(rows)}\n", LOG)

    def test_the_last_command_has_its_effect(self):
        done = self.start("wait\nrun open-all\n", "--bench", LOG)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout.splitlines()[-1], r"run open-all +\d+\.\d +\d+\.\d +([3-9]|\d\d) ")

    def test_a_failed_assertion_is_one_line_with_its_place(self):
        done = self.start("wait\nassert state pass = nonsense\n", LOG)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^strata: error: \S*script.txt:2: state pass is '.*', not = 'nonsense'\n$")

    def test_bad_scripts_files_and_displays_are_one_line(self):
        for script, words, message in [
                ("clack x\n", [LOG], "script.txt:1: unknown verb 'clack', did you mean 'click'"),
                ("click\n", [LOG], "script.txt:1: wrong number of words"),
                ("wait\nframes -5 pan\n", [LOG], "script.txt:2: '-5' is not a number from 1 to 1000000"),
                ("key Nonsense\n", [LOG], "script.txt:1: 'Nonsense' is not a key"),
                ("click no/such\n", [LOG], "script.txt:1: no element 'no/such' is on the screen")]:
            done = self.start(script, *words)
            self.assertEqual(done.returncode, 2, script)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(message, done.stderr)
        done = self.start("wait\n", LOG, display=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("strata: error: no display", done.stderr)
        done = self.start("wait\n", LOG, env={"MESA_GL_VERSION_OVERRIDE": "2.1"})
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^strata: error: no OpenGL 3: .*\n$")

    def test_a_missing_file_is_shown_as_an_error(self):
        tree = self.view("", self.path("missing.strata"))
        self.assertIn("missing.strata", tree["state"]["error"])
        self.assertIn("strata: error:", element(tree, "start/error")["text"])

    def test_dark_and_light_have_the_same_layout(self):
        light = self.view("key J\n", LOG)
        dark = self.view(f"key J\nscreenshot {self.picture('first_dark')}\n", "--theme", "dark", LOG)
        rects = lambda tree: [(e["name"], e["rect"]) for e in tree["elements"]]
        self.assertEqual(rects(light), rects(dark))


if __name__ == "__main__":
    unittest.main()
