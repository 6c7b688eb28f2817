#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/fx/comment.h"
#include "ir/fx/fx.h"
#include "ir/fx/known_lines.h"
#include "ir/fx/operators.h"
#include "ir/rewriter.h"

namespace strata::fx {

/// Names that FX gives to sizes that are not nodes: s77, u0, zf1.
bool IsSymbol(std::string_view name);

/// The begin of a function.
inline constexpr std::string_view kDef = "def ";

/// Without blanks and carriage returns around it.
std::string_view Trim(std::string_view text);

/// A statement of a body before it is a node. Operands are indices of statements, in the form of
/// value ids.
struct Statement {
  NodeKind kind = NodeKind::kCall;
  StrId op, name;
  TypeId type;
  uint32_t args_begin = 0, num_args = 0;      ///< in Scope::pool
  uint32_t kwargs_begin = 0, num_kwargs = 0;  ///< in Scope::kwargs
  int32_t comment = -1;                       ///< in Scope::comments
  int32_t line = 0;                           ///< 0-based
  StrId argument, descriptor, python_type;
};

/// One class while it is read.
struct Scope {
  std::vector<Statement> statements;
  std::vector<Arg> pool;
  std::vector<NamedArg> kwargs;
  std::vector<CommentLine> comments;
  std::string path;  ///< of the body; "" for the program
  /// A name behind a statement, `;  name = None`.
  struct Free {
    StrId name;
    int32_t statement = 0;
    size_t offset = 0;
  };
  std::vector<Free> frees;
  StrId class_name;
  bool is_expanded = false;  ///< one parameter per line
  bool is_boxed = false;     // takes its inputs from a list
  bool has_return = false;
  bool binds_symbols = false;  // `s0 = x.shape[1]`
  StrId return_form, return_type, descriptors;
  StrId arguments,
      flatten;  // of a pytree prologue: outer arguments, the call that takes them apart
  /// Prologue lines `name: "type"  # descriptor`.
  struct Announced {
    StrId name;
    TypeId type;
    StrId descriptor;
  };
  std::vector<Announced> announced;
  size_t num_tree_leaves = 0;  ///< names that an export prologue takes apart before shuffling
};

/// Recursive descent over one text. Members named Parse… read at `at_`, advance it, and return
/// false with `failure_` set when the text is of another form.
class Parser {
 public:
  Parser(std::string_view text, const FxOptions& options);
  Result<FxDocument> Run();

 private:
  // What a name means in the scope that is being read.
  struct Binding {
    uint32_t scope = 0;  // number of the scope in which it was bound
    int32_t statement = 0;
    bool is_renamed = false;  // the statement has another name now
  };
  // Meanings without a statement: a name whose statement was skipped, and lists that stand for
  // themselves (`n_boxed_arg_0 = [a, b]`), counted down from kFirstList.
  static constexpr int32_t kSkipped = -1;
  static constexpr int32_t kFirstList = -2;
  static constexpr int kMaxDepth = 200;
  static constexpr int kMaxClassDepth = 40;

  // parse_module.cc: lines, classes, signatures, bodies, recovery.
  bool FindGraph();
  void ParseClass(size_t indent, const std::string& path);
  bool ParseSignature(Scope& scope);
  bool ParseParameter(Scope& scope);
  void ParseBody(size_t def_indent, Scope& scope);
  bool EndsPadded() const;
  void ParseLines(size_t indent, Scope& scope);
  void CheckTrailer();
  bool IsStatementStart(size_t line_begin, size_t indent) const;
  /// The line at `line_begin_` without its blanks at both ends.
  std::string_view Line() const;
  size_t Indent(size_t line_begin) const;
  size_t LineEnd(size_t from) const;
  void NextLine();
  /// Makes the line after `offset`, which is not before the current one, the current one.
  void GoTo(size_t offset);
  void Diagnose(size_t offset, std::string_view what);
  FxDiagnostic DiagnosticAt(size_t offset, std::string_view what) const;

  // repeat_line.cc: lines that were read before.
  struct Sizes {
    size_t statements, pool, kwargs, announced, lists, frees, diagnostics;
  };
  Sizes SizesOf(const Scope& scope) const;
  /// Reads the line in [at_, limit_) as it was read before; false: it is not known, or means
  /// something else here.
  bool RepeatLine(Scope& scope);
  /// Keeps the line from `begin` to `limit_` that added to what there was before.
  void RememberLine(size_t begin, const Scope& scope, const Sizes& before);
  KnownLines::Meaning MeaningOf(const Binding* binding) const;

  // parse_statement.cc: one statement in [at_, limit_).
  bool ParseStatement(Scope& scope);
  bool ParseAnnotatedName(Scope& scope, StrId name);
  bool ParsePrologueNames(Scope& scope, StrId first);
  bool ParseInplace(Scope& scope, StrId base);
  bool ParseSetItem(Scope& scope, StrId base);
  bool ParseInplaceResult(Scope& scope, StrId base, Statement statement);
  bool ParseAssignment(Scope& scope, Statement statement);
  bool ParseSymbolBinding(Scope& scope, StrId name);
  bool ParseRightSide(Scope& scope, Statement& statement);
  const Operator* PrefixOperator() const;
  bool ParsePrefix(Scope& scope, Statement& statement, const Operator& op);
  bool ParseLiteralSide(Scope& scope, Statement& statement);
  bool ParseAttribute(Scope& scope, Statement& statement, size_t begin);
  bool ParseTarget(Scope& scope, Statement& statement, size_t begin);
  bool RenameInput(Scope& scope, const Statement& statement, int32_t source, size_t begin);
  bool ParseMember(Scope& scope, Statement& statement, int32_t source);
  bool ParseOperation(Scope& scope, Statement& statement, Arg left);
  bool ParseSelfPath(std::string& path);
  bool ParseCall(Scope& scope, Statement& statement);
  bool ParseEnd(Scope& scope);
  bool ParseReturn(Scope& scope);
  bool ParseReturnLines(Scope& scope, Arg* value);
  bool ParsePythonType(StrId* type, std::string_view stops);
  bool ParseQuotedType(TypeId* type);
  static bool OnlyInputs(const Scope& scope);
  void ClearParameters(Scope& scope);

