"""`strata run`, `compare-values` and `--prove` execute recorded graphs.

    values_test.py STRATA
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

GRAPH = """\
def forward(self, x: "f32[4][1]cpu", y: "f32[4][1]cpu"):
    add: "f32[4][1]cpu" = torch.ops.aten.add.Tensor(x, y)
    mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(add, {factor})
    neg: "f32[4][1]cpu" = torch.ops.aten.neg.default(mul)
    sum_1: "f32[][]cpu" = torch.ops.aten.sum.default(neg)
    return (neg, sum_1)
"""


def write_safetensors(path, tensors):
    """name -> (shape, fp32 values)"""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        blob = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    return {name: struct.unpack(f"<{(e['data_offsets'][1] - e['data_offsets'][0]) // 4}f",
                                data[slice(*e["data_offsets"])]) for name, e in header.items()}


# What Inductor's decompositions leave in the graph of a model with dropout, and an attribute whose tensor no text has.
DROPOUT = """\
def forward(self, x: "f32[4][1]cpu"):
    weight: "f32[4][1]cpu" = self.layer.weight
    seeds: "i64[2][1]cpu" = torch.ops.prims.inductor_seeds.default(2, device(type='cpu'))
    seed: "i64[][]cpu" = torch.ops.prims.inductor_lookup_seed.default(seeds, 1)
    random: "f32[4][1]cpu" = torch.ops.prims.inductor_random.default([4], seed, 'rand')
    gt: "b8[4][1]cpu" = torch.ops.aten.gt.Scalar(random, 0.5)
    mask: "f32[4][1]cpu" = torch.ops.prims.convert_element_type.default(gt, torch.float32)
    fma: "f32[4][1]cpu" = torch.ops.prims.fma.default(x, mask, weight)
    return (fma,)
"""

BAGS = """\
def forward(self, w: "f32[9, 2][2, 1]cpu", i: "i64[6][1]cpu", o: "i64[4][1]cpu"):
    bag = torch.ops.aten._embedding_bag.default(w, i, o, False, 1)
    sizes: "i64[4][1]cpu" = bag[2]
    mean: "f32[4, 2][2, 1]cpu" = bag[0];  bag = None
    return (mean, sizes)
