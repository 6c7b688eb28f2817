#include "diff/graph/symbols.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "diff/graph/hash.h"
#include "ir/module.h"

namespace strata {
namespace {

using Renaming = std::map<std::string, std::string, std::less<>>;

const Type* TypeOf(const Listing& listing, EntityId id) {
  const ValueId value = listing.value(id);
  if (!value.valid()) return nullptr;
  const TypeId type = listing.graph(id).value(value).type;
  return type.valid() ? &listing.root().module().types()[type] : nullptr;
}

/// Calls `fn` with the sizes of a type.
template <class Fn>
void ForEachDim(const Type& type, Fn&& fn) {
  if (type.kind == TypeKind::kSymInt) fn(type.dim);
  if (type.kind != TypeKind::kTensor) return;
  for (DimId size : type.sizes)
    fn(size);
}

void AddSymbols(const DimTable& dims, DimId dim, std::vector<std::string>& names,
                std::set<std::string, std::less<>>& known) {
  if (!dim.valid()) return;
  if (dims.kind(dim) == DimKind::kSymbol && known.emplace(dims.name(dim)).second) {
    names.emplace_back(dims.name(dim));
  }
  for (DimId operand : dims.operands(dim))
    AddSymbols(dims, operand, names, known);
}

/// In order of appearance.
std::vector<std::string> SymbolsOf(const Listing& listing) {
  const Module& module = listing.root().module();
  std::vector<std::string> names;
  std::set<std::string, std::less<>> known;
  std::vector<bool> seen(module.types().size(), false);
  for (EntityId id : listing.ids()) {
    const ValueId value = listing.value(id);
    if (!value.valid()) continue;
    const TypeId type = listing.graph(id).value(value).type;
    if (!type.valid() || seen[static_cast<size_t>(type.index)]) continue;
    seen[static_cast<size_t>(type.index)] = true;
    ForEachDim(module.types()[type],
               [&](DimId dim) { AddSymbols(module.dims(), dim, names, known); });
  }
  return names;
}

std::vector<EntityId> InputsOf(const Listing& listing) {
  std::vector<EntityId> inputs;
  for (EntityId id : listing.scopes()[Listing::kProgram].ids) {
    if (listing[id].kind == EntityKind::kInput) inputs.push_back(id);
  }
  return inputs;
}

/// What the inputs say, place by place; nothing when they contradict each other.
Renaming FromInputs(const Listing& before, const Listing& after) {
  const std::vector<EntityId> a = InputsOf(before), b = InputsOf(after);
  if (a.size() != b.size()) return {};
  const DimTable& dims_a = before.root().module().dims();
  const DimTable& dims_b = after.root().module().dims();
  Renaming before_of, after_of;
  for (size_t i = 0; i < a.size(); ++i) {
    const Type* type_a = TypeOf(before, a[i]);
    const Type* type_b = TypeOf(after, b[i]);
    if (type_a == nullptr || type_b == nullptr || type_a->kind != type_b->kind) continue;
    std::vector<DimId> sizes_a, sizes_b;
    ForEachDim(*type_a, [&](DimId dim) { sizes_a.push_back(dim); });
    ForEachDim(*type_b, [&](DimId dim) { sizes_b.push_back(dim); });
    if (sizes_a.size() != sizes_b.size()) continue;
    for (size_t k = 0; k < sizes_a.size(); ++k) {
      if (!sizes_a[k].valid() || !sizes_b[k].valid()) continue;
      if (dims_a.kind(sizes_a[k]) != DimKind::kSymbol) continue;
      if (dims_b.kind(sizes_b[k]) != DimKind::kSymbol) continue;
      const std::string name_a(dims_a.name(sizes_a[k])), name_b(dims_b.name(sizes_b[k]));
      if (before_of.emplace(name_b, name_a).first->second != name_a) return {};
      if (after_of.emplace(name_a, name_b).first->second != name_b) return {};
    }
  }
  return before_of;
}

/// Adds symbols that one side alone has, first to first, if they are equally many.
void AddRest(const std::vector<std::string>& before, const std::vector<std::string>& after,
             Renaming& before_of) {
  std::set<std::string, std::less<>> used(before.begin(), before.end());
  std::vector<std::string> rest_before, rest_after;
  std::set<std::string, std::less<>> taken;
  for (const auto& [from, to] : before_of)
    taken.insert(to);
  for (const std::string& name : after) {
    if (before_of.contains(name)) continue;
    if (used.contains(name) && !taken.contains(name)) {
      taken.insert(name);
    } else {
      rest_after.push_back(name);
    }
  }
  for (const std::string& name : before) {
    if (!taken.contains(name)) rest_before.push_back(name);
  }
  if (rest_before.size() != rest_after.size()) return;
  for (size_t i = 0; i < rest_after.size(); ++i)
    before_of.emplace(rest_after[i], rest_before[i]);
}

}  // namespace

SymbolNames SymbolNames::UnbackedAsOne(const Module& module) {
  SymbolNames names;
  for (const Symbol& symbol : module.dims().symbols())
    if (!symbol.backed) names.before_of_.emplace(module.str(symbol.name), "u");
  return names;
}

std::string_view SymbolNames::Of(std::string_view after_name) const {
  const auto found = before_of_.find(after_name);
  return found == before_of_.end() ? after_name : found->second;
}

std::string SymbolNames::Translate(std::string_view text) const {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && IsWordChar(text[end]))
      ++end;
    if (end == i) {
      out += text[i++];
      continue;
    }
    out += Of(text.substr(i, end - i));
    i = end;
  }
  return out;
}

