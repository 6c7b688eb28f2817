#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "diff/graph/listing.h"
#include "ir/graph.h"
#include "ir/text/native_line.h"

namespace strata {

/// The names of a listing's graphs; bodies have the numbers of its scopes.
class ListedNames : public NativeNames {
 public:
  explicit ListedNames(const Listing& listing);
  /// -1 for a graph that is not listed.
  int32_t OfGraph(const Graph& graph) const override;

 private:
  std::map<int32_t, int32_t> numbers_;
};

/// The names that a line of native text defines.
struct LineNames {
  std::string node;                   ///< "output" where the line does not say
  std::vector<std::string> elements;  ///< of a tuple; "" for those without a name
};
/// None for a text that is not a line; the parser of native text says why.
std::optional<LineNames> NamesOfLine(std::string_view line);

/// Compares lines that a patch shows of its base with those of the base at hand, under the names
/// of each. The same name must stand for the same node everywhere.
class ShownLines {
 public:
  /// `base` is a graph of the listing.
  ShownLines(const Listing& listing, const Graph& base);

  /// True when the line shown is that of `node` in all that the fingerprint covers.
  bool Matches(std::string_view shown, NodeId node);
  /// True when `shown` may be the name of what `base` names.
  bool MatchesName(std::string_view shown, std::string_view base);

 private:
  /// Notes that both are the same name, as lines write it; false when it contradicts earlier ones.
  bool Join(std::string_view shown, std::string_view base);

  const Graph& base_;
  const ListedNames numbers_;
  std::set<std::string, std::less<>> names_;  // of the base, as lines write them
  std::map<std::string, std::string, std::less<>> base_of_shown_, shown_of_base_;
};

}  // namespace strata
