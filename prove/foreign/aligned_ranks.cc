#include "prove/foreign/aligned_ranks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/pipeline/graph_copier.h"
#include "prove/foreign/evaluation.h"

namespace strata::prove {
namespace {

constexpr std::string_view kPad = "constant_pad_nd", kSlice = "slice";

/// A node of the program that all ranks run, and the node that it is of each rank; none: the rank
/// lacks it.
struct Column {
  std::vector<NodeId> nodes;

  /// A rank that has it.
  size_t owner() const {
    const auto found = std::ranges::find_if(nodes, [](NodeId node) { return node.valid(); });
    return static_cast<size_t>(found - nodes.begin());
  }
};

/// Aligns one graph of each rank.
class Alignment {
 public:
  explicit Alignment(std::vector<const Graph*> graphs)
      : graphs_(std::move(graphs)), columns_of_(graphs_.size()) {}

  Status Run() {
    for (size_t rank = 0; rank < graphs_.size(); ++rank)
      STRATA_RETURN_IF_ERROR(AddRank(rank));
    return Ok();
  }
  /// Whether a rank lacks a node that another has.
  bool has_gaps() const {
    return std::ranges::any_of(columns_, [](const auto& column) {
      return !std::ranges::all_of(column->nodes, [](NodeId node) { return node.valid(); });
    });
  }

  /// The graph of a rank with all nodes, in a module of its own.
  std::pair<std::shared_ptr<const Module>, const Graph*> GraphOfRank(size_t rank) const {
    std::unique_ptr<Module> module = graphs_[rank]->module().Clone();
    const Graph& from = module->graph(graphs_[rank]->id());
    Graph& graph = module->AddGraph(from.name_text());
    module->MarkForeign(graph.id());
    {
      Rewriter rewriter(graph);
      GraphCopier copier(from, rewriter, "");
      std::map<const Column*, ValueId> added;
      for (const auto& column : columns_) {
        if (column->nodes[rank].valid()) {
          CopyNode(rank, *column, added, copier);
        } else {
          added[column.get()] = AddNeutral(rank, *column, added, copier);
        }
      }
    }
    return {std::shared_ptr<const Module>(std::move(module)), &graph};
  }

 private:
  Status AddRank(size_t rank) {
    std::vector<std::unique_ptr<Column>> merged;
    auto next = columns_.begin();
    for (const NodeId node : graphs_[rank]->nodes()) {
      while (next != columns_.end() && !IsSame(**next, rank, node) && IsPadding(**next))
        merged.push_back(std::move(*next++));
      if (next != columns_.end() && IsSame(**next, rank, node)) {
        merged.push_back(std::move(*next++));
      } else if (rank == 0 || IsPadding(*graphs_[rank], node)) {
        merged.push_back(std::make_unique<Column>());
        merged.back()->nodes.resize(graphs_.size());
      } else {
        return Error(ErrorCode::kUnsupported, "rank {} runs other nodes than rank 0", rank);
      }
      merged.back()->nodes[rank] = node;
      columns_of_[rank][node.index] = merged.back().get();
    }
    for (; next != columns_.end(); ++next)
      merged.push_back(std::move(*next));
    columns_ = std::move(merged);
    return Ok();
  }

  static bool IsPadding(const Graph& graph, NodeId node) {
    if (graph.node(node).kind != NodeKind::kCall || graph.operands(node).size() != 1) return false;
    const std::string_view op = BaseName(graph.op(node));
    return op == kPad || op == kSlice;
  }
  bool IsPadding(const Column& column) const {
    return IsPadding(*graphs_[column.owner()], column.nodes[column.owner()]);
  }

  /// The node that pads or cuts nothing whose result an operand is, padded or not.
  const Column* RootOf(size_t rank, NodeId node) const {
    const Graph& graph = *graphs_[rank];
    while (IsPadding(graph, node))
      node = graph.value(graph.operands(node)[0]).def;
    const auto found = columns_of_[rank].find(node.index);
    return found == columns_of_[rank].end() ? nullptr : found->second;
  }

  bool IsSame(const Column& column, size_t rank, NodeId node) const {
    const size_t owner = column.owner();
    const Graph& graph = *graphs_[rank];
    const Graph& other = *graphs_[owner];
    const NodeId twin = column.nodes[owner];
    if (graph.node(node).kind != other.node(twin).kind || graph.op(node) != other.op(twin))
      return false;
    return !IsPadding(graph, node) || RootOf(rank, node) == RootOf(owner, twin);
  }

