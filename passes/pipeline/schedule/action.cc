#include "passes/pipeline/schedule/action.h"

#include <array>

#include <fmt/format.h>

namespace strata {
namespace {

constexpr std::array<std::string_view, 12> kLetters = {
    "F",           "B",      "I",      "W",      "UNSHARD", "RESHARD",
    "REDUCE_GRAD", "SEND_F", "RECV_F", "SEND_B", "RECV_B",  "OVERLAP_F_B"};

}  // namespace

std::string_view ToString(ActionType type) {
  return kLetters[static_cast<size_t>(type)];
}

bool IsCompute(ActionType type) {
  return type <= ActionType::kBackwardWeight;
}

bool HasMicrobatch(ActionType type) {
  return IsCompute(type) ||
         (type >= ActionType::kSendForward && type <= ActionType::kReceiveBackward);
}

std::string ToString(const Action& action) {
  if (action.type == ActionType::kOverlap) {
    std::string parts;
    for (const Action& part : action.parts)
      parts += (parts.empty() ? "" : ";") + ToString(part);
    return fmt::format("({}){}", parts, ToString(action.type));
  }
  const std::string microbatch = action.microbatch < 0 ? "" : std::to_string(action.microbatch);
  return fmt::format("{}{}{}", action.stage, ToString(action.type), microbatch);
}

}  // namespace strata
