#include "runtime/train/data/pretokenizer.h"

#include <re2/re2.h>
#include <utility>

#include "base/text.h"

namespace strata {
namespace {

// Unicode's White_Space; RE2's \s knows ASCII only.
constexpr std::string_view kBlank =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kBlanksBeforeBlank = R"(\s+(?!\S)|\s+)";

/// Whether the group that begins `text` sets anything but whether case counts: `(?m:` is another
/// option in Oniguruma than in RE2.
bool HasOtherOptions(std::string_view text) {
  const size_t end = text.find_first_of(":)");
  return text.substr(2, end - 2).find_first_not_of("i-") != std::string_view::npos;
}

/// The same expression for RE2: classes with Unicode's meaning, lines as in Oniguruma.
Result<std::string> Translate(std::string_view pattern) {
  const auto unsupported = [&pattern](std::string_view what) {
    return Error(ErrorCode::kUnsupported, "{} in the expression {}", what, OneLine(pattern));
  };
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view rest = pattern.substr(i);
    if (rest.starts_with('\\') && rest.size() > 1) {
      const char kind = rest[1];
      ++i;
      if (kind == 's') {
        out += in_class ? std::string(kBlank) : fmt::format("[{}]", kBlank);
      } else if (kind == 'S' && !in_class) {
        out += fmt::format("[^{}]", kBlank);
      } else if (kind == 'd') {
        out += R"(\p{Nd})";
      } else if (kind == 'S' || kind == 'w' || kind == 'W' || kind == 'D' || kind == 'b') {
        return unsupported(fmt::format("\\{}", kind));
      } else {
        out += rest.substr(0, 2);
      }
      continue;
    }
    if (!in_class &&
        (rest.starts_with("(?=") || rest.starts_with("(?!") || rest.starts_with("(?<"))) {
      return unsupported("a lookaround");
    }
    if (!in_class && rest.starts_with("(?") && HasOtherOptions(rest)) {
      return unsupported("an option of Oniguruma's");
    }
    if (rest.starts_with("(") && !rest.starts_with("(?") && !in_class) {
      out += "(?:";
      continue;
    }
    if (!in_class && (rest[0] == '^' || rest[0] == '$')) {  // of every line
      out += fmt::format("(?m:{})", rest[0]);
      continue;
    }
    if (in_class && (rest[0] == '[' || rest.starts_with("&&"))) {
      return unsupported("a class within a class");
    }
    if (rest[0] == '[') {
      in_class = true;
      out += rest.starts_with("[^") ? "[^" : "[";
      i += rest.starts_with("[^") ? 1 : 0;
      continue;
    }
    if (rest[0] == ']') in_class = false;
    out += rest[0];
  }
  return out;
}

/// Bytes of the last character of `text`, which is valid UTF-8.
size_t LastCharacter(std::string_view text) {
  size_t length = 1;
  while (length < text.size() &&
         (static_cast<unsigned char>(text[text.size() - length]) & 0xc0U) == 0x80U)
    ++length;
  return length;
}

}  // namespace

Result<RegexSplitter> RegexSplitter::Compile(std::string_view pattern) {
  RegexSplitter splitter;
  std::string_view head = pattern;
  splitter.has_blanks_ = head.ends_with(kBlanksBeforeBlank);
  if (splitter.has_blanks_) head.remove_suffix(kBlanksBeforeBlank.size());
  STRATA_TRY(std::string translated, Translate(head));
  if (splitter.has_blanks_) translated += fmt::format("([{}]+)", kBlank);
  re2::RE2::Options options;
  options.set_log_errors(false);
  splitter.regex_ = std::make_unique<re2::RE2>(translated, options);
  if (!splitter.regex_->ok()) {
    return Error(ErrorCode::kUnsupported, "{} in the expression {}", splitter.regex_->error(),
                 OneLine(pattern));
  }
  return splitter;
}

RegexSplitter::RegexSplitter(RegexSplitter&&) noexcept = default;
RegexSplitter& RegexSplitter::operator=(RegexSplitter&&) noexcept = default;
RegexSplitter::~RegexSplitter() = default;

void RegexSplitter::Split(std::string_view text, std::vector<std::string_view>& pieces) const {
  size_t begin = 0;  // of what is not cut yet
  size_t at = 0;     // where the next match is looked for
  re2::StringPiece groups[2];
  const auto cut = [&](size_t end) {
    if (end > begin) pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  };
  const re2::StringPiece whole(text.data(), text.size());
  while (at < text.size() &&
         regex_->Match(whole, at, text.size(), re2::RE2::UNANCHORED, groups, has_blanks_ ? 2 : 1)) {
    const auto first = static_cast<size_t>(groups[0].data() - text.data());
    size_t length = groups[0].size();
    if (has_blanks_ && groups[1].data() != nullptr && first + length < text.size()) {
      const size_t last = LastCharacter(text.substr(first, length));
      if (last < length) length -= last;
    }
    if (length == 0) {  // An empty match cuts nothing.
      ++at;
      continue;
    }
    cut(first);
    cut(first + length);
    at = begin;
  }
  cut(text.size());
}

}  // namespace strata
