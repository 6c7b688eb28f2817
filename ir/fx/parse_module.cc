#include <algorithm>

#include <fmt/format.h>

#include "base/source_error.h"
#include "ir/fx/parser.h"

namespace strata {
namespace fx {
namespace {

constexpr std::string_view kClass = "class ";
constexpr std::string_view kBase = "(torch.nn.Module):";

bool IsImport(std::string_view line) {
  // Most lines begin with a blank.
  if (line.empty() || (line[0] != 'i' && line[0] != 'f')) return false;
  return line.starts_with("import ") || line.starts_with("from ");
}

constexpr size_t kMaxDiagnostics = 100;
/// Lines of one statement: a repr with line ends in it.
constexpr int kMaxStatementLines = 4096;

bool IsClassLine(std::string_view line) {
  return line.starts_with(kClass) && line.ends_with(kBase);
}

std::string_view ClassName(std::string_view class_line) {
  return class_line.substr(kClass.size(), class_line.size() - kClass.size() - kBase.size());
}

/// Text without terminal colours (`ESC [ … m`) and without escapes that begin none.
std::string RemoveColours(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '[') {
      const size_t end = text.find_first_not_of("0123456789;", i + 2);
      if (end != std::string_view::npos && text[end] == 'm') i = end;
    }
  }
  return plain;
}

}  // namespace

std::string_view Trim(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\r'; };
  while (!text.empty() && is_blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back()))
    text.remove_suffix(1);
  return text;
}

Parser::Parser(std::string_view text, const FxOptions& options)
    : text_(text),
      options_(options),
      document_{std::make_unique<Module>(), {}, 0},
      module_(*document_.module),
      comments_(options.known_lines == nullptr ? own_comments_ : options.known_lines->comments()),
      known_lines_(options.known_lines) {
  comments_.Begin(module_);
  if (known_lines_ != nullptr) known_lines_->Begin(module_);
  module_.ReserveStableIds(options.first_stable_id);
  if (text.find('\x1b') != std::string_view::npos) {
    uncoloured_ = RemoveColours(text);
    text_ = uncoloured_;
  }
  line_end_ = LineEnd(0);
}

size_t Parser::LineEnd(size_t from) const {
  return std::min(text_.find('\n', from), text_.size());
}

size_t Parser::Indent(size_t line_begin) const {
  size_t at = line_begin;
  while (at < text_.size() && text_[at] == ' ')
    ++at;
  return at - line_begin;
}

std::string_view Parser::Line() const {
  return Trim(text_.substr(line_begin_, line_end_ - line_begin_));
}

void Parser::NextLine() {
  ++line_;
  line_begin_ = std::min(line_end_ + 1, text_.size());
  line_end_ = LineEnd(line_begin_);
}

void Parser::GoTo(size_t offset) {
  while (line_end_ < std::min(offset, text_.size()))
    NextLine();
  NextLine();
}

void Parser::Diagnose(size_t offset, std::string_view what) {
  if (options_.strict && !error_)
    error_ = ErrorAt(options_.file, text_, offset, what, options_.place);
  if (++document_.num_diagnostics > kMaxDiagnostics) return;
  document_.diagnostics.push_back(DiagnosticAt(offset, what));
}

FxDiagnostic Parser::DiagnosticAt(size_t offset, std::string_view what) const {
  const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
  FxDiagnostic diagnostic;
  diagnostic.line = static_cast<size_t>(std::ranges::count(before, '\n')) + 1;
  const size_t line_begin =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  diagnostic.column = before.size() - line_begin + 1;
  diagnostic.what = what;
  constexpr size_t kShown = 200;
  diagnostic.skipped =
      Trim(text_.substr(line_begin, LineEnd(line_begin) - line_begin)).substr(0, kShown);
  return diagnostic;
}

Result<FxDocument> Parser::Run() {
  if (!FindGraph()) {
    return Error("no graph: {}: expected a 'class …(torch.nn.Module):' or a 'def forward(…):'",
                 options_.file);
  }
  ParseClass(Indent(line_begin_), "");
  if (!error_) CheckTrailer();
  if (error_) return *error_;
  return std::move(document_);
}

/// Makes the line of the first class, or of a bare `def forward`, the current one.
bool Parser::FindGraph() {
  size_t unread = text_.size();
  for (; line_begin_ < text_.size(); NextLine()) {
    const std::string_view line = Line();
    if (IsClassLine(line) || line.starts_with("def forward(")) {
      if (unread < text_.size()) Diagnose(unread, "text before the graph");
      return true;
    }
    const bool is_known =
        line.empty() || line.starts_with('#') || line == "ExportedProgram:" || IsImport(line);
    if (!is_known) unread = std::min(unread, line_begin_);
  }
  return false;
}

