#include <fmt/format.h>

#include "ir/fx/parser.h"

namespace strata::fx {
namespace {

constexpr size_t kMaxFindings = 100;
constexpr int32_t kNever = -1;

/// The statement that uses each one last; kNever when none does.
std::vector<int32_t> LastUses(const Scope& scope) {
  std::vector<int32_t> last(scope.statements.size(), kNever);
  int32_t user = 0;
  const auto use = [&](const auto& self, const Arg& arg) -> void {
    if (arg.is_value()) {
      last[static_cast<size_t>(arg.value().index)] = user;
    } else if (arg.is_span()) {
      for (uint32_t i = 0; i < arg.span_size(); ++i)
        self(self, scope.pool[arg.span_begin() + i]);
    }
  };
  for (const Statement& s : scope.statements) {
    for (uint32_t i = 0; i < s.num_args; ++i)
      use(use, scope.pool[s.args_begin + i]);
    for (uint32_t i = 0; i < s.num_kwargs; ++i)
      use(use, scope.kwargs[s.kwargs_begin + i].value);
    ++user;
  }
  return last;
}

}  // namespace

/// The uses of a text determine what it frees: a name after its last use, unless that is a return.
/// A difference means that the text or the reader is wrong.
void Parser::CheckFrees(const Scope& scope) {
  if (scope.frees.empty() || document_.num_diagnostics > 0) return;
  const auto add = [&](size_t offset, std::string_view what, StrId name) {
    if (++document_.num_findings > kMaxFindings) return;
    document_.findings.push_back(
        DiagnosticAt(offset, fmt::format("'{}' {}", module_.str(name), what)));
  };
  const std::vector<int32_t> last = LastUses(scope);
  std::vector<bool> is_freed(scope.statements.size(), false);
  for (const Scope::Free& free : scope.frees) {
    const Binding* binding = BindingOf(free.name);
    if (binding == nullptr) {
      add(free.offset, "is freed and was never there", free.name);
      continue;
    }
    if (binding->statement < 0) continue;  // a list
    const auto freed = static_cast<size_t>(binding->statement);
    if (is_freed[freed]) add(free.offset, "is freed twice", free.name);
    is_freed[freed] = true;
    if (last[freed] > free.statement) add(free.offset, "is used after it was freed", free.name);
  }
  size_t offset = 0;
  int32_t line = 0;  // of offset
  for (size_t i = 0; i < scope.statements.size(); ++i) {
    const Statement& s = scope.statements[i];
    if (is_freed[i] || s.kind == NodeKind::kOutput) continue;
    if (last[i] == kNever) continue;  // old versions leave it
    const bool is_returned =
        scope.statements[static_cast<size_t>(last[i])].kind == NodeKind::kOutput;
    if (is_returned) continue;
    for (; line < s.line; ++line)  // statements stand in the order of their lines
      offset = LineEnd(offset) + 1;
    add(offset + Indent(offset), "is not freed after its last use", s.name);
  }
}

}  // namespace strata::fx
