#include "ir/text/native_words.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/python_literal.h"

namespace strata {

bool IsPlainName(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (char c : text) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!plain) return false;
  }
  if (text.size() > 11) return true;
  for (std::string_view keyword : kKeywords) {
    if (text == keyword) return false;
  }
  return true;
}

void AppendName(std::string_view name, std::string& out, int64_t element) {
  if (IsPlainName(name)) {
    out += name;
  } else {
    out += '%';
    AppendQuoted(name, out);
  }
  if (element >= 0) fmt::format_to(std::back_inserter(out), "${}", element);
}

void AppendPath(std::string_view path, std::string& out) {
  bool plain = !path.empty() && path.front() != '.' && path.back() != '.' &&
               !(path.front() >= '0' && path.front() <= '9');
  for (char c : path) {
    plain &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '.';
  }
  for (std::string_view keyword : kKeywords)
    plain &= path != keyword;
  if (plain) {
    out += path;
  } else {
    out += '%';
    AppendQuoted(path, out);
  }
}

void AppendType(const Module& module, TypeId id, std::string& out) {
  if (!id.valid()) {
    out += '?';
    return;
  }
  const size_t begin = out.size();
  module.types().Print(id, out);
  const Type& type = module.types()[id];
  const std::string_view text(out.data() + begin, out.size() - begin);
  if (type.kind == TypeKind::kOpaque || TypeTextEnd(text, 0) != text.size()) {
    const std::string copy(text);
    out.resize(begin);
    out += "opaque(";
    AppendQuoted(copy, out);
    out += ')';
    return;
  }
  if (type.kind != TypeKind::kTensor) return;
  if (type.dim.valid()) {
    out += "@(";
    module.dims().Print(type.dim, out);
    out += ')';
  }
  if (type.requires_grad) out += "+grad";
}

size_t TypeTextEnd(std::string_view text, size_t begin) {
  int depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') {
      if (depth == 0) return i;
      --depth;
    }
    if (c == '\n' || c == '\r') return i;
    if (depth == 0 && (c == ' ' || c == ',' || c == '@' || c == '+')) return i;
  }
  return text.size();
}

}  // namespace strata
