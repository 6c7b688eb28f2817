#include "tlparse-export/torch_trace/read/symbol_hints.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

/// Backward graphs of a compilation come late, after other compilations.
constexpr size_t kRememberedHints = 64;

struct CreatedSymbol {
  std::string name;
  int64_t size;
};

/// None: another record, or a symbol of a float (`zf0`).
std::optional<CreatedSymbol> ReadCreatedSymbol(std::string_view envelope) {
  if (envelope.find("\"create_symbol\"") == std::string_view::npos) return std::nullopt;
  const auto fields = ReadJsonObject(envelope);
  const JsonField* event = fields ? FindField(*fields, "create_symbol") : nullptr;
  const auto symbol = event ? ReadJsonObject(event->value) : std::nullopt;
  if (!symbol) return std::nullopt;
  const auto text_of = [&](std::string_view key) {
    const JsonField* field = FindField(*symbol, key);
    return field ? ReadJsonString(field->value) : std::nullopt;
  };
  std::optional<std::string> name = text_of("symbol");
  const std::optional<std::string> value = text_of("val");
  const std::optional<int64_t> size = value ? ReadJsonInt(*value) : std::nullopt;
  if (!name || !size) return std::nullopt;
  return CreatedSymbol{*std::move(name), *size};
}

}  // namespace

void SymbolHints::Learn(std::string_view compile, std::string_view envelope) {
  const std::optional<CreatedSymbol> created = ReadCreatedSymbol(envelope);
  if (!created) return;
  auto known = std::ranges::find(compilations_, compile, &Compilation::id);
  if (known == compilations_.end()) {
    if (compilations_.size() == kRememberedHints) compilations_.pop_front();
    compilations_.push_back({.id = std::string(compile), .hints = {}});
    known = std::prev(compilations_.end());
  }
  known->hints[created->name] = created->size;
}

const Hints& SymbolHints::Of(std::string_view compile) const {
  static const Hints kNone;
  const auto known = std::ranges::find(compilations_, compile, &Compilation::id);
  return known == compilations_.end() ? kNone : known->hints;
}

void ApplyHints(const Hints& hints, Module& module) {
  if (hints.empty()) return;
  const auto known = module.dims().symbols();
  for (Symbol symbol : std::vector<Symbol>(known.begin(), known.end())) {
    const auto hint = hints.find(module.str(symbol.name));
    if (symbol.hint || hint == hints.end()) continue;
    symbol.hint = hint->second;
    module.dims().SetSymbol(symbol);
  }
}

}  // namespace strata
