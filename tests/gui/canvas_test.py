"""Overlays, labels on lines, several graphs beside each other."""

import subprocess
import unittest

from gui_case import LOG, STRATA, GuiCase, element, names

CHAIN = ["class GraphModule(torch.nn.Module):", '    def forward(self, a: "f32[8, 8][8, 1]cpu"):',
         '        b: "f32[8, 8][8, 1]cpu" = torch.ops.aten.mm.default(a, a)',
         '        c: "bf16[8, 8][8, 1]cpu" = torch.ops.aten._to_copy.default(b, dtype = torch.bfloat16);  b = None',
         "        return (c, a)"]


class Canvases(GuiCase):

    def chain(self):
        path = self.path("chain.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(CHAIN) + "\n")
        return path

    def test_overlays_colour_nodes_and_are_in_links(self):
        tree = self.view(f"""
            key J
            run open-all
            key o
            assert state overlay = bytes
            assert graph/legend text "Memory of outputs"
            screenshot {self.picture("overlay")}
            key o
            assert state overlay = flops
            key O O
            assert state overlay = ""
            assert graph/legend absent
            click graph/overlay
            click "graph/overlay:Data type"
            assert state overlay = dtype
        """, LOG)
        self.assertIn("overlay=dtype", tree["state"]["link"])
        again = self.view("assert graph/legend text \"Data type\"\n", f"{LOG}#{tree['state']['link']}")
        self.assertEqual(again["state"]["overlay"], "dtype")

    def test_only_overlays_with_something_to_show_are_offered(self):
        tree = self.view("click graph/overlay\n", self.chain())
        offered = [name.removeprefix("graph/overlay:") for name in names(tree, "graph/overlay:")]
        self.assertEqual(offered, ["No overlay", "Memory of outputs", "FLOPs", "Shape", "Data type"])

    def test_labels_stand_on_lines(self):
        tree = self.view(f"""
            key t
            assert graph/union/label:b text "[8, 8]"
            key t
            assert graph/union/label:b text f32
            key t
            assert graph/union/label:b text "256 B"
            screenshot {self.picture("labels")}
            key t
            assert graph/union/label:b absent
            key t
        """, self.chain())
        self.assertIn("labels=shape", tree["state"]["link"])

    def test_lines_of_a_placed_graph_have_placements_and_communication(self):
        path = self.path("placed.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("graph step\n  x = placeholder : DTensor(f32[8][1]cpu, S(0))\n"
                       "  a = aten.neg.default(x) : DTensor(f32[8][1]cpu, S(0)) {+%'place.communication_us'='1200.000'}\n"
                       "  b = aten.abs.default(a) : DTensor(f32[8][1]cpu, R)\n  output([b])\n")
        trace = self.path("placed.strata")
        subprocess.run([STRATA, "opt", path, "--passes", "dce", "-o", trace], check=True)
        self.view(f"""
            key t t t t
            assert graph/union/label:a text "S(0)"
            key t
            assert graph/union/label:a text "1.2 ms"
            screenshot {self.picture("labels_communication")}
            key t
            assert graph/union/label:a absent
        """, trace)

    def test_three_graphs_fit_a_small_window(self):
        tree = self.view(f"""
            resize 1280 720
            key J
            key v
            key K
            key v
            key k k
            screenshot {self.picture("canvases_small")}
        """, LOG)
        for canvas in ("canvas:1", "canvas:2", "union"):
            left, _, width, _ = element(tree, f"graph/{canvas}/stage")["box"]
            slabs = [element(tree, name)["box"] for name in names(tree, f"graph/{canvas}/slab:")]
            self.assertTrue(slabs)
            # Each graph was placed in the room that it has now.
            self.assertLess(min(slab[0] for slab in slabs) - left, width / 4)
        self.assertGreaterEqual(int(tree["state"]["zoom"]), 40)  # names of nodes are drawn

    def test_graphs_stay_beside_others_and_move_together(self):
        tree = self.view(f"""
            key J
            key v
            assert state canvases = 2
            key K
            assert graph/canvas:1/caption contains "#"
            assert graph/union/caption contains "#"
            key v
            key k k
            assert state canvases = 3
            key n
            click graph/canvas:1/node:*
            assert state node != ""
            screenshot {self.picture("canvases")}
            scroll graph/canvas:1/stage 3 ctrl
            drag graph/canvas:1/stage -40 -60
        """, LOG)
        zoom = int(tree["state"]["zoom"])
        tree = self.view("""
            key J v K
            click graph/canvas:1/close
            assert state canvases = 1
            assert graph/canvas:1/stage absent
            key v v v
            assert state canvases = 4
            assert graph/canvas:3/stage exists
            key v
            assert state message contains "the most that fit"
            key V
            assert state canvases = 1
        """, LOG)
        self.assertGreater(zoom, 0)

    def test_synchronized_graphs_show_the_same_node_at_the_same_place(self):
        script = """
            key J
            key v
            key K
            {}
            goto mm_14
            drag graph/union/stage 0 -90
        """
        def middle(tree, name):
            x, y, width, height = element(tree, name)["rect"]
            return x + width / 2, y + height / 2
        tree = self.view(script.format(""), LOG)
        stages = [element(tree, f"graph/{name}/stage")["rect"] for name in ("canvas:1", "union")]
        places = [middle(tree, f"graph/{name}/node:mm_14") for name in ("canvas:1", "union")]
        for axis in (0, 1):
            self.assertAlmostEqual(places[0][axis] - stages[0][axis], places[1][axis] - stages[1][axis], delta=2)
        self.assertTrue(element(tree, "graph/canvas:1/node:mm_14")["selected"])
        tree = self.view(script.format("key s"), LOG)
        self.assertEqual(tree["state"]["synced"], "no")
        self.assertEqual([name for name in names(tree, "graph/canvas:1/node:mm_14")
                          if element(tree, name)["selected"]], [])

    def test_sides_move_apart_when_they_are_not_synchronized(self):
        places = {}
        for key in ("", "key s"):
            tree = self.view(f"""
                key J 2
                {key}
                drag graph/after/stage 0 -100
            """, LOG)
            places[key] = [element(tree, f"graph/{side}/slab:loss")["rect"][1] for side in ("before", "after")]
        self.assertEqual(places[""][0], places[""][1])
        self.assertNotEqual(places["key s"][0], places["key s"][1])


if __name__ == "__main__":
    unittest.main()
