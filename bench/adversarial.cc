#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <sys/resource.h>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/bench.h"
#include "diff/diff.h"
#include "ir/rewriter.h"

namespace strata::cli {
namespace {

/// Two graphs of about `nodes` nodes each.
struct Case {
  std::unique_ptr<Module> before = std::make_unique<Module>(), after = std::make_unique<Module>();
};

/// Writes a graph node by node; every value has the same type, but for inputs that ask for another.
class Writer {
 public:
  explicit Writer(Module& module, std::string_view name = "g", bool is_body = false)
      : module_(module), graph_(module.AddGraph(name, is_body)), rewriter_(graph_) {}

  /// Of `rows` rows.
  ValueId Input(int64_t rows = 4) { return Add(NodeKind::kPlaceholder, "", {}, rows); }
  /// A graph of its own, for a node that refers to it.
  Arg Body(std::string_view name, const std::function<void(Writer&)>& write) {
    Writer body(module_, name, true);
    write(body);
    return Arg::Graph(body.graph_.id());
  }
  ValueId Call(std::string_view op, std::vector<Arg> args) {
    return Add(NodeKind::kCall, op, args);
  }
  void Output(const std::vector<ValueId>& values) {
    const std::vector<Arg> elements(values.begin(), values.end());
    const Arg list = rewriter_.MakeSpan(ArgKind::kList, elements);
    NodeSpec spec;
    spec.kind = NodeKind::kOutput;
    spec.args = {&list, 1};
    rewriter_.Create(spec, From::Source());
  }

 private:
  ValueId Add(NodeKind kind, std::string_view op, const std::vector<Arg>& args, int64_t rows = 4) {
    const TypeId type = module_.types().Tensor(DType::kF32, std::array<int64_t, 2>{rows, 4}, "cpu");
    NodeSpec spec;
    spec.kind = kind;
    spec.op = op;
    spec.args = args;
    spec.results = {&type, 1};
    return graph_.result(rewriter_.Create(spec, From::Source()));
  }