/// What PyTorch prints after a graph: a signature, `# graph id: 1407…`.
void Parser::CheckTrailer() {
  for (; line_begin_ < text_.size(); NextLine()) {
    const std::string_view line = Line();
    if (line.starts_with("Graph signature:")) return;
    const bool is_known =
        line.empty() || line.starts_with('#') || line.starts_with("Range constraints:");
    if (is_known) continue;
    Diagnose(line_begin_ + Indent(line_begin_), "text after the graph");
    return;
  }
}

/// The current line is a class line, or that of a bare `def`.
void Parser::ParseClass(size_t indent, const std::string& path) {
  Scope scope;
  scope.path = path;
  ++scope_number_;
  const bool has_class = IsClassLine(Line());
  const std::string_view class_name = has_class ? ClassName(Line()) : "forward";
  const std::string_view program_name =
      options_.graph_name.empty() ? class_name : options_.graph_name;
  Graph& graph =
      path.empty() ? module_.AddGraph(program_name) : module_.AddGraph(path, /*is_body=*/true);
  module_.MarkForeign(graph.id());
  if (!path.empty()) bodies_.emplace(path, graph.id());
  if (has_class) {
    scope.class_name = module_.Intern(class_name);
    NextLine();
    // Functions that symbolic tracing must not enter are declared before the method.
    while (line_begin_ < text_.size() && (Line().empty() || Line().starts_with("wrap(\""))) {
      NextLine();
    }
  }
  at_ = line_begin_ + Indent(line_begin_);
  limit_ = text_.size();
  wants_more_ = false;
  const size_t signature_at = at_;
  if (ParseSignature(scope)) {
    const size_t def_indent = signature_at - line_begin_;
    GoTo(at_);
    ParseBody(def_indent, scope);
    if (!error_) CheckFrees(scope);
  } else {
    Diagnose(failed_at_, failure_);
    NextLine();
  }

  while (!error_ && line_begin_ < text_.size()) {
    if (Line().empty()) {
      NextLine();
      continue;
    }
    const bool is_child =
        IsClassLine(Line()) && Indent(line_begin_) == indent + 4 && scope.class_name.valid();
    if (!is_child) break;
    if (class_depth_ >= kMaxClassDepth) {
      Diagnose(line_begin_, "classes are nested too deeply");
      break;
    }
    const std::string_view name = ClassName(Line()).empty() ? "_" : ClassName(Line());
    ++class_depth_;
    ParseClass(indent + 4, path.empty() ? std::string(name) : fmt::format("{}/{}", path, name));
    --class_depth_;
  }
  if (!error_) Build(scope, graph);
}

bool Parser::IsStatementStart(size_t line_begin, size_t indent) const {
  const size_t own = Indent(line_begin);
  if (own < indent) return true;
  if (own > indent) return false;
  const std::string_view line =
      text_.substr(line_begin + own, LineEnd(line_begin) - line_begin - own);
  if (line.starts_with('#') || line.starts_with("return") || line.starts_with("\"\"\""))
    return true;
  size_t end = 0;
  while (end < line.size() && IsNameChar(line[end]))
    ++end;
  if (end == 0 || IsDigit(line[0])) return false;
  const std::string_view rest = line.substr(end);
  return rest.starts_with(" = ") || rest.starts_with(": \"") || rest.starts_with(" : ") ||
         rest.starts_with(", ") || rest.starts_with('[');
}

void Parser::ParseBody(size_t def_indent, Scope& scope) {
  while (!error_ && line_begin_ < text_.size()) {
    const std::string_view line = Line();
    if (line.empty()) {
      NextLine();
      continue;
    }
    const size_t indent = Indent(line_begin_);
    if (indent <= def_indent) break;
    if (line.starts_with('#')) {
      scope.comments.push_back(comments_.Read(line));
      NextLine();
    } else if (line.starts_with("\"\"\"")) {
      // FX_GRAPH_SHOW_META=1 prints a block of metadata before each node.
      const size_t open = text_.find("\"\"\"", line_begin_);
      GoTo(std::min(text_.find("\"\"\"", open + 3), text_.size()));
    } else if (line == "pass") {
      NextLine();
      return;
    } else {
      ParseLines(indent, scope);
      if (scope.has_return) return;
    }
  }
  if (!error_ && !scope.has_return && !EndsPadded()) {
    Diagnose(line_begin_, "the graph has no return");
  }
}

