#include "prove/evaluation/kept_laws.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "prove/ops/elementwise.h"
#include "prove/values/tensor.h"

namespace strata::prove {
namespace {

/// What is known of a tensor; of a square, if nothing, that it is its product with itself.
std::optional<Tensor> KnownOf(const Tensor& tensor, Law law) {
  if (const Laws* laws = tensor.laws(); laws != nullptr && laws->*law != nullptr)
    return *(laws->*law);
  if (law != &Laws::square) return std::nullopt;
  Result<Tensor> square = Mul(tensor, tensor);
  return square ? std::optional(*std::move(square)) : std::nullopt;
}

/// Whether a law is known of a tensor of the call.
bool IsKnown(Call& call, Law law) {
  const auto knows = [&](const Argument& argument) {
    const auto* tensor = std::get_if<Tensor>(&argument.value);
    const Laws* laws = tensor == nullptr ? nullptr : tensor->laws();
    return laws != nullptr && laws->*law != nullptr;
  };
  return std::ranges::any_of(call.args(), [&](const Argument& argument) {
    const auto* list = std::get_if<std::vector<Argument>>(&argument.value);
    return knows(argument) || (list != nullptr && std::ranges::any_of(*list, knows));
  });
}

/// The call on what `law` says of its tensors. None: it is unknown of one, or no tensor has
/// numbers.
std::optional<Call> CallOnKnown(const Call& call, Law law) {
  Call companion = call;
  bool knows_all = true, has_numbers = false;
  const auto replace = [&](Argument& argument) {
    auto* tensor = std::get_if<Tensor>(&argument.value);
    if (tensor == nullptr || tensor->domain() != Domain::kFloat) return;
    has_numbers = true;
    std::optional<Tensor> known = KnownOf(*tensor, law);
    knows_all = knows_all && known.has_value();
    if (known) *tensor = *std::move(known);
  };
  for (Argument& argument : companion.args()) {
    replace(argument);
    if (auto* list = std::get_if<std::vector<Argument>>(&argument.value))
      std::ranges::for_each(*list, replace);
  }
  return knows_all && has_numbers ? std::optional(std::move(companion)) : std::nullopt;
}

}  // namespace

void KeepLaws(const OpDefinition& definition, Call& call, Values& results) {
  std::vector<Laws> kept(results.size());
  bool has_any = false;
  for (const Law law : kLaws) {
    if (!IsKnown(call, law)) continue;
    std::optional<Call> companion = CallOnKnown(call, law);
    if (!companion) continue;
    Result<Values> moved = definition.evaluate(*companion);
    if (!moved || moved->size() != results.size()) continue;
    for (size_t i = 0; i < results.size(); ++i) {
      if (const auto* tensor = std::get_if<Tensor>(&(*moved)[i]))
        kept[i].*law = std::make_shared<const Tensor>(tensor->Copy());
    }
    has_any = true;
  }
  if (!has_any) return;
  for (size_t i = 0; i < results.size(); ++i) {
    if (auto* tensor = std::get_if<Tensor>(&results[i])) tensor->SetLaws(std::move(kept[i]));
  }
}

}  // namespace strata::prove
