"""Operators, memory, lanes, ranks; settings and recent files; hiding and resizing panes; live runs."""

import json
import os
import subprocess
import unittest

from gui_case import LOG, STRATA, GuiCase, element, names


class Stats(GuiCase):

    def strata(self, *words):
        done = subprocess.run([STRATA, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def graph(self, name, *lines):
        """Writes an FX text."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        return path

    def test_operators_count_calls_before_and_after(self):
        tree = self.view(f"""
            key J
            run operators
            assert operators/row:aten.mm.default exists
            screenshot {self.picture("operators")}
            click "operators/sort:difference"
            click operators/row:*
            assert state node != ""
        """, LOG)
        rows = {e["name"].removeprefix("operators/row:"): e["text"] for e in tree["elements"]
                if e["name"].startswith("operators/row:")}
        before, after = map(int, rows["aten.view.default"].split(" → "))
        self.assertGreater(before, after)

    def test_costs_show_how_time_bytes_and_peak_changed(self):
        config = self.path("config.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write('model = "llama3"\ndim = 16\nn_layers = 2\nn_heads = 2\nvocab_size = 32\nmultiple_of = 8\n'
                       "seq_len = 8\nbatch_size = 4\nsteps = 2\n")
        traces = [self.path("plain.strata"), self.path("fused.strata")]
        for trace, passes in zip(traces, ["dce", "dce,fuse"]):
            self.strata("train", config, "--passes", passes, "--profile", "1", "--trace", trace, "--threads", "1")
        sides = [trace + "#graph=step" for trace in traces]
        tree = self.view(f"""
            run costs
            assert count "costs/By change/row:*" > 1
            screenshot {self.picture("costs")}
            scroll "costs/By change/row:0" -400
            assert count "costs/By node/row:*" > 1
        """, *sides)
        row = names(tree, "costs/By node/row:")[-1]
        self.view(f"""
            run costs
            scroll "costs/By change/row:0" -400
            click "{row}"
            assert state node != ""
            run overlay
            assert graph/legend contains "Time of a step"
            assert graph/legend:added exists
        """, *sides)
        words = element(tree, "costs/words")["text"]
        for part in ["Time of a step ", "Bytes moved ", "Peak ", "Bytes and peak are estimated from shapes."]:
            self.assertIn(part, words)
        tree = self.view("run costs\n", LOG + "#graph=make_fx_graph_traced,pass=5")
        self.assertIn("no times of both graphs were recorded", element(tree, "costs/words")["text"])

    def test_memory_shows_the_peak_and_who_holds_it(self):
        tree = self.view(f"""
            key J
            run memory
            assert memory/chart contains peak
            assert count memory/holder:* > 3
            screenshot {self.picture("memory")}
            click memory/holder:*
            assert state node != ""
            click memory/chart
        """, LOG)
        self.assertIn("Estimated from shapes", element(tree, "memory/words")["text"])

    def test_memory_has_plans_of_less_memory_for_more_time(self):
        trace = self.path("plans.strata")
        self.strata("train", "configs/demo_llama3.toml", "--set", "steps=1", "--passes", "dce,canonicalize", "--trace", trace)
        graph = trace + "#graph=step,pass=canonicalize:after"
        front = json.loads(self.strata("memory", graph, "--pareto", "--json"))["front"]
        tree = self.view(f"""
            run memory
            click memory/view
            click "memory/view:Time for memory"
            await memory/front exists
            move memory/front
            screenshot {self.picture("memory_plans")}
            assert memory/words contains "as modelled"
            assert memory/plan:0 exists
        """, trace + "#graph=step,pass=canonicalize")
        self.assertIn(f"{len(front)} plans", element(tree, "memory/front")["text"])
        self.assertGreater(len(front), 3)
        tree = self.view("""
            key J
            run memory
            click memory/view
            click "memory/view:Time for memory"
            await memory/empty exists
        """, self.graph("forward.txt", "class GraphModule(torch.nn.Module):", '    def forward(self, a: "f32[8]"):',
                        '        r: "f32[8]" = torch.ops.aten.relu.default(a);  a = None', "        return (r,)"))
        self.assertIn("Nothing that forward saves", element(tree, "memory/empty")["text"])

    def test_lanes_show_phases_and_collectives(self):
        text = self.graph(
            "collectives.txt", "class GraphModule(torch.nn.Module):", '    def forward(self, a: "f32[8]"):',
            '        g: "f32[8]" = torch.ops._c10d_functional.all_reduce.default(a, "sum", "0")',
            '        r: "f32[8]" = torch.ops.aten.relu.default(a);  a = None',
            '        w: "f32[8]" = torch.ops._c10d_functional.wait_tensor.default(g);  g = None', "        return (w, r)")
        tree = self.view(f"run lanes\nscreenshot {self.picture('lanes')}\n", text)
        self.assertEqual(tree["state"]["error"], "")
        self.assertIn("1 collective from launch to wait", element(tree, "lanes/words")["text"])
        self.assertEqual(element(tree, "lanes/lane:in flight 1")["text"], "1 call")
        tree = self.view(f"""
            run lanes
            click lanes/times
            click "lanes/times:Simulated: h100"
            screenshot {self.picture("lanes_simulated")}
            assert "lanes/times:Measured" absent
        """, text)
        self.assertIn("Estimated for h100: a step of", element(tree, "lanes/words")["text"])
        self.assertEqual(element(tree, "lanes/lane:compute")["text"], "1 call")
        self.view("""
            key J
            run lanes
            scroll lanes/lane:* 3
            drag lanes/lane:* -60 0
            assert count lanes/lane:* > 1
        """, LOG)

    def test_lanes_show_what_ranks_of_a_pipeline_did(self):
        trace = self.path("pipeline.strata")
        config = self.path("config.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write('model = "llama3"\ndim = 16\nn_layers = 2\nn_heads = 2\nvocab_size = 32\nmultiple_of = 8\n'
                       "seq_len = 8\nbatch_size = 4\nsteps = 2\n[parallelism]\npipeline_parallel_degree = 2\n")
        self.strata("train", config, "--profile", "1", "--trace", trace, "--threads", "1")
        tree = self.view(f"""
            run lanes
            click lanes/times
            click "lanes/times:Pipeline: simulated"
            await lanes/words contains "Simulated with the mean time of each action"
            click lanes/times
            click "lanes/times:Pipeline: measured"
            await lanes/words contains "Measured in step 2"
            assert count lanes/lane:* = 2
            assert "lanes/action:1F3" contains "rank 1: 1F3"
            screenshot {self.picture("lanes_pipeline")}
            click "lanes/action:1B0"
            await state link contains stage1.backward
            await lanes/words contains "Measured in step 2"
        """, trace)
        names_of_actions = {e["name"] for e in tree["elements"] if e["name"].startswith("lanes/action:")}
        for stage in range(2):
            for microbatch in range(4):
                for kind in "FB":
                    self.assertIn(f"lanes/action:{stage}{kind}{microbatch}", names_of_actions)
        tree = self.view(f"""
            screenshot {self.picture("stages")}
        """, f"{trace}#pass=split-stages,graph=step")
        self.assertEqual(tree["state"]["error"], "")
        # A pass that makes a graph starts from nothing.
        tree = self.view("assert pass/counts contains +\nkey n\nassert state status = added\n",
                         f"{trace}#pass=split-backward,graph=stage0.forward")
        self.assertEqual(tree["state"]["error"], "")
        self.assertEqual(tree["state"]["added"], tree["state"]["nodes"])
        made = f"{trace}#graph=stage0.forward,pass=split-backward"
        done = subprocess.run([STRATA, "diff", made + ":before", made], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn(f"\n{tree['state']['nodes']} inserted\n", done.stdout)

    def test_one_rank_says_how_to_join_more_and_all_ranks_that_they_are_all(self):
        self.view("run ranks\nassert ranks/empty contains Join\n", LOG)
        trace = self.path("of_all_ranks.strata")
        subprocess.run([STRATA, "trace", "configs/demo_llama3.toml", "--set", "parallelism.data_parallel_shard_degree=4",
                        "-o", trace], check=True)
        self.view("run ranks\nassert ranks/empty contains All 4 ranks\n", trace)

    def test_two_cells_of_the_matrix_of_ranks_are_compared(self):
        merged = self.path("ranks.strata")
        parts = []
        for rank in range(3):
            text = self.graph(
                f"{rank}/graph.txt", "class GraphModule(torch.nn.Module):", '    def forward(self, a: "f32[8]"):',
                f'        b: "f32[8]" = torch.ops.aten.{"exp" if rank == 2 else "relu"}.default(a);  a = None',
                "        return (b,)")
            parts.append(self.path(f"rank{rank}.strata"))
            self.strata("import", text, "-o", parts[-1])
        self.strata("merge", "--renumber", *parts, "-o", merged)
        tree = self.view(f"""
            run ranks
            assert count ranks/cell:* = 3
            screenshot {self.picture("ranks")}
            click "ranks/cell:*rank 0"
            assert ranks/hint contains second
            click "ranks/cell:*rank 2"
            assert state title contains "rank 0"
            assert state title contains "rank 2"
            assert state changed = 1
        """, merged)
        letters = [e["text"] for e in tree["elements"] if e["name"].startswith("ranks/cell:")]
        self.assertEqual(letters, ["A", "A", "B"])
        self.assertIn("diverge at", element(tree, "ranks/summary")["text"])
        again = self.view("assert pass/title = \"rank 0 graph → rank 2 graph\"\n",
                          f"{merged}#{tree['state']['link']}")["state"]
        self.assertEqual(again["title"], tree["state"]["title"])

    def test_a_run_without_steps_says_so(self):
        self.view("run live\nassert live/empty contains steps\nassert live/status text finished\n", LOG)

    def test_panes_are_hidden_and_resized_and_the_layout_is_kept(self):
        config = self.path("folder/viewer.conf")
        tree = self.view("""
            key J
            key F7
            assert passes/filter absent
            key F7
            assert passes/filter exists
            key F8
            assert node/empty absent
            key F8 F9
            assert tabs/Table absent
            key F9
            drag splitter:left 80 0
            drag splitter:right -60 0
            run table
            drag splitter:bottom 0 -70
            key m a
            run dark-theme
        """, "--config", config, LOG)
        left = element(tree, "splitter:left")["rect"]
        with open(config, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("dark = yes\n", text)
        self.assertIn(f"recent = {os.path.abspath(LOG)}\n", text)
        self.assertIn("bookmark.a = ", text)
        tree = self.view("""
            assert start/recent:1 exists
            click start/recent:1
            assert state theme = dark
            click left:Bookmarks
            click bookmarks/a
            assert state pass_index > 0
            run table
        """, "--config", config)
        self.assertEqual(element(tree, "splitter:left")["rect"], left)
        tree = self.view("key Ctrl+Shift+R\n", "--config", config, LOG)
        self.assertNotEqual(element(tree, "splitter:left")["rect"], left)

    def test_bookmarks_are_removed(self):
        self.view("""
            key m a
            click left:Bookmarks
            click bookmarks/remove:a
            assert bookmarks/a absent
        """, LOG)

    def test_every_tab_is_readable_in_a_small_window_and_at_4k(self):
        for size, scale, theme in [("1280x720", "1", "light"), ("3840x2160", "2", "dark")]:
            script = "key J n\n"
            for tab in ["table", "text", "patterns", "operators", "costs", "memory", "lanes", "ranks", "live", "log"]:
                script += f"run {tab}\nassert state tab = {tab}\n"
            tree = self.view(script + f"screenshot {self.picture('tabs_' + size)}\n", "--size", size, "--scale", scale,
                             "--theme", theme, LOG)
            width, height = map(int, size.split("x"))
            for e in tree["elements"]:
                x, y, w, h = e["rect"]
                if e["name"].startswith(("tabs/", "top/", "left:", "graph/fit", "graph/zoom")):
                    self.assertGreaterEqual(x, 0, e)
                    self.assertLessEqual(x + w, width, e)
                    self.assertLessEqual(y + h, height, e)
            self.assertEqual(len(names(tree, "tabs/")), 10 + len(names(tree, "tabs/splitter")))


if __name__ == "__main__":
    unittest.main()
