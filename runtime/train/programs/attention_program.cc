#include "runtime/train/programs/attention_program.h"

#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "ir/module.h"
#include "passes/flex/flex_body.h"
#include "passes/flex/flex_mods.h"
#include "runtime/exec/executor.h"
#include "runtime/flex/flex_attention.h"
#include "runtime/trace/tracer.h"

namespace strata {
namespace {

using at::Tensor;

/// `[batch, seq, heads, width]`; bench/peers/flex_peers.py makes the same numbers.
Tensor Numbers(const FlexShape& shape, double phase) {
  const int64_t count = shape.batch * shape.seq * shape.heads * shape.width;
  return (at::arange(count, at::kDouble) * 0.7310585 + phase)
      .sin()
      .to(at::kFloat)
      .view({shape.batch, shape.seq, shape.heads, shape.width});
}

Tensor DocumentIds(const FlexShape& shape) {
  std::vector<Tensor> ids;
  for (const int64_t length : shape.documents)
    ids.push_back(at::full({length}, static_cast<int64_t>(ids.size()), at::kLong));
  return at::cat(ids).expand({shape.batch, shape.seq}).contiguous();
}

/// Of query, key, value, the gradient of the result, and documents.
std::vector<Tensor> Attend(const FlexShape& shape, std::span<const Tensor> inputs) {
  FlexMask mask{.score_mod = std::string(kIdentityScoreMod),
                .mask_mod = MaskModText({.has_documents = true}),
                .score_buffers = {},
                .mask_buffers = {inputs[4]},
                .block_size = shape.block_size,
                .blocks = {}};
  mask.blocks = MakeBlockMask(mask, shape.batch, shape.heads, shape.seq, inputs[0].device());
  const auto heads_first = [](const Tensor& x) { return x.transpose(1, 2); };
  std::vector<Tensor> results = {FlexAttention(heads_first(inputs[0]), heads_first(inputs[1]),
                                               heads_first(inputs[2]), mask,
                                               1.0 / std::sqrt(static_cast<double>(shape.width)))};
  if (!shape.has_backward) return results;
  for (const Tensor& gradient : torch::autograd::grad(
           {results[0]}, {inputs[0], inputs[1], inputs[2]}, {heads_first(inputs[3])}))
    results.push_back(gradient);
  return results;
}

}  // namespace

struct AttentionProgram::State {
  Module module;
  std::vector<Tensor> inputs, results;
  std::optional<Executor> executor;

  Status Bind(const FlexShape& shape) {
    constexpr std::array<const char*, 5> kNames = {"q", "k", "v", "grad", "document_id"};
    TraceRequest request{
        .graph = "attention", .inputs = {}, .program = [&shape](std::span<const Tensor> given) {
          return Attend(shape, given);
        }};
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor example = at::empty(inputs[i].sizes(), inputs[i].options().device(at::kMeta));
      request.inputs.push_back({.name = kNames[i],
                                .module = {},
                                .example = example.requires_grad_(shape.has_backward && i < 3)});
    }
    Constants constants;
    STRATA_RETURN_IF_ERROR(Trace(module, request, constants));
    STRATA_TRY(Plan plan, Lower(*module.FindGraph("attention"), PlanOptions::Fastest()));
    STRATA_TRY(executor, Executor::Bind(std::move(plan), constants));
    return Ok();
  }
};

AttentionProgram::AttentionProgram(std::unique_ptr<State> state) : state_(std::move(state)) {}
AttentionProgram::AttentionProgram(AttentionProgram&&) noexcept = default;
AttentionProgram& AttentionProgram::operator=(AttentionProgram&&) noexcept = default;
AttentionProgram::~AttentionProgram() = default;

Result<AttentionProgram> AttentionProgram::Make(const FlexShape& shape) {
  auto state = std::make_unique<State>();
  for (const double phase : {0.0, 1.0, 2.0, 3.0})
    state->inputs.push_back(Numbers(shape, phase));
  state->inputs.push_back(DocumentIds(shape));
  STRATA_RETURN_IF_ERROR(state->Bind(shape));
  return AttentionProgram(std::move(state));
}

Status AttentionProgram::Run() {
  state_->results.clear();  // memory of the plan, which the next run writes
  STRATA_TRY(state_->results, state_->executor->Run(state_->inputs));
  return Ok();
}

double AttentionProgram::MeanMagnitude() const {
  return state_->results.at(0).abs().mean().item<double>();
}

}  // namespace strata
