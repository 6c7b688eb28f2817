#include "passes/expert/ep_overlap.h"

#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/rewriter.h"
#include "ir/verify.h"
#include "passes/expert/execution_order.h"
#include "passes/simulate/timeline.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;

/// Writes a graph whose nodes belong to chunks.
class Program {
 public:
  explicit Program(std::string root = "layers.0.moe", bool is_backward = false)
      : root_(std::move(root)), is_backward_(is_backward) {
    text_ = "\n  x = placeholder : f32[4][1]cpu\n";
  }

  /// Nodes of the body of `chunk`, named with its number.
  void StartChunk(int chunk) { chunk_ = chunk; }
  void SetRoot(std::string root) { root_ = std::move(root); }

  void Compute(std::string_view name, const std::vector<std::string>& operands,
               std::string_view more = "") {
    if (operands.size() == 2) {
      Add(name, "aten.add.Tensor", operands, more);
    } else {
      Add(name, "aten.neg.default", operands, more);
    }
  }
  void Launch(std::string_view name, const std::string& operand, std::string_view label = "") {
    const std::string more = label.empty() ? "" : fmt::format(" +EP_token_exchange='{}'", label);
    Add(name, "_c10d_functional.all_to_all_single.default", {operand}, more, ", [], [], 'ep'");
  }
  void Wait(std::string_view name, const std::string& operand) {
    Add(name, "_c10d_functional.wait_tensor.default", {operand}, "");
  }
  void Copy(std::string_view name, const std::string& operand, bool to_host = true) {
    Add(name, "aten._to_copy.default", {operand}, " +EP_token_count_sync='dispatch'",
        to_host ? ", device=device('cpu')" : ", device=device('cuda:0')");
  }
  void Add(std::string_view name, std::string_view op, const std::vector<std::string>& operands,
           std::string_view more, std::string_view rest = "") {
    text_ += fmt::format(
        "  {}{} = {}({}{}) : f32[4][1]cpu {{{} module={} +chunk_id='{}' "
        "+chunked_region_fqn='{}' +chunked_region_role='body'{}}}\n",
        name, chunk_, op, fmt::join(Named(operands), ", "), rest,
        is_backward_ ? "backward" : "forward", root_, chunk_, root_, more);
  }
  /// A node of no chunk.
  void Free(const std::string& name, const std::vector<std::string>& operands) {
    text_ += fmt::format("  {} = aten.{}.default({}) : f32[4][1]cpu {{forward}}\n", name,
                         operands.size() == 2 ? "maximum" : "clone", fmt::join(operands, ", "));
  }
  std::string Text(const std::string& outputs) const {
    return text_ + "  output([" + outputs + "])\n";
  }

 private:
  /// `x` is the input; `!name` is a node of no chunk; others are of this chunk.
  std::vector<std::string> Named(const std::vector<std::string>& operands) const {
    std::vector<std::string> names;
    for (const std::string& operand : operands) {
      if (operand == "x")
        names.push_back("x");
      else if (operand[0] == '!')
        names.push_back(operand.substr(1));
      else
        names.push_back(fmt::format("{}{}", operand, chunk_));
    }
    return names;
  }

  std::string root_;
  bool is_backward_;
  int chunk_ = 0;
  std::string text_;
};

struct Scheduled {
  std::unique_ptr<Module> module;
  const Graph& graph;

  Scheduled(const std::string& text, std::string_view pattern, bool pair_first,
            std::string_view topology = "")
      : module(ParseBody(text)), graph(*module->FindGraph("g")) {
    EpOverlap::Options options;
    options.module_fqn = pattern;
    options.pair_first_token_exchange = pair_first;
    options.topology = topology;
    CHECK_EQ(OrDie(EpOverlap(options).Run(*module)), Changed::kYes);
    CHECK_OK(Verify(*module));
  }
  /// Names of the calls, in order.
  std::string Order() const {
    std::string names;
    for (const NodeId node : graph.nodes())
      if (graph.node(node).kind == NodeKind::kCall)
        names += fmt::format("{}{}", names.empty() ? "" : " ", graph.name(node));
    return names;
  }
  int Position(std::string_view name) const {
    return OrderOf(graph)[static_cast<size_t>(NodeNamed(graph, name).index)];
  }
  /// Copies that do not block.
  std::string NonBlocking() const {
    std::string names;
    for (const NodeId node : graph.nodes())
      if (graph.FindKwarg(node, "non_blocking") != nullptr)
        names += fmt::format("{}{}", names.empty() ? "" : " ", graph.name(node));
    return names;
  }
};

std::string ErrorOf(const std::string& text, bool pair_first = true) {
  EpOverlap::Options options;
  options.pair_first_token_exchange = pair_first;
  return MessageOf(EpOverlap(options).Run(*ParseBody(text)));
}

std::string MoeForward() {
  Program program;
  for (const int chunk : {0, 1}) {
    program.StartChunk(chunk);
    program.Compute("router", {"x"});
    program.Launch("count", "router");
    program.Compute("sync", {"count"});
    program.Launch("dispatch", "sync", "dispatch");
    program.Compute("shared", {"x"});
    program.Wait("dispatch_wait", "dispatch");
    program.Compute("gmm", {"dispatch_wait"});
    program.Launch("combine", "gmm", "combine");
    program.Wait("combine_wait", "combine");
  }
  return program.Text("combine_wait0, combine_wait1, shared0, shared1");
}

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

