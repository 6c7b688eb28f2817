#include "runtime/config/flavors.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/suggest.h"
#include "base/text.h"
#include "embedded/configs_deepseek_v3.h"
#include "embedded/configs_llama3.h"
#include "embedded/configs_qwen3.h"

namespace strata {
namespace {

struct Flavor {
  std::string_view model, name, text;
};

const Flavor kFlavors[] = {
    {"deepseek_v3", "16b", configs::deepseek_v3::k16bToml},
    {"deepseek_v3", "236b", configs::deepseek_v3::k236bToml},
    {"deepseek_v3", "671b", configs::deepseek_v3::k671bToml},
    {"deepseek_v3", "debugmodel", configs::deepseek_v3::kDebugmodelToml},
    {"llama3", "1b", configs::llama3::k1bToml},
    {"llama3", "3b", configs::llama3::k3bToml},
    {"llama3", "8b", configs::llama3::k8bToml},
    {"llama3", "70b", configs::llama3::k70bToml},
    {"llama3", "405b", configs::llama3::k405bToml},
    {"llama3", "debugmodel", configs::llama3::kDebugmodelToml},
    {"qwen3", "0.6b", configs::qwen3::k06bToml},
    {"qwen3", "1.7b", configs::qwen3::k17bToml},
    {"qwen3", "4b", configs::qwen3::k4bToml},
    {"qwen3", "8b", configs::qwen3::k8bToml},
    {"qwen3", "14b", configs::qwen3::k14bToml},
    {"qwen3", "32b", configs::qwen3::k32bToml},
    {"qwen3", "30b_a3b", configs::qwen3::k30bA3bToml},
    {"qwen3", "235b_a22b", configs::qwen3::k235bA22bToml},
    {"qwen3", "debugmodel", configs::qwen3::kDebugmodelToml},
    {"qwen3", "debugmodel_moe", configs::qwen3::kDebugmodelMoeToml},
};

/// What a flavor's file says about a training, not about the model.
bool IsOfTraining(std::string_view key) {
  constexpr std::string_view kKeys[] = {"steps", "seq_len", "batch_size", "seed"};
  return std::ranges::find(kKeys, key) != std::end(kKeys) || key == "optimizer" ||
         key.starts_with("optimizer.");
}

/// `30B-A3B` is `30b_a3b`.
std::string Normal(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](char c) {
    if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
    return c == '-' ? '_' : c;
  });
  return text;
}

const ConfigEntry* Find(const std::vector<ConfigEntry>& entries, std::string_view key) {
  const auto found = std::ranges::find(entries, key, &ConfigEntry::key);
  return found == entries.end() ? nullptr : &*found;
}

Error Unknown(const ConfigEntry& entry, std::string_view name, std::string_view model) {
  std::vector<std::string> names;
  for (const Flavor& flavor : kFlavors) {
    if (flavor.model == model) names.emplace_back(flavor.name);
  }
  return Error("no flavor '{}' of {}: {}: choose one of {}{}", OneLine(name), model, entry.where,
               fmt::join(names, ", "), DidYouMean(Normal(name), names));
}

}  // namespace

Status AddFlavor(std::vector<ConfigEntry>& entries) {
  const ConfigEntry* entry = Find(entries, "flavor");
  const ConfigEntry* family = Find(entries, "model");
  if (entry == nullptr || family == nullptr) return Ok();
  const auto* name = std::get_if<std::string>(&entry->value);
  const auto* model = std::get_if<std::string>(&family->value);
  if (name == nullptr || model == nullptr) return Ok();  // the reader says what is wrong
  const bool is_family = std::ranges::find(kFlavors, *model, &Flavor::model) != std::end(kFlavors);
  if (!is_family) return Ok();
  const auto flavor = std::ranges::find_if(
      kFlavors, [&](const Flavor& f) { return f.model == *model && f.name == Normal(*name); });
  if (flavor == std::end(kFlavors)) return Unknown(*entry, *name, *model);
  const std::string where = entry->where;
  STRATA_TRY(std::vector<ConfigEntry> fields,
             ParseConfigEntries(flavor->text, ConfigFormat::kToml, "flavor"));
  for (ConfigEntry& field : fields) {
    if (IsOfTraining(field.key) || Find(entries, field.key) != nullptr) continue;
    field.where = where;
    entries.push_back(std::move(field));
  }
  return Ok();
}

}  // namespace strata
