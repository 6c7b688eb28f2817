#include "prove/joined_stages.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "ir/rewriter.h"
#include "passes/core/collectives.h"
#include "passes/core/node_copy.h"
#include "passes/pipeline/graph_copier.h"
#include "passes/placement/placement.h"
#include "prove/diagnosis/cone.h"
#include "prove/one_module.h"

namespace strata::prove {
namespace {

constexpr std::string_view kAxisIndex = "strata.axis_index.default";

/// How far a part has been copied.
struct Cursor {
  const Graph& graph;
  StageSignature signature;
  NodeId next;
  int64_t number = 0;
  CopiedValues values = {};  // of the joined graph, by those of the part
  CopiedValues sent = {};    // summands, by results of the launches of the part
  bool has_inputs = false;
};

class Joiner {
 public:
  Joiner(Graph& whole, const StageCut& cut, Graph& target)
      : whole_(whole), cut_(cut), rewriter_(target) {
    for (const NodeId node : whole.nodes())
      whole_ids_.emplace(whole.node(node).stable_id, node);
    if (auto mesh = Mesh::Parse(whole.attribute(whole.output(), kMeshAttribute)))
      mesh_ = *std::move(mesh);
  }

  Status Run(std::span<const Graph* const> parts, JoinedStages& joined) {
    STRATA_TRY(const StageSignature signature, StageSignatureOf(whole_, cut_.stage, cut_.returned));
    AddInputs(signature);
    std::vector<Cursor> cursors;
    for (size_t i = 0; i < parts.size(); ++i) {
      STRATA_TRY(StageSignature of_part,
                 StageSignatureOf(*parts[i], cut_.parts[i].stage, Returned::kNumbered));
      cursors.push_back(
          {.graph = *parts[i], .signature = std::move(of_part), .next = parts[i]->first()});
    }
    for (Cursor& cursor : cursors)  // before one of them writes to an input
      if (cut_.on_own_ranks) STRATA_RETURN_IF_ERROR(BindInputs(cursor));
    while (true) {
      std::vector<Cursor*> waiting;
      for (Cursor& cursor : cursors) {
        STRATA_RETURN_IF_ERROR(CopyUpToSum(cursor));
        if (cursor.next.valid()) waiting.push_back(&cursor);
      }
      if (waiting.empty()) break;
      if (FindUnmatched(waiting, cursors.size(), joined)) return Ok();
      STRATA_RETURN_IF_ERROR(AddSum(waiting));
    }
    SetOutputs(signature, joined);
    return Ok();
  }

 private:
  void AddInputs(const StageSignature& signature) {
    const std::vector<NodeId> inputs = whole_.placeholders();
    CopiedValues copies;
    for (size_t i = 0; i < inputs.size(); ++i) {
      CopyNode(whole_, inputs[i], rewriter_, copies,
               {.stable_id = whole_.node(inputs[i]).stable_id});
      made_.insert_or_assign(signature.inputs[i], copies.at(whole_.result(inputs[i])));
    }
  }

  static std::string NameOf(const Graph& part, std::string_view node) {
    return fmt::format("{}/{}", part.name_text(), node);
  }

  /// That of the node of `whole` which it is a copy of; its own, if it is a second copy or none.
  StableId IdOf(const Graph& part, NodeId node) {
    const StableId own = part.node(node).stable_id;
    StableId id = own;
    for (auto found = cut_.originals.find(id); found != cut_.originals.end();
         found = cut_.originals.find(id))
      id = found->second;
    const auto in_whole = whole_ids_.find(id);
    const bool is_copy =
        in_whole != whole_ids_.end() && whole_.name(in_whole->second) == part.name(node);
    return is_copy && paired_.insert(id).second ? id : own;
  }

  void CopyCall(Cursor& cursor, NodeId node) {
    const Graph& part = cursor.graph;
    CopyNode(part, node, rewriter_, cursor.values,
             {.prefix = NameOf(part, ""), .stable_id = IdOf(part, node)});
  }

  bool IsOverParts(std::string_view group) const { return !mesh_.GroupAxes(group); }

  Status CopyUpToSum(Cursor& cursor) {
    if (!cursor.has_inputs) STRATA_RETURN_IF_ERROR(BindInputs(cursor));
    const Graph& part = cursor.graph;
    for (; cursor.next.valid(); cursor.next = part.node(cursor.next).next) {
      const NodeId node = cursor.next;
      if (part.node(node).kind == NodeKind::kPlaceholder) continue;
      if (part.node(node).kind == NodeKind::kOutput) {
        KeepOutputs(cursor);
      } else if (CollectiveOf(part, node) && IsOverParts(GroupOf(part, node))) {
        Launch(cursor, node);
      } else if (part.op(node) == kAxisIndex &&
                 IsOverParts(part.module().str(part.args(node)[0].str()))) {
        AddNumber(cursor, node);
      } else if (IsWait(part, node) && cursor.sent.contains(part.args(node)[0].value())) {
        return Ok();
      } else {
        CopyCall(cursor, node);
      }
    }
    return Ok();
  }