uint64_t SymbolNames::Hash(const DimTable& dims, DimId dim) const {
  const DimKind kind = dims.kind(dim);
  const uint64_t seed = Spread(static_cast<uint64_t>(kind) + 1);
  switch (kind) {
    case DimKind::kConst:
      return Mix(seed, static_cast<uint64_t>(dims.value(dim)));
    case DimKind::kSymbol:
      return Mix(seed, HashText(Of(dims.name(dim))));
    case DimKind::kAdd:
    case DimKind::kMul:
    case DimKind::kMin:
    case DimKind::kMax: {
      // Sorted by name: under other names in another order.
      uint64_t sum = 0;
      for (DimId operand : dims.operands(dim))
        sum += Spread(Hash(dims, operand));
      return Mix(seed, sum);
    }
    case DimKind::kFloorDiv:
    case DimKind::kMod:
    case DimKind::kPow:
    case DimKind::kCall:
      break;
  }
  uint64_t hash = kind == DimKind::kCall ? Mix(seed, HashText(dims.name(dim))) : seed;
  for (DimId operand : dims.operands(dim))
    hash = Mix(hash, Hash(dims, operand));
  return hash;
}

SymbolNames::SymbolNames(const Listing& before, const Listing& after) {
  const std::vector<std::string> symbols_before = SymbolsOf(before);
  const std::vector<std::string> symbols_after = SymbolsOf(after);
  if (symbols_before.empty() || symbols_after.empty()) return;
  // How many values have a type that the other side has, too.
  const auto common_types = [&](const SymbolNames& names) {
    std::unordered_map<uint64_t, int32_t> count;
    const auto key_of = [](const Listing& listing, EntityId id, const SymbolNames& as) {
      uint64_t hash = 0;
      if (const Type* type = TypeOf(listing, id)) {
        hash = static_cast<uint64_t>(type->kind) + 1;
        ForEachDim(*type, [&](DimId dim) {
          if (dim.valid()) hash = Mix(hash, as.Hash(listing.root().module().dims(), dim));
        });
      }
      return hash;
    };
    for (EntityId id : before.ids())
      ++count[key_of(before, id, {})];
    int32_t common = 0;
    for (EntityId id : after.ids())
      common += count[key_of(after, id, names)]-- > 0 ? 1 : 0;
    return common;
  };
  int32_t most = -1;  // of the names as they are: counted when there is something to compare with
  for (Renaming renaming : {Renaming{}, FromInputs(before, after)}) {
    AddRest(symbols_before, symbols_after, renaming);
    std::erase_if(renaming, [](const auto& entry) { return entry.first == entry.second; });
    if (renaming.empty()) continue;
    if (most < 0) most = common_types({});
    SymbolNames names;
    names.before_of_ = std::move(renaming);
    const int32_t common = common_types(names);
    if (common <= most) continue;
    most = common;
    before_of_ = std::move(names.before_of_);
  }
}

}  // namespace strata
