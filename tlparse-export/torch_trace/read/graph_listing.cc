#include "tlparse-export/torch_trace/read/graph_listing.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace strata {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {"placeholder", "get_attr",    "call_function",
                                                    "call_method", "call_module", "output"};

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// A node as both listings say it.
struct ListedNode {
  std::string_view kind, name, target;
  std::string_view args;    ///< without the brackets around them
  std::string_view kwargs;  ///< the same
};

/// The text up to the bracket that closes the one before it; none: it does not close.
std::optional<size_t> ClosingBracket(std::string_view text) {
  int depth = 1;
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = '\0';
      }
      continue;
    }
    if (c == '\'' || c == '"') quote = c;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth == 0) return i;
  }
  return std::nullopt;
}

/// The items between commas outside of brackets.
std::vector<std::string_view> Items(std::string_view text) {
  std::vector<std::string_view> items;
  while (true) {
    while (text.starts_with(' '))
      text.remove_prefix(1);
    if (text.empty()) return items;
    size_t end = 0;
    while (end < text.size() && text[end] != ',') {
      const char c = text[end++];
      if (c != '(' && c != '[' && c != '{') continue;
      const std::optional<size_t> close = ClosingBracket(text.substr(end));
      end = close ? end + *close + 1 : text.size();
    }
    items.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Writes the nodes of a listing as a class.
class FxWriter {
 public:
  void Add(const ListedNode& node) {
    const std::string name(node.name);
    if (node.kind == "placeholder") {
      parameters_ += ", " + name;
      names_.insert(name);
      return;
    }
    std::string line;
    if (node.kind == "output") {
      line = fmt::format("return {}", Values(node.args));
    } else {
      line = fmt::format("{} = {}", name, RightSide(node));
    }
    names_.insert(name);
    body_ += fmt::format("        {}\n", line);
  }
  void AddUnread(std::string_view line) { body_ += fmt::format("        {}\n", line); }

  std::string Text() const {
    return fmt::format("class GraphModule(torch.nn.Module):\n    def forward(self{}):\n{}",
                       parameters_, body_);
  }

 private:
  /// `%x`, literals, and words: a string has lost its quotes, a name of a node never has some.
  std::string Values(std::string_view text) const {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      const char c = text[i];
      if (c == '%') {
        ++i;
      } else if (c == '\'' || c == '"') {
        const size_t end = std::min(text.find(c, i + 1), text.size() - 1);
        out += text.substr(i, end - i + 1);
        i = end + 1;
      } else if (IsWord(c) || c == '.') {
        size_t end = i;
        while (end < text.size() && (IsWord(text[end]) || text[end] == '.'))
          ++end;
        out += Word(text.substr(i, end - i), i > 0 && text[i - 1] == '%',
                    end < text.size() ? text[end] : '\0');
        i = end;
      } else {
        out += c;
        ++i;
      }
    }
    return out;
  }

  std::string Word(std::string_view word, bool is_node, char next) const {
    constexpr std::array<std::string_view, 6> kKnown = {"None", "True", "False",
                                                        "inf",  "nan",  "Ellipsis"};
    const bool is_number = IsDigit(word[0]) || word[0] == '.';
    const bool is_call = next == '(' || next == '=';
    if (is_node || is_number || is_call || word.find('.') != std::string_view::npos ||
        names_.contains(word) || std::ranges::find(kKnown, word) != kKnown.end()) {
      return std::string(word);
    }
    return fmt::format("'{}'", word);
  }

  /// `, dim = 1` of `dim: 1`.
  std::string Keywords(std::string_view kwargs, bool is_first) const {
    std::string out;
    for (const std::string_view item : Items(kwargs)) {
      const size_t colon = item.find(':');
      if (colon == std::string_view::npos) continue;
      std::string_view key = item.substr(0, colon);
      if (key.size() > 2 && (key.front() == '\'' || key.front() == '"'))
        key = key.substr(1, key.size() - 2);
      std::string_view value = item.substr(colon + 1);
      while (value.starts_with(' '))
        value.remove_prefix(1);
      out += fmt::format("{}{} = {}", is_first && out.empty() ? "" : ", ", key, Values(value));
    }
    return out;
  }

  std::string RightSide(const ListedNode& node) const {
    std::vector<std::string> args;
    for (const std::string_view item : Items(node.args))
      args.push_back(Values(item));
    if (node.kind == "get_attr") return Member(node.target);
    const std::string function = Function(node.target);
    if (node.kind == "call_function" && function == "torch.ops._operator.getitem" &&
        args.size() == 2) {
      return fmt::format("{}[{}]", args[0], args[1]);
    }
    std::string callee = function;
    size_t first = 0;
    if (node.kind == "call_module") callee = Member(node.target);
    if (node.kind == "call_method" && !args.empty()) {
      callee = fmt::format("{}.{}", args[0], node.target);
      first = 1;
    }
    std::string list;
    for (size_t i = first; i < args.size(); ++i)
      list += fmt::format("{}{}", i == first ? "" : ", ", args[i]);
    return fmt::format("{}({}{})", callee, list, Keywords(node.kwargs, list.empty()));
  }

  /// `getattr(self.layers, "0").weight` of `layers.0.weight`, as torch.fx writes names that are not
  /// identifiers.
  static std::string Member(std::string_view path) {
    std::string out = "self";
    while (!path.empty()) {
      const size_t end = std::min(path.find('.'), path.size());
      const std::string_view name = path.substr(0, end);
      out = !name.empty() && IsDigit(name[0]) ? fmt::format("getattr({}, \"{}\")", out, name)
                                              : fmt::format("{}.{}", out, name);
      path.remove_prefix(std::min(end + 1, path.size()));
    }
    return out;
  }

  /// `torch.ops.aten.add.Tensor`, also of `aten.add.Tensor`, `operator.add`, `<built-in function
  /// add>` and `<function relu at 0x7f…>`.
  static std::string Function(std::string_view target) {
    for (const std::string_view prefix :
         {"<built-in function ", "<built-in method ", "<function "}) {
      if (!target.starts_with(prefix)) continue;
      std::string_view name = target.substr(prefix.size());
      name = name.substr(0, name.find_first_of(" >"));
      // Functions of the module `operator` are built in, those of torch are built-in methods.
      if (prefix == "<built-in function ") return fmt::format("torch.ops._operator.{}", name);
      return fmt::format("torch.{}", name);
    }
    for (const std::string_view module : {"operator.", "_operator."}) {
      if (target.starts_with(module))
        return fmt::format("torch.ops._operator.{}", target.substr(module.size()));
    }
    if (target.starts_with("torch.")) return std::string(target);
    const bool is_operator = std::ranges::count(target, '.') == 2;
    return is_operator ? fmt::format("torch.ops.{}", target) : std::string(target);
  }

  std::set<std::string, std::less<>> names_;
  std::string parameters_, body_;
};

/// `%add : [num_users=1] = call_function[target=torch.add](args = (%x, 1), kwargs = {})`.
std::optional<ListedNode> ReadListed(std::string_view line) {
  ListedNode node;
  if (!line.starts_with('%')) return std::nullopt;
  const size_t space = line.find(' ');
  const size_t equals = line.find("] = ");
  if (space == std::string_view::npos || equals == std::string_view::npos) return std::nullopt;
  node.name = line.substr(1, space - 1);
  std::string_view rest = line.substr(equals + 4);
  const size_t bracket = rest.find("[target=");
  if (bracket == std::string_view::npos) return std::nullopt;
  node.kind = rest.substr(0, bracket);
  rest.remove_prefix(bracket + 8);
  const std::optional<size_t> close = ClosingBracket(rest);
  if (!close || std::ranges::find(kKinds, node.kind) == kKinds.end()) return std::nullopt;
  node.target = rest.substr(0, *close);
  rest.remove_prefix(*close + 1);
  for (const auto& [mark, part] :
       {std::pair("args = (", &node.args), {"kwargs = {", &node.kwargs}}) {
    const size_t at = rest.find(mark);
    if (at == std::string_view::npos) continue;
    rest.remove_prefix(at + std::string_view(mark).size());
    const std::optional<size_t> end = ClosingBracket(rest);
    if (!end) return std::nullopt;
    *part = rest.substr(0, *end);
    rest.remove_prefix(*end + 1);
  }
  return node;
}

std::string_view Trim(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\r'))
    text.remove_suffix(1);
  return text;
}

/// The text inside the brackets around a cell; a cell without them is empty.
std::string_view Inside(std::string_view cell) {
  return cell.size() < 2 ? std::string_view() : cell.substr(1, cell.size() - 2);
}

}  // namespace

