#include "prove/foreign/joined_pieces.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "ir/module.h"
#include "ir/rewriter.h"
#include "passes/pipeline/graph_copier.h"

namespace strata::prove {
namespace {

// Attributes that the FX parser sets (ir/fx/fx.h).
constexpr std::string_view kInputKey = "descriptor", kOutputsKey = "descriptors";
constexpr std::string_view kInputText = "PlainAOTInput(idx=", kOutputText = "PlainAOTOutput(idx=";
constexpr std::string_view kTangentText = "TangentAOTInput(output=";
constexpr std::string_view kGradientText = "GradAOTOutput(grad_of=";
constexpr std::string_view kAddOperator = "aten.add.Tensor";

/// The number in `before3)` at the end of `text`, which has `prefix` before that; none: another
/// text.
std::optional<size_t> NumberIn(std::string_view text, std::string_view prefix,
                               std::string_view before) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  if (!text.starts_with(before)) return std::nullopt;
  text.remove_prefix(before.size());
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_read = error == std::errc() && end != text.data() + text.size() && *end == ')';
  return is_read ? std::optional(number) : std::nullopt;
}

/// What a graph returns, with what its comments say of it.
struct Returned {
  std::string_view descriptor;
  std::optional<ValueId> value;
};

std::vector<Returned> ReturnsOf(const Graph& graph) {
  std::vector<Returned> returns;
  std::string_view lines = graph.attribute(graph.output(), kOutputsKey);
  for (const std::optional<ValueId>& value : OutputsOf(graph)) {
    returns.push_back({TakeLine(lines), value});
  }
  return returns;
}

/// A graph that is being written.
class Target {
 public:
  Target(Module& module, std::string_view name) : graph_(module.AddGraph(name)), rewriter_(graph_) {
    module.MarkForeign(graph_.id());
  }

  ValueId AddInput(std::string_view name, TypeId type, std::string_view descriptor) {
    const NodeId node = rewriter_.Create(
        {.kind = NodeKind::kPlaceholder, .results = std::span(&type, 1), .name = name},
        From::Source());
    if (!descriptor.empty()) rewriter_.SetAttribute(node, kInputKey, descriptor);
    return graph_.result(node);
  }
  ValueId Sum(ValueId a, ValueId b) {
    const std::vector<Arg> args = {a, b};
    const TypeId type = graph_.value(a).type;
    return graph_.result(rewriter_.Create(
        {.op = kAddOperator, .args = args, .results = std::span(&type, 1)}, From::Source()));
  }
  void AddOutput(Arg value, std::string_view descriptor) {
    outputs_.push_back(value);
    descriptors_.emplace_back(descriptor);
  }
  void Finish() {
    const Arg list = rewriter_.MakeSpan(ArgKind::kTuple, outputs_);
    const NodeId output = rewriter_.Create(
        {.kind = NodeKind::kOutput, .args = std::span(&list, 1), .name = "output"}, From::Source());
    rewriter_.SetAttribute(output, kOutputsKey, fmt::format("{}", fmt::join(descriptors_, "\n")));
  }

  const Graph& graph() const { return graph_; }
  Rewriter& rewriter() { return rewriter_; }

 private:
  Graph& graph_;
  Rewriter rewriter_;
  std::vector<Arg> outputs_;
  std::vector<std::string> descriptors_;
};

/// A part, and the call of it in the graph that was cut.
struct Piece {
  NodeId call;
  std::string prefix;             ///< of the names of its nodes
  std::vector<ValueId> operands;  ///< of the call
  const Graph* forward = nullptr;
  const Graph* backward = nullptr;  ///< null: there is none
  std::unique_ptr<GraphCopier> copier, backward_copier;

  /// What the call returns as output `index` of the part; none: nothing reads it.
  std::optional<ValueId> ResultIn(const Graph& split, size_t index) const {
    if (index >= split.node(call).num_results) return std::nullopt;
    return split.result(call, index);
  }
};

class Joiner {
 public:
  Joiner(Module& module, const Graph& split)
      : module_(module), split_(split), forward_(module, "aot_forward_graph") {}

