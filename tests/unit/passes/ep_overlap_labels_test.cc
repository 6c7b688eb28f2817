#include <functional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/rewriter.h"
#include "passes/expert/eager_chunks.h"
#include "passes/expert/ep_overlap.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/unit/passes/scheduled_chunks.h"

namespace strata {
namespace {

using testing::ErrorOf;
using testing::MessageOf;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::Program;
using testing::Scheduled;

/// Two exchanges per chunk, with a label for each that may differ.
struct Exchange {
  std::string first = "dispatch", second = "combine";
  std::string compute_label, second_op = "all_to_all_single";
  bool wait_first = false;
};

std::string TwoExchanges(const std::function<void(int, Exchange&)>& change,
                         bool is_backward = false) {
  Program program("layers.0.moe", is_backward);
  for (const int chunk : {0, 1}) {
    Exchange exchange;
    change(chunk, exchange);
    program.StartChunk(chunk);
    program.Compute("pre", {"x"});
    program.Launch("L", "pre", exchange.first);
    program.Wait("W", "L");
    program.Compute("comp", {"W"},
                    exchange.compute_label.empty()
                        ? ""
                        : fmt::format(" +EP_token_exchange='{}'", exchange.compute_label));
    if (exchange.second_op == "all_reduce") {
      program.Add("M", "_c10d_functional.all_reduce.default", {"comp"}, "", ", 'sum', 'ep'");
    } else {
      program.Launch("M", "comp", exchange.second);
    }
    program.Wait("V", "M");
    program.Compute("tail", {"V"});
  }
  return program.Text("tail0, tail1");
}

TEST_CASE("SC-01: exchanges of the first chunk to run come first") {
  for (const bool is_backward : {false, true}) {
    const Scheduled scheduled(TwoExchanges([](int, Exchange&) {}, is_backward), "layers.*.moe",
                              true);
    const std::string first = is_backward ? "1" : "0", second = is_backward ? "0" : "1";
    const auto at = [&](const std::string& name) { return scheduled.Position(name); };
    CHECK_LT(at("L" + first), at("L" + second));
    CHECK_LT(at("L" + second), at("W" + first));
    CHECK_LT(at("M" + first), at("M" + second));
    CHECK_LT(at("M" + first), at("W" + second));
  }
}

TEST_CASE("SC-10: exchanges without labels are none") {
  CHECK_EQ(ErrorOf(TwoExchanges([](int, Exchange& e) { e.first = e.second = ""; })),
           "did not find any chunked EP all-to-all regions: 'layers.*.moe': run ep-chunk before, "
           "on a graph that exchanges tokens");
}

TEST_CASE("exchanges of data-dependent sizes are labelled, exchanges of counts are not") {
  constexpr std::string_view kBody =
      "+chunk_id='{0}' +chunked_region_fqn='layers.0.moe' +chunked_region_role='body'";
  std::string text =
      "symbol u0 unbacked\nsymbol u1 unbacked\ngraph g\n"
      "  x = placeholder : f32[4][1]cpu\n";
  for (const char* phase : {"forward", "backward"}) {
    for (const int chunk : {0, 1}) {
      const std::string end =
          fmt::format(" {{{} module=layers.0.moe {}}}\n", phase, fmt::format(kBody, chunk));
      const std::string id = fmt::format("{}{}", phase[0], chunk);
      const std::string all_to_all = " = _c10d_functional.all_to_all_single.default(";
      const std::string wait = " = _c10d_functional.wait_tensor.default(";
      text += "  c" + id + all_to_all + "x, [], [], 'ep') : f32[4][1]cpu" + end;
      text += "  n" + id + fmt::format(" = aten.item.default(c{}) : Sym(u{})", id, chunk) + end;
      text += "  d" + id + all_to_all +
              fmt::format("x, [n{0}], [n{0}], 'ep') : f32[u{1}][1]cpu", id, chunk) + end;
      text += "  w" + id + wait + fmt::format("d{}) : f32[u{}][1]cpu", id, chunk) + end;
      text += "  e" + id + all_to_all +
              fmt::format("w{0}, [n{0}], [n{0}], 'ep') : f32[4][1]cpu", id) + end;
      text += "  v" + id + wait + "e" + id + ") : f32[4][1]cpu" + end;
    }
  }
  const auto module = testing::ParseOrDie(text + "  output([vf0, vf1, vb0, vb1])\n");
  CHECK_EQ(OrDie(EpOverlap().Run(*module)), Changed::kYes);
  const Graph& graph = *module->FindGraph("g");
  const auto label = [&](std::string_view name) {
    return graph.attribute(NodeNamed(graph, name), "EP_token_exchange");
  };
  CHECK_EQ(label("cf0"), "");
  CHECK_EQ(label("df0"), "dispatch");
  CHECK_EQ(label("ef1"), "combine");
  CHECK_EQ(label("db0"), "combine");
  CHECK_EQ(label("eb1"), "dispatch");
}

TEST_CASE("SC-11, SC-12, SC-14: labels must be those of exchanges, and agree") {
  CHECK_EQ(ErrorOf(TwoExchanges([](int, Exchange& e) { e.compute_label = "dispatch"; })),
           "a non-marker node is labelled as a token exchange: graph g: layers.0.moe, forward: "
           "comp0 (aten.neg.default)");
  CHECK_EQ(ErrorOf(TwoExchanges(
               [](int chunk, Exchange& e) { e.second = chunk == 0 ? "combine" : "dispatch"; })),
           "chunks must have matching token-exchange labels: graph g: layers.0.moe, forward: chunk "
           "1 differs from chunk 0");
  CHECK_EQ(ErrorOf(TwoExchanges([](int chunk, Exchange& e) {
             if (chunk == 1) e.second_op = "all_reduce";
           })),
           "chunks must have matching EP all-to-all counts: graph g: layers.0.moe, forward: 2 and "
           "1");
}

/// A chunk whose exchange is made by lowering, which says nothing of chunks.
std::string UnlabelledExchanges() {
  std::string text = "\n  x = placeholder : f32[4][1]cpu\n  w = placeholder : f32[4][1]cpu\n";
  for (const int chunk : {0, 1}) {
    const auto add = [&](std::string_view name, std::string_view call, bool has_label) {
      text += fmt::format("  {}{} = {} : f32[4][1]cpu {{forward module=layers.0.moe", name, chunk,
                          call);
      if (has_label) {
        text += fmt::format(
            " +chunk_id='{}' +chunked_region_fqn='layers.0.moe' +chunked_region_role='body'",
            chunk);
      }
      text += "}\n";
    };
    add("router", "aten.neg.default(x)", true);
    add("weight", "aten.abs.default(w)", false);
    add("sent", fmt::format("aten.sin.default(router{})", chunk), false);
    add("L", fmt::format("_c10d_functional.all_to_all_single.default(sent{}, [], [], 'ep')", chunk),
        false);
    add("W", fmt::format("_c10d_functional.wait_tensor.default(L{})", chunk), false);
    add("experts", fmt::format("aten.mul.Tensor(W{0}, weight{0})", chunk), true);
    add("after", fmt::format("aten.cos.default(experts{})", chunk), false);
  }
  return text + "  both = aten.add.Tensor(after0, after1) : f32[4][1]cpu {forward}\n" +
         "  output([both])\n";
}

TEST_CASE("what lowering makes within a chunk is of the chunk") {
  auto module = ParseBody(UnlabelledExchanges());
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(OrDie(LabelChunks().Run(*module)), Changed::kYes);
  const auto chunk = [&](const std::string& name) {
    return graph.attribute(NodeNamed(graph, name), "chunk_id");
  };
  for (const std::string number : {"0", "1"}) {
    for (const std::string name : {"router", "sent", "L", "W", "experts"})
      CHECK_EQ(chunk(name + number), number);
    CHECK_EQ(chunk("weight" + number), "");
    CHECK_EQ(chunk("after" + number), "");
  }
  CHECK_EQ(chunk("both"), "");
  CHECK_EQ(OrDie(LabelChunks().Run(*module)), Changed::kNo);
}

TEST_CASE("SC-13: a wait stands after its launch") {
  auto module = ParseBody(TwoExchanges([](int, Exchange&) {}));
  Graph& graph = *module->FindGraph("g");
  Rewriter(graph).MoveBefore(NodeNamed(graph, "W1"), NodeNamed(graph, "L1"));
  EpOverlap::Options options;
  options.pair_first_token_exchange = true;
  CHECK_EQ(MessageOf(EpOverlap(options).Run(*module)),
           "expected the wait to appear after its launch: graph g: layers.0.moe, forward: W1 waits "
           "for L1");
}

TEST_CASE("SC-15: three exchanges in backward") {
  Program program("layers.0.moe", true);
  for (const int chunk : {0, 1}) {
    program.StartChunk(chunk);
    std::string last = "x";
    int i = 0;
    for (const std::string label : {"combine", "dispatch", "combine"}) {
      const std::string number = fmt::format("{}_", i++);
      program.Launch("L" + number, last, label);
      program.Wait("W" + number, "L" + number);
      program.Compute("C" + number, {"W" + number});
      last = "C" + number;
    }
  }
  const Scheduled scheduled(program.Text("C2_0, C2_1"), "layers.*.moe", true);
  for (int i = 0; i < 3; ++i) {
    const int first = scheduled.Position(fmt::format("L{}_1", i));
    const int second = scheduled.Position(fmt::format("L{}_0", i));
    CHECK_LT(first, second);
    if (i < 2) CHECK_LT(second, scheduled.Position(fmt::format("L{}_1", i + 1)));
  }
}

}  // namespace
}  // namespace strata