std::string FxOfGraphText(std::span<const std::string_view> lines) {
  FxWriter writer;
  for (const std::string_view raw : lines.subspan(1)) {
    const std::string_view line = Trim(raw);
    if (line.empty()) continue;
    constexpr std::string_view kReturn = "return ";
    if (line.starts_with(kReturn)) {
      writer.Add({.kind = "output",
                  .name = "output",
                  .target = "",
                  .args = line.substr(kReturn.size()),
                  .kwargs = ""});
    } else if (const auto node = ReadListed(line)) {
      writer.Add(*node);
    } else {
      writer.AddUnread(line);
    }
  }
  return writer.Text();
}

std::string FxOfTable(std::span<const std::string_view> lines) {
  constexpr size_t kColumns = 5;
  FxWriter writer;
  std::vector<size_t> begins;
  for (const std::string_view raw : lines.subspan(1)) {
    if (begins.empty()) {
      for (size_t at = raw.find('-'); at != std::string_view::npos;
           at = raw.find('-', std::min(raw.find(' ', at), raw.size())))
        begins.push_back(at);
      if (begins.size() != kColumns) return "";
      continue;
    }
    std::array<std::string_view, kColumns> cells;
    for (size_t i = 0; i < kColumns; ++i) {
      const size_t end = i + 1 < kColumns ? begins[i + 1] : raw.size();
      if (begins[i] < raw.size()) cells[i] = Trim(raw.substr(begins[i], end - begins[i]));
    }
    ListedNode node{.kind = cells[0],
                    .name = cells[1],
                    .target = cells[2],
                    .args = Inside(cells[3]),
                    .kwargs = Inside(cells[4])};
    if (node.kind == "output") {
      // The value is the only argument: `((add,),)`.
      const std::vector<std::string_view> items = Items(node.args);
      node.args = items.empty() ? "None" : items[0];
    }
    writer.Add(node);
  }
  return writer.Text();
}

bool IsTableHead(std::string_view line) {
  if (!line.starts_with("opcode ")) return false;
  size_t at = 0;
  for (const std::string_view word : {"name", "target", "args", "kwargs"}) {
    at = line.find(word, at + 1);
    if (at == std::string_view::npos) return false;
  }
  return true;
}

bool IsTableRow(std::string_view line) {
  if (line.starts_with("---")) return true;
  return std::ranges::any_of(kKinds, [&](std::string_view kind) {
    return line.starts_with(kind) && line.substr(kind.size()).starts_with(' ');
  });
}

bool HasTableHead(std::string_view text) {
  for (size_t at = text.find("opcode "); at != std::string_view::npos;
       at = text.find("opcode ", at + 1)) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (IsTableHead(line)) return true;
  }
  return false;
}

}  // namespace strata
