#include "diff/patch/lines.h"

#include <algorithm>
#include <span>

#include "base/text.h"
#include "ir/text/native_cursor.h"
#include "ir/text/native_words.h"

namespace strata {
namespace {

/// A word (`aten.mm.default`, `1e`), a quoted text with its quotes, `%` with its quoted text, or
/// one other character.
struct Token {
  std::string_view text;
  size_t at;
  bool operator==(std::string_view other) const { return text == other; }
};

std::vector<Token> Tokenize(std::string_view line) {
  std::vector<Token> tokens;
  size_t i = 0;
  while (i < line.size()) {
    if (line[i] == ' ') {
      ++i;
      continue;
    }
    const size_t begin = i;
    if (line[i] == '%' && i + 1 < line.size() && (line[i + 1] == '\'' || line[i + 1] == '"')) ++i;
    if (line[i] == '\'' || line[i] == '"') {
      const char quote = line[i++];
      while (i < line.size() && line[i] != quote)
        i += line[i] == '\\' ? 2 : 1;
      i = std::min(i + 1, line.size());
    } else if (IsWordChar(line[i])) {
      while (i < line.size() && (IsWordChar(line[i]) || line[i] == '.'))
        ++i;
    } else {
      ++i;
    }
    tokens.push_back({line.substr(begin, i - begin), begin});
  }
  return tokens;
}

int DepthChange(const Token& token) {
  if (token == "(" || token == "[" || token == "{") return 1;
  if (token == ")" || token == "]" || token == "}") return -1;
  return 0;
}

/// The first token outside brackets that is `text`, from `begin` on.
size_t FindOutside(std::span<const Token> tokens, std::string_view text, size_t begin = 0) {
  int depth = 0;
  for (size_t i = begin; i < tokens.size(); ++i) {
    if (depth == 0 && tokens[i] == text) return i;
    depth += DepthChange(tokens[i]);
  }
  return tokens.size();
}

/// What the fingerprint covers of a line: not aliases and metadata. Of a tuple only the call, since
/// texts differ in how many unread elements they contain.
std::span<const Token> CoveredPart(std::span<const Token> tokens) {
  size_t begin = 0, end = std::min(FindOutside(tokens, "~"), FindOutside(tokens, "{"));
  if (!tokens.empty() && tokens[0] == "(") {
    begin = std::min(FindOutside(tokens, "="), end);
    end = std::min(end, FindOutside(tokens, "as", begin));
  }
  return tokens.subspan(begin, end - begin);
}

std::string Written(std::string_view name) {
  std::string text;
  AppendName(name, text);
  return text;
}

class NameReader : NativeCursor {
 public:
  explicit NameReader(std::string_view text) : NativeCursor(text, "") {}
  std::optional<std::string> Read(size_t at) {
    at_ = at;
    const Result<std::string_view> name = Name();
    if (!name) return std::nullopt;
    return std::string(*name);
  }
};

}  // namespace

std::optional<LineNames> NamesOfLine(std::string_view line) {
  const std::vector<Token> tokens = Tokenize(line);
  if (tokens.empty()) return std::nullopt;
  LineNames names;
  NameReader reader(line);
  const size_t as = FindOutside(tokens, "as", 1);
  if (as + 1 < tokens.size()) {
    std::optional<std::string> name = reader.Read(tokens[as + 1].at);
    if (!name) return std::nullopt;
    names.node = std::move(*name);
  }
  if (tokens[0] == "output") {
    if (names.node.empty()) names.node = "output";
  } else if (tokens[0] == "(") {
    for (size_t i = 1; i < tokens.size() && tokens[i] != ")"; ++i) {
      if (tokens[i] == ",") continue;
      std::optional<std::string> name = std::string();
      if (tokens[i] != "_") name = reader.Read(tokens[i].at);
      if (!name) return std::nullopt;
      names.elements.push_back(std::move(*name));
    }
  } else {
    std::optional<std::string> name = reader.Read(tokens[0].at);
    if (!name) return std::nullopt;
    names.node = std::move(*name);
  }
  return names;
}

ListedNames::ListedNames(const Listing& listing) {
  int32_t number = 0;
  for (const Listing::Scope& scope : listing.scopes())
    numbers_[scope.graph->id().index] = number++;
}

int32_t ListedNames::OfGraph(const Graph& graph) const {
  const auto found = numbers_.find(graph.id().index);
  return found == numbers_.end() ? -1 : found->second;
}

ShownLines::ShownLines(const Listing& listing, const Graph& base) : base_(base), numbers_(listing) {
  for (NodeId id : base.nodes()) {
    names_.insert(Written(base.name(id)));
    const Node& node = base.node(id);
    for (size_t i = 0; node.returns_tuple && i < node.num_results; ++i) {
      const ValueId element = base.result(id, i);
      if (base.value(element).name.valid()) names_.insert(Written(base.value_name(element)));
    }
  }
}

bool ShownLines::Matches(std::string_view shown, NodeId node) {
  NativeLineStyle style;
  style.aliases = style.places = style.sources = false;
  style.attribute = [](std::string_view) { return false; };
  std::string line;
  PrintLine(base_, node, style, numbers_, line);
  const std::vector<Token> shown_tokens = Tokenize(shown), base_tokens = Tokenize(line);
  const std::span<const Token> a = CoveredPart(shown_tokens), b = CoveredPart(base_tokens);
  if (a.size() != b.size()) return false;
  const size_t type = FindOutside(b, ":");
  for (size_t i = 0; i < b.size(); ++i) {
    const bool is_keyword = i > 0 && i + 1 < b.size() && b[i + 1] == "=";
    const bool may_differ = i < type && !is_keyword && names_.contains(b[i].text);
    if (may_differ ? !Join(a[i].text, b[i].text) : a[i].text != b[i].text) return false;
  }
  return true;
}

bool ShownLines::Join(std::string_view shown, std::string_view base) {
  const auto [forth, is_new] = base_of_shown_.try_emplace(std::string(shown), base);
  const auto [back, is_free] = shown_of_base_.try_emplace(std::string(base), shown);
  return forth->second == base && back->second == shown;
}

bool ShownLines::MatchesName(std::string_view shown, std::string_view base) {
  return Join(Written(shown), Written(base));
}

}  // namespace strata