  Module& module_;
  Graph& graph_;
  Rewriter rewriter_;
};

using Write = std::function<void(Writer&, int nodes, bool is_after)>;

/// One operator applied again and again; after: one more, in the middle one other.
void Chain(Writer& writer, int nodes, bool is_after) {
  ValueId x = writer.Input();
  for (int i = 0; i < nodes + (is_after ? 1 : 0); ++i)
    x = writer.Call(is_after && i == nodes / 2 ? "aten.cos.default" : "aten.sin.default", {x});
  writer.Output({x});
}

/// One value with half of all nodes as users; after: one user in a hundred is another operator.
void Star(Writer& writer, int nodes, bool is_after) {
  const ValueId hub = writer.Call("aten.exp.default", {writer.Input()});
  std::vector<ValueId> results;
  for (int i = 0; i < nodes / 2; ++i) {
    const bool edited = is_after && i % 100 == 0;
    results.push_back(
        writer.Call("aten.relu.default",
                    {writer.Call(edited ? "aten.cos.default" : "aten.sin.default", {hub})}));
  }
  writer.Output(results);
}

/// Each node reads the one above and the one to the left; after: one corner is another operator.
void Grid(Writer& writer, int nodes, bool is_after) {
  int side = 1;
  while (side * side < nodes)
    ++side;
  std::vector<ValueId> row(static_cast<size_t>(side), writer.Input());
  for (int i = 0; i < side; ++i) {
    ValueId left = row[0];
    for (ValueId& above : row) {
      const bool edited = is_after && i == 0 && above == row[0];
      above = left = writer.Call(edited ? "aten.sub.Tensor" : "aten.add.Tensor", {above, left});
    }
  }
  writer.Output({row.back()});
}

/// Every node of a lower half reads every node of the upper half, in lists; after: one list is
/// reversed.
void Bipartite(Writer& writer, int nodes, bool is_after) {
  // Edges dominate: the number of nodes alone does not give the cost.
  int half = 1;
  while (half * half < 10 * nodes)
    ++half;
  const ValueId x = writer.Input();
  std::vector<Arg> upper;
  for (int i = 0; i < half; ++i)
    upper.emplace_back(writer.Call("aten.sin.default", {x}));
  std::vector<ValueId> lower;
  for (int i = 0; i < half; ++i) {
    std::vector<Arg> args = upper;
    if (is_after && i == half / 2) std::ranges::reverse(args);
    lower.push_back(writer.Call("aten.stack_all.default", args));
  }
  writer.Output(lower);
}

/// Nothing in common but the size.
void AllDifferent(Writer& writer, int nodes, bool is_after) {
  std::mt19937 random(is_after ? 2 : 1);
  std::vector<ValueId> values{writer.Input()};
  for (int i = 0; i < nodes; ++i) {
    const ValueId a = values[random() % values.size()];
    const ValueId b = values[random() % values.size()];
    values.push_back(writer.Call(
        fmt::format("{}{}", is_after ? "new.turn" : "old.step", random() % 50), {a, b}));
  }
  writer.Output({values.back()});
}

/// 32 equal layers against 31.
void Layers(Writer& writer, int nodes, bool is_after) {
  ValueId x = writer.Input();
  const int layers = is_after ? 31 : 32;
  for (int layer = 0; layer < layers; ++layer) {
    const ValueId skip = x;
    for (int i = 0; i < nodes / 32; ++i)
      x = writer.Call(i % 3 == 0 ? "aten.sin.default" : "aten.relu.default", {x});
    x = writer.Call("aten.add.Tensor", {x, skip});
  }
  writer.Output({x});
}

/// Two equal halves that change places.
void Swapped(Writer& writer, int nodes, bool is_after) {
  const ValueId a = writer.Input(), b = writer.Input();
  std::vector<ValueId> results;
  for (ValueId x : {is_after ? b : a, is_after ? a : b}) {
    for (int i = 0; i < nodes / 2; ++i)
      x = writer.Call(i % 7 == 0 ? "aten.sin.default" : "aten.relu.default", {x});
    results.push_back(x);
  }
  if (is_after) std::swap(results[0], results[1]);
  writer.Output(results);
}

/// Equal small branches of one value; after: all in another order, one in ten with another
/// operator.
void Branches(Writer& writer, int nodes, bool is_after) {
  const ValueId x = writer.Input();
  std::vector<ValueId> results;
  for (int i = 0; i < nodes / 4; ++i) {
    ValueId y = writer.Call("aten.sin.default", {x});
    y = writer.Call(is_after && i % 10 == 0 ? "aten.exp.default" : "aten.cos.default", {y});
    y = writer.Call("aten.relu.default", {y});
    results.push_back(writer.Call("aten.neg.default", {y}));
  }
  writer.Output(results);
}

/// The same operators between other nodes: neighbourhoods that look alike and are not.
void OtherEdges(Writer& writer, int nodes, bool is_after) {
  std::mt19937 operators(1), edges(is_after ? 2 : 1);
  std::vector<ValueId> values{writer.Input()};
  for (int i = 0; i < nodes; ++i) {
    const ValueId a = values[edges() % values.size()];
    const ValueId b = values[edges() % values.size()];
    values.push_back(writer.Call(fmt::format("op{}", operators() % 50), {a, b}));
  }
  writer.Output({values.back()});
}

/// Every call has an operator of its own, as calls of modules have; after: all have another name.
void OwnOperators(Writer& writer, int nodes, bool is_after) {
  ValueId x = writer.Input();
  for (int i = 0; i < nodes; ++i)
    x = writer.Call(fmt::format("{}.{}", is_after ? "model.layers" : "layers", i), {x});
  writer.Output({x});
}

/// Calls of one value, each with an operator of its own and a result of its own; after: all have
/// another name.
void OwnResults(Writer& writer, int nodes, bool is_after) {
  const ValueId x = writer.Input();
  std::vector<ValueId> results;
  for (int i = 0; i < nodes; ++i)
    results.push_back(writer.Call(fmt::format("{}.{}", is_after ? "my.fresh" : "my.old", i), {x}));
  writer.Output(results);
}

/// A chain of which every link is a result; after: a result fewer, one link in a hundred is another
/// operator.
void Results(Writer& writer, int nodes, bool is_after) {
  ValueId x = writer.Input();
  std::vector<ValueId> results;
  for (int i = 0; i < nodes / 2; ++i) {
    x = writer.Call(is_after && i % 100 == 7 ? "aten.cos.default" : "aten.sin.default", {x});
    const ValueId y = writer.Call("aten.relu.default", {x});
    if (!is_after || i > 0) results.push_back(y);
  }
  writer.Output(results);
}

/// As many inputs as calls; after: one in ten is gone, with its call.
void Inputs(Writer& writer, int nodes, bool is_after) {
  std::mt19937 random(1);
  std::vector<ValueId> inputs;
  const auto is_gone = [&](int i) { return is_after && i % 10 == 3; };
  for (int i = 0; i < nodes / 2; ++i) {
    const auto rows = static_cast<int64_t>(random() % 8) + 1;
    if (!is_gone(i)) inputs.push_back(writer.Input(rows));
  }
  ValueId x = inputs[0];
  for (const ValueId input : inputs)
    x = writer.Call("aten.add.Tensor", {x, input});
  writer.Output({x});
}

/// Calls of small bodies; after: one body in ten has another operator.
void Bodies(Writer& writer, int nodes, bool is_after) {
  constexpr int kBodySize = 500;
  ValueId x = writer.Input();
  for (int i = 0; i < nodes / kBodySize; ++i) {
    const Arg body = writer.Body(fmt::format("body_{}", i), [&](Writer& inner) {
      ValueId y = inner.Input();
      for (int k = 0; k < kBodySize; ++k) {
        const bool edited = is_after && i % 10 == 7 && k == 3;
        y = inner.Call(edited ? "aten.cos.default" : "aten.sin.default", {y});
      }
      inner.Output({y});
    });
    x = writer.Call("invoke_subgraph", {body, x});
  }
  writer.Output({x});
}

double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int64_t PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

}  // namespace

Status BenchDiffAdversarial(int64_t most_nodes, std::string_view only) {
  const std::pair<std::string_view, Write> cases[] = {{"chain", Chain},
                                                      {"star", Star},
                                                      {"grid", Grid},
                                                      {"bipartite", Bipartite},
                                                      {"all different", AllDifferent},
                                                      {"32/31 layers", Layers},
                                                      {"swapped", Swapped},
                                                      {"branches", Branches},
                                                      {"other edges", OtherEdges},
                                                      {"own operators", OwnOperators},
                                                      {"own results", OwnResults},
                                                      {"results", Results},
                                                      {"inputs", Inputs},
                                                      {"bodies", Bodies}};
  if (!only.empty() && std::ranges::find(cases, only, &std::pair<std::string_view, Write>::first) ==
                           std::end(cases)) {
    std::vector<std::string_view> names;
    for (const auto& [name, unused] : cases)
      names.push_back(name);
    return Error("bench diff: unknown case '{}': there are {}", only, fmt::join(names, ", "));
  }
  fmt::print("{:<14} {:>9} {:>10} {:>8} {:>10} {:>9} {:>14}\n", "graphs", "nodes", "processor",
             "growth", "elapsed", "matched", "peak so far");
  for (const auto& [name, write] : cases) {
    if (!only.empty() && name != only) continue;
    double last = 0;
    for (int64_t nodes = 10'000; nodes <= most_nodes; nodes *= 10) {
      Case both;
      for (const bool is_after : {false, true}) {
        Writer writer(is_after ? *both.after : *both.before);
        write(writer, static_cast<int>(nodes), is_after);
      }
      using Clock = std::chrono::steady_clock;
      const Clock::time_point start = Clock::now();
      const double begin = ProcessorSeconds();
      const Result<GraphDiff> diff = Diff(both.before->graph({0}), both.after->graph({0}));
      const double seconds = ProcessorSeconds() - begin;
      const std::chrono::duration<double> elapsed = Clock::now() - start;
      const double share = diff ? static_cast<double>(diff->pairs.size()) / diff->before.size() : 0;
      fmt::print("{:<14} {:>9} {:>8.3f} s {:>8} {:>8.3f} s {:>7.1f} % {:>11} MB\n", name,
                 both.before->graph({0}).num_nodes(), seconds,
                 last > 0 ? fmt::format("x{:.1f}", seconds / last) : "", elapsed.count(),
                 100 * share, PeakMegabytes());
      std::fflush(stdout);
      last = seconds;
    }
  }
  return Ok();
}

}  // namespace strata::cli
