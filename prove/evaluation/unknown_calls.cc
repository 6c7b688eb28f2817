#include "prove/evaluation/unknown_calls.h"

#include <algorithm>
#include <string_view>
#include <variant>
#include <vector>

#include "base/random.h"
#include "ir/fingerprint.h"
#include "ir/ops.h"
#include "prove/evaluation/inputs.h"
#include "prove/evaluation/random_calls.h"
#include "prove/ops/elementwise.h"

namespace strata::prove {
namespace {

using List = std::vector<Argument>;

bool HasTensor(const Argument& argument) {
  const auto* list = std::get_if<List>(&argument.value);
  return argument.is_tensor() || (list != nullptr && std::ranges::any_of(*list, HasTensor));
}

uint64_t HashOf(const Module& module, uint64_t hash, const Argument& argument) {
  if (const auto* tensor = std::get_if<Tensor>(&argument.value)) {
    for (const int64_t size : tensor->sizes())
      hash = Mix(hash ^ static_cast<uint64_t>(size));
    for (const uint64_t word : tensor->Read())
      hash = Mix(hash ^ word);
  } else if (const auto* list = std::get_if<List>(&argument.value)) {
    for (const Argument& element : *list)
      hash = HashOf(module, hash, element);
  } else if (const auto* body = std::get_if<GraphId>(&argument.value)) {
    const Fingerprint fingerprint = FingerprintOf(module.graph(*body));
    hash = Mix(Mix(hash ^ fingerprint.hi) ^ fingerprint.lo);
  }
  return hash;
}

/// Returns the hash of what comes next.
uint64_t Overwrite(uint64_t hash, const Argument& argument) {
  hash = Mix(hash ^ 1);
  if (const auto* tensor = std::get_if<Tensor>(&argument.value)) {
    std::vector<uint64_t> words = tensor->Read();
    if (tensor->domain() == Domain::kInteger) {
      if (!words.empty())
        std::ranges::rotate(words, words.begin() + static_cast<ptrdiff_t>(hash % words.size()));
    } else {
      words = RandomNumbers(tensor->domain(), tensor->sizes(), hash).Read();
    }
    tensor->Write(words);
  } else if (const auto* list = std::get_if<List>(&argument.value)) {
    for (const Argument& element : *list)
      hash = Overwrite(hash, element);
  }
  return hash;
}

}  // namespace

void OverwriteOperands(uint64_t hash, Call& call) {
  for (const Argument& argument : call.args())
    hash = Overwrite(hash, argument);
  for (const auto& [name, argument] : call.kwargs())
    hash = Overwrite(hash, argument);
}

uint64_t HashOfOperands(const Module& module, uint64_t hash, Call& call) {
  for (const Argument& argument : call.args())
    hash = HashOf(module, hash, argument);
  for (const auto& [name, argument] : call.kwargs())
    hash = HashOf(module, hash, argument);
  return hash;
}

bool ReadsTensors(Call& call) {
  const auto has_tensor = [](const auto& kwarg) { return HasTensor(kwarg.second); };
  return std::ranges::any_of(call.args(), HasTensor) ||
         std::ranges::any_of(call.kwargs(), has_tensor);
}

Value AsDrawnBy(const Call& call, Value value) {
  const std::string_view base = BaseName(call.op());
  const bool draws_parts_of_one =
      DrawnBy(call) == "uniform 0 1" || (base == "inductor_random" && call.TextAt(2, {}) == "rand");
  const auto* tensor = std::get_if<Tensor>(&value);
  if (!draws_parts_of_one || tensor == nullptr || tensor->domain() != Domain::kFloat) return value;
  return Map(*tensor, Domain::kFloat, PartOfOne);
}

std::string UnknownOpOf(Call& call) {
  const std::string_view base = BaseName(call.op());
  if (base != "auto_functionalized" && base != "auto_functionalized_v2")
    return std::string(call.op());
  std::string name = call.TextAt(0, {});
  constexpr std::string_view kPrefix = "torch.ops.";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  return name.empty() ? std::string(call.op()) : name;
}

}  // namespace strata::prove