"""


class ValuesTest(unittest.TestCase):
    strata = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write("a.txt", GRAPH.format(factor="3.0"))
        self.inputs = self.path("in.safetensors")
        write_safetensors(self.inputs, {"x": ([4], [1, 2, 3, 4]), "y": ([4], [0.5, 0, -3, 1])})

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def run_strata(self, *words, code=0):
        result = subprocess.run([self.strata, *words], cwd=self.folder.name, capture_output=True, text=True,
                                timeout=120, check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout if code != 2 else result.stderr

    def test_a_graph_is_executed_on_given_inputs(self):
        out = self.run_strata("run", "a.txt", "--inputs", self.inputs, "--outputs", "o.safetensors")
        self.assertEqual(read_safetensors(self.path("o.safetensors")),
                         {"neg": (-4.5, -6.0, 0.0, -15.0), "sum_1": (-25.5,)})
        self.assertEqual(out, "neg  [4]  min -15  max -0  mean -6.375\nsum_1  []  min -25.5  max -25.5  mean -25.5\n")

    def test_made_up_inputs_are_the_same_every_time(self):
        self.assertEqual(self.run_strata("run", "a.txt"), self.run_strata("run", "a.txt"))
        self.assertNotEqual(self.run_strata("run", "a.txt"), self.run_strata("run", "a.txt", "--seed", "1"))

    def test_inputs_that_do_not_fit_are_told(self):
        write_safetensors(self.path("x.safetensors"), {"x": ([4], [1, 2, 3, 4])})
        self.assertEqual(self.run_strata("run", "a.txt", "--inputs", "x.safetensors", code=2),
                         "strata: error: no input y: graph a: give it under this name\n")
        write_safetensors(self.path("x.safetensors"), {"x": ([2, 2], [1, 2, 3, 4]), "y": ([4], [1, 2, 3, 4])})
        self.assertEqual(self.run_strata("run", "a.txt", "--inputs", "x.safetensors", code=2),
                         "strata: error: input x does not fit: graph a: it is f32 [2, 2], the graph takes "
                         "f32 [4]\n")

    def test_equal_graphs_have_equal_values(self):
        self.write("b.txt", GRAPH.format(factor="3.0").replace("add:", "plus:").replace("(add,", "(plus,").replace("(self, x", "(self, z")
                   .replace("(x, y)", "(z, y)"))
        self.assertEqual(self.run_strata("compare-values", "a.txt", "b.txt"),
                         "4 values compared, 0 differ; 0 of 2 outputs differ\n")

    def test_a_constant_is_what_the_second_graph_says(self):
        text = ("graph g\n  x = placeholder : f32[4][1]cpu\n  k = attr _tensor_constant0 : f32[][]cpu\n"
                "  mul = aten.mul.Tensor(x, k) : f32[4][1]cpu\n  add = aten.add.Tensor(mul, k) : f32[4][1]cpu\n"
                "  output((add,))\n")
        self.write("a.txt", text)
        for literal, shown in (("3.0", "3"), ("raw('(1-2j)')", "(1-2j)")):
            if shown != "3":
                text = text.replace("f32", "c64").replace("x = placeholder : c64", "x = placeholder : f32")
                self.write("a.txt", text)
            folded = text.replace("attr _tensor_constant0", f"aten.full.default([], {literal}, dtype=torch.float32)")
            self.write("b.txt", folded.replace("float32", "complex64") if shown != "3" else folded)
            self.assertEqual(self.run_strata("compare-values", "a.txt", "b.txt"),
                             "2 values compared, 0 differ; 0 of 1 outputs differ\n"
                             f"inferred: the constant _tensor_constant0 is {shown}\n")
        report = json.loads(self.run_strata("compare-values", "a.txt", "b.txt", "--json"))
        self.assertEqual(report["inferred"], ["the constant _tensor_constant0 is (1-2j)"])

    def test_an_attribute_holds_the_input_that_calls_read_before(self):
        text = ("graph g\n  w = placeholder : f32[4][1]cpu\n  x = placeholder : f32[4][1]cpu\n"
                "  mul = aten.mul.Tensor(x, w) : f32[4][1]cpu\n  output((mul,))\n")
        self.write("a.txt", text)
        stored = text.replace("  w = placeholder : f32[4][1]cpu\n", "").replace(
            "  mul", "  w_1 = attr %'0.weight' : f32[4][1]cpu\n  mul").replace("(x, w)", "(x, w_1)")
        self.write("b.txt", stored)
        self.assertEqual(self.run_strata("compare-values", "a.txt", "b.txt"),
                         "1 values compared, 0 differ; 0 of 1 outputs differ\n"
                         "inferred: the attribute 0.weight holds the input w\n")
        self.write("b.txt", stored.replace("mul = aten.mul.Tensor(x, w_1)", "mul = aten.mul.Tensor(x, x)"))
        self.assertIn("1 differ", self.run_strata("compare-values", "a.txt", "b.txt", code=1))

    def test_calls_with_seeds_draw_what_random_calls_drew(self):
        text = ("graph g\n  x = placeholder : f32[4][1]cpu\n  r = aten.rand.default([4]) : f32[4][1]cpu\n"
                "  y = aten.mul.Tensor(x, r) : f32[4][1]cpu\n  output((y,))\n")
        self.write("a.txt", text)
        seeded = text.replace("  r = aten.rand.default([4])", "  s = prims.inductor_seeds.default(1, device('cpu')) : i64[1][1]cpu\n"
                              "  t = prims.inductor_lookup_seed.default(s, 0) : i64[][]cpu\n"
                              "  r = prims.inductor_random.default([4], t, 'rand')")
        self.write("b.txt", seeded)
        self.assertEqual(self.run_strata("compare-values", "a.txt", "b.txt"),
                         "1 values compared, 0 differ; 0 of 1 outputs differ\n"
                         "inferred: calls with seeds draw what the 1 random calls before drew, in order\n")
        self.write("b.txt", seeded.replace("'rand'", "'randn'"))
        self.assertNotIn("inferred", self.run_strata("compare-values", "a.txt", "b.txt", code=1))

    def test_the_first_value_that_differs_is_named_with_its_error(self):
        # 3 and the next fp32: one unit in the last place, times 4.5 rounds to one again.
        self.write("b.txt", GRAPH.format(factor="3.000000238418579"))
        text = self.run_strata("compare-values", "a.txt", "b.txt", "--inputs", self.inputs, code=1)
        self.assertEqual(text.splitlines()[0], "4 values compared, 3 differ; 2 of 2 outputs differ")
        self.assertRegex(text, r"first difference: mul: 3 elements, up to 1 ulps, [\d.]+e-08 of the largest: element 0 is "
                         r"4\.50000048, was 4\.5\n")
        self.run_strata("compare-values", "a.txt", "b.txt", "--inputs", self.inputs, "--ulps", "1")
        self.run_strata("compare-values", "a.txt", "b.txt", "--inputs", self.inputs, "--tolerance", "2e-7")
        self.run_strata("compare-values", "a.txt", "b.txt", "--inputs", self.inputs, "--tolerance", "1e-8", code=1)
        report = json.loads(self.run_strata("compare-values", "a.txt", "b.txt", "--inputs", self.inputs, "--json", code=1))
        self.assertEqual(report["schema"], "strata.compare-values/1")
        self.assertEqual((report["compared"], report["different"], report["outputs"], report["different_outputs"]),
                         (4, 3, 2, 2))
        first = report["mismatches"][0]
        self.assertEqual((first["before"], first["after"], first["elements"], first["max_ulps"], first["index"]),
                         ("mul", "mul", 3, 1, 0))
        self.assertEqual((first["before_value"], first["after_value"]), (13.5 / 3, 4.500000476837158))

    def test_an_output_is_named_that_no_matched_node_computes(self):
        self.write("one.txt", """\