  /// What is sent is kept for the wait; until then the result is memory that nothing wrote to.
  void Launch(Cursor& cursor, NodeId node) {
    const Graph& part = cursor.graph;
    const ValueId sent = cursor.values.at(part.args(node)[0].value());
    cursor.sent[part.result(node)] = sent;
    const Arg args[] = {Arg(sent)};
    cursor.values[part.result(node)] = CreateFor(part, node, "aten.empty_like.default", args, "");
  }

  /// The number of a part among those that exchange.
  void AddNumber(Cursor& cursor, NodeId node) {
    const Arg args[] = {rewriter_.MakeSpan(ArgKind::kList, {}), Arg::Int(cursor.number)};
    cursor.values[cursor.graph.result(node)] =
        CreateFor(cursor.graph, node, "aten.full.default", args, "");
  }

  /// A node with one result for `node` of a part, which has its name and id unless there is a
  /// suffix.
  ValueId CreateFor(const Graph& part, NodeId node, std::string_view op, std::span<const Arg> args,
                    std::string_view suffix) {
    const TypeId type[] = {part.value(part.result(node)).type};
    const std::string name = NameOf(part, part.name(node)).append(suffix);
    const NodeId made = rewriter_.Create(
        {.op = op,
         .args = args,
         .results = type,
         .name = name,
         .stable_id = suffix.empty() ? part.node(node).stable_id : StableId::kNone},
        From(part, {node}));
    if (!suffix.empty()) rewriter_.SetAttribute(made, kSumOverPartsAttribute, "yes");
    return rewriter_.graph().result(made);
  }

  Status BindInputs(Cursor& cursor) {
    const std::vector<NodeId> inputs = cursor.graph.placeholders();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const SlotKey& key = cursor.signature.inputs[i];
      const auto found = made_.find(key);
      if (found == made_.end()) {
        return Error(ErrorCode::kUnsupported, "graph {}: no graph before it has '{}'",
                     cursor.graph.name_text(), ToString(key.second));
      }
      cursor.values[cursor.graph.result(inputs[i])] =
          OwnInput(cursor.graph, inputs[i], found->second);
    }
    cursor.has_inputs = true;
    return Ok();
  }

  /// What a part reads as its input. It may write to it.
  ValueId OwnInput(const Graph& part, NodeId input, ValueId made) {
    const bool is_first = bound_.insert(made).second;
    if (is_first || !cut_.on_own_ranks) return made;
    const Arg args[] = {Arg(made)};
    return CreateFor(part, input, "aten.clone.default", args, "");
  }

