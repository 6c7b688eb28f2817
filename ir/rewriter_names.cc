// Names of new nodes, as FX makes them.

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "ir/rewriter.h"

namespace strata {
namespace {

/// Words that FX does not take for names, sorted: Python's keywords and builtins, and the globals
/// of generated code. Source: torch/fx/graph.py, `_Namespace._is_illegal_name`.
constexpr std::string_view kTakenByPython[] = {
    "abs",       "aiter",      "all",         "and",        "anext",        "any",
    "as",        "ascii",      "assert",      "async",      "await",        "bin",
    "bool",      "break",      "breakpoint",  "bytearray",  "bytes",        "callable",
    "chr",       "class",      "classmethod", "compile",    "complex",      "continue",
    "copyright", "credits",    "def",         "del",        "delattr",      "device",
    "dict",      "dir",        "divmod",      "elif",       "else",         "enumerate",
    "eval",      "except",     "exec",        "exit",       "filter",       "finally",
    "float",     "for",        "format",      "from",       "frozenset",    "fx_pytree",
    "getattr",   "global",     "globals",     "hasattr",    "hash",         "help",
    "hex",       "id",         "if",          "import",     "in",           "inf",
    "input",     "int",        "is",          "isinstance", "issubclass",   "iter",
    "lambda",    "len",        "license",     "list",       "locals",       "map",
    "max",       "memoryview", "min",         "nan",        "next",         "nonlocal",
    "not",       "object",     "oct",         "open",       "or",           "ord",
    "pass",      "pow",        "print",       "property",   "pytree",       "quit",
    "raise",     "range",      "repr",        "return",     "reversed",     "round",
    "set",       "setattr",    "slice",       "sorted",     "staticmethod", "str",
    "sum",       "super",      "torch",       "try",        "tuple",        "type",
    "vars",      "while",      "with",        "yield",      "zip"};

}  // namespace

bool Rewriter::IsTaken(StrId name) const {
  const auto index = static_cast<size_t>(name.index);
  return index < names_.size() && names_[index];
}

void Rewriter::SetTaken(StrId name, bool taken) {
  if (!name.valid()) return;
  const auto index = static_cast<size_t>(name.index);
  if (index >= names_.size()) names_.resize(std::max(index + 1, names_.size() * 2));
  names_[index] = taken;
}

void Rewriter::LearnNames() {
  names_known_ = true;
  for (NodeId id : graph_.nodes()) {
    const Node& node = graph_.node(id);
    SetTaken(node.name, true);
    for (size_t i = 0; i < node.num_results; ++i) {
      const StrId name = graph_.value(graph_.result(id, i)).name;
      SetTaken(name, true);
    }
  }
}

StrId Rewriter::UniqueName(std::string_view wanted) {
  if (!names_known_) LearnNames();
  std::string base;
  for (char c : wanted) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    base += plain ? c : '_';
  }
  // FX counts copies from the name without its number: add_3 copied is add_4, not add_3_1.
  if (const size_t digits = base.find_last_not_of("0123456789");
      digits != std::string::npos && digits + 1 < base.size() && base[digits] == '_' &&
      digits > 0) {
    base.resize(digits);
  }
  if (base.empty() || (base[0] >= '0' && base[0] <= '9')) base.insert(base.begin(), '_');
  StrId name = module_.Intern(base);
  int32_t& suffix = next_suffix_[name];
  bool is_taken = std::ranges::binary_search(kTakenByPython, base) || IsTaken(name);
  const size_t length = base.size();
  for (; is_taken; is_taken = IsTaken(name)) {
    base.resize(length);
    base += '_';
    char digits[12];
    base.append(digits, std::to_chars(digits, digits + sizeof digits, ++suffix).ptr);
    name = module_.Intern(base);
  }
  SetTaken(name, true);
  return name;
}

}  // namespace strata
