#include "passes/expert/ep_overlap.h"

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/verify.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/unit/passes/scheduled_chunks.h"

namespace strata {
namespace {

using testing::ErrorOf;
using testing::MoeForward;
using testing::NodeNamed;
using testing::ParseBody;
using testing::Program;
using testing::Scheduled;

TEST_CASE("SC-02: experts in forward: both dispatches fly while shared experts run") {
  const Scheduled scheduled(MoeForward(), "layers.*.moe", true);
  CHECK_EQ(scheduled.Order(),
           "router0 count0 sync0 router1 count1 sync1 dispatch0 dispatch1 shared0 shared1 "
           "dispatch_wait0 gmm0 combine0 dispatch_wait1 gmm1 combine1 combine_wait0 combine_wait1");
  const Graph& graph = scheduled.graph;
  const NodeId wait = NodeNamed(graph, "combine_wait1");
  CHECK_EQ(graph.attribute(wait, "EP_token_exchange_wait"), "combine");
  CHECK_EQ(graph.attribute(NodeNamed(graph, "dispatch0"), "EP_token_exchange"), "dispatch");
}

TEST_CASE("SC-03: experts in backward, last chunk first") {
  Program program("layers.0.moe", true);
  for (const int chunk : {0, 1}) {
    program.StartChunk(chunk);
    program.Launch("combine", "x", "combine");
    program.Compute("remat_gmm", {"x"});
    program.Wait("combine_wait", "combine");
    program.Compute("input_grad", {"combine_wait"});
    program.Launch("dispatch", "input_grad", "dispatch");
    program.Compute("wgrad", {"dispatch"});
    program.Wait("dispatch_wait", "dispatch");
  }
  const Scheduled scheduled(
      program.Text("dispatch_wait1, dispatch_wait0, wgrad0, wgrad1, remat_gmm0, remat_gmm1"),
      "layers.*.moe", true);
  CHECK_EQ(scheduled.Order(),
           "combine1 combine0 remat_gmm1 remat_gmm0 combine_wait1 input_grad1 dispatch1 "
           "combine_wait0 input_grad0 dispatch0 wgrad1 wgrad0 dispatch_wait1 dispatch_wait0");
}

TEST_CASE("SC-04: whole layers in forward: attention of one chunk hides the other's dispatch") {
  Program program("layers.0");
  for (const int chunk : {0, 1}) {
    program.StartChunk(chunk);
    program.Compute("dense", {"x"});
    program.Compute("router", {"dense"});
    program.Launch("count", "router");
    program.Compute("sync", {"count"});
    program.Launch("dispatch", "sync", "dispatch");
    program.Wait("dispatch_wait", "dispatch");
    program.Compute("gmm", {"dispatch_wait"});
    program.Launch("combine", "gmm", "combine");
    program.Wait("combine_wait", "combine");
  }
  const Scheduled scheduled(program.Text("combine_wait0, combine_wait1"), "layers.*", false);
  CHECK_EQ(scheduled.Order(),
           "dense0 router0 count0 sync0 dispatch0 dense1 router1 count1 sync1 dispatch1 "
           "dispatch_wait0 gmm0 combine0 dispatch_wait1 gmm1 combine1 combine_wait0 combine_wait1");
}

TEST_CASE("SC-05: whole layers in backward") {
  Program program("layers.0", true);
  for (const int chunk : {0, 1}) {
    program.StartChunk(chunk);
    program.Compute("remat", {"x"});
    program.Launch("combine", "remat", "combine");
    program.Wait("combine_wait", "combine");
    program.Compute("input_grad", {"combine_wait"});
    program.Launch("dispatch", "input_grad", "dispatch");
    program.Wait("dispatch_wait", "dispatch");
  }
  const Scheduled scheduled(program.Text("dispatch_wait1, dispatch_wait0"), "layers.*", false);
  CHECK_EQ(scheduled.Order(),
           "remat1 combine1 remat0 combine0 combine_wait1 input_grad1 dispatch1 combine_wait0 "
           "input_grad0 dispatch0 dispatch_wait1 dispatch_wait0");
}

std::string CountSync(const std::string& root, int num_copies, bool to_host = true) {
  Program program(root);
  for (const int chunk : {0, 1}) {
    program.StartChunk(chunk);
    program.Compute("router", {"x"});
    program.Launch("count", "router");
    program.Copy("copyA", "count", to_host);
    program.Compute("itemA", {"copyA"});
    program.Compute("neg", {"count"});
    if (num_copies == 2) {
      program.Copy("copyB", "neg", to_host);
    } else {
      program.Compute("copyB", {"neg"});
    }
    program.Compute("itemB", {"copyB"});
    program.Compute("add", {"itemA", "itemB"});
    program.Launch("dispatch", "add", "dispatch");
    program.Wait("wait", "dispatch");
  }
  return program.Text("wait0, wait1");
}

TEST_CASE("SC-06: the host waits for the counts of both chunks once") {
  const Scheduled scheduled(CountSync("layers.0.moe", 2), "layers.*.moe", true);
  CHECK_EQ(scheduled.Order(),
           "router0 count0 neg0 router1 count1 neg1 copyA0 copyB0 copyA1 copyB1 itemA0 itemB0 add0 "
           "itemA1 itemB1 add1 dispatch0 dispatch1 wait0 wait1");
  CHECK_EQ(scheduled.NonBlocking(), "copyA0 copyB0 copyA1");
}

TEST_CASE("SC-07: the host waits for the counts of each chunk once") {
  const Scheduled scheduled(CountSync("layers.0", 2), "layers.*", false);
  CHECK_EQ(scheduled.Order(),
           "router0 count0 neg0 copyA0 copyB0 itemA0 itemB0 add0 dispatch0 router1 count1 neg1 "
           "copyA1 copyB1 itemA1 itemB1 add1 dispatch1 wait0 wait1");
  CHECK_EQ(scheduled.NonBlocking(), "copyA0 copyA1");
}

TEST_CASE("SC-08, SC-09: copies of counts come in pairs and go to the host") {
  CHECK_EQ(ErrorOf(CountSync("layers.0.moe", 1)),
           "expected exactly two token-count sync copies: graph g: layers.0.moe, forward: chunk 0 "
           "has 1");
  CHECK_EQ(ErrorOf(CountSync("layers.0.moe", 2, false)),
           "copies of token counts must have CPU _to_copy destinations: graph g: layers.0.moe, "
           "forward: copyA0");
}

TEST_CASE("SC-16: what prepares an exchange runs before the first wait, also outside of chunks") {
  for (const bool pair_first : {false, true}) {
    Program program;
    for (const int chunk : {0, 1}) {
      program.StartChunk(chunk);
      const std::string setup = fmt::format("setup{}", chunk);
      program.Free(setup, {"x"});
      program.Launch("launch", "!" + setup, "dispatch");
      program.Wait("wait", "launch");
      program.Compute("tail", {"wait"});
    }
    const Scheduled scheduled(program.Text("tail0, tail1"), "layers.*.moe", pair_first);
    CHECK_LT(scheduled.Position("setup1"), scheduled.Position("wait0"));
    CHECK_LT(scheduled.Position("launch1"), scheduled.Position("wait0"));
  }
}

TEST_CASE("SC-17: what is of no chunk runs as late as data allows") {
  Program program;
  for (const int chunk : {0, 1}) {
    program.StartChunk(chunk);
    const std::string number = std::to_string(chunk);
    program.Compute("hidden", {"x"});
    program.Free("clone" + number, {"hidden" + number});
    program.Launch("launch", "!clone" + number, "dispatch");
    program.Wait("wait", "launch");
  }
  const Scheduled scheduled(program.Text("wait0, wait1"), "layers.*.moe", true);
  CHECK_EQ(scheduled.Order(), "hidden0 clone0 hidden1 launch0 clone1 launch1 wait0 wait1");
}

TEST_CASE("SC-18: two regions keep what lies between them") {
  Program program;
  for (const std::string root : {"layers.0.moe", "layers.1.moe"}) {
    program.SetRoot(root);
    const std::string at = root.substr(7, 1);
    for (const int chunk : {0, 1}) {
      program.StartChunk(chunk);
      program.Compute("start" + at + "_", {at == "0" ? "x" : "!boundary"});
      program.Launch("launch" + at + "_", "start" + at + "_", "dispatch");
      program.Wait("wait" + at + "_", "launch" + at + "_");
      program.Compute("tail" + at + "_", {"wait" + at + "_"});
    }
    if (at == "0") program.Free("boundary", {"tail0_0", "tail0_1"});
  }
  const Scheduled scheduled(program.Text("tail1_0, tail1_1"), "layers.*.moe", true);
  CHECK_EQ(
      scheduled.Order(),
      "start0_0 start0_1 launch0_0 launch0_1 wait0_0 tail0_0 wait0_1 tail0_1 boundary start1_0 "
      "start1_1 launch1_0 launch1_1 wait1_0 tail1_0 wait1_1 tail1_1");
}

TEST_CASE("SC-19: what one chunk recomputes runs before its reader, and delays no exchange") {
  Program program("layers.0.moe", true);
  for (const int chunk : {0, 1}) {
    program.StartChunk(chunk);
    if (chunk == 1) program.Compute("remat", {"x"}, " +recomputed_from='router'");
    program.Compute("grad", {chunk == 1 ? "remat" : "x"});
    program.Launch("dispatch", "grad", "dispatch");
    program.Wait("wait", "dispatch");
    program.Compute("tail", {"wait"});
  }
  const Scheduled scheduled(program.Text("tail0, tail1"), "layers.*.moe", true);
  CHECK_LT(scheduled.Position("remat1"), scheduled.Position("grad1"));
  CHECK_LT(scheduled.Position("dispatch1"), scheduled.Position("wait0"));
  CHECK_LT(scheduled.Position("dispatch0"), scheduled.Position("wait1"));
}

TEST_CASE("SC-20: other collectives are no filler") {
  Program program;
  for (const int chunk : {0, 1}) {
    program.StartChunk(chunk);
    program.Compute("pre", {"x"});
    program.Launch("dispatch", "pre", "dispatch");
    program.Wait("dwait", "dispatch");
    program.Add("allred", "_c10d_functional.all_reduce.default", {"x"}, "", ", 'sum', 'tp'");
    program.Compute("cpre", {"dwait", "allred"});
    program.Launch("combine", "cpre", "combine");
    program.Wait("cwait", "combine");
  }
  CHECK_EQ(Scheduled(program.Text("cwait0, cwait1"), "layers.*.moe", true).Order(),
           "pre0 pre1 dispatch0 dispatch1 dwait0 allred0 cpre0 combine0 dwait1 allred1 cpre1 "
           "combine1 cwait0 cwait1");
}

TEST_CASE("SC-21: what a later exchange needs runs while an earlier one is in flight") {
  Program program("layers.0.moe", true);
  for (const int chunk : {0, 1}) {
    program.StartChunk(chunk);
    program.Compute("combine_pre", {"x"});
    program.Launch("combine", "combine_pre", "combine");
    program.Compute("prefix", {"x"});
    program.Wait("combine_wait", "combine");
    program.Compute("disp_pre", {"prefix", "combine_wait"});
    program.Launch("dispatch", "disp_pre", "dispatch");
    program.Wait("dispatch_wait", "dispatch");
    program.Compute("tail", {"dispatch_wait"});
  }
  const Scheduled scheduled(program.Text("tail1, tail0"), "layers.*.moe", true);
  CHECK_EQ(scheduled.Order(),
           "combine_pre1 combine_pre0 combine1 combine0 prefix1 prefix0 combine_wait1 disp_pre1 "
           "dispatch1 combine_wait0 disp_pre0 dispatch0 dispatch_wait1 tail1 dispatch_wait0 tail0");
  CHECK_EQ(scheduled.graph.attribute(NodeNamed(scheduled.graph, "combine_wait1"),
                                     "EP_token_exchange_wait"),
           "combine");
}

TEST_CASE("SC-22: every order is a permutation that respects data") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return random() % n; };
    Program program("layers.0.moe", seed % 2 == 1);
    const size_t num_nodes = 6 + below(10);
    std::vector<std::vector<size_t>> operands;
    for (size_t i = 0; i < num_nodes; ++i)
      operands.push_back({below(i + 1), below(i + 1)});
    for (const int chunk : {0, 1}) {
      program.StartChunk(chunk);
      const auto name = [](size_t i) { return i == 0 ? std::string("x") : fmt::format("n{}_", i); };
      for (size_t i = 1; i <= num_nodes; ++i) {
        if (i % 4 == 0) {
          const std::string launch = fmt::format("l{}_", i);
          program.Launch(launch, name(operands[i - 1][0]), i % 8 == 0 ? "combine" : "dispatch");
          program.Wait(name(i), launch);
        } else {
          program.Compute(name(i), {name(operands[i - 1][0]), name(operands[i - 1][1])});
        }
      }
    }
    const std::string last = fmt::format("n{}_", num_nodes);
    const std::string text = program.Text(last + "0, " + last + "1");
    const auto before = ParseBody(text);
    for (const std::string_view topology : {"", "h100"}) {
      const Scheduled scheduled(text, "layers.*.moe", seed % 3 == 0, topology);
      CHECK_EQ(scheduled.graph.num_nodes(), before->FindGraph("g")->num_nodes());
      CHECK_OK(Verify(*scheduled.module));  // definitions come before uses
    }
  }
}

TEST_CASE("writes stay between the reads around them") {
  Program program;
  for (const int chunk : {0, 1}) {
    program.StartChunk(chunk);
    program.Compute("buf", {"x"});
    program.Compute("read", {"buf"});
    program.Add("write", "aten.add_.Tensor", {"buf", "read"}, "");
    program.Compute("again", {"buf"});
    program.Launch("dispatch", "again", "dispatch");
    program.Wait("wait", "dispatch");
  }
  const Scheduled scheduled(program.Text("wait0, wait1"), "layers.*.moe", true);
  for (const std::string chunk : {"0", "1"}) {
    CHECK_LT(scheduled.Position("read" + chunk), scheduled.Position("write" + chunk));
    CHECK_LT(scheduled.Position("write" + chunk), scheduled.Position("again" + chunk));
  }
}

}  // namespace
}  // namespace strata