/// A trace that failed is logged as far as it came, without a return (`make_fx_fail_partial`). The
/// printer ends it with an empty line of its indent, which a text that was cut does not have.
bool Parser::EndsPadded() const {
  const std::string_view last = text_.substr(text_.rfind('\n') + 1);
  return line_begin_ >= text_.size() && !last.empty() &&
         last.find_first_not_of(' ') == std::string_view::npos;
}

/// A statement, which may go over several lines; what cannot be read is passed over up to the next
/// one.
void Parser::ParseLines(size_t indent, Scope& scope) {
  const size_t begin = line_begin_ + indent;
  const std::string_view statement = text_.substr(begin);
  constexpr std::string_view kReturn = "return";
  const bool is_return = statement.starts_with(kReturn) && (statement.size() == kReturn.size() ||
                                                            !IsNameChar(statement[kReturn.size()]));
  const auto begin_at = [&](size_t end) {
    at_ = begin;
    limit_ = end;
    while (limit_ > begin && (text_[limit_ - 1] == ' ' || text_[limit_ - 1] == '\r'))
      --limit_;
    wants_more_ = false;
  };
  size_t end = line_end_;
  for (int lines = 1;; lines *= 2) {
    begin_at(end);
    if (lines == 1 && RepeatLine(scope)) return NextLine();
    const Sizes before = SizesOf(scope);
    if (is_return ? ParseReturn(scope) : ParseStatement(scope)) {
      if (lines == 1 && !is_return) RememberLine(begin, scope, before);
      GoTo(at_);
      return;
    }
    scope.pool.resize(before.pool);
    scope.kwargs.resize(before.kwargs);
    scope.announced.resize(before.announced);
    lists_.resize(before.lists);
    scope.frees.resize(before.frees);
    size_t longer = end;
    for (int i = 0; i < lines && longer < text_.size(); ++i) {
      if (IsStatementStart(longer + 1, indent)) break;
      longer = LineEnd(longer + 1);
    }
    if (!wants_more_ || longer == end || lines > kMaxStatementLines) break;
    end = longer;
  }
  Diagnose(failed_at_, failure_);
  at_ = begin;
  limit_ = line_end_;
  if (const std::string_view name = TakeName(); !name.empty() && !is_return) {
    const StrId id = module_.Intern(name);
    if (Find(id) == nullptr) Bind(id, kSkipped);
  }
  do {
    NextLine();
  } while (line_begin_ < text_.size() && !Line().empty() && !IsStatementStart(line_begin_, indent));
}

}  // namespace fx

Result<FxDocument> ParseFx(std::string_view text, const FxOptions& options) {
  return fx::Parser(text, options).Run();
}

namespace {

/// `text` without the lines before its class or function that import, comment or are empty; dumps
/// of graphs as Python files begin with some.
std::string_view WithoutImports(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (!fx::Trim(line).empty() && !line.starts_with('#') && !fx::IsImport(line)) break;
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return rest;
}

bool HasImport(std::string_view text) {
  while (!fx::IsImport(text)) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
  return true;
}

/// Nothing but the first line begins at the left.
bool IsOneBlock(std::string_view text) {
  for (size_t end = text.find('\n'); end + 1 < text.size(); end = text.find('\n', end + 1)) {
    const char first = text[end + 1];
    if (first != ' ' && first != '\n' && first != '\r' && first != '#') return false;
    if (text.find('\n', end + 1) == std::string_view::npos) break;
  }
  return true;
}

}  // namespace

bool LooksLikeFxGraph(std::string_view text) {
  const std::string_view rest = WithoutImports(text);
  size_t class_end = rest.find(fx::kBase);
  while (class_end != std::string_view::npos) {
    const size_t line = rest.rfind('\n', class_end) + 1;  // npos + 1 is 0
    if (fx::Trim(rest.substr(line, class_end - line)).starts_with(fx::kClass)) break;
    class_end = rest.find(fx::kBase, class_end + 1);
  }
  const bool is_bare = fx::Trim(rest.substr(0, rest.find('\n'))).starts_with("def forward(");
  if (class_end == std::string_view::npos && !is_bare) return false;
  if (rest.find("def forward(", is_bare ? 0 : class_end) == std::string_view::npos) return false;
  if (HasImport(rest)) return false;
  // A program that contains a graph does something with it.
  const std::string_view before = text.substr(0, text.size() - rest.size());
  const bool imports = before.find("import ") != std::string_view::npos;
  return !imports || IsOneBlock(rest);
}

}  // namespace strata
