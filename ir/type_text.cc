#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "base/text.h"
#include "ir/row_placement.h"
#include "ir/type.h"

namespace strata {
namespace {

/// "cpu", "cuda:0", "meta".
bool IsDevice(std::string_view text) {
  return text[0] >= 'a' && text[0] <= 'z' &&
         std::ranges::all_of(text, [](char c) { return IsWordChar(c) || c == ':'; });
}

/// The length of the bracketed text at the start of `text`, both brackets included; 0 when it is
/// not closed.
size_t BracketedLength(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if ((text[i] == ')' || text[i] == ']') && --depth == 0) return i + 1;
  }
  return 0;
}

}  // namespace

/// One annotation. Every `Parse…` consumes from the front of `text_`, or fails.
class TypeTable::Parser {
 public:
  Parser(TypeTable& table, std::string_view text) : table_(table), text_(text) {}

  std::optional<Type> ParseAll() {
    Type type;
    if (text_.starts_with("Sym(") && BracketedLength(text_) == text_.size()) {
      type.kind = TypeKind::kSymInt;
      const Result<DimId> dim = table_.dims_.Parse(text_.substr(4, text_.size() - 5));
      if (!dim) return std::nullopt;
      type.dim = *dim;
      return type;
    }
    const size_t name_end = std::min(text_.find_first_of("[("), text_.size());
    if (name_end == text_.size()) return std::nullopt;
    if (text_[name_end] == '[') {
      if (!ParseTensor(text_, type)) return std::nullopt;
      return type;
    }
    const std::string_view wrapper = text_.substr(0, name_end);
    if (wrapper.empty() || !std::ranges::all_of(wrapper, IsWordChar) ||
        BracketedLength(text_) != text_.size()) {
      return std::nullopt;
    }
    type.wrapper = table_.strings_.Intern(wrapper);
    const std::string_view inner = text_.substr(name_end + 1, text_.size() - name_end - 2);
    const size_t tensor_end = EndOfTensor(inner);
    if (!ParseTensor(inner.substr(0, tensor_end), type)) return std::nullopt;
    if (tensor_end == inner.size()) return type;
    if (!ParsePlacements(TrimBlanks(inner.substr(tensor_end + 1)), type)) return std::nullopt;
    return type;
  }

 private:
  /// The position of the comma that ends the tensor of a wrapper, or the end.
  static size_t EndOfTensor(std::string_view inner) {
    size_t end = 0;
    while (end < inner.size() && inner[end] != ',') {
      const size_t bracketed = inner[end] == '[' ? BracketedLength(inner.substr(end)) : 0;
      end += std::max<size_t>(bracketed, 1);
    }
    return end;
  }

  bool ParseTensor(std::string_view text, Type& type) {
    const size_t name_end = text.find('[');
    if (name_end == std::string_view::npos) return false;
    const std::optional<DType> dtype = DTypeFromShortName(text.substr(0, name_end));
    if (!dtype) return false;
    type.dtype = *dtype;
    text.remove_prefix(name_end);
    if (!ParseDims(text, type.sizes)) return false;
    if (text.starts_with('[')) {
      type.has_strides = true;
      if (!ParseDims(text, type.strides) || type.strides.size() != type.sizes.size()) return false;
    }
    if (text.empty()) return true;
    if (!IsDevice(text)) return false;
    type.device = table_.strings_.Intern(text);
    return true;
  }

  /// `[a, b, …]`; commas also stand inside sizes.
  bool ParseDims(std::string_view& text, std::vector<DimId>& dims) {
    const size_t length = BracketedLength(text);
    if (length == 0) return false;
    std::string_view list = text.substr(1, length - 2);
    text.remove_prefix(length);
    int depth = 0;
    size_t begin = 0;
    for (size_t i = 0; i <= list.size() && !list.empty(); ++i) {
      if (i < list.size() && (list[i] == '(' || list[i] == '[')) ++depth;
      if (i < list.size() && (list[i] == ')' || list[i] == ']')) --depth;
      if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
      const std::optional<DimId> dim = ParseDim(TrimBlanks(list.substr(begin, i - begin)));
      if (!dim) return false;
      dims.push_back(*dim);
      begin = i + 1;
    }
    return true;
  }

  std::optional<DimId> ParseDim(std::string_view text) {
    // Nearly all sizes are plain numbers.
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return table_.dims_.Const(number);
    const Result<DimId> dim = table_.dims_.Parse(text);
    if (!dim) return std::nullopt;
    return *dim;
  }

  static bool IsRowLetter(char letter) { return letter == 'T' || letter == 'E' || letter == 'F'; }

  /// `T(0)`, `E(0)` or `F(0, 2)`.
  static bool ParseRows(std::string_view text, Placement& placement) {
    const char* const last = text.data() + text.size() - 1;
    placement.kind = Placement::Kind::kShard;
    placement.split = text[0] == 'T' ? kByToken : kByExpert;
    auto read = std::from_chars(text.data() + 2, last, placement.dim);
    if (read.ec != std::errc()) return false;
    if (text[0] != 'F') return read.ptr == last;
    if (!std::string_view(read.ptr, last).starts_with(", ")) return false;
    int32_t blocks = 0;
    read = std::from_chars(read.ptr + 2, last, blocks);
    placement.split = SplitOfBlocks(blocks);
    return read.ec == std::errc() && read.ptr == last && blocks > 0;
  }