  Status Read(std::span<const GraphPiece> pieces) {
    for (const NodeId node : split_.nodes()) {
      const NodeKind kind = split_.node(node).kind;
      if (kind == NodeKind::kPlaceholder || kind == NodeKind::kOutput) continue;
      const size_t index = pieces_.size();
      if (index == pieces.size()) return Unsupported(fmt::format("no graph of submod_{}", index));
      if (kind != NodeKind::kCallModule || split_.op(node) != fmt::format("submod_{}", index))
        return Unsupported(fmt::format("{} is no call of submod_{}", split_.name(node), index));
      Piece& piece = pieces_.emplace_back();
      piece.call = node;
      piece.prefix = fmt::format("submod_{}_", index);
      piece.operands = split_.operands(node);
      piece.forward = &module_.graph(pieces[index].forward);
      if (pieces[index].backward.valid()) piece.backward = &module_.graph(pieces[index].backward);
    }
    if (pieces_.size() == pieces.size()) return Ok();
    return Unsupported(fmt::format("{} parts, and graphs of {}", pieces_.size(), pieces.size()));
  }

  Result<GraphPiece> Join() {
    AddInputs();
    for (Piece& piece : pieces_)
      STRATA_RETURN_IF_ERROR(JoinForward(piece));
    STRATA_RETURN_IF_ERROR(AddOutputs());
    const bool has_backward =
        std::ranges::any_of(pieces_, [](const Piece& piece) { return piece.backward != nullptr; });
    if (has_backward) {
      backward_ = std::make_unique<Target>(module_, "aot_backward_graph");
      STRATA_RETURN_IF_ERROR(JoinBackward());
    }
    forward_.Finish();
    return GraphPiece{forward_.graph().id(), has_backward ? backward_->graph().id() : GraphId{}};
  }

 private:
  static Error Unsupported(std::string_view what) {
    return Error(ErrorCode::kUnsupported, "graphs that DDP cut: {}", what);
  }

  static std::string InputText(size_t index) { return fmt::format("{}{})", kInputText, index); }

  void AddInputs() {
    const std::vector<NodeId> inputs = split_.placeholders();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId value = split_.result(inputs[i]);
      const std::string_view argument = split_.attribute(inputs[i], "argument");
      const std::string_view name = argument.empty() ? split_.name(inputs[i]) : argument;
      values_[value] = forward_.AddInput(name, split_.value(value).type, InputText(i));
      inputs_[value] = i;
    }
  }

  Status JoinForward(Piece& piece) {
    piece.copier = std::make_unique<GraphCopier>(*piece.forward, forward_.rewriter(), piece.prefix);
    for (const NodeId input : piece.forward->placeholders()) {
      const auto index = NumberIn(piece.forward->attribute(input, kInputKey), "", kInputText);
      if (!index || *index >= piece.operands.size())
        return Unsupported(
            fmt::format("{}{} is no input", piece.prefix, piece.forward->name(input)));
      piece.copier->Map(piece.forward->result(input), values_.at(piece.operands[*index]));
    }
    CopyCalls(*piece.forward, *piece.copier);
    for (const Returned& returned : ReturnsOf(*piece.forward)) {
      if (returned.descriptor.starts_with("SavedForBackwards") || !returned.value) continue;
      const auto index = NumberIn(returned.descriptor, "", kOutputText);
      if (!index) return Unsupported(fmt::format("{} of {}", returned.descriptor, piece.prefix));
      if (const auto result = piece.ResultIn(split_, *index))
        values_[*result] = (*piece.copier)(*returned.value);
    }
    return Ok();
  }

  static void CopyCalls(const Graph& graph, GraphCopier& copier) {
    for (const NodeId node : graph.nodes()) {
      const NodeKind kind = graph.node(node).kind;
      if (kind != NodeKind::kPlaceholder && kind != NodeKind::kOutput) copier.Copy(node);
    }
  }