  // parse_value.cc: names, containers, calls.
  bool ParseValue(Scope& scope, Arg* value);
  bool ParseContainer(Scope& scope, char close, ArgKind kind, Arg* value);
  bool ParseParenthesized(Scope& scope, Arg* value);
  bool ParseDict(Scope& scope, Arg* value);
  bool ParseNamedValue(Scope& scope, Arg* value);
  bool ParseCallValue(Scope& scope, std::string_view name, Arg* value);
  bool PushCallArguments(Scope& scope);
  bool ParseCallArgument(Scope& scope, Arg* value);
  bool ParseArgument(Scope& scope, Arg* value);
  bool ParseArguments(Scope& scope);
  Arg MakeSpan(Scope& scope, ArgKind kind, size_t stack_begin);

  // parse_literal.cc: what holds no names.
  bool ParseNumber(Arg* value);
  bool ParseString(Arg* value);
  bool ParseDevice(Arg* value);
  bool ParseRaw(Arg* value, bool only_size);
  std::optional<size_t> EndOfValue(size_t from) const;

  // liveness.cc
  void CheckFrees(const Scope& scope);

  // build.cc: statements become nodes.
  void Build(Scope& scope, Graph& graph);

  // Text.
  bool AtEnd() const { return at_ >= limit_; }
  char Peek(size_t ahead = 0) const { return at_ + ahead < limit_ ? text_[at_ + ahead] : '\0'; }
  std::string_view Rest() const { return text_.substr(at_, limit_ - at_); }
  bool Eat(std::string_view token) {
    if (!Rest().starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool Expect(std::string_view token);
  void SkipBlanks();
  std::string_view TakeName();
  /// At the end of a right side: what follows frees names.
  bool AtOperationEnd() const { return AtEnd() || Peek() == ';'; }
  bool AtMember() const { return Peek() == '.' && IsNameStart(Peek(1)); }
  /// Skips `.a.b`.
  void SkipMembers();
  bool Fail(std::string_view what) { return FailAt(at_, what); }
  bool FailAt(size_t offset, std::string_view what);

  // Names.
  void Bind(StrId name, int32_t statement);
  const Binding* BindingOf(StrId name) const;
  /// The same, for the statement that is being read.
  const Binding* Find(StrId name);
  /// The list that `name` stands for, or null.
  const Arg* FindList(std::string_view name);
  int32_t AddStatement(Scope& scope, const Statement& statement);
  StrId UnusedName(StrId base);
  void SetArgs(Scope& scope, Statement& statement, std::span<const Arg> args,
               std::span<const NamedArg> kwargs = {});
  Arg Use(int32_t statement) {
    ++num_uses_;
    return Arg(ValueId{statement});
  }

  std::string_view text_;
  std::string uncoloured_;  // holds the text when colours were removed
  const FxOptions& options_;
  FxDocument document_;
  Module& module_;
  CommentReader own_comments_;
  CommentReader& comments_;  // that of the known lines, if there are any

  size_t at_ = 0, limit_ = 0;
  size_t line_begin_ = 0, line_end_ = 0;
  int32_t line_ = 0;  // 0-based, of line_begin_
  // A signature may go over many lines: how far they are counted, and the line there.
  size_t counted_to_ = 0;
  int32_t counted_line_ = 0;
  int depth_ = 0, class_depth_ = 0;

  std::optional<Error> error_;  // strict: the first error

  size_t failed_at_ = 0;
  std::string failure_;
  bool wants_more_ = false;  // the failure is the end of the line inside a bracket

  std::vector<Binding> bindings_;  // by StrId
  uint64_t num_uses_ = 0;          // names read so far, to see whether a literal holds any
  uint32_t scope_number_ = 0;
  std::vector<Arg> lists_;      // values of names that stand for lists
  std::vector<Arg> stack_;      // elements of containers that are being read
  std::vector<Arg> call_args_;  // of the statement's call
  std::vector<NamedArg> call_kwargs_;
  std::unordered_map<std::string, GraphId> bodies_;  // by path

  // Of the line that is being read, if it will be kept: what its statement depends on.
  KnownLines* const known_lines_;  // null: none is kept
  struct Lookup {
    StrId name;
    KnownLines::Meaning meaning;
    int32_t statement;
  };
  std::vector<Lookup> lookups_;
  std::vector<int32_t> operands_;  // statements of the names of a line that is known or kept
  KnownLines::Parts line_parts_;
  std::string_view annotation_;
  bool is_repeatable_ = false;  // it depends on nothing else
};

}  // namespace strata::fx