/// Layers of experts in two chunks that are joined and split again between the layers.
std::string JoinedLayers(int num_layers) {
  std::string text = "\n";
  for (int chunk : {0, 1})
    text += fmt::format("  h{} = placeholder : bf16[4096, 512][512, 1]cuda:0\n", chunk);
  text += "  w = placeholder : bf16[512, 512][512, 1]cuda:0\n";
  std::string last[] = {"h0", "h1"};
  constexpr std::string_view kPart = "bf16[4096, 512][512, 1]cuda:0",
                             kWhole = "bf16[8192, 512][512, 1]cuda:0";
  for (int layer = 0; layer < num_layers; ++layer) {
    const auto add = [&](int chunk, std::string_view name, std::string_view call,
                         std::string_view more = "") {
      text += fmt::format(
          "  {0}{1}_{2} = {3} : {4} {{forward module=layers.{1} +chunk_id='{2}' "
          "+chunked_region_fqn='layers.{1}' +chunked_region_role='body'{5}}}\n",
          name, layer, chunk, call, kPart, more);
    };
    for (int chunk : {0, 1}) {
      const auto own = [&](std::string_view name) {
        return fmt::format("{}{}_{}", name, layer, chunk);
      };
      add(chunk, "router", fmt::format("aten.mm.default({}, w)", last[chunk]));
      for (const std::string label : {"dispatch", "combine"}) {
        const bool is_first = label == "dispatch";
        add(chunk, label,
            fmt::format("_c10d_functional.all_to_all_single.default({}, [], [], 'ep')",
                        own(is_first ? "router" : "experts")),
            fmt::format(" +EP_token_exchange='{}'", label));
        add(chunk, is_first ? "arrived" : "back",
            fmt::format("_c10d_functional.wait_tensor.default({})", own(label)));
        if (is_first) add(chunk, "experts", fmt::format("aten.mm.default({}, w)", own("arrived")));
      }
      last[chunk] = own("back");
    }
    if (layer + 1 == num_layers) break;
    const auto plumbing = [&](std::string_view role, int of) {
      return fmt::format(
          "{{forward module=layers +chunked_region_fqn='layers.{}' "
          "+chunked_region_role='{}'}}",
          of, role);
    };
    text += fmt::format("  cat{0} = aten.cat.default([{1}, {2}], 0) : {3} {4}\n", layer, last[0],
                        last[1], kWhole, plumbing("materialization", layer));
    text += fmt::format(
        "  (part{0}_0, part{0}_1) = aten.split_with_sizes.default(cat{0}, [4096, 4096], 0) as "
        "split{0} : ({1}, {1}@(2097152)) ~(cat{0}, cat{0}) {2}\n",
        layer, kPart, plumbing("split_boundary", layer + 1));
    for (int chunk : {0, 1})
      last[chunk] = fmt::format("part{}_{}", layer, chunk);
  }
  return text + fmt::format("  output([{}, {}])\n", last[0], last[1]);
}

TEST_CASE("by cost, chunks pass from layer to layer, and exchanges hide behind the other chunk") {
  const std::string text = JoinedLayers(3);
  const Topology topology = OrDie(Topology::Load("h100"));
  const auto exposed = [&](const Graph& graph) {
    const NodeCost cost = OrDie(NodeCost::Make(topology, graph));
    return OrDie(Simulate(graph, cost)).exposed_us();
  };
  const Scheduled rounds(text, "layers.*", false), by_cost(text, "layers.*", false, "h100");
  CHECK_LT(exposed(by_cost.graph), exposed(rounds.graph));
  for (const NodeId node : by_cost.graph.nodes()) {
    CHECK_NE(by_cost.graph.op(node), "aten.cat.default");
    CHECK_NE(by_cost.graph.op(node), "aten.split_with_sizes.default");
  }
  // The second layer of one chunk is under way before the first layer of the other one has ended.
  CHECK_LT(by_cost.Position("dispatch1_0"), by_cost.Position("back0_1"));
  CHECK_EQ(by_cost.graph.attribute(NodeNamed(by_cost.graph, "back2_1"), "EP_token_exchange_wait"),
           "combine");
}

TEST_CASE("by cost, work that no exchange needs waits for a gap, but not forever") {
  const std::string text = MoeForward();
  const Scheduled scheduled(text, "layers.*.moe", false, "h100");
  CHECK_LT(scheduled.Position("dispatch0"), scheduled.Position("shared0"));
  CHECK_LT(scheduled.Position("dispatch1"), scheduled.Position("shared0"));
  CHECK_LT(scheduled.Position("shared0"), scheduled.Position("dispatch_wait1"));
}

TEST_CASE("by cost, inputs keep their order: it is that of the arguments") {
  std::string text = JoinedLayers(2);
  const std::string input = "  w = placeholder : bf16[512, 512][512, 1]cuda:0\n";
  text.replace(text.find(input), input.size(),
               "  last = placeholder : bf16[4096, 512][512, 1]cuda:0\n" + input);
  const size_t output = text.rfind("  output([") + std::string_view("  output([").size();
  text.insert(output, "last, ");
  const auto before = ParseBody(text);
  const Scheduled scheduled(text, "layers.*", false, "h100");
  const auto names = [](const Graph& graph) {
    std::vector<std::string> all;
    for (const NodeId node : graph.placeholders())
      all.emplace_back(graph.name(node));
    return all;
  };
  CHECK_EQ(names(scheduled.graph), names(*before->FindGraph("g")));
}

TEST_CASE("a topology that does not exist is an error") {
  EpOverlap::Options options;
  options.topology = "no-such-topology";
  CHECK_NE(MessageOf(EpOverlap(options).Run(*ParseBody(MoeForward()))), "");
}

}  // namespace
}  // namespace strata
