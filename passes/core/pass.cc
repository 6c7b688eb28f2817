#include "passes/core/pass.h"

#include <utility>

#include <fmt/format.h>

namespace strata {

std::string Pass::Text() const {
  return params_.empty() ? name_ : fmt::format("{}{{{}}}", name_, params_);
}

void Pass::SetText(std::string name, std::string params) {
  name_ = std::move(name);
  params_ = std::move(params);
}

std::string_view ToString(PassStatus status) {
  switch (status) {
    case PassStatus::kOk:
      return "ok";
    case PassStatus::kUnchanged:
      return "unchanged";
    case PassStatus::kFailed:
      return "failed";
  }
  return "failed";
}

Status PassInstrumentation::BeforePipeline(std::string_view /*pipeline*/,
                                           const Module& /*module*/) {
  return Ok();
}
Status PassInstrumentation::BeforePass(const PassRun& /*run*/, const Module& /*module*/) {
  return Ok();
}
Status PassInstrumentation::AfterPass(const PassRun& /*run*/, const Module& /*module*/) {
  return Ok();
}
Status PassInstrumentation::AfterPassFailed(const PassRun& /*run*/, const Module& /*module*/) {
  return Ok();
}
Status PassInstrumentation::AfterPipeline(const Module& /*module*/) {
  return Ok();
}

}  // namespace strata
