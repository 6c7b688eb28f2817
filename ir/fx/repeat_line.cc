#include <algorithm>

#include "ir/fx/parser.h"

namespace strata::fx {

Parser::Sizes Parser::SizesOf(const Scope& scope) const {
  return {scope.statements.size(),  scope.pool.size(), scope.kwargs.size(),
          scope.announced.size(),   lists_.size(),     scope.frees.size(),
          document_.num_diagnostics};
}

KnownLines::Meaning Parser::MeaningOf(const Binding* binding) const {
  using Meaning = KnownLines::Meaning;
  if (binding == nullptr) return Meaning::kNothing;
  if (binding->statement == kSkipped) return Meaning::kSkipped;
  return binding->statement < 0 || binding->is_renamed ? Meaning::kOther : Meaning::kValue;
}

bool Parser::RepeatLine(Scope& scope) {
  if (known_lines_ == nullptr || !lists_.empty()) return false;
  const KnownLines::Line* const line = known_lines_->Find(Rest());
  if (line == nullptr) return false;
  operands_.clear();
  for (const KnownLines::Name& name : known_lines_->names(*line)) {
    const Binding* const binding = BindingOf(known_lines_->InModule(name.name));
    if (MeaningOf(binding) != name.meaning) return false;
    operands_.push_back(binding == nullptr ? 0 : binding->statement);
  }

  const auto index = static_cast<int32_t>(scope.statements.size());
  const auto elements = static_cast<uint32_t>(scope.pool.size());
  const auto here = [&](const Arg& arg) {
    if (arg.is_value()) return Arg(ValueId{operands_[static_cast<size_t>(arg.value().index)]});
    if (arg.is_span()) return Arg::Span(arg.kind(), elements + arg.span_begin(), arg.span_size());
    return known_lines_->InModule(arg);
  };
  Statement& statement = scope.statements.emplace_back();
  statement.kind = line->kind;
  statement.name = known_lines_->InModule(line->name);
  statement.type = known_lines_->TypeInModule(line->type);
  statement.op = known_lines_->InModule(line->op);
  statement.python_type = known_lines_->InModule(line->python_type);
  statement.args_begin = elements + line->args_begin;
  statement.num_args = line->num_args;
  statement.kwargs_begin = static_cast<uint32_t>(scope.kwargs.size());
  statement.num_kwargs = line->kwargs.size;
  statement.comment = static_cast<int32_t>(scope.comments.size()) - 1;
  statement.line = line_;
  for (const Arg& arg : known_lines_->elements(*line))
    scope.pool.push_back(here(arg));
  for (const NamedArg& arg : known_lines_->kwargs(*line))
    scope.kwargs.push_back({known_lines_->InModule(arg.name), here(arg.value)});
  for (const KnownLines::Free& free : known_lines_->frees(*line))
    scope.frees.push_back({known_lines_->InModule(free.name), index, at_ + free.offset});
  Bind(statement.name, index);
  known_lines_->Place(line_);
  return true;
}

void Parser::RememberLine(size_t begin, const Scope& scope, const Sizes& before) {
  if (known_lines_ == nullptr || !is_repeatable_) return;
  const Sizes after = SizesOf(scope);
  if (after.statements != before.statements + 1 || after.announced != before.announced ||
      after.lists != before.lists || after.diagnostics != before.diagnostics) {
    return;
  }
  const Statement& statement = scope.statements.back();
  if (statement.kind == NodeKind::kPlaceholder) return;

  KnownLines::Parts& parts = line_parts_;
  for (const Lookup& lookup : lookups_) {
    if (lookup.meaning == KnownLines::Meaning::kOther) return;
  }
  parts.names.clear();
  operands_.clear();  // statements of the names
  for (const Lookup& lookup : lookups_) {
    const StrId name = known_lines_->Know(lookup.name);
    if (std::ranges::find(parts.names, name, &KnownLines::Name::name) != parts.names.end())
      continue;
    parts.names.push_back({name, lookup.meaning});
    operands_.push_back(lookup.meaning == KnownLines::Meaning::kValue ? lookup.statement : -1);
  }
  const auto known = [&](const Arg& arg) {
    if (arg.is_span()) {
      return Arg::Span(arg.kind(), arg.span_begin() - static_cast<uint32_t>(before.pool),
                       arg.span_size());
    }
    if (!arg.is_value()) return known_lines_->Know(arg);
    const auto name = std::ranges::find(operands_, arg.value().index);
    STRATA_CHECK(name != operands_.end(), "an operand that no name means");
    return Arg(ValueId{static_cast<int32_t>(name - operands_.begin())});
  };
  parts.elements.clear();
  for (size_t i = before.pool; i < after.pool; ++i)
    parts.elements.push_back(known(scope.pool[i]));
  parts.kwargs.clear();
  for (size_t i = before.kwargs; i < after.kwargs; ++i)
    parts.kwargs.push_back(
        {known_lines_->Know(scope.kwargs[i].name), known(scope.kwargs[i].value)});
  parts.frees.clear();
  for (size_t i = before.frees; i < after.frees; ++i)
    parts.frees.push_back({known_lines_->Know(scope.frees[i].name), scope.frees[i].offset - begin});

  KnownLines::Line line;
  line.kind = statement.kind;
  line.op = known_lines_->Know(statement.op);
  line.name = known_lines_->Know(statement.name);
  line.python_type = known_lines_->Know(statement.python_type);
  if (statement.type.valid()) line.type = known_lines_->Know(annotation_);
  line.args_begin = statement.args_begin - static_cast<uint32_t>(before.pool);
  line.num_args = statement.num_args;
  const std::string_view text = text_.substr(begin, limit_ - begin);
  if (known_lines_->Add(text, line, parts)) known_lines_->Place(line_);
}

}  // namespace strata::fx
