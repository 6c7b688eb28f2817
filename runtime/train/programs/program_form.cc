#include "runtime/train/programs/program_form.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "ir/module.h"
#include "ir/stated_path.h"

namespace strata {
namespace {

using Role = ProgramForm::Role;
using Sizes = std::vector<int64_t>;

/// How AOTAutograd describes the new value of an input, before the descriptor of that.
constexpr std::string_view kUpdate = "InputMutationAOTOutput(mutated_input=";

bool IsRealFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16 ||
         dtype == DType::kF64;
}

bool IsComplex(DType dtype) {
  return dtype == DType::kC64;
}

bool IsInteger(DType dtype) {
  return dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kI16 ||
         dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kBool;
}

/// A tensor of constant sizes, with or without strides.
struct TensorType {
  DType dtype;
  Sizes sizes;
};

std::optional<TensorType> TypeOf(const Graph& graph, ValueId value) {
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return std::nullopt;
  const Type& type = graph.module().types()[id];
  if (type.kind != TypeKind::kTensor) return std::nullopt;
  TensorType found{.dtype = type.dtype, .sizes = {}};
  for (const DimId dim : type.sizes) {
    const auto number = graph.module().dims().AsConst(dim);
    if (!number) return std::nullopt;
    found.sizes.push_back(*number);
  }
  return found;
}

class FormReader {
 public:
  FormReader(const Graph& graph, const TrainConfig& config) : graph_(graph), config_(config) {}

  Result<ProgramForm> Run() {
    ReadOutputs();
    STRATA_RETURN_IF_ERROR(ReadInputs());
    form_.loss = CountUpdates();
    if (!IsLoss(form_.loss))
      return NoProgram("the first output must be the loss, a scalar of a float type");
    STRATA_RETURN_IF_ERROR(PairGradients());
    STRATA_RETURN_IF_ERROR(PairUpdates());
    for (const Given& given : inputs_)
      STRATA_RETURN_IF_ERROR(AddInput(given));
    for (const auto& [output, constant] : updates_)
      form_.updated.push_back(constant);
    STRATA_RETURN_IF_ERROR(AddAttributes());
    if (form_.parameters.empty()) return NoProgram("it has no gradients");
    STRATA_RETURN_IF_ERROR(CheckBatch());
    return std::move(form_);
  }

 private:
  struct Given {
    NodeId node;
    TensorType type;
    std::optional<size_t> gradient = std::nullopt;  ///< the output
    std::optional<size_t> update = std::nullopt;    ///< the output that is its new value
  };

  Error NoProgram(std::string_view what) const {
    return Error(
        ErrorCode::kUnsupported,
        "not the joint graph of a training step: {}: {}; docs/own_models.md shows the form",
        graph_.name_text(), what);
  }

  void ReadOutputs() {
    for (const Arg& arg : graph_.args(graph_.output())) {
      const std::span<const Arg> outputs =
          arg.is_span() ? graph_.elements(arg) : std::span(&arg, 1);
      for (const Arg& output : outputs)
        outputs_.push_back(output.is_value() ? output.value() : ValueId());
    }
  }

  std::optional<TensorType> TypeOfOutput(size_t output) const {
    return outputs_[output].valid() ? TypeOf(graph_, outputs_[output]) : std::nullopt;
  }

  Status ReadInputs() {
    for (const NodeId node : graph_.placeholders()) {
      const auto type = TypeOf(graph_, graph_.result(node));
      if (!type) {
        return NoProgram(fmt::format(
            "{} is no tensor of known, constant sizes; print_readable() of a graph that was traced "
            "with constant sizes writes them",
            graph_.name(node)));
      }
      inputs_.push_back({.node = node, .type = *type});
    }
    return Ok();
  }

  bool IsTangent(const Given& given) const {
    return graph_.name(given.node).starts_with("tangents_");
  }

  bool IsBatch(const TensorType& type) const {
    return type.dtype == DType::kI64 && type.sizes == Sizes{config_.batch_size, config_.seq_len};
  }

  /// Its descriptor says that it is a buffer.
  bool IsStatedBuffer(const Given& given) const {
    return graph_.attribute(given.node, "descriptor").starts_with("BufferAOTInput");
  }

  /// Whether it can have this gradient.
  bool Fits(const Given& given, size_t output) const {
    const auto gradient = TypeOfOutput(output);
    return gradient && IsRealFloat(given.type.dtype) && !IsTangent(given) &&
           !IsStatedBuffer(given) && gradient->sizes == given.type.sizes;
  }

  Status PairGradients() {
    const auto tangents =
        std::ranges::count_if(inputs_, [&](const Given& given) { return IsTangent(given); });
    const bool has_none = std::ranges::any_of(outputs_, [](ValueId v) { return !v.valid(); });
    const bool is_each =
        NumGradients() == std::ssize(inputs_) - tangents && (has_none || tangents > 0);
    return is_each ? PairEach() : PairInOrder();
  }

  int64_t NumGradients() const {
    return std::ssize(outputs_) - 1 - static_cast<int64_t>(form_.loss);
  }

