#include "runtime/flex/body_evaluator.h"

#include <map>
#include <string>
#include <utility>

#include <c10/util/Exception.h>

#include <fmt/format.h>

#include "passes/flex/flex_body.h"
#include "runtime/aten/literals.h"
#include "runtime/exec/boxed/boxed_program.h"
#include "runtime/plan/plan.h"

namespace strata {
namespace {

template <class T>
T OrThrow(Result<T> result) {
  TORCH_CHECK(result.has_value(), result.has_value() ? "" : result.error().message());
  return *std::move(result);
}

struct Evaluator {
  Module module;
  Plan plan;
  std::unique_ptr<BoxedProgram> program;
};

TypeId TypeIn(Module& module, const at::Tensor& tensor) {
  return module.types().Tensor(ToDType(tensor.scalar_type()), tensor.sizes(), "cpu");
}

std::unique_ptr<Evaluator> MakeEvaluator(std::string_view text, FlexRole role,
                                         std::span<const at::Tensor> buffers) {
  auto made = std::make_unique<Evaluator>();
  std::vector<TypeId> types;
  for (const at::Tensor& buffer : buffers)
    types.push_back(TypeIn(made->module, buffer));
  const GraphId body = OrThrow(AddFlexBody(made->module, text, role, ToString(role), types, "cpu"));
  made->plan = OrThrow(Lower(made->module.graph(body)));
  made->program = OrThrow(BoxedProgram::Bind(made->plan, {}, nullptr));
  return made;
}

}  // namespace

std::vector<at::Tensor> EvaluateFlexBody(std::string_view text, FlexRole role,
                                         std::span<const at::Tensor> inputs) {
  thread_local std::map<std::string, std::unique_ptr<Evaluator>> known;
  const std::span<const at::Tensor> buffers = inputs.subspan(NumScalars(role));
  std::string key = fmt::format("{} {}", ToString(role), text);
  for (const at::Tensor& buffer : buffers)
    key += fmt::format(" {}{}", ShortName(ToDType(buffer.scalar_type())), c10::str(buffer.sizes()));
  std::unique_ptr<Evaluator>& evaluator = known[key];
  if (evaluator == nullptr) evaluator = MakeEvaluator(text, role, buffers);
  return OrThrow(evaluator->program->Run(inputs, nullptr));
}

}  // namespace strata