def forward(self, x: "f32[4][1]cpu"):
    exp: "f32[4][1]cpu" = torch.ops.aten.exp.default(x)
    return (exp,)
""")
        self.write("two.txt", """\
def forward(self, x: "f32[4][1]cpu"):
    sin: "f32[4][1]cpu" = torch.ops.aten.sin.default(x)
    cos: "f32[4][1]cpu" = torch.ops.aten.cos.default(sin)
    return (cos,)
""")
        text = self.run_strata("compare-values", "one.txt", "two.txt", code=1)
        self.assertRegex(text, r"^0 values compared, 0 differ; 1 of 1 outputs differ\n"
                               r"first difference: output cos, before exp: 4 elements, up to ")
        report = json.loads(self.run_strata("compare-values", "one.txt", "two.txt", "--json", code=1))
        self.assertEqual([(m["before"], m["after"]) for m in report["output_mismatches"]], [("exp", "cos")])

    def test_outputs_stand_for_each_other_by_place_only_where_there_are_equally_many(self):
        self.write("b.txt", GRAPH.format(factor="3.0").replace("return (neg, sum_1)", "return (sum_1,)"))
        self.assertEqual(self.run_strata("compare-values", "a.txt", "b.txt"),
                         "4 values compared, 0 differ; 0 of 1 outputs differ\n")

    def test_an_output_of_another_type_is_a_difference(self):
        self.write("b.txt", """\
def forward(self, x: "f32[4][1]cpu", y: "f32[4][1]cpu"):
    cat: "f32[8][1]cpu" = torch.ops.aten.cat.default([x, y])
    return (cat, cat)
""")
        text = self.run_strata("compare-values", "a.txt", "b.txt", code=1)
        self.assertIn("2 of 2 outputs differ", text)
        self.assertIn("first difference: output cat, before neg: is f32 [8], was f32 [4]\n", text)

    def test_graphs_without_anything_in_common_are_not_equal(self):
        self.write("one.txt", """\
def forward(self, x: "f32[4][1]cpu"):
    exp: "f32[4][1]cpu" = torch.ops.aten.exp.default(x)
    return (exp, exp)
""")
        self.write("two.txt", """\
def forward(self, n: "i64[][]cpu"):
    neg: "i64[][]cpu" = torch.ops.aten.neg.default(n)
    return (neg,)
""")
        self.assertEqual(self.run_strata("compare-values", "one.txt", "two.txt", code=2),
                         "strata: error: nothing to compare: one.txt and two.txt: no value of one stands for one of "
                         "the other; name two states of one graph\n")

    def test_what_a_graph_writes_is_compared(self):
        graph = """\
def forward(self, p: "f32[4][1]cpu", g: "f32[4][1]cpu"):
    {update}
    norm: "f32[][]cpu" = torch.ops.aten.linalg_vector_norm.default(g)
    return (norm,)
