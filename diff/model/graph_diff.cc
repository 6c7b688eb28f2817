#include "diff/model/graph_diff.h"

namespace strata {

std::string ToString(PairStatus status) {
  std::string text;
  const auto add = [&](bool atom, std::string_view name) {
    if (!atom) return;
    if (!text.empty()) text += '+';
    text += name;
  };
  add(status.renamed, "renamed");
  add(status.moved, "moved");
  add(status.changed, "changed");
  add(status.derived, "derived");
  return text.empty() ? "same" : text;
}

std::string_view ToString(Via via) {
  switch (via) {
    case Via::kPin:
      return "pin";
    case Via::kId:
      return "id";
    case Via::kInput:
      return "input";
    case Via::kCone:
      return "cone";
    case Via::kRadius:
      return "radius";
    case Via::kLocal:
      return "local";
    case Via::kOrder:
      return "order";
  }
  return "";
}

std::string_view ToString(RelationKind kind) {
  switch (kind) {
    case RelationKind::kReplace:
      return "replace";
    case RelationKind::kClone:
      return "clone";
    case RelationKind::kMerge:
      return "merge";
    case RelationKind::kBecameInput:
      return "became_input";
    case RelationKind::kBecameCompute:
      return "became_compute";
  }
  return "";
}

bool GraphDiff::Equal() const {
  return inserted.empty() && deleted.empty() &&
         std::ranges::none_of(pairs, [](const Pair& pair) { return pair.status.differs(); });
}

}  // namespace strata
