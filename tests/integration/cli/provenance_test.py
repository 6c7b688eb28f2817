"""Traces whose ids and provenance records contradict the structure of their graphs: output of the commands.

    provenance_test.py STRATA TRACE_TOOL
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

# Pass 0 gives the ids of `b` and `c` to each other's nodes. Pass 1 makes `a` anew, and says that it was made
# from `d`, at the other end. Pass 2 does what it says.
TRACE = """\
=== graph step
  x = placeholder #1
  y = placeholder #2
  a = aten.sin.default(x) #3
  b = aten.cos.default(y) #4
  c = aten.tan.default(b) #5
  d = aten.exp.default(c) #6
  output([a, d]) #7
=== pass shuffle step
  x = placeholder #1
  y = placeholder #2
  a = aten.sin.default(x) #3
  b = aten.cos.default(y) #5
  c = aten.tan.default(b) #4
  d = aten.exp.default(c) #6
  output([a, d]) #7
=== pass renew step
provenance 9 replaced 6
  x = placeholder #1
  y = placeholder #2
  a = aten.sin.default(x) #9
  b = aten.cos.default(y) #5
  c = aten.tan.default(b) #4
  d = aten.exp.default(c) #6
  output([a, d]) #7
=== pass fold step
provenance 10 replaced 5 4
  x = placeholder #1
  y = placeholder #2
  a = aten.sin.default(x) #9
  t = fused.cos_tan.default(y) #10
  d = aten.exp.default(t) #6
  output([a, d]) #7
"""


class ProvenanceCase(unittest.TestCase):
    text = ""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        done = subprocess.run([sys.argv[2], "t.strata"], input=self.text, text=True, cwd=self.folder.name, check=False,
                              capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def run_strata(self, *arguments, code):
        done = subprocess.run([sys.argv[1], *arguments], text=True, capture_output=True, cwd=self.folder.name,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        return done.stdout


class ProvenanceTest(ProvenanceCase):
    text = TRACE

    def test_check(self):
        self.assertEqual(self.run_strata("check", "t.strata", code=0), "t.strata: sound\n")
        self.assertEqual(self.run_strata("check", "t.strata", "--provenance", code=1), """\
t.strata#run=1,graph=step,pass=0: pass 'shuffle': b: by id it is c, by structure b, which by id was c
t.strata#run=1,graph=step,pass=0: pass 'shuffle': c: by id it is b, by structure c, which by id was b
t.strata#run=1,graph=step,pass=1: pass 'renew': a: by id it is gone, by structure it is a, which says that it was made from others
t.strata: 3 findings
""")

    def test_diff(self):
        text = self.run_strata("diff", "t.strata#pass=0:before", "t.strata#pass=0:after", code=1)
        self.assertIn("""
contradictions
  ! b: by id it is c, by structure b, which by id was c
  ! c: by id it is b, by structure c, which by id was b
""", text)
        report = json.loads(self.run_strata("diff", "t.strata#pass=0:before", "t.strata#pass=0:after", "--format",
                                            "json", code=1))
        self.assertEqual(report["contradictions"], [
            {"before": "b", "by_id": "c", "by_structure": "b", "origin": "c", "confidence": 0.999},
            {"before": "c", "by_id": "b", "by_structure": "c", "origin": "b", "confidence": 0.999}])
        report = json.loads(self.run_strata("diff", "t.strata#pass=1:before", "t.strata#pass=1:after", "--format",
                                            "json", code=1))
        self.assertEqual(report["contradictions"], [
            {"before": "a", "by_id": None, "by_structure": "a", "origin": None, "confidence": 0.999}])

    def test_what_agrees_is_not_told(self):
        self.assertNotIn("contradictions", self.run_strata("diff", "t.strata#pass=2:before", "t.strata#pass=2:after",
                                                           code=1))
        report = json.loads(self.run_strata("diff", "t.strata#pass=2:before", "t.strata#pass=2:after", "--format",
                                            "json", code=1))
        self.assertNotIn("contradictions", report)

    def test_blame(self):
        self.assertEqual(self.run_strata("blame", "t.strata#pass=0:before", "b", code=0), """\
b  in graph 'step'
  -                given
  pass 0  shuffle  renamed: b → c, changed target: aten.cos.default → aten.tan.default, operands[0]: y → b
  pass 2  fold     deleted: replaced by t
  ! pass 0: by id it is c, by structure b, which by id was c
""")
        self.assertEqual(self.run_strata("blame", "t.strata#pass=0:before", "a", code=0), """\
a  in graph 'step'
  -              given
  pass 1  renew  deleted
  ! pass 1: by id it is gone, by structure it is a, which says that it was made from others
""")
        report = json.loads(self.run_strata("blame", "t.strata#pass=0:before", "b", "--json", code=0))
        self.assertEqual(report["contradictions"], [
            {"pass": 0, "what": "by id it is c, by structure b, which by id was c"}])


# Graphs of one trace: ids say which node came from which.
CUT = """\
=== graph joint
  x = placeholder #1
  g = placeholder #2
  a = aten.sin.default(x) #3
  b = aten.exp.default(a) #4
  c = aten.mul.Tensor(g, b) #5
  output([b, c]) #6
=== graph forward
  x = placeholder #1
  s = aten.sin.default(x) #3
  b = aten.exp.default(s) #4
  output(b) #7
=== graph backward
  g = placeholder #2
  b = placeholder #8
  c = aten.mul.Tensor(g, b) #5
  output(c) #9
=== pass double backward
provenance 10 cloned 5
  g = placeholder #2
  b = placeholder #8
  c = aten.mul.Tensor(g, b) #5
  d = aten.mul.Tensor(g, b) #10
  output([c, d]) #9
"""


class CutTest(ProvenanceCase):
    text = CUT

    def test_blame_goes_on_in_graphs_that_were_cut_out(self):
        self.assertEqual(self.run_strata("blame", "t.strata", "a", code=0), """\
a  in graph 'joint'
  joint    -  given
  forward  -  carried over from 'joint', renamed: a → s
""")
        self.assertEqual(self.run_strata("blame", "t.strata", "d", code=0), """\
d  in graph 'backward'
  pass 0  double  born: copy of c
""")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
