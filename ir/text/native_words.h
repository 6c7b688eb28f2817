#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/module.h"

namespace strata {

/// Words that the native text reads as something else than a name; a name of this spelling is
/// quoted.
inline constexpr std::array<std::string_view, 15> kKeywords = {
    "None",   "True",      "False", "inf",         "nan",    "graph", "symbol", "attr",
    "method", "submodule", "_",     "placeholder", "output", "raw",   "device"};

/// True for identifiers that are not keywords: written bare.
bool IsPlainName(std::string_view text);
/// `name`, quoted as `%'…'` where it is not plain; `$i` follows for element `i` of a tuple, if >=
/// 0.
void AppendName(std::string_view name, std::string& out, int64_t element = -1);
/// A dotted path: operator, module, attribute; quoted as names are.
void AppendPath(std::string_view path, std::string& out);
/// A type with its storage offset and `+grad`; `?` when not known; `opaque('…')` when the IR has no
/// such type.
void AppendType(const Module& module, TypeId id, std::string& out);
/// Where the text of a type that starts at `begin` ends: at a blank, comma, `@` or `+` outside
/// brackets.
size_t TypeTextEnd(std::string_view text, size_t begin);

}  // namespace strata
