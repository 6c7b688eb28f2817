#include "diff/policy/invariants.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "diff/graph/arguments.h"
#include "diff/graph/type_text.h"
#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

class InvariantChecker {
 public:
  explicit InvariantChecker(const GraphDiff& diff) : diff_(diff) {}

  std::string Check(std::string_view name) const {
    if (name == "same_inputs") return InputsDiffer();
    if (name == "same_outputs") return OutputsDiffer();
    if (name == "same_collectives") {
      return SequencesDiffer("collectives",
                             [](const OpTraits& traits) { return traits.collective; });
    }
    if (name == "same_mutations")
      return SequencesDiffer("mutations", [](const OpTraits& traits) { return traits.mutates; });
    return name == "no_new_targets" ? NewTargets() : "";
  }

 private:
  /// Inputs of the program and their types, in order.
  std::string InputsDiffer() const {
    std::vector<EntityId> sides[2];
    const Listing* const listings[2] = {&diff_.before, &diff_.after};
    for (size_t side = 0; side < 2; ++side) {
      for (EntityId id : listings[side]->scopes()[Listing::kProgram].ids)
        if ((*listings[side])[id].kind == EntityKind::kInput) sides[side].push_back(id);
    }
    if (sides[0].size() != sides[1].size()) {
      return fmt::format("{} inputs, not {}", sides[1].size(), sides[0].size());
    }
    for (size_t i = 0; i < sides[0].size(); ++i) {
      const PairId pair = diff_.pair_of_before[sides[0][i]];
      if (!pair.valid() || diff_.pairs[pair].after != sides[1][i] ||
          TypesDiffer(TypeTextOf(diff_.before, sides[0][i]),
                      TypeTextOf(diff_.after, sides[1][i]))) {
        return fmt::format("input {} is another: {}, not {}", i, diff_.after.name(sides[1][i]),
                           diff_.before.name(sides[0][i]));
      }
    }
    return "";
  }

  static bool TypesDiffer(const TypeText& a, const TypeText& b) {
    return Differ(a.dtype, b.dtype) || Differ(a.shape, b.shape) || Differ(a.device, b.device) ||
           Differ(a.placement, b.placement);
  }

  /// How many values the program returns, and of which types.
  std::string OutputsDiffer() const {
    const std::vector<TypeText> before = OutputTypes(diff_.before);
    const std::vector<TypeText> after = OutputTypes(diff_.after);
    if (before.size() != after.size()) {
      return fmt::format("{} outputs, not {}", after.size(), before.size());
    }
    for (size_t i = 0; i < before.size(); ++i) {
      if (TypesDiffer(before[i], after[i])) return fmt::format("output {} has another type", i);
    }
    return "";
  }

  static std::vector<TypeText> OutputTypes(const Listing& listing) {
    std::vector<TypeText> types;
    const Graph& graph = listing.root();
    if (!graph.output().valid()) return types;
    graph.ForEachOperand(graph.output(), [&](ValueId value) {
      types.push_back(TypeTextOf(listing, listing.FindValue(graph.id(), value)));
    });
    return types;
  }

  /// Operators of one kind with their literals, in order, of the program and its bodies.
  template <class Test>
  std::string SequencesDiffer(std::string_view what, Test&& test) const {
    const auto sequence = [&](const Listing& listing) {
      std::vector<EntityId> ids;
      for (EntityId id : listing.ids())
        if (!listing.target(id).empty() && test(TraitsAt(listing, id))) ids.push_back(id);
      return ids;
    };
    const std::vector<EntityId> before = sequence(diff_.before), after = sequence(diff_.after);
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      const std::string a = CallText(diff_.before, before[i]), b = CallText(diff_.after, after[i]);
      if (a == b) continue;
      return fmt::format("{} differ at {}: {} is {}, not {} as {}", what, i,
                         diff_.after.name(after[i]), b, a, diff_.before.name(before[i]));
    }
    if (before.size() == after.size()) return "";
    return fmt::format("{} {}, not {}", after.size(), what, before.size());
  }

  static OpTraits TraitsAt(const Listing& listing, EntityId id) {
    const Entity& entity = listing[id];
    const Graph& graph = listing.graph(id);
    const bool is_call = !entity.element.valid() && graph.node(entity.node).kind == NodeKind::kCall;
    return is_call ? TraitsOf(graph, entity.node) : TraitsOf(listing.target(id));
  }

  /// `_c10d_functional.all_reduce.default(_, 'sum', 'tp')`: groups and reductions count, names do
  /// not.
  static std::string CallText(const Listing& listing, EntityId id) {
    std::string text(listing.target(id));
    char separator = '(';
    for (const Leaf& leaf : LeavesOf(listing, id)) {
      text += fmt::format("{}{}{}", separator, separator == ',' ? " " : "", leaf.skeleton);
      separator = ',';
    }
    return text + (separator == '(' ? "()" : ")");
  }

  std::string NewTargets() const {
    std::set<std::string_view> known, added;
    for (EntityId id : diff_.before.ids())
      known.insert(diff_.before.target(id));
    for (EntityId id : diff_.after.ids())
      if (!known.contains(diff_.after.target(id))) added.insert(diff_.after.target(id));
    if (added.empty()) return "";
    std::string text = "new operators:";
    for (std::string_view target : added)
      text += fmt::format(" {}", target);
    return text;
  }

  const GraphDiff& diff_;
};

}  // namespace

std::string BrokenInvariant(const GraphDiff& diff, std::string_view name) {
  return InvariantChecker(diff).Check(name);
}

}  // namespace strata