"""
        self.write("a.txt", graph.format(update='add_: "f32[4][1]cpu" = torch.ops.aten.add_.Tensor(p, g, alpha=-0.5)'))
        self.write("b.txt", graph.format(update='mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(g, 0.5)\n    '
                                                'sub_: "f32[4][1]cpu" = torch.ops.aten.sub_.Tensor(p, mul)'))
        self.assertEqual(self.run_strata("compare-values", "a.txt", "b.txt"),
                         "1 values compared, 0 differ; 0 of 1 outputs differ; 0 of 1 written inputs differ\n")
        self.write("c.txt", graph.format(update='mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(g, 0.25)\n    '
                                                'sub_: "f32[4][1]cpu" = torch.ops.aten.sub_.Tensor(p, mul)'))
        text = self.run_strata("compare-values", "a.txt", "c.txt", code=1)
        self.assertRegex(text, r"; 0 of 1 outputs differ; 1 of 1 written inputs differ\n"
                               r"first difference: written input p: 4 elements, ")
        self.run_strata("run", "a.txt", "--outputs", "o.safetensors")
        self.assertEqual(sorted(read_safetensors(self.path("o.safetensors"))), ["norm", "p"])
        self.write("d.txt", graph.format(update=""))
        text = self.run_strata("compare-values", "a.txt", "d.txt", code=1)
        self.assertIn("first difference: written input p: 4 elements, ", text)

    def test_types_that_few_operators_take_are_compared(self):
        graph = """\
def forward(self, x: "u16[4][1]cpu", y: "f8e5m2[4][1]cpu"):
    clone: "u16[4][1]cpu" = torch.ops.aten.clone.default(x)
    clone_1: "f8e5m2[4][1]cpu" = torch.ops.aten.clone.default(y)
    return (clone, clone_1)
"""
        self.write("u.txt", graph)
        self.assertEqual(self.run_strata("compare-values", "u.txt", "u.txt"),
                         "2 values compared, 0 differ; 0 of 2 outputs differ\n")

    def test_inputs_that_say_what_they_are_stand_for_each_other_by_that(self):
        graph = """\
graph step
  x = placeholder : f32[4][1]cpu {{+fqn='{0}.weight'}}
  y = placeholder : f32[4][1]cpu {{+fqn='{1}.weight'}}
  sub = aten.sub.Tensor(x, y) : f32[4][1]cpu
  output([sub])
"""
        self.write("a.txt", graph.format("a", "b"))
        self.write("b.txt", graph.format("b", "a"))
        self.assertIn("1 values compared, 1 differ", self.run_strata("compare-values", "a.txt", "b.txt", code=1))

    def test_inputs_that_cannot_be_made_are_told(self):
        self.write("n.txt", """\
def forward(self, n, x: "f32[4][1]cpu"):
    neg: "f32[4][1]cpu" = torch.ops.aten.neg.default(x)
    return (neg,)
""")
        self.assertEqual(self.run_strata("run", "n.txt", code=2),
                         "strata: error: graph n cannot be executed: input n: it is no tensor of known type, and only "
                         "tensors can be given\n")
        self.write("s.txt", """\
def forward(self, x: "f32[s0 + s1][1]cpu"):
    neg: "f32[s0 + s1][1]cpu" = torch.ops.aten.neg.default(x)
    return (neg,)
""")
        self.assertEqual(self.run_strata("run", "s.txt", code=2),
                         "strata: error: graph s cannot be executed: input x: sizes must be numbers, and nothing tells "
                         "what s0 is\n")

    def test_open_sizes_get_numbers(self):
        """As logs of dynamic shapes have them: integers beside the tensors, and arithmetic of them."""
        graph = """\
def forward(self, n: "Sym(s77)", x: "f32[s77, 8][8, 1]cpu"):
    mul: "f32[s77, 8][8, 1]cpu" = torch.ops.aten.mul.Tensor(x, {});  x = None
    size: "Sym(8*s77)" = n * 8
    view: "f32[8*s77][1]cpu" = torch.ops.aten.view.default(mul, [size]);  mul = size = None
    return (view, n)