  bool IsLoss(size_t output) const {
    const auto type = output < outputs_.size() ? TypeOfOutput(output) : std::nullopt;
    return type && type->sizes.empty() && IsRealFloat(type->dtype);
  }

  /// How many outputs before the loss are new values of inputs, as AOTAutograd returns what a
  /// program wrote.
  size_t CountUpdates() {
    std::string_view lines = graph_.attribute(graph_.output(), "descriptors");
    while (!lines.empty())
      descriptors_.push_back(TakeLine(lines));
    const auto is_update = [](std::string_view line) { return line.starts_with(kUpdate); };
    if (!descriptors_.empty()) {
      return static_cast<size_t>(std::ranges::find_if_not(descriptors_, is_update) -
                                 descriptors_.begin());
    }
    size_t count = 0;
    while (count < outputs_.size() && !IsLoss(count))
      ++count;
    return count < outputs_.size() ? count : 0;
  }

  /// Finds the input of each new value.
  Status PairUpdates() {
    auto next = inputs_.begin();
    for (size_t output = 0; output < form_.loss; ++output) {
      const auto type = TypeOfOutput(output);
      const auto is_of = [&](const Given& given) {
        if (!descriptors_.empty()) {
          return descriptors_[output] ==
                 fmt::format("{}{})", kUpdate, graph_.attribute(given.node, "descriptor"));
        }
        return type && type->dtype == given.type.dtype && type->sizes == given.type.sizes &&
               !given.gradient && !IsBatch(given.type);
      };
      next = std::find_if(descriptors_.empty() ? next : inputs_.begin(), inputs_.end(), is_of);
      if (next == inputs_.end() || next->gradient || next->update || IsBatch(next->type) ||
          IsTangent(*next)) {
        return NoProgram(
            fmt::format("output {}, before the loss, must be the new value of a constant", output));
      }
      const auto other = std::find_if(next + 1, inputs_.end(), is_of);
      if (descriptors_.empty() && other != inputs_.end() &&
          CountOf(*type) < std::ranges::count_if(inputs_, is_of)) {
        form_.warnings.push_back(fmt::format(
            "output {}, {}, may be the new value of {} or of {}, which have its type: {} is taken",
            output, graph_.value_name(outputs_[output]), NameOf(next->node), NameOf(other->node),
            NameOf(next->node)));
      }
      (next++)->update = output;
    }
    return Ok();
  }

  /// New values of this type.
  int64_t CountOf(const TensorType& type) const {
    int64_t count = 0;
    for (size_t output = 0; output < form_.loss; ++output) {
      const auto other = TypeOfOutput(output);
      count += other && other->dtype == type.dtype && other->sizes == type.sizes ? 1 : 0;
    }
    return count;
  }

  /// The gradient of the input in the same place.
  Status PairEach() {
    size_t output = form_.loss + 1;
    for (Given& given : inputs_) {
      if (IsTangent(given)) continue;
      if (outputs_[output].valid()) {
        if (!Fits(given, output)) {
          return NoProgram(
              fmt::format("output {}, {}, is in the place of the gradient of {}, and "
                          "has other sizes",
                          output, graph_.value_name(outputs_[output]), NameOf(given.node)));
        }
        given.gradient = output;
      }
      ++output;
    }
    return Ok();
  }

  Status PairInOrder() {
    std::vector<size_t> gradients;
    for (size_t output = form_.loss + 1; output < outputs_.size(); ++output)
      if (outputs_[output].valid()) gradients.push_back(output);
    size_t next = 0;
    for (Given& given : inputs_)
      if (next < gradients.size() && Fits(given, gradients[next]))
        given.gradient = gradients[next++];
    if (next < gradients.size()) {
      return NoProgram(
          fmt::format("output {}, {}, is the gradient of no input that follows those "
                      "of the outputs before it",
                      gradients[next], graph_.value_name(outputs_[gradients[next]])));
    }
    WarnOfOthers(gradients);
    return Ok();
  }

  /// The last inputs that gradients could be of, where these are not the first.
  void WarnOfOthers(const std::vector<size_t>& gradients) {
    size_t left = gradients.size();
    for (auto given = inputs_.rbegin(); given != inputs_.rend() && left > 0; ++given) {
      const size_t output = gradients[left - 1];
      if (!Fits(*given, output)) continue;
      --left;
      if (given->gradient == output) continue;
      const auto taken = std::ranges::find(inputs_, std::optional(output), &Given::gradient);
      form_.warnings.push_back(fmt::format(
          "output {}, {}, may be the gradient of {} or of {}, which have its sizes: {} is taken as "
          "the parameter; list parameters before constants",
          output, graph_.value_name(outputs_[output]), NameOf(taken->node), NameOf(given->node),
          NameOf(taken->node)));
      return;
    }
  }

