"""Search, table, text, patterns, modules, provenance, palette, bookmarks, comparing two graphs."""

import os
import subprocess
import unittest

from gui_case import LOG, STRATA, GuiCase, element, names

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, a: "f32[8]"):
        b: "f32[8]" = torch.ops.aten.relu.default(a);  a = None
        return (b,)
"""


CHAIN = """graph g
  x = placeholder : f32[4, 600][600, 1]cpu
  a = aten.mul.Scalar(x, 2.0) : f32[4, 600][600, 1]cpu
  b = aten.add.Scalar(a, 0.5) : f32[4, 600][600, 1]cpu
  output([b])
"""


class Panes(GuiCase):

    def test_values_that_do_not_fit_beside_each_other_stand_below_each_other(self):
        tree = self.view("""
            resize 1280 720
            key J J n
            assert field:target contains aten.reshape.default
        """, LOG)
        heights = {field: element(tree, f"node/field:{field}")["box"][3] for field in ("target", "type")}
        self.assertGreater(heights["target"], heights["type"] * 1.5)

    def test_a_fused_node_shows_the_code_that_runs(self):
        path, trace = self.path("chain.txt"), self.path("chain.strata")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CHAIN)
        subprocess.run([STRATA, "opt", path, "--passes", "fuse", "-o", trace], check=True, stdout=subprocess.DEVNULL)
        tree = self.view("""
            assert node/generated/line:0 contains "void kernel_0"
        """, trace + "#pass=0&node=fused")
        lines = names(tree, "node/generated/line:")
        self.assertGreater(len(lines), 5)

    def test_search_frames_hits_and_steps_through_them(self):
        tree = self.view(f"""
            key J /
            type mm
            assert state hits > 10
            assert search/hit:mm exists
            key Enter
            assert state node contains mm
            key F3
            assert state message contains "hit 2 of"
            screenshot {self.picture("search")}
        """, LOG)
        self.assertIn("nodes", element(tree, "search/counts")["text"])
        self.assertGreater(len(names(tree, "search/hit:")), 10)

    def test_search_tests_properties_and_says_when_nothing_matches(self):
        self.view("""
            key J /
            type "status=changed"
            assert state hits > 0
            key Ctrl+A
            type "bytes>1e15"
            assert state hits = 0
            assert search/counts contains "Nothing matches"
            key Ctrl+A
            type "(("
            assert search/counts contains "Nothing matches"
        """, LOG)

    def test_the_table_sorts_and_selects(self):
        tree = self.view(f"""
            key J
            run table
            click table/sort:node
            click table/row:*
            assert state node != ""
            screenshot {self.picture("table")}
        """, LOG)
        rows = [name.removeprefix("table/row:") for name in names(tree, "table/row:")]
        self.assertEqual(rows, sorted(rows))
        self.assertTrue(element(tree, f"table/row:{tree['state']['node']}")["selected"])

    def test_the_text_marks_lines_of_both_sides(self):
        tree = self.view(f"""
            key J 4
            key n
            assert count text/removed:* > 0
            screenshot {self.picture("text")}
            click text/fold:*
            assert count text/fold:* = 0
        """, LOG)
        self.assertEqual(tree["state"]["tab"], "text")

    def test_patterns_lead_to_their_places(self):
        tree = self.view(f"""
            key J
            run patterns
            assert patterns/pattern:0/title exists
            screenshot {self.picture("patterns")}
            click patterns/pattern:0/place:0
            assert state node != ""
        """, LOG)
        self.assertIn("place", element(tree, "patterns/pattern:0/where")["text"])

    def test_modules_open_slabs(self):
        tree = self.view("""
            key J
            run close-all
            click modules/open:layers
            click modules/layers.0
        """, LOG)
        self.assertTrue(element(tree, "graph/union/slab:layers")["selected"])

    def test_provenance_names_the_passes_that_touched_a_node(self):
        tree = self.view(f"""
            key J n
            assert count node/provenance/event:* > 0
            screenshot {self.picture("provenance")}
        """, LOG)
        events = [e["text"] for e in tree["elements"] if e["name"].startswith("node/provenance/")]
        self.assertTrue(any("#" in text for text in events), events)

    def test_the_palette_runs_commands_and_goes_to_nodes(self):
        self.view(f"""
            key J Ctrl+P
            type "side by side"
            screenshot {self.picture("palette")}
            key Enter
            assert state mode = side
            assert graph/before/stage exists
            assert graph/after/stage exists
            screenshot {self.picture("side_by_side")}
            key 1 Ctrl+P
            type mm_3
            key Down Up Enter
            assert state node contains mm_3
            key ?
            assert keys/next-pass text j
            screenshot {self.picture("keys")}
            key Escape
            assert keys/next-pass absent
        """, LOG)

    def test_the_palette_puts_a_whole_name_first(self):
        self.view("""
            key Ctrl+P
            type mm
            assert palette/item:Commands exists
            key Enter
            assert node/name text mm
        """, LOG)

    def test_the_palette_goes_to_the_line_of_a_number(self):
        path = self.path("lines.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("class GraphModule(torch.nn.Module):\n"
                       '    def forward(self, a: "f32[8]"):\n'
                       '        b: "f32[8]" = torch.ops.aten.relu.default(a);  a = None\n'
                       '        c: "f32[8]" = torch.ops.aten.relu.default(b);  b = None\n'
                       "        return (c,)\n")
        self.view("""
            key g
            type 3
            assert "palette/item:Line 3" exists
            key Enter
            assert state node = c
            key g
            type 9
            assert "palette/item:Line 9" absent
        """, path)

    def test_bookmarks_and_history_go_back(self):
        self.view("""
            key J n
            key m a
            key J
            assert state node != nothing
            key ' a
            assert state message = "Bookmark a"
            click left:Bookmarks
            assert bookmarks/a contains " in #"
            key Alt+Left
            key Alt+Right
        """, LOG)

    def test_blink_shows_the_graph_before_while_b_is_held(self):
        self.view("""
            key J 3
            assert graph/union/caption text After
            hold b
            assert graph/union/caption text Before
            release b
            assert graph/union/caption text After
        """, LOG)

    def test_highlight_hide_isolate_and_undo(self):
        self.view("""
            key J n
            key u u
            assert state lit > 1
            key Escape
            assert state lit = 0
            key i
            assert state message contains within
            key Escape
            key x
            assert state message contains hidden
            key X
            key Ctrl+Z
            assert state message = Undone
        """, LOG)

    def test_two_graphs_of_two_files_are_compared(self):
        tree = self.view(f"screenshot {self.picture('compare')}\n", f"{LOG}#pass=1",
                         f"{LOG}#pass=4")
        self.assertEqual(tree["state"]["error"], "")
        self.assertGreater(int(tree["state"]["nodes"]), 100)
        self.assertGreater(int(tree["state"]["removed"]), 0)
        self.assertEqual(names(tree, "passes/"), [])

    def test_long_names_of_files_lose_their_middle(self):
        name = "a folder of " + "very_long_names_" * 12 + "end"
        os.makedirs(self.path(name), exist_ok=True)
        path = self.path(name) + "/" + "run_" * 30 + "of_today.txt"
        with open(path, "w", encoding="utf-8") as file:
            file.write(GRAPH)
        tree = self.view("resize 1280 720\ngoto b\n", path)
        self.assertRegex(element(tree, "top/place:0")["text"], r"^run_.*….*txt$")
        self.assertEqual(element(tree, "top/place:2")["text"], "b")
        tree = self.view("resize 1280 720\n", path, LOG + "#pass=1")
        self.assertRegex(element(tree, "top/place:0")["text"], r"….* → .*#pass=1$")

    def test_changed_only_and_hops_fold_nodes(self):
        tree = self.view("""
            key J
            run open-all
            key c
            assert state hops = all
            assert graph/changed-only unselected
            key c
            click graph/changed-only
            assert state hops = all
            assert graph/hops text "1 hop"
            click graph/changed-only
            assert state hops = 1
            click graph/hops
            click "graph/hops:0 hops"
            assert state hops = 0
        """, LOG)
        self.assertLess(int(tree["state"]["drawn"]), int(tree["state"]["nodes"]))

    def test_a_small_window_has_tools_side_by_side(self):
        for width, height, modes in [(1280, 720, 3), (1000, 700, 3), (800, 600, 3), (640, 400, 0)]:
            elements = self.view(f"resize {width} {height}\nkey J\n", LOG)["elements"]
            tools = sorted(e["box"] for e in elements if e["role"] in ("button", "checkbox", "choice") and
                           e["name"].startswith("graph/") and e["name"].count("/") == 1)
            self.assertEqual(sum(e["name"].startswith("graph/mode:") for e in elements), modes, width)
            left = max(e["box"][0] + e["box"][2] for e in elements if e["name"].startswith("passes/pass:"))
            right = min(e["box"][0] for e in elements if e["name"].startswith("node/"))
            self.assertGreaterEqual(tools[0][0], left, width)
            self.assertLessEqual(tools[-1][0] + tools[-1][2], right, width)
            for one, next_ in zip(tools, tools[1:]):
                self.assertLessEqual(one[0] + one[2], next_[0] + 1, width)

    def test_what_is_laid_out_ahead_is_what_would_be_laid_out(self):
        places = []
        for ahead in ("await state laid_out >= 2", ""):
            tree = self.view(f"""
                run open-all
                {ahead}
                key j
                {ahead}
                key n j
            """, LOG)
            places.append([(e["name"], e["rect"]) for e in tree["elements"] if e["name"].startswith("graph/")])
        self.assertEqual(places[0], places[1])
        self.assertGreater(len(places[0]), 20)

    def test_keys_are_rebound_by_a_file(self):
        keys = self.path("keys.txt")
        with open(keys, "w", encoding="utf-8") as file:
            file.write("next-changed-pass = z\n")
        self.view("key z\nassert state changed > 0\nkey K\nkey J\nassert state changed > 0\n", "--keys", keys, LOG)
        with open(keys, "w", encoding="utf-8") as file:
            file.write("set-bookmark = ctrl+m\ngo-to-bookmark = ;\nshow-before = w\nnext-pass = 7\n")
        self.view("""
            key J 3
            hold w
            assert graph/union/caption text Before
            release w
            assert graph/union/caption text After
            key Ctrl+M q
            key 7
            key ; q
            assert state message = "Bookmark q"
        """, "--keys", keys, LOG)
        with open(keys, "w", encoding="utf-8") as file:
            file.write("next-pass = Hyper+q\n")
        done = self.start("wait\n", "--keys", keys, LOG)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
        self.assertIn("'Hyper+q' is not a key", done.stderr)
        with open(keys, "w", encoding="utf-8") as file:
            file.write("next-paas = z\n")
        done = self.start("wait\n", "--keys", keys, LOG)
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown command 'next-paas', did you mean 'next-pass'", done.stderr)


if __name__ == "__main__":
    unittest.main()