  /// Where others read what the rank lacks, the copy of a node reads what stands for it.
  void CopyNode(size_t rank, const Column& column, const std::map<const Column*, ValueId>& added,
                GraphCopier& copier) const {
    const NodeId node = column.nodes[rank];
    const std::vector<ValueId> operands = graphs_[rank]->operands(node);
    std::vector<std::pair<ValueId, ValueId>> before;
    const bool is_output = graphs_[rank]->node(node).kind == NodeKind::kOutput;
    for (size_t other = 0; !is_output && other < graphs_.size(); ++other) {
      if (!column.nodes[other].valid()) continue;
      const std::vector<ValueId> theirs = graphs_[other]->operands(column.nodes[other]);
      for (size_t i = 0; i < std::min(operands.size(), theirs.size()); ++i) {
        const NodeId def = graphs_[other]->value(theirs[i]).def;
        const auto stand_in = added.find(columns_of_[other].at(def.index));
        if (stand_in == added.end()) continue;
        before.emplace_back(operands[i], copier(operands[i]));
        copier.Map(operands[i], stand_in->second);
      }
    }
    copier.Copy(node);
    for (size_t i = before.size(); i-- > 0;)
      copier.Map(before[i].first, before[i].second);
  }

  /// A node like that of others which pads or cuts nothing.
  ValueId AddNeutral(size_t rank, const Column& column,
                     const std::map<const Column*, ValueId>& added, GraphCopier& copier) const {
    const size_t owner = column.owner();
    const NodeId twin = column.nodes[owner];
    const Graph& theirs = *graphs_[owner];
    const ValueId operand = theirs.operands(twin)[0];
    const Column* source = columns_of_[owner].at(theirs.value(operand).def.index);
    const auto stand_in = added.find(source);
    const ValueId value = stand_in != added.end()
                              ? stand_in->second
                              : copier(graphs_[rank]->result(source->nodes[rank], theirs.result_index(operand)));
    Rewriter& rewriter = copier.rewriter();
    std::vector<Arg> args = {value};
    const std::span<const Arg> their_args = theirs.args(twin);
    if (BaseName(theirs.op(twin)) == kPad) {
      const std::vector<Arg> nothing(theirs.elements(their_args[1]).size(), Arg::Int(0));
      args.push_back(rewriter.MakeSpan(ArgKind::kList, nothing));
    } else {
      args.push_back(their_args.size() > 1 ? their_args[1] : Arg::Int(0));
      args.insert(args.end(), {Arg::Int(0), Arg::Int(std::numeric_limits<int64_t>::max())});
    }
    while (args.size() < their_args.size())
      args.push_back(their_args[args.size()]);
    const TypeId type = rewriter.graph().value(value).type;
    const NodeId node = rewriter.Create(
        {.op = theirs.op(twin), .args = args, .results = std::span(&type, 1)}, From::Source());
    return rewriter.graph().result(node);
  }

  std::vector<const Graph*> graphs_;  // by rank
  std::vector<std::unique_ptr<Column>> columns_;
  std::vector<std::map<int32_t, Column*>> columns_of_;  // by rank and NodeId
};

}  // namespace

Result<AlignedRanks> AlignRanks(std::span<const CompiledProgram> ranks) {
  AlignedRanks aligned{{ranks.begin(), ranks.end()}, {}};
  for (const Part part : {Part::kForward, Part::kBackward}) {
    std::vector<const Graph*> graphs;
    for (const CompiledProgram& rank : ranks)
      if (part == Part::kForward || rank.backward != nullptr)
        graphs.push_back(&GraphOf(rank, part));
    if (graphs.size() != ranks.size()) continue;
    Alignment alignment(std::move(graphs));
    STRATA_RETURN_IF_ERROR(alignment.Run());
    if (!alignment.has_gaps()) continue;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      auto [module, graph] = alignment.GraphOfRank(rank);
      aligned.modules.push_back(std::move(module));
      CompiledProgram& program = aligned.programs[rank];
      (part == Part::kForward ? program.forward : program.backward) = graph;
    }
  }
  return aligned;
}

}  // namespace strata::prove
