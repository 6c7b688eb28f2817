#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace strata {

/// Text as inline code of Markdown, in which nothing is markup. `in_table`: also pipes, which would
/// end a cell even there.
std::string MarkdownCode(std::string_view text, bool in_table = false);

/// A destination of a link in angle brackets, which nothing inside can end. `what` names it in
/// errors: not http(s), longer than 2,000 bytes.
Result<std::string> MarkdownUrl(std::string_view url, std::string_view what);

}  // namespace strata
