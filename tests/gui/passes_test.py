"""Passes run from the window: the demo, a pipeline on the graph that is shown, its completion, errors, giving it up."""

import json
import os
import subprocess
import unittest

from gui_case import STRATA, GuiCase, element

PIPELINE = "dce,normalize-views"


class Passes(GuiCase):

    def setUp(self):
        self.state = self.path(self.id().rsplit(".", 1)[-1])
        os.environ["XDG_STATE_HOME"] = self.state
        self.addCleanup(os.environ.pop, "XDG_STATE_HOME")

    def made(self, name):
        return os.path.join(self.state, "strata", name)

    def test_one_key_makes_and_opens_a_demo(self):
        tree = self.view(f"""
            screenshot {self.picture("start")}
            key D
            assert state passes > 9
            assert state runs = 1
            assert state changed > 50
            screenshot {self.picture("demo")}
            run next-changed-pass 6
            assert state pass = recompute
            assert state removed = 0
            # Lines were removed, though no node was.
            assert graph/legend:removed exists
            assert graph/legend:moved absent
        """)
        self.assertEqual(tree["state"]["file"], self.made("demo.strata"))
        self.assertEqual(tree["state"]["error"], "")
        checked = subprocess.run([STRATA, "check", self.made("demo.strata")], capture_output=True, text=True, check=False)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_another_pass_takes_back_which_change_is_selected(self):
        self.view("""
            run demo
            run next-changed-pass
            run next-change
            assert state message contains "change 1 of"
            run next-changed-pass
            assert state message = ""
        """)

    def test_an_option_makes_and_opens_a_demo(self):
        tree = self.view("assert state passes > 9\n", "--demo")
        self.assertEqual(tree["state"]["file"], self.made("demo.strata"))
        done = self.start("wait\n", "--demo", "other.strata")
        self.assertEqual((done.returncode, done.stderr),
                         (2, "strata: error: two things to show: other.strata: --demo: leave one of them out\n"))

    def test_the_list_of_passes_has_the_counts_of_the_comparison(self):
        self.view("run demo\nassert state passes > 0\n")
        trace = self.path("placed.strata")
        subprocess.run([STRATA, "opt", f"{self.made('demo.strata')}#graph=step,pass=0", "--passes",
                        'place{mesh="fsdp=2"},lower', "-o", trace], check=True)
        for index in (0, 1):
            # Passes that were never shown are compared, too.
            tree = self.view("await pass:1 contains derived\n", f"{trace}#pass={index}")
            counts = element(tree, "pass/counts")["text"]
            self.assertIn("~", counts)
            self.assertTrue(element(tree, f"passes/pass:{index}")["text"].endswith(f" {counts}"), counts)
            state = tree["state"]
            recorded = json.loads(subprocess.run([STRATA, "ls", trace, "--json"], capture_output=True, check=True).stdout)
            known = recorded["runs"][0]["passes"][index]["counts"]
            self.assertEqual((int(state["added"]), int(state["removed"]), int(state["changed"]) + int(state["derived"])),
                             (known["inserted"], known["deleted"], known["changed"]))

    def test_a_demo_goes_where_the_user_says(self):
        wanted = self.path("a folder/mine.strata")
        tree = self.view(f"""
            click start/demo-elsewhere
            key Ctrl+A
            type "{wanted}"
            key Enter
            assert state passes > 9
        """)
        self.assertEqual(tree["state"]["file"], wanted)
        tree = self.view("""
            run demo-elsewhere
            key Ctrl+A
            type /proc/nowhere/mine.strata
            key Enter
            assert state error contains /proc/nowhere/mine.strata
            assert start/error exists
        """)
        self.assertEqual(tree["state"]["runs"], "0")

    def test_passes_run_on_the_graph_that_is_shown(self):
        trace = self.path("input.strata")
        self.view("run demo\nassert state passes > 0\n")
        os.rename(self.made("demo.strata"), trace)
        tree = self.view(f"""
            assert state pass = canonicalize
            key k
            assert state pass = dce
            click pass/run-passes
            type canon
            assert run-passes/item:canonicalize exists
            key Escape
            key P
            type dc
            key Tab
            await run-passes/field = dce
            type ,norm
            screenshot {self.picture("run_passes")}
            key Enter
            await run-passes/field = {PIPELINE}
            await "run-passes/item:Run {PIPELINE}" exists
            key Enter
            await state file contains input-passes.strata
            assert state passes = 2
            assert state pass_index = 1
            assert state nodes > 300
        """, trace)
        self.assertEqual(tree["state"]["pass"], "normalize-views")
        self.assertGreater(int(tree["state"]["changed"]), 0)
        # The command line makes the same graph.
        again = self.path("again.strata")
        subprocess.run([STRATA, "opt", f"{trace}#graph=step,pass=dce", "--passes", PIPELINE, "-o", again],
                       check=True)
        lists = [subprocess.run([STRATA, "show", f"{path}#pass=1"], capture_output=True, check=True).stdout
                 for path in (again, self.made("input-passes.strata"))]
        self.assertEqual(*lists)

    def test_any_two_graphs_are_compared(self):
        other = self.path("other.strata")
        self.view("run demo\nassert state passes > 0\n")
        os.rename(self.made("demo.strata"), other)
        tree = self.view(f"""
            run demo
            assert state pass = canonicalize
            click pass:3 shift
            assert state title contains "#1 canonicalize → #3 lower"
            assert state added > 193
            key Alt+Left
            assert state title = "#1 canonicalize"
            key C
            key Ctrl+A
            type {other}#graph=step,pass=5
            screenshot {self.picture("compare_with")}
            key Enter
            await state title contains other.strata
            await state added > 193
        """)
        self.assertEqual(tree["state"]["error"], "")
        # The same graph of two files.
        tree = self.view(f"""
            key C
            type graph=step,pass=canonicalize
            key Enter
            await state title contains →
        """, f"{other}#pass=1")
        self.assertEqual((tree["state"]["error"], tree["state"]["changed"], tree["state"]["added"]), ("", "0", "0"))

    def test_a_pipeline_that_is_none_is_refused_where_it_is_written(self):
        self.view(f"""
            run demo
            key P
            type nosuchpass
            await run-passes/nothing contains "unknown pass 'nosuchpass'"
            key Ctrl+A
            type place{{
            await run-passes/item:mesh exists
            key Tab
            await run-passes/field = place{{mesh=
            screenshot {self.picture("run_passes_options")}
            key Escape
            assert state file contains demo.strata
        """)

    def test_a_pass_that_fails_is_shown_with_its_error(self):
        self.view(f"""
            run demo
            key P
            type dce,ep-overlap
            key Enter
            await state file contains demo-passes.strata
            assert state pass = ep-overlap
            assert graph/empty contains "ep-overlap failed"
            assert graph/empty contains "Reproduce: strata opt"
            screenshot {self.picture("failed_pass")}
        """)


if __name__ == "__main__":
    unittest.main()
