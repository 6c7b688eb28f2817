#include <utility>

#include <fmt/format.h>

#include "base/python_literal.h"
#include "runtime/plan/plan.h"

namespace strata {
namespace {

void AppendArg(const Plan& plan, const PlanArg& arg, std::string& out) {
  switch (arg.kind) {
    case ArgKind::kValue: {
      const PlanSlot& slot = plan.slots[arg.slot];
      out += slot.name;
      if (!slot.type.empty()) out += fmt::format(": {}", slot.type);
      return;
    }
    case ArgKind::kInt:
      out += fmt::format("{}", arg.integer);
      return;
    case ArgKind::kBool:
      out += arg.integer != 0 ? "True" : "False";
      return;
    case ArgKind::kFloat:
      AppendFloat(arg.real, out);
      return;
    case ArgKind::kDType:
      out += TorchName(arg.dtype);
      return;
    case ArgKind::kString:
      AppendQuoted(arg.text, out);
      return;
    case ArgKind::kDevice:
    case ArgKind::kRaw:
    case ArgKind::kGraph:
      out += arg.text;
      return;
    case ArgKind::kList:
    case ArgKind::kTuple:
      out += '[';
      for (size_t i = 0; i < arg.elements.size(); ++i) {
        if (i > 0) out += ", ";
        AppendArg(plan, arg.elements[i], out);
      }
      out += ']';
      return;
    default:
      out += "None";
      return;
  }
}

}  // namespace

std::string Describe(const Plan& plan, const PlanStep& step) {
  std::string out;
  for (const SlotId slot : step.results) {
    if (!slot.valid()) continue;
    if (!out.empty()) out += ", ";
    out += plan.slots[slot].name;
  }
  if (!out.empty()) out += " = ";
  out += step.op;
  out += '(';
  bool is_first = true;
  const auto comma = [&] {
    if (!std::exchange(is_first, false)) out += ", ";
  };
  for (const PlanArg& arg : step.args) {
    comma();
    AppendArg(plan, arg, out);
  }
  for (const auto& [name, arg] : step.kwargs) {
    comma();
    out += name;
    out += '=';
    AppendArg(plan, arg, out);
  }
  out += ')';
  return out;
}

}  // namespace strata
