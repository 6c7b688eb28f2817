#include "cli/render/memory/memory_sums.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/render/memory/memory_table.h"
#include "passes/memory/activations.h"
#include "scene/memory.h"
#include "tests/support/graphs.h"

namespace strata::cli {
namespace {

// Bytes: x and w 16, a 16, b 8, g 16. Backward reads b, the view v of a, and the view of an input.
constexpr std::string_view kStep = R"(graph step
  x = placeholder : f32[4][1]cpu
  w = placeholder : f32[4][1]cpu {module=layers.0.wq}
  t = aten.view.default(w, [2, 2]) : f32[2, 2][2, 1]cpu ~w {forward module=layers.0.wq loc=('m.py', 3, None, None)}
  a = aten.mul.Tensor(x, w) : f32[4][1]cpu {forward module=layers.0.wq loc=('m.py', 3, None, None)}
  v = aten.view.default(a, [2, 2]) : f32[2, 2][2, 1]cpu ~a {forward module=layers.0 loc=('m.py', 4, None, None)}
  b = aten.sum.dim_IntList(v, [0]) : f32[2][1]cpu {forward module=layers.0 loc=('m.py', 4, None, None)}
  g = aten.mul.Tensor(v, t) : f32[2, 2][2, 1]cpu {backward module=layers.0.wq loc=('m.py', 3, None, None)}
  h = aten.mul.Tensor(g, b) : f32[2, 2][2, 1]cpu {backward module=layers.0 loc=('m.py', 4, None, None)}
  output([h])
)";

std::vector<std::string> Rows(const Graph& graph, SumOver over) {
  std::vector<std::string> rows;
  for (const MemorySum& sum : SumMemory(graph, over))
    rows.push_back(sum.key + " " + std::to_string(sum.alive_bytes) + " " +
                   std::to_string(sum.saved_bytes));
  return rows;
}

TEST_CASE("memory is added up by module and by line, each storage once and where it was made") {
  const auto module = testing::ParseOrDie(kStep);
  const Graph& graph = module->graph({0});
  // At g: x, w, a, b, g. Inputs live anyway, so that t saves nothing.
  CHECK(ProfileMemory(graph).peak == 72);
  CHECK(SavedBytes(graph, ListActivations(graph)) == 24);
  CHECK(Rows(graph, SumOver::kModule) ==
        std::vector<std::string>{"layers.0.wq 48 16", " 16 0", "layers.0 8 8"});
  CHECK(Rows(graph, SumOver::kLine) ==
        std::vector<std::string>{"m.py:3 32 16", " 32 0", "m.py:4 8 8"});
}

TEST_CASE("changes of memory name what differs, the largest change first") {
  const auto before = testing::ParseOrDie(kStep);
  const auto after = testing::ParseOrDie(R"(graph step
  x = placeholder : f32[4][1]cpu
  w = placeholder : f32[4][1]cpu {module=layers.0.wq}
  a = aten.mul.Tensor(x, w) : f32[4][1]cpu {forward module=layers.0.wq loc=('m.py', 3, None, None)}
  b = aten.sum.dim_IntList(a, [0]) : f32[][]cpu {forward module=layers.0 loc=('m.py', 4, None, None)}
  g = aten.neg.default(b) : f32[][]cpu {backward module=layers.0.wq loc=('m.py', 3, None, None)}
  output([g])
)");
  const std::string text = MemorySumChangesText(before->graph({0}), after->graph({0}), 1);
  CHECK(text == R"(
changes by module
  at the peak       saved
  48 B → 32 B  16 B → 0 B  layers.0.wq
  … 1 more

changes by line of code
  at the peak       saved
  32 B → 16 B  16 B → 0 B  m.py:3
  … 1 more
)");
  CHECK(MemorySumChangesText(before->graph({0}), before->graph({0}), 0).empty());
}

}  // namespace
}  // namespace strata::cli
