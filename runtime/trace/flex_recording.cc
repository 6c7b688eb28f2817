#include "runtime/trace/flex_recording.h"

#include <utility>

#include <fmt/format.h>

#include "ir/module.h"
#include "passes/flex/flex_body.h"
#include "passes/flex/flex_node.h"
#include "runtime/trace/recorder.h"

namespace strata {

std::optional<FlexRecording::Call> FlexRecording::Translate(std::string_view op,
                                                            std::span<const c10::IValue> args,
                                                            const TypeOf& type_of,
                                                            const ToArg& to_arg) {
  if (op == kBlockMaskOp) {
    Call call{.op = std::string(op), .args = {Body(args[0], FlexRole::kMask, args[2], type_of)}};
    for (const c10::IValue& arg : args.subspan(1))
      call.args.push_back(to_arg(arg));
    return call;
  }
  const bool is_backward = op == "strata.flex_attention_backward.default";
  if (!is_backward && op != "strata.flex_attention.default") return std::nullopt;
  const size_t num_tensors = is_backward ? 6 : 3;
  Call call{.op = std::string(is_backward ? kFlexBackwardOp : kFlexOp), .args = {}};
  for (const c10::IValue& tensor : args.first(num_tensors))
    call.args.push_back(to_arg(tensor));
  if (is_backward) call.args.push_back(Arg::None());  // the gradient of the logsumexp
  // Both directions end alike: block_mask, block_sizes, mask_mod, scale, score and mask buffers.
  const std::span<const c10::IValue> rest = args.last(6);
  call.args.push_back(Body(args[num_tensors], FlexRole::kScore, rest[4], type_of));
  if (is_backward)
    call.args.push_back(Body(args[num_tensors + 1], FlexRole::kJoint, rest[4], type_of));
  const Arg mask_mod = Body(rest[2], FlexRole::kMask, rest[5], type_of);
  call.args.push_back(BlockMask(rest[0], rest[1], mask_mod, to_arg));
  call.args.push_back(to_arg(rest[3]));
  call.args.push_back(rewriter_.MakeSpan(ArgKind::kDict, {}));  // kernel_options
  call.args.push_back(Buffers(rest[4], to_arg));
  call.args.push_back(Buffers(rest[5], to_arg));
  return call;
}

Arg FlexRecording::Body(const c10::IValue& text, FlexRole role, const c10::IValue& buffers,
                        const TypeOf& type_of) {
  Module& module = rewriter_.graph().module();
  std::vector<TypeId> types;
  std::string key = fmt::format("{} {}", ToString(role), text.toStringRef());
  for (const at::Tensor& buffer : buffers.toTensorVector()) {
    types.push_back(type_of(buffer));
    key += fmt::format(" {}", module.types().ToString(types.back()));
  }
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  int64_t count = 0;
  const auto is_taken = [&](std::string_view name) {
    for (int32_t i = 0; i < static_cast<int32_t>(module.num_graphs()); ++i)
      if (module.graph(GraphId{i}).name_text() == name) return true;
    return false;
  };
  std::string name;
  do {
    name = fmt::format("{}_{}", ToString(role), count++);
  } while (is_taken(name));
  auto body = AddFlexBody(module, text.toStringRef(), role, name, types, device_);
  if (!body) throw TraceError(std::move(body).error());
  const Arg graph = Arg::Graph(*body);
  const NodeId node = rewriter_.Create(
      {.kind = NodeKind::kGetAttr, .op = name, .args = std::span(&graph, 1), .name = name},
      From::Source());
  return known_[key] = rewriter_.graph().result(node);
}

Arg FlexRecording::BlockMask(const c10::IValue& blocks, const c10::IValue& sizes, Arg mask_mod,
                             const ToArg& to_arg) {
  const std::vector<int64_t> numbers = sizes.toIntVector();
  std::vector<Arg> elements = {Arg::Int(numbers[0]), Arg::Int(numbers[1])};
  for (const at::Tensor& tensor : blocks.toTensorVector())
    elements.push_back(to_arg(tensor));
  elements.insert(elements.end(), {Arg::Int(numbers[2]), Arg::Int(numbers[3]), mask_mod});
  return rewriter_.MakeSpan(ArgKind::kTuple, elements);
}

Arg FlexRecording::Buffers(const c10::IValue& buffers, const ToArg& to_arg) {
  std::vector<Arg> elements;
  for (const at::Tensor& tensor : buffers.toTensorVector())
    elements.push_back(to_arg(tensor));
  return rewriter_.MakeSpan(ArgKind::kTuple, elements);
}

}  // namespace strata
