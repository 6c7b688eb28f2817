#include "runtime/flex/body_evaluator.h"

#include <map>
#include <string>
#include <utility>

#include <c10/util/Exception.h>

#include <fmt/format.h>

#include "passes/flex/flex_body.h"
#include "runtime/aten/exceptions.h"
#include "runtime/aten/literals.h"
#include "runtime/exec/boxed/boxed_program.h"
#include "runtime/plan/plan.h"

namespace strata {
namespace {

struct Evaluator {
  Module module;
  Plan plan;
  std::unique_ptr<BoxedProgram> program;
};

TypeId TypeIn(Module& module, const at::Tensor& tensor, const std::string& device) {
  return module.types().Tensor(ToDType(tensor.scalar_type()), tensor.sizes(), device);
}

std::unique_ptr<Evaluator> MakeEvaluator(std::string_view text, FlexRole role,
                                         std::span<const at::Tensor> buffers,
                                         const std::string& device) {
  auto made = std::make_unique<Evaluator>();
  std::vector<TypeId> types;
  for (const at::Tensor& buffer : buffers)
    types.push_back(TypeIn(made->module, buffer, device));
  const GraphId body =
      OrThrow(AddFlexBody(made->module, text, role, ToString(role), types, device));
  made->plan = OrThrow(Lower(made->module.graph(body)));
  made->program = OrThrow(BoxedProgram::Bind(made->plan, {}, nullptr));
  return made;
}

}  // namespace

std::vector<at::Tensor> EvaluateFlexBody(std::string_view text, FlexRole role,
                                         std::span<const at::Tensor> inputs) {
  thread_local std::map<std::string, std::unique_ptr<Evaluator>> known;
  const std::span<const at::Tensor> buffers = inputs.subspan(NumScalars(role));
  const std::string device = inputs[0].device().str();
  std::string key = fmt::format("{} {} {}", ToString(role), device, text);
  for (const at::Tensor& buffer : buffers)
    key += fmt::format(" {}{}", ShortName(ToDType(buffer.scalar_type())), c10::str(buffer.sizes()));
  std::unique_ptr<Evaluator>& evaluator = known[key];
  if (evaluator == nullptr) evaluator = MakeEvaluator(text, role, buffers, device);
  return OrThrow(evaluator->program->Run(inputs, nullptr));
}

}  // namespace strata
