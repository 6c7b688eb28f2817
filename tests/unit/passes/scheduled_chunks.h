#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/verify.h"
#include "passes/expert/ep_overlap.h"
#include "passes/expert/execution_order.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

/// Graphs whose nodes belong to chunks, and their order after ep-overlap.
namespace strata::testing {

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

inline std::string ErrorOf(const std::string& text, bool pair_first = true) {
  EpOverlap::Options options;
  options.pair_first_token_exchange = pair_first;
  return MessageOf(EpOverlap(options).Run(*ParseBody(text)));
}

inline std::string MoeForward() {
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

}  // namespace strata::testing