  /// torch.distributed.tensor DTensorSpec.format_shard_order_str, for the placements that we have.
  bool ParsePlacements(std::string_view text, Type& type) {
    while (!text.empty()) {
      Placement placement;
      if (text.starts_with('R')) {
        text.remove_prefix(1);
      } else if (text.size() > 1 && text[1] == '(' && IsRowLetter(text[0])) {
        const size_t length = BracketedLength(text);
        if (length < 4 || !ParseRows(text.substr(0, length), placement)) return false;
        text.remove_prefix(length);
      } else if (text.starts_with("S(") || text.starts_with("P(") || text.starts_with("_S(")) {
        const bool is_strided = text[0] == '_';
        if (is_strided) text.remove_prefix(1);
        const size_t length = BracketedLength(text);
        if (length < 4) return false;
        const std::string_view inner = text.substr(2, length - 3);
        if (text[0] == 'S') {
          placement.kind = Placement::Kind::kShard;
          const char* const last = inner.data() + inner.size();
          std::from_chars_result read = std::from_chars(inner.data(), last, placement.dim);
          if (read.ec == std::errc() && std::string_view(read.ptr, last).starts_with(", "))
            read = std::from_chars(read.ptr + 2, last, placement.split);
          if (read.ec != std::errc() || read.ptr != last || is_strided != (placement.split > 0))
            return false;
        } else {
          placement.kind = Placement::Kind::kPartial;
          if (!std::ranges::all_of(inner, IsWordChar)) return false;
          placement.reduce = table_.strings_.Intern(inner);
        }
        text.remove_prefix(length);
      } else {
        return false;
      }
      type.placements.push_back(placement);
    }
    return !type.placements.empty();
  }

  TypeTable& table_;
  std::string_view text_;
};

TypeId TypeTable::Parse(std::string_view text) {
  if (const auto it = parsed_.find(text); it != parsed_.end()) return it->second;
  std::optional<Type> type = Parser(*this, text).ParseAll();
  if (!type) {
    type.emplace();
    type->kind = TypeKind::kOpaque;
    type->text = strings_.Intern(text);
  }
  const TypeId id = Intern(*type);
  parsed_.emplace(text, id);
  return id;
}

void PrintPlacement(const Placement& placement, const StringTable& strings, std::string& out) {
  switch (placement.kind) {
    case Placement::Kind::kReplicate:
      out += 'R';
      break;
    case Placement::Kind::kShard:
      out += placement.split > 0            ? "_S("
             : placement.split == 0         ? "S("
             : placement.split == kByToken  ? "T("
             : placement.split == kByExpert ? "E("
                                            : "F(";
      out += std::to_string(placement.dim);
      if (placement.split > 0) out += ", " + std::to_string(placement.split);
      if (IsBlocked(placement)) out += ", " + std::to_string(BlocksOf(placement.split));
      out += ')';
      break;
    case Placement::Kind::kPartial:
      out += "P(";
      out += strings[placement.reduce];
      out += ')';
      break;
  }
}

void TypeTable::Print(TypeId id, bool canonical, std::string& out) const {
  const Type& type = (*this)[id];
  const auto print_dim = [&](DimId dim) {
    if (canonical) {
      dims_.PrintCanonical(dim, out);
    } else {
      dims_.Print(dim, out);
    }
  };
  const auto print_dims = [&](const std::vector<DimId>& dims) {
    out += '[';
    for (size_t i = 0; i < dims.size(); ++i) {
      if (i > 0) out += ", ";
      print_dim(dims[i]);
    }
    out += ']';
  };

  if (type.kind == TypeKind::kOpaque) {
    out += strings_[type.text];
    return;
  }
  if (type.kind == TypeKind::kSymInt) {
    out += "Sym(";
    print_dim(type.dim);
    out += ')';
    return;
  }
  if (type.wrapper.valid()) {
    out += strings_[type.wrapper];
    out += '(';
  }
  out += ShortName(type.dtype);
  print_dims(type.sizes);
  if (type.has_strides) print_dims(type.strides);
  out += strings_[type.device];
  if (!type.placements.empty()) out += ", ";
  for (const Placement& placement : type.placements)
    PrintPlacement(placement, strings_, out);
  if (type.wrapper.valid()) out += ')';
}

void TypeTable::Print(TypeId id, std::string& out) const {
  Print(id, /*canonical=*/false, out);
}

void TypeTable::PrintCanonical(TypeId id, std::string& out) const {
  Print(id, /*canonical=*/true, out);
}

std::string TypeTable::ToString(TypeId id) const {
  std::string text;
  Print(id, text);
  return text;
}

}  // namespace strata