  void KeepOutputs(Cursor& cursor) {
    const std::vector<std::optional<ValueId>> outputs = OutputsOf(cursor.graph);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i]) continue;
      const SlotKey& key = cursor.signature.outputs[i];
      const auto [made, is_new] = made_.emplace(key, cursor.values.at(*outputs[i]));
      if (is_new) continue;
      if (cut_.on_own_ranks) {
        also_made_.emplace_back(key, cursor.values.at(*outputs[i]));
      } else {
        made->second = cursor.values.at(*outputs[i]);
      }
    }
  }

  static NodeId LaunchOf(const Cursor& cursor) {
    const Graph& part = cursor.graph;
    return part.value(part.args(cursor.next)[0].value()).def;
  }

  /// All parts must wait for the same call.
  static bool FindUnmatched(std::span<Cursor* const> waiting, size_t parts, JoinedStages& joined) {
    const auto call_of = [](const Cursor& cursor) {
      const Graph& part = cursor.graph;
      const NodeId launch = LaunchOf(cursor);
      return fmt::format("{} of {}", ExchangeOf(part, launch).Text(),
                         part.module().types().ToString(part.value(part.result(launch)).type));
    };
    const Cursor& first = *waiting.front();
    const auto other = std::ranges::find_if(
        waiting, [&](const Cursor* cursor) { return call_of(*cursor) != call_of(first); });
    if (waiting.size() == parts && other == waiting.end()) return false;
    const auto name_of = [](const Cursor& cursor) {
      return NameOf(cursor.graph, cursor.graph.name(LaunchOf(cursor)));
    };
    joined.unmatched_node = name_of(first);
    joined.unmatched_call = call_of(first);
    if (other != waiting.end()) joined.other_node = name_of(**other);
    return true;
  }

  Status AddSum(std::span<Cursor* const> waiting) {
    ValueId sum;
    for (Cursor* cursor : waiting) {
      const Graph& part = cursor->graph;
      const NodeId launch = LaunchOf(*cursor);
      const std::string_view reduce = ReduceOpOf(part, launch);
      if (reduce != "sum" && reduce != "avg") {
        return Error(ErrorCode::kUnsupported, "{}: {} over parts", NameOf(part, part.name(launch)),
                     ExchangeOf(part, launch).Text());
      }
      const ValueId summand = cursor->sent.at(part.result(launch));
      const Arg args[] = {Arg(sum.valid() ? sum : summand), Arg(summand)};
      sum = sum.valid() ? CreateFor(part, launch, "aten.add.Tensor", args, "_sum") : summand;
      if (cursor != waiting.back() || reduce == "sum") continue;
      const Arg mean[] = {Arg(sum), Arg::Int(static_cast<int64_t>(waiting.size()))};
      sum = CreateFor(part, launch, "aten.div.Scalar", mean, "_mean");
    }
    for (Cursor* cursor : waiting) {
      cursor->values[cursor->graph.result(cursor->next)] = sum;
      cursor->next = cursor->graph.node(cursor->next).next;
    }
    return Ok();
  }

  void SetOutputs(const StageSignature& signature, JoinedStages& joined) {
    std::vector<Arg> results;
    const std::vector<std::optional<ValueId>> wanted = OutputsOf(whole_);
    for (size_t i = 0; i < signature.outputs.size(); ++i) {
      const auto found = made_.find(signature.outputs[i]);
      const bool is_wanted = i < wanted.size() && wanted[i].has_value();
      if (is_wanted && found == made_.end())
        joined.missing.push_back(ToString(signature.outputs[i].second));
      results.push_back(is_wanted && found != made_.end() ? Arg(found->second) : Arg::None());
    }
    for (const auto& [key, value] : also_made_)
      if (AddOutputOfWhole(signature, key)) results.emplace_back(value);
    const Arg list[] = {rewriter_.MakeSpan(ArgKind::kList, results)};
    const NodeId original = whole_.output();
    const NodeId output = rewriter_.Create({.kind = NodeKind::kOutput,
                                            .args = list,
                                            .name = whole_.name(original),
                                            .stable_id = whole_.node(original).stable_id},
                                           From(whole_, {original}, Origin::kCloned));
    CopyAttributes(whole_, original, rewriter_, output);
  }

  /// Lets `whole` return a value once more. False: it does not return it.
  bool AddOutputOfWhole(const StageSignature& signature, const SlotKey& key) {
    const std::vector<std::optional<ValueId>> outputs = OutputsOf(whole_);
    const auto at =
        static_cast<size_t>(std::ranges::find(signature.outputs, key) - signature.outputs.begin());
    if (at >= outputs.size() || !outputs[at]) return false;
    std::vector<Arg> results;
    for (const std::optional<ValueId>& output : outputs)
      results.push_back(output ? Arg(*output) : Arg::None());
    results.emplace_back(*outputs[at]);
    Rewriter rewriter(whole_);
    const Arg list[] = {rewriter.MakeSpan(ArgKind::kList, results)};
    rewriter.SetArgs(whole_.output(), list, {});
    return true;
  }

  Graph& whole_;
  const StageCut& cut_;
  Rewriter rewriter_;
  Mesh mesh_;
  std::map<StableId, NodeId> whole_ids_;
  std::set<StableId> paired_;
  std::map<SlotKey, ValueId> made_;
  std::vector<std::pair<SlotKey, ValueId>> also_made_;  // by other ranks
  std::set<ValueId> bound_;                             // inputs that a part reads
};

}  // namespace

Originals OriginalsOf(std::span<const Provenance> provenance) {
  Originals originals;
  for (const Provenance& record : provenance)
    if (record.origin == Origin::kCloned && record.from.size() == 1)
      originals.emplace(record.node, record.from[0]);
  return originals;
}

Result<JoinedStages> JoinStages(const StageCut& cut) {
  std::vector<const Graph*> graphs = {cut.whole};
  for (const StagePart& part : cut.parts)
    graphs.push_back(part.graph);
  JoinedStages joined;
  STRATA_TRY(joined.module, InOneModule(graphs));
  const std::vector<GraphId> programs = joined.module->programs();
  std::vector<const Graph*> parts;
  for (size_t i = 1; i < graphs.size(); ++i)
    parts.push_back(&joined.module->graph(programs[i]));
  Graph& target = joined.module->AddGraph(cut.whole->name_text());
  joined.id = target.id();
  joined.whole = programs[0];
  Joiner joiner(joined.module->graph(programs[0]), cut, target);
  STRATA_RETURN_IF_ERROR(joiner.Run(parts, joined));
  return joined;
}

}  // namespace strata::prove