  /// As the descriptor of the input says, or the name of the node.
  std::string NameOf(NodeId node) const {
    const bool is_stated =
        !graph_.attribute(node, kPathKey).empty() || !graph_.attribute(node, "descriptor").empty();
    const std::string path = is_stated ? StatedPath(graph_, node) : "";
    return path.empty() ? std::string(graph_.name(node)) : path;
  }

  Status AddInput(const Given& given) {
    const TensorType& type = given.type;
    const auto add = [&](Role role, size_t index) {
      form_.inputs.push_back(
          {.role = role, .index = index, .dtype = type.dtype, .sizes = type.sizes});
      return Ok();
    };
    if (IsTangent(given)) {
      if (!type.sizes.empty()) {
        return NoProgram(fmt::format("{} is no scalar: the graph must end in the loss",
                                     graph_.name(given.node)));
      }
      return add(Role::kTangent, 0);
    }
    if (IsBatch(type)) return add(Role::kBatch, num_batch_++);
    if (given.gradient) {
      form_.gradients.push_back(*given.gradient);
      form_.parameters.push_back(
          {.name = Unique(NameOf(given.node)), .shape = type.sizes, .init = {}});
      return add(Role::kParameter, form_.parameters.size() - 1);
    }
    STRATA_RETURN_IF_ERROR(AddConstant(NameOf(given.node), type));
    if (given.update) updates_.emplace(*given.update, form_.constants.size() - 1);
    return add(Role::kConstant, form_.constants.size() - 1);
  }

  Status AddConstant(const std::string& name, const TensorType& type) {
    if (!IsRealFloat(type.dtype) && !IsComplex(type.dtype) && !IsInteger(type.dtype)) {
      return NoProgram(fmt::format("{} is of the type {}, which files of tensors do not have", name,
                                   ShortName(type.dtype)));
    }
    ParameterSpec spec{.name = Unique(name), .shape = type.sizes, .init = {}};
    spec.is_integer = IsInteger(type.dtype);
    if (IsComplex(type.dtype)) {
      spec.name += kComplexEnd;
      spec.shape.push_back(2);
    }
    form_.constants.push_back(std::move(spec));
    return Ok();
  }

  /// Tensors of the module that the graph reads: files have them as constants.
  Status AddAttributes() {
    for (const NodeId node : graph_.nodes()) {
      if (graph_.node(node).kind != NodeKind::kGetAttr || !graph_.args(node).empty()) continue;
      const auto type = TypeOf(graph_, graph_.result(node));
      if (!type) {
        return NoProgram(
            fmt::format("{} is an attribute of a module, without a type: make it an "
                        "input",
                        graph_.op(node)));
      }
      const auto [known, is_new] = attributes_.emplace(graph_.op(node), form_.constants.size());
      if (is_new) STRATA_RETURN_IF_ERROR(AddConstant(std::string(graph_.op(node)), *type));
      form_.attributes.push_back({.role = Role::kConstant,
                                  .index = known->second,
                                  .dtype = type->dtype,
                                  .sizes = type->sizes});
    }
    return Ok();
  }

  Status CheckBatch() {
    if (num_batch_ != 2 && num_batch_ != 3) {
      std::vector<std::string> integers;
      for (const Given& given : inputs_) {
        if (given.type.dtype != DType::kI64) continue;
        integers.push_back(
            fmt::format("{} [{}]", graph_.name(given.node), fmt::join(given.type.sizes, ", ")));
      }
      const int64_t ranks = config_.parallelism.data_ranks();
      return NoProgram(fmt::format(
          "tokens, labels and perhaps positions must be int64 of [batch_size{}, seq_len] of the "
          "configuration, [{}, {}]: {}",
          ranks > 1 ? fmt::format(" · {} data ranks", ranks) : "", config_.batch_size,
          config_.seq_len,
          integers.empty() ? "it has no int64 input"
                           : fmt::format("its int64 inputs are {}", fmt::join(integers, ", "))));
    }
    form_.has_positions = num_batch_ == 3;
    if (form_.has_positions != (config_.attn_mask_type == AttentionMask::kBlockCausal)) {
      return NoProgram(form_.has_positions ? "it reads positions, take attn_mask_type = "
                                             "'block_causal'"
                                           : "it reads no positions, take attn_mask_type = "
                                             "'causal'");
    }
    return Ok();
  }

  /// The same name, with a number where another tensor has it.
  std::string Unique(const std::string& name) {
    const int count = ++names_[name];
    return count == 1 ? name : fmt::format("{}_{}", name, count);
  }

  const Graph& graph_;
  const TrainConfig& config_;
  std::vector<ValueId> outputs_;
  std::vector<Given> inputs_;
  size_t num_batch_ = 0;
  std::map<std::string, int> names_;
  std::map<std::string_view, size_t> attributes_;  // constants, by target
  std::vector<std::string_view> descriptors_;      // of outputs; empty: the graph has none
  std::map<size_t, size_t> updates_;               // constants, by output
  ProgramForm form_;
};

}  // namespace

Result<ProgramForm> FormOf(const Graph& graph, const TrainConfig& config) {
  return FormReader(graph, config).Run();
}

}  // namespace strata
