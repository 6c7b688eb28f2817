#include "passes/flex/flex_body.h"

#include <utility>

#include "ir/fx/fx.h"
#include "ir/rewriter.h"
#include "passes/flex/body_copier.h"

namespace strata {

const std::string_view kIdentityScoreMod = R"(class score_mod(torch.nn.Module):
    def forward(self, score: "f32[][]cpu", b: "i32[][]cpu", h: "i32[][]cpu", q_idx: "i32[][]cpu", kv_idx: "i32[][]cpu"):
        return score
)";

namespace {

DType TypeOfKind(FlexProgram::Kind kind) {
  switch (kind) {
    case FlexProgram::Kind::kBool:
      return DType::kBool;
    case FlexProgram::Kind::kInt:
      return DType::kI32;
    case FlexProgram::Kind::kFloat:
      return DType::kF32;
  }
  return DType::kUnknown;
}

}  // namespace

Result<std::vector<std::string>> FlexBufferNames(std::string_view text, FlexRole role,
                                                 std::string_view file) {
  STRATA_TRY(const FxDocument document, ParseFx(text, {.file = file, .strict = true}));
  const std::vector<NodeId> inputs = document.graph().placeholders();
  if (inputs.size() < NumScalars(role)) {
    return Error("{} inputs are too few: {}: a {} has {}, then its buffers", inputs.size(), file,
                 ToString(role), NumScalars(role));
  }
  std::vector<std::string> names;
  for (size_t i = NumScalars(role); i < inputs.size(); ++i)
    names.emplace_back(document.graph().name(inputs[i]));
  return names;
}

Result<GraphId> AddFlexBody(Module& module, std::string_view text, FlexRole role,
                            std::string_view name, std::span<const TypeId> buffers,
                            std::string_view device) {
  STRATA_TRY(const FxDocument document, ParseFx(text, {.file = name, .strict = true}));
  const Graph& from = document.graph();
  Graph& body = module.AddGraph(name, /*is_body=*/true);
  Rewriter rewriter(body);
  BodyCopier copier(from, rewriter);
  const size_t num_inputs = from.placeholders().size();
  if (num_inputs != NumScalars(role) + buffers.size()) {
    return Error("{} has {} inputs: {}: a {} of {} buffers has {}", name, num_inputs,
                 "flex attention", ToString(role), buffers.size(),
                 NumScalars(role) + buffers.size());
  }
  size_t input = 0;
  for (const NodeId node : from.nodes()) {
    if (from.node(node).kind == NodeKind::kOutput) {
      std::vector<Arg> results;
      for (const Arg& arg : from.args(node))
        results.push_back(copier.Convert(arg));
      rewriter.Create({.kind = NodeKind::kOutput, .args = results}, From::Source());
      continue;
    }
    const NodeId copy = copier.Copy(node);
    const bool is_input = from.node(node).kind == NodeKind::kPlaceholder;
    if (is_input && input++ >= NumScalars(role))
      rewriter.SetType(body.result(copy), buffers[input - 1 - NumScalars(role)]);
  }
  STRATA_TRY(const FlexProgram program, MakeFlexProgram(body, role));
  for (const FlexProgram::Op& op : program.ops) {
    rewriter.SetType(body.result(op.node), module.types().Tensor(TypeOfKind(op.kind), {}, device));
  }
  return body.id();
}

std::string FlexBodyText(const Graph& body) {
  return PrintFx(body, {.comments = false, .frees = false});
}

}  // namespace strata
