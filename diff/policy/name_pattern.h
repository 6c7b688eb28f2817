#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace strata {

/// A pattern for names and paths, matched as a whole: `*` is any text, dots included, `?` one
/// character, `{a,b}` alternatives, `{0..31}` numbers; `re:` begins a regular expression (RE2).
class NamePattern {
 public:
  /// Errors: a brace that is not closed, a wrong range or expression.
  static Result<NamePattern> Parse(std::string_view text);

  bool Matches(std::string_view name) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::shared_ptr<const re2::RE2> expression_;
};

/// True when one of them matches.
bool MatchesAny(const std::vector<NamePattern>& patterns, std::string_view name);

}  // namespace strata