  Status AddOutputs() {
    const std::vector<std::optional<ValueId>> outputs = OutputsOf(split_);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i]) continue;
      const auto value = values_.find(*outputs[i]);
      if (value == values_.end()) return Unsupported(fmt::format("output {} has no value", i));
      forward_.AddOutput(value->second, fmt::format("{}{})", kOutputText, i));
      outputs_[*outputs[i]].push_back(i);
    }
    return Ok();
  }

  Status JoinBackward() {
    for (Piece& piece : pieces_)
      if (piece.backward != nullptr) STRATA_RETURN_IF_ERROR(AddSaved(piece));
    AddTangents();
    for (size_t i = pieces_.size(); i-- > 0;)
      if (pieces_[i].backward != nullptr) STRATA_RETURN_IF_ERROR(JoinBackward(pieces_[i]));
    for (const NodeId input : split_.placeholders()) {
      const ValueId value = split_.result(input);
      const auto gradient = gradients_.find(value);
      if (gradient == gradients_.end()) {
        backward_->AddOutput(Arg::None(), "None");
      } else {
        backward_->AddOutput(gradient->second,
                             fmt::format("{}{})", kGradientText, InputText(inputs_.at(value))));
      }
    }
    backward_->Finish();
    return Ok();
  }

  /// The output of a part whose gradient an input of its backward graph is.
  static std::optional<size_t> TangentOf(const Graph& graph, NodeId input) {
    return NumberIn(graph.attribute(input, kInputKey), kTangentText, kOutputText);
  }

  /// Inputs of the backward graph for what the part's forward saves.
  Status AddSaved(Piece& piece) {
    const Graph& graph = *piece.backward;
    piece.backward_copier =
        std::make_unique<GraphCopier>(graph, backward_->rewriter(), piece.prefix);
    for (const NodeId input : graph.placeholders()) {
      if (TangentOf(graph, input)) continue;
      std::optional<ValueId> saved;
      for (const Returned& returned : ReturnsOf(*piece.forward))
        if (returned.value && piece.forward->value_name(*returned.value) == graph.name(input))
          saved = returned.value;
      if (!saved)
        return Unsupported(fmt::format("{}{} is not saved", piece.prefix, graph.name(input)));
      piece.backward_copier->Map(graph.result(input), SavedInput((*piece.copier)(*saved)));
    }
    return Ok();
  }

  /// The input of the backward graph for a value of the forward graph.
  ValueId SavedInput(ValueId value) {
    if (const auto known = saved_.find(value); known != saved_.end()) return known->second;
    const Graph& graph = forward_.graph();
    const NodeId def = graph.value(value).def;
    forward_.AddOutput(value, fmt::format("SavedForBackwardsAOTOutput(idx={})", saved_.size()));
    return saved_[value] = backward_->AddInput(graph.value_name(value), graph.value(value).type,
                                               graph.attribute(def, kInputKey));
  }

  /// Inputs for the gradients of outputs that a part has gradients of.
  void AddTangents() {
    for (const Piece& piece : pieces_) {
      if (piece.backward == nullptr) continue;
      for (const NodeId input : piece.backward->placeholders()) {
        const auto index = TangentOf(*piece.backward, input);
        const auto result = index ? piece.ResultIn(split_, *index) : std::nullopt;
        if (!result || !outputs_.contains(*result)) continue;
        const TypeId type = piece.backward->value(piece.backward->result(input)).type;
        for (const size_t output : outputs_.at(*result)) {
          const std::string descriptor = fmt::format("{}{}{}))", kTangentText, kOutputText, output);
          AddGradient(*result, backward_->AddInput(fmt::format("tangents_{}", output + 1), type,
                                                   descriptor));
        }
      }
    }
  }

  void AddGradient(ValueId of, ValueId gradient) {
    const auto [known, is_new] = gradients_.try_emplace(of, gradient);
    if (!is_new) known->second = backward_->Sum(known->second, gradient);
  }

  Status JoinBackward(Piece& piece) {
    const Graph& graph = *piece.backward;
    for (const NodeId input : graph.placeholders()) {
      const auto index = TangentOf(graph, input);
      if (!index) continue;
      const auto result = piece.ResultIn(split_, *index);
      const auto gradient = result ? gradients_.find(*result) : gradients_.end();
      if (gradient == gradients_.end())
        return Unsupported(fmt::format("output {} of {} has no gradient", *index, piece.prefix));
      piece.backward_copier->Map(graph.result(input), gradient->second);
    }
    CopyCalls(graph, *piece.backward_copier);
    for (const Returned& returned : ReturnsOf(graph)) {
      if (!returned.value) continue;
      const auto index = NumberIn(returned.descriptor, kGradientText, kInputText);
      if (!index || *index >= piece.operands.size())
        return Unsupported(fmt::format("{} of {}", returned.descriptor, piece.prefix));
      AddGradient(piece.operands[*index], (*piece.backward_copier)(*returned.value));
    }
    return Ok();
  }

  Module& module_;
  const Graph& split_;
  Target forward_;
  std::unique_ptr<Target> backward_;
  std::vector<Piece> pieces_;
  // Of values of `split_`: what they are in the forward graph, and their gradients.
  std::unordered_map<ValueId, ValueId> values_, gradients_;
  std::unordered_map<ValueId, size_t> inputs_;                // their places
  std::unordered_map<ValueId, std::vector<size_t>> outputs_;  // the same
  std::unordered_map<ValueId, ValueId> saved_;  // of the forward graph: inputs of backward
};

}  // namespace

Result<GraphPiece> JoinPieces(Module& module, GraphId split, std::span<const GraphPiece> pieces) {
  Joiner joiner(module, module.graph(split));
  STRATA_RETURN_IF_ERROR(joiner.Read(pieces));
  return joiner.Join();
}

}  // namespace strata::prove
