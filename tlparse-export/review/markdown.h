#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "diff/model/graph_diff.h"
#include "diff/policy/policy.h"

namespace strata {

struct ReviewOptions {
  std::string before_ref = {}, after_ref = {};
  const PolicyVerdict* verdict = nullptr;
  std::string link = {};   ///< URL of the whole report; "": none
  std::string image = {};  ///< URL of a picture of the change; "": none
  /// GitHub takes comments of 65,536 characters.
  size_t max_bytes = 60'000;
};

/// A diff as a comment on a pull request: verdict, counts, patterns, causes; the rest folded. Never
/// longer than `max_bytes`: what does not fit is left out at the end of its list, and the last
/// lines say how much of what. Foreign names stand in code only, so that none of them is markup.
///
/// REQUIRES: max_bytes >= 4000. Errors: a link or image that is not http(s).
Result<std::string> ReviewMarkdown(const GraphDiff& diff, const ReviewOptions& options);

}  // namespace strata
