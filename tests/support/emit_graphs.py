"""Graphs that tests of `strata emit` run in both languages."""

# Running statistics, which a norm in training mode writes to.
NORM = """\
graph g
  x = placeholder : f32[4, 2][2, 1]cpu
  mean = placeholder : f32[2][1]cpu
  var = placeholder : f32[2][1]cpu
  (y, _, _) = aten.native_batch_norm.default(x, None, None, mean, var, True, 0.1, 1e-05) as n : (f32[4, 2][2, 1]cpu, f32[2][1]cpu, f32[2][1]cpu)
  output([y])
"""

# Random numbers, of which one depends on those before.
DRAWS = """\
graph g
  x = placeholder : f32[64][1]cpu
  (kept, mask) = aten.native_dropout.default(x, 0.5, True) as d : (f32[64][1]cpu, b8[64][1]cpu)
  r = aten.randn.default([64]) : f32[64][1]cpu
  y = aten.add.Tensor(kept, r) : f32[64][1]cpu
  output([y, mask])
"""
