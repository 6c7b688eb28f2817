#include "diff/compare/literals.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "ir/module.h"

namespace strata {
namespace {

/// Orders paths as arguments are printed: `args[2]` before `args[10]` before `kwargs.a`.
bool PathBefore(std::string_view a, std::string_view b) {
  const auto digits = [](std::string_view text) {
    const size_t end = text.find_first_not_of("0123456789");
    return std::min(end, text.size());
  };
  while (!a.empty() && !b.empty()) {
    const size_t digits_a = digits(a), digits_b = digits(b);
    if (digits_a != digits_b) return digits_a < digits_b;
    const size_t length = std::max<size_t>(digits_a, 1);
    if (const int order = a.substr(0, length).compare(b.substr(0, length)); order != 0) {
      return order < 0;
    }
    a.remove_prefix(length);
    b.remove_prefix(length);
  }
  return a.size() < b.size();
}

/// What a side has at each path: the literal where there is one, else the operand that the text
/// shows.
using SpotLeaves = std::unordered_map<std::string_view, const Leaf*>;

SpotLeaves SpotLeavesOf(const ListedLeaves& node, const OperandPlaces& places, size_t side) {
  SpotLeaves spots;
  size_t operand = 0;
  for (const Leaf& leaf : node.leaves) {
    if (leaf.operand.valid() && !places.InText(side, operand++)) continue;
    const Leaf*& spot = spots.try_emplace(leaf.path, &leaf).first->second;
    if (spot->operand.valid() && !leaf.operand.valid()) spot = &leaf;
  }
  return spots;
}

std::string TextOf(const ListedLeaves& node, const Leaf& leaf) {
  return leaf.operand.valid() ? node.listing.name(leaf.operand) : leaf.text;
}

/// An argument as a whole.
struct Whole {
  std::string path, text, skeleton;
};

std::vector<Whole> WholesOf(const ListedLeaves& listed) {
  const Graph& graph = listed.listing.graph(listed.id);
  const NodeId id = listed.listing[listed.id].node;
  std::vector<Whole> result;
  const auto add = [&](std::string path, const Arg& arg) {
    result.push_back({std::move(path), LiteralText(graph, arg), SkeletonText(graph, arg)});
  };
  const std::span<const Arg> args = graph.args(id);
  for (size_t i = 0; i < args.size(); ++i)
    add(fmt::format("args[{}]", i), args[i]);
  for (size_t i = 0; i < graph.node(id).num_kwargs; ++i) {
    const NamedArg kwarg = graph.kwarg(id, i);
    add(fmt::format("kwargs.{}", graph.module().str(kwarg.name)), kwarg.value);
  }
  return result;
}

}  // namespace

void AddLiteralDiffs(const ListedLeaves& before, const ListedLeaves& after,
                     const OperandPlaces& places, const SymbolNames& symbols, FieldDiffs& fields) {
  // An output of many results has no literals.
  if (AreOperands(before.leaves) && AreOperands(after.leaves)) return;
  struct Difference {
    std::string_view path;
    std::optional<std::string> before, after;
  };
  std::vector<Difference> differences;
  const auto same = [&](std::string_view a, std::string_view b) {
    return a == b || (!symbols.empty() && a == symbols.Translate(b));
  };
  const SpotLeaves spots_before = SpotLeavesOf(before, places, 0);
  const SpotLeaves spots_after = SpotLeavesOf(after, places, 1);
  for (const auto& [path, leaf] : spots_before) {
    const auto found = spots_after.find(path);
    if (found == spots_after.end()) {
      if (!leaf->operand.valid()) differences.push_back({leaf->path, leaf->text, std::nullopt});
      continue;
    }
    const Leaf& other = *found->second;
    if (leaf->operand.valid() && other.operand.valid()) continue;
    const bool one_kind = leaf->operand.valid() == other.operand.valid();
    if (one_kind && same(leaf->skeleton, other.skeleton)) continue;
    differences.push_back({leaf->path, TextOf(before, *leaf), TextOf(after, other)});
  }
  for (const auto& [path, leaf] : spots_after) {
    if (leaf->operand.valid() || spots_before.contains(path)) continue;
    differences.push_back({leaf->path, std::nullopt, leaf->text});
  }
  std::ranges::sort(differences, PathBefore, &Difference::path);
  for (const auto& [path, text_before, text_after] : differences)
    fields.Add({path, text_before, text_after});
}

void AddContainerDiffs(const ListedLeaves& a, const ListedLeaves& b, FieldDiffs& fields) {
  const std::vector<Whole> before = WholesOf(a);
  std::vector<Whole> after = WholesOf(b);
  for (const Whole& whole : before) {
    const auto found = std::ranges::find(after, whole.path, &Whole::path);
    if (found == after.end()) {
      fields.Add({whole.path, whole.text, std::nullopt});
      continue;
    }
    if (found->skeleton != whole.skeleton) fields.Add({whole.path, whole.text, found->text});
    after.erase(found);
  }
  for (const Whole& whole : after)
    fields.Add({whole.path, std::nullopt, whole.text});
}

}  // namespace strata
