#include "prove/foreign/setup.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/module.h"
#include "passes/core/collectives.h"
#include "prove/evaluation/rank_inputs.h"
#include "prove/foreign/evaluation.h"

namespace strata::prove {
namespace {

/// The nodes that a node reads.
std::vector<NodeId> SourcesOf(const Graph& graph, NodeId node) {
  std::vector<NodeId> sources;
  graph.ForEachOperand(node, [&](ValueId value) { sources.push_back(graph.value(value).def); });
  return sources;
}

bool AreAlike(const Graph& first, NodeId node, const Graph& other, NodeId twin) {
  const bool is_call = first.node(node).kind == NodeKind::kCall;
  return node == twin && first.node(node).kind == other.node(twin).kind &&
         first.args(node).size() == other.args(twin).size() &&
         SourcesOf(first, node) == SourcesOf(other, twin) &&
         (!is_call || first.op(node) == other.op(twin));
}

/// Ranks are evaluated together, so their graphs may differ in literals and in which results of a
/// node are read.
Status CheckAlike(const Graph& first, const Graph& other, size_t rank) {
  const std::vector<NodeId> nodes(first.nodes().begin(), first.nodes().end());
  const std::vector<NodeId> twins(other.nodes().begin(), other.nodes().end());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i < twins.size() && AreAlike(first, nodes[i], other, twins[i])) continue;
    return Error(ErrorCode::kUnsupported,
                 "rank {} runs other nodes than rank 0: {} of graph {}: strata ranks compares them",
                 rank, first.name(nodes[i]), first.name_text());
  }
  return Ok();
}

Status CheckPrograms(const CompiledProgram& single, std::span<const CompiledProgram> ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const Part part : {Part::kForward, Part::kBackward}) {
      const bool is_backward = part == Part::kBackward;
      if (is_backward && (ranks[rank].backward == nullptr) != (single.backward == nullptr))
        return Error(ErrorCode::kUnsupported, "rank {} and one device: one has no backward graph",
                     rank);
      if (is_backward && single.backward == nullptr) continue;
      STRATA_RETURN_IF_ERROR(CheckAlike(GraphOf(ranks[0], part), GraphOf(ranks[rank], part), rank));
    }
  }
  return Ok();
}

/// "x, y and 3 more"
std::string NamesOf(const std::vector<InputName>& names, const std::vector<size_t>& some) {
  constexpr size_t kMaxNames = 3;
  if (some.empty()) return "none";
  std::vector<std::string> texts;
  for (const size_t i : some)
    texts.push_back(names[i].text);
  if (texts.size() <= kMaxNames) return fmt::format("{}", fmt::join(texts, ", "));
  return fmt::format("{}, {} and {} more", texts[0], texts[1], texts.size() - 2);
}

/// Gives the inputs of ranks the names of those of one device where these have no such name: in
/// their order.
Status PairInputs(ForeignSetup& setup) {
  const auto has = [](const std::vector<InputName>& names, const std::string& text) {
    return std::ranges::find(names, text, &InputName::text) != names.end();
  };
  std::vector<size_t> left, other;
  for (size_t i = 0; i < setup.names.size(); ++i)
    if (!has(setup.rank_names, setup.names[i].text)) left.push_back(i);
  for (size_t i = 0; i < setup.rank_names.size(); ++i)
    if (!has(setup.names, setup.rank_names[i].text)) other.push_back(i);
  // What the ranks do not read is a difference only if it is one of the outputs.
  if (other.empty()) {
    for (const size_t i : left)
      setup.pairings.push_back("the ranks do not read " + setup.names[i].text);
    return Ok();
  }
  if (left.size() != other.size()) {
    return Error(ErrorCode::kUnsupported,
                 "inputs that have no counterpart: {} on one device, {} on a rank",
                 NamesOf(setup.names, left), NamesOf(setup.rank_names, other));
  }
  for (size_t i = 0; i < left.size(); ++i) {
    InputName& name = setup.rank_names[other[i]];
    setup.pairings.push_back(
        fmt::format("input {} of the ranks is {}, by order", name.text, setup.names[left[i]].text));
    name.text = setup.names[left[i]].text;
  }
  return Ok();
}

std::vector<MeshAxis> AxesOfTensors(const ForeignSetup& setup) {
  std::vector<MeshAxis> axes;
  for (const DTensorSpecs* specs :
       {&setup.inputs, &setup.outputs, &setup.tangents, &setup.gradients}) {
    for (const auto& [position, spec] : *specs)
      axes.insert(axes.end(), spec.axes.begin(), spec.axes.end());
  }
  return axes;
}

}  // namespace

bool ForeignSetup::Reduces(const Graph& graph, size_t axis) const {
  return std::ranges::any_of(graph.nodes(), [&](NodeId node) {
    if (graph.node(node).kind != NodeKind::kCall) return false;
    const std::string_view op = graph.op(node);
    if (!op.starts_with("_c10d_functional.all_reduce") &&
        !op.starts_with("_c10d_functional.reduce_scatter"))
      return false;
    const auto members = groups.MembersOf(GroupOf(graph, node));
    return members && std::ranges::any_of(*members, [&](int64_t member) {
             return mesh.Coordinates(member)[axis] != mesh.Coordinates(members->front())[axis];
           });
  });
}

Result<ForeignSetup> SetUp(const CompiledProgram& single, std::span<const CompiledProgram> ranks) {
  STRATA_RETURN_IF_ERROR(CheckPrograms(single, ranks));
  if (std::ssize(ranks) > kMaxRanks)
    return Error(ErrorCode::kUnsupported, "{} ranks are more than a proof evaluates, which is {}",
                 ranks.size(), kMaxRanks);
  ForeignSetup setup;
  setup.names = InputNamesOf(single);
  setup.rank_names = InputNamesOf(ranks[0]);
  STRATA_RETURN_IF_ERROR(PairInputs(setup));
  setup.inputs = ReadDTensorSpecs(ranks[0].metadata, "subclass_inp_meta");
  setup.outputs = ReadDTensorSpecs(ranks[0].metadata, "subclass_fw_graph_out_meta");
  setup.tangents = ReadDTensorSpecs(ranks[0].metadata, "subclass_tangent_meta");
  setup.gradients = ReadDTensorSpecs(ranks[0].gradient_metadata, "grad_input_metas");
  for (const Part part : {Part::kForward, Part::kBackward}) {
    if (part == Part::kBackward && ranks[0].backward == nullptr) continue;
    std::vector<const Graph*> graphs;
    for (const CompiledProgram& rank : ranks)
      graphs.push_back(&GraphOf(rank, part));
    setup.groups.Add(graphs);
  }
  STRATA_TRY(setup.mesh, MeshOfRanks(AxesOfTensors(setup), setup.groups, std::ssize(ranks)));
  return setup;
}

}  // namespace strata::prove
