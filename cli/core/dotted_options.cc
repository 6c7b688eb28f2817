#include "cli/core/dotted_options.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace strata::cli {
namespace {

constexpr std::string_view kDashes = "--";

/// `training.min-lr-factor`: a name with a dot, which no other option has.
bool IsKey(std::string_view name) {
  return name.find('.') != std::string_view::npos && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}

/// `checkpoint.no_enable` without a value is `checkpoint.enable=false`.
std::string Switch(std::string key) {
  constexpr std::string_view kNo = "no_";
  const size_t member = key.rfind('.') + 1;
  if (key.compare(member, kNo.size(), kNo) != 0) return key + "=true";
  return key.erase(member, kNo.size()) + "=false";
}

}  // namespace

std::vector<std::string> WithSetOptions(Args args) {
  std::vector<std::string> words;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& word = args[i];
    if (word == kDashes) {
      words.insert(words.end(), args.begin() + static_cast<ptrdiff_t>(i), args.end());
      return words;
    }
    const size_t equals = word.find('=');
    std::string key = word.starts_with(kDashes)
                          ? word.substr(2, equals == word.npos ? word.npos : equals - 2)
                          : "";
    if (!IsKey(key)) {
      words.push_back(word);
      continue;
    }
    std::ranges::replace(key, '-', '_');
    words.emplace_back("--set");
    if (equals != word.npos) {
      words.push_back(key + word.substr(equals));
    } else if (i + 1 < args.size() && !args[i + 1].starts_with(kDashes)) {
      words.push_back(fmt::format("{}={}", key, args[++i]));
    } else {
      words.push_back(Switch(std::move(key)));
    }
  }
  return words;
}

}  // namespace strata::cli