"""
        self.write("two.txt", graph.format(2))
        self.write("three.txt", graph.format(3))
        self.assertEqual(self.run_strata("compare-values", "two.txt", "two.txt"),
                         "2 values compared, 0 differ; 0 of 1 outputs differ\n")
        self.assertIn("2 values compared, 2 differ", self.run_strata("compare-values", "two.txt", "three.txt", code=1))

    def test_a_graph_that_is_larger_than_memory_is_told(self):
        self.write("large.txt", """\
def forward(self, x: "f32[70368744177664][1]cpu"):
    neg: "f32[70368744177664][1]cpu" = torch.ops.aten.neg.default(x)
    return (neg,)
""")
        for command in (["run", "large.txt"], ["compare-values", "large.txt", "large.txt"]):
            self.assertEqual(self.run_strata(*command, code=2), f"strata: error: out of memory: strata {command[0]}: give it "
                             "less, or a machine with more\n")

    def test_what_cannot_be_executed_is_trouble(self):
        self.write("b.txt", GRAPH.format(factor="3.0").replace("aten.neg.default", "aten.no_such.default"))
        self.assertTrue(self.run_strata("compare-values", "a.txt", "b.txt", code=2).startswith(
            "strata: error: graph b cannot be executed: "))

    def test_passes_are_proven_one_by_one(self):
        config = os.path.join(ROOT, "configs", "demo_llama3.toml")
        command = ["train", config, "--set", "steps=1", "--trace", "t.strata", "--dump-inputs", "in.safetensors"]
        result = subprocess.run([self.strata, *command, "--prove"], cwd=self.folder.name, capture_output=True, text=True,
                                timeout=120, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"^proved: pass 1 canonicalize: graph step: \d\d\d values and 31 outputs are equal\n"
                         r"proved: pass 2 fuse: graph step: \d\d\d values and 31 outputs are equal\n"
                         r"proved: pass 2 fuse: graph optimizer: \d+ values, 1 outputs and \d+ written inputs are equal\n$")
        self.assertIn(", 0 differ; 0 of 31 outputs differ", self.run_strata(
            "compare-values", "t.strata#graph=step,pass=0:before", "t.strata#graph=step", "--inputs", "in.safetensors"))
        loss = self.run_strata("run", "t.strata#graph=step", "--inputs", "in.safetensors").splitlines()[0]
        self.assertIn(" mean 6.08985", loss)
        result = subprocess.run([self.strata, "opt", "t.strata#graph=step,pass=0:before", "--passes",
                                 "canonicalize,fuse{numerics=fast}", "--prove", "-o", "o.strata"], cwd=self.folder.name,
                                capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, "strata: error: pass fuse changes values: graph step: .*, was .*: of a pass that "
                         "may round otherwise, give --prove-tolerance\n$")
        # Sums in another order are many ULPs away where they cancel out.
        self.run_strata("opt", "t.strata#graph=step,pass=0:before", "--passes", "canonicalize,fuse{numerics=fast}", "-o",
                        "p.strata")
        sides = ("p.strata#pass=fuse:before", "p.strata#pass=fuse:after", "--inputs", "in.safetensors")
        self.run_strata("compare-values", *sides, "--ulps", "4", code=1)
        self.assertIn(" values compared, 0 differ; 0 of 31 outputs differ",
                      self.run_strata("compare-values", *sides, "--tolerance", "1e-5"))
        result = subprocess.run([self.strata, "opt", "t.strata#graph=step,pass=0:before", "--passes",
                                 "canonicalize,fuse{numerics=fast}", "--prove", "--prove-tolerance", "1e-5",
                                 "--prove-inputs", "in.safetensors", "-o", "q.strata"], cwd=self.folder.name,
                                capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(" outputs are equal within 1e-05 of the largest\n", result.stderr)

    def test_graphs_of_inductor_run_and_equal_themselves(self):
        self.write("dropout.txt", DROPOUT)
        done = self.run_strata("compare-values", "dropout.txt", "dropout.txt")
        self.assertIn("values compared, 0 differ; 0 of 1 outputs differ", done)

    def test_made_up_begins_of_bags_ascend(self):
        self.write("bags.txt", BAGS)
        for seed in "12345678":
            self.assertTrue(self.run_strata("run", "bags.txt", "--seed", seed).startswith("mean  [4, 2]  "))


if __name__ == "__main__":
    ValuesTest.strata = os.path.abspath(sys.argv.pop(1))
    unittest.main()
