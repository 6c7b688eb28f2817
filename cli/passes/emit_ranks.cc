#include "cli/passes/emit_ranks.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/python_literal.h"
#include "passes/core/collectives.h"
#include "passes/placement/mesh.h"
#include "passes/placement/placement.h"
#include "passes/placement/shard_cuts.h"

namespace strata::cli {
namespace {

/// The groups whose members communicate, and those in which a rank asks for its place.
std::set<std::string, std::less<>> GroupsOf(const Graph& graph) {
  std::set<std::string, std::less<>> groups;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    const std::string_view op = graph.op(node);
    if (op == kAxisIndexOp || op == kAxisShardOp) {
      const size_t axis = op == kAxisIndexOp ? 0 : 2;
      groups.emplace(graph.module().str(graph.args(node)[axis].str()));
    } else if (CollectiveOf(graph, node)) {
      groups.emplace(GroupOf(graph, node));
    }
  }
  return groups;
}

/// `'fsdp': [[0, 2], [1, 3]],`
Result<std::string> MembersPy(const Mesh& mesh, std::string_view group) {
  std::set<std::vector<int64_t>> members;
  for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
    STRATA_TRY(std::vector<int64_t> ranks, mesh.GroupOf(group, rank));
    members.insert(std::move(ranks));
  }
  std::string text = "    ";
  AppendQuoted(group, text);
  text += ": [";
  std::string_view comma;
  for (const std::vector<int64_t>& ranks : members) {
    text += fmt::format("{}[{}]", comma, fmt::join(ranks, ", "));
    comma = ", ";
  }
  return text + "],\n";
}

/// `[(0, 24, 2, 1), (0, 12, 2, 2)],`
std::string CutsPy(const ShardCuts& cuts) {
  std::string text = "    [";
  std::string_view comma;
  for (const ShardCut& cut : cuts.cuts) {
    text +=
        fmt::format("{}({}, {}, {}, {})", comma, cut.dim, cut.size, cut.axis.size, cut.axis.stride);
    comma = ", ";
  }
  return text + "],\n";
}

}  // namespace

bool IsOfSeveralRanks(const Graph& graph) {
  return !graph.attribute(graph.output(), kMeshAttribute).empty() && !GroupsOf(graph).empty();
}

Result<std::string> RanksPy(const Graph& graph) {
  STRATA_TRY(const Mesh mesh, Mesh::Parse(graph.attribute(graph.output(), kMeshAttribute)));
  STRATA_TRY(const std::vector<ShardCuts> inputs, InputCuts(graph, mesh));
  STRATA_TRY(const std::vector<std::optional<ShardCuts>> outputs, OutputCuts(graph, mesh));
  std::string groups, sizes, input_cuts, output_cuts;
  for (const std::string& group : GroupsOf(graph)) {
    STRATA_TRY(const std::string members, MembersPy(mesh, group));
    groups += members;
  }
  for (const ShardCuts& input : inputs) {
    sizes += fmt::format("    [{}],\n", fmt::join(input.sizes, ", "));
    input_cuts += CutsPy(input);
  }
  for (const std::optional<ShardCuts>& output : outputs)
    output_cuts += output ? CutsPy(*output) : "    None,\n";
  return fmt::format(
      "# The mesh {}.\n"
      "NUM_RANKS = {}\n\n"
      "# The members of each group.\n"
      "GROUPS = {{\n{}}}\n\n"
      "# How ranks hold a tensor: cuts (dimension, its size, ranks, their distance).\n"
      "INPUT_SIZES = [\n{}]\n\n"
      "INPUT_CUTS = [\n{}]\n\n"
      "OUTPUT_CUTS = [\n{}]\n",
      mesh.Text(), mesh.num_ranks(), groups, sizes, input_cuts, output_cuts);
}

}  // namespace strata::cli
