#include "diff/match/advice.h"

#include <string>
#include <string_view>
#include <unordered_map>

namespace strata {
namespace {

using NodesByName = std::unordered_map<std::string, EntityId>;

NodesByName NodesOf(const Listing& listing) {
  NodesByName nodes;
  for (EntityId id : listing.ids())
    nodes.emplace(listing.name(id), id);
  return nodes;
}

Error Unknown(std::string_view what, const std::string& name, std::string_view side) {
  return Error(ErrorCode::kNotFound,
               "{} of an unknown node: '{}': the {} graph has no node of that name", what, name,
               side);
}

Status TakeVetoes(const NodesByName& before, const NodesByName& after, const DiffOptions& options,
                  Matching& matching) {
  for (const auto& [name_before, name_after] : options.vetoes) {
    const auto a = before.find(name_before), b = after.find(name_after);
    if (a == before.end() && !name_before.empty()) return Unknown("veto", name_before, "before");
    if (b == after.end() && !name_after.empty()) return Unknown("veto", name_after, "after");
    if (name_before.empty() && name_after.empty()) {
      return Error("veto without a node: name one node, or two that are not the same");
    }
    if (name_after.empty()) {
      matching.Forbid(kBefore, a->second);
    } else if (name_before.empty()) {
      matching.Forbid(kAfter, b->second);
    } else {
      matching.Veto(a->second, b->second);
    }
  }
  return Ok();
}

Status TakePins(const NodesByName& before, const NodesByName& after, const DiffOptions& options,
                Matching& matching) {
  for (const auto& [name_before, name_after] : options.pins) {
    const auto a = before.find(name_before), b = after.find(name_after);
    if (a == before.end()) return Unknown("pin", name_before, "before");
    if (b == after.end()) return Unknown("pin", name_after, "after");
    if (matching.vetoed(a->second, b->second) || matching.forbidden(kBefore, a->second) ||
        matching.forbidden(kAfter, b->second)) {
      return Error("pin of a vetoed pair: '{}' = '{}': drop one of the two", name_before,
                   name_after);
    }
    if (matching.matched(kBefore, a->second) || matching.matched(kAfter, b->second)) {
      return Error("pin of a node that is pinned already: '{}' = '{}': name each node once",
                   name_before, name_after);
    }
    if (!matching.SameKind(a->second, b->second)) {
      return Error(
          "pin of nodes of different kinds: '{}' = '{}': pin inputs with inputs, computations with "
          "computations",
          name_before, name_after);
    }
    matching.Match(a->second, b->second, Via::kPin, 1);
  }
  return Ok();
}

}  // namespace

Status TakeAdvice(const Listing& before, const Listing& after, const DiffOptions& options,
                  Matching& matching) {
  if (options.pins.empty() && options.vetoes.empty()) return Ok();
  const NodesByName nodes_before = NodesOf(before), nodes_after = NodesOf(after);
  STRATA_RETURN_IF_ERROR(TakeVetoes(nodes_before, nodes_after, options, matching));
  return TakePins(nodes_before, nodes_after, options, matching);
}

}  // namespace strata
