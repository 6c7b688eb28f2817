#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/rewriter.h"
#include "ir/text/native_cursor.h"
#include "ir/text/native_text.h"
#include "ir/text/native_words.h"
#include "ir/verify.h"

namespace strata {
namespace {

/// A hostile text must not exhaust the stack.
constexpr int kMaxDepth = 200;

class Parser : NativeCursor {
 public:
  Parser(std::string_view text, std::string_view file, const TextOrigin* origin)
      : NativeCursor(text, file, origin), module_(std::make_unique<Module>()) {}

  Result<std::unique_ptr<Module>> Run() {
    STRATA_RETURN_IF_ERROR(DeclareGraphs());
    SkipBlankLines();
    while (!AtEnd()) {
      if (TakeWord("symbol")) {
        STRATA_RETURN_IF_ERROR(ParseSymbol());
      } else if (TakeWord("graph")) {
        STRATA_RETURN_IF_ERROR(ParseGraphHeader());
      } else if (rewriter_) {
        STRATA_RETURN_IF_ERROR(ParseNode());
      } else {
        return Fail("expected 'graph NAME'");
      }
      STRATA_RETURN_IF_ERROR(EndOfLine());
      SkipBlankLines();
    }
    if (!rewriter_) return Fail("no graph here: write 'graph NAME' and its nodes");
    if (Status sound = CheckBodies(*module_); !sound) return std::move(sound).error().In(file_);
    return std::move(module_);
  }

 private:
  // Graphs -------------------------------------------------------------------------------------

  /// Adds all graphs, so that a node may refer to a body that comes later.
  Status DeclareGraphs() {
    for (SkipBlankLines(); !AtEnd(); SkipBlankLines()) {
      if (TakeWord("graph")) {
        STRATA_TRY(const std::string name, Name());
        const bool body = TakeWord("body");
        Graph& graph = module_->AddGraph(name, body);
        if (TakeWord("foreign")) module_->MarkForeign(graph.id());
      }
      const size_t end = text_.find('\n', at_);
      at_ = end == std::string_view::npos ? text_.size() : end;
    }
    at_ = 0;
    return Ok();
  }

  Status ParseGraphHeader() {
    STRATA_TRY(const std::string name, Name());
    TakeWord("body");
    TakeWord("foreign");
    rewriter_.reset();
    Graph& graph = module_->graph({next_graph_++});
    rewriter_ = std::make_unique<Rewriter>(graph);
    values_.clear();
    tuples_.clear();
    names_.clear();
    return Ok();
  }

  Status ParseSymbol() {
    Symbol symbol;
    STRATA_TRY(const std::string name, Name());
    symbol.name = module_->Intern(name);
    for (;;) {
      if (TakeKey("hint")) {
        STRATA_TRY(symbol.hint, Integer());
      } else if (TakeKey("min")) {
        STRATA_TRY(symbol.min, Integer());
      } else if (TakeKey("max")) {
        STRATA_TRY(symbol.max, Integer());
      } else if (TakeWord("unbacked")) {
        symbol.backed = false;
      } else {
        break;
      }
    }
    module_->dims().SetSymbol(symbol);
    return Ok();
  }

  // Nodes --------------------------------------------------------------------------------------

  Status ParseNode() {
    SkipBlanks();
    const size_t begin = at_;
    NodeSpec spec;
    std::vector<std::string> elements;  // "" where unnamed
    std::string name;
    Graph& graph = rewriter_->graph();
    if (graph.output().valid()) return FailAt(begin, "a node after the output");
    if (PeekWord() == "output") {
      at_ += 6;
      spec.kind = NodeKind::kOutput;
      name = "output";
    } else {
      if (Take('(')) {
        spec.returns_tuple = true;
        while (!Take(')')) {
          if (TakeWord("_")) {
            elements.emplace_back();
          } else {
            STRATA_TRY(elements.emplace_back(), Name());
          }
          if (!Take(',') && Peek() != ')') return Fail("expected ',' or ')'");
        }
      } else {
        STRATA_TRY(name, Name());
      }
      STRATA_RETURN_IF_ERROR(Expect('='));
    }

    std::string op;
    if (spec.kind != NodeKind::kOutput) {
      if (PeekWord() == "placeholder") {
        at_ += 11;
        spec.kind = NodeKind::kPlaceholder;
      } else {
        if (TakeWord("attr")) {
          spec.kind = NodeKind::kGetAttr;
        } else if (TakeWord("method")) {
          spec.kind = NodeKind::kCallMethod;
        } else if (TakeWord("submodule")) {
          spec.kind = NodeKind::kCallModule;
        }
        STRATA_TRY(op, Path());
      }
    }
    std::vector<Arg> args;
    std::vector<NamedArg> kwargs;
    const bool args_optional =
        spec.kind == NodeKind::kPlaceholder || spec.kind == NodeKind::kGetAttr;
    if (!args_optional || Peek() == '(') STRATA_RETURN_IF_ERROR(ParseArguments(args, kwargs));
    if (TakeWord("as")) {
      STRATA_TRY(name, Name());
    }
    if (spec.returns_tuple && name.empty())
      return Fail("expected 'as NAME': a tuple has a name too");

    std::vector<TypeId> types(spec.returns_tuple ? elements.size() : 1);
    std::vector<ValueId> aliases(types.size());
    if (Take(':')) STRATA_RETURN_IF_ERROR(PerResult(spec, types, [&] { return ParseType(); }));
    if (Take('~')) STRATA_RETURN_IF_ERROR(PerResult(spec, aliases, [&] { return ParseAlias(); }));
    const size_t metadata = at_;

    spec.op = op;
    spec.args = args;
    spec.kwargs = kwargs;
    if (spec.kind != NodeKind::kOutput) spec.results = types;
    spec.name = name;
    STRATA_RETURN_IF_ERROR(NewName(begin, name));
    // The id stands at the end of the line, behind the metadata that needs the node: look ahead.
    SkipBlanks();
    if (Peek() == '{') STRATA_RETURN_IF_ERROR(ParseMetadata({}));
    int64_t line = -1;
    if (Take('#')) {
      const size_t id_begin = at_ - 1;
      STRATA_TRY(const int64_t number, Integer(1));
      if (!stable_ids_.insert(number).second) return FailAt(id_begin, "this id is another node's");
      spec.stable_id = StableId{static_cast<uint64_t>(number)};
      module_->ReserveStableIds(static_cast<uint64_t>(number) + 1);
    }
    if (TakeKey("line")) {
      STRATA_TRY(line, Integer(0, INT32_MAX));
    }
    const size_t end = at_;

    const NodeId id = rewriter_->Create(spec, From::Source());
    at_ = metadata;
    SkipBlanks();
    if (Peek() == '{') STRATA_RETURN_IF_ERROR(ParseMetadata(id));
    at_ = end;
    if (line >= 0) rewriter_->SetTextLine(id, static_cast<int32_t>(line));
    for (size_t i = 0; i < aliases.size(); ++i) {
      if (aliases[i].valid()) rewriter_->SetAlias(graph.result(id, i), aliases[i]);
    }
    for (size_t i = 0; i < elements.size(); ++i) {
      if (elements[i].empty()) continue;
      STRATA_RETURN_IF_ERROR(NewName(begin, elements[i]));
      rewriter_->SetElementName(graph.result(id, i), elements[i]);
      values_.emplace(elements[i], graph.result(id, i));
    }
    if (spec.returns_tuple) {
      tuples_[name] = id;
    } else if (spec.kind != NodeKind::kOutput) {
      values_.emplace(name, graph.result(id));
    }
    return Ok();
  }

  Status NewName(size_t begin, const std::string& name) {
    if (names_.emplace(name, true).second) return Ok();
    return FailAt(begin, fmt::format("the name '{}' is taken by an earlier node", name));
  }

  /// One item, or for a tuple as many in parentheses as it has elements.
  template <class T, class Fn>
  Status PerResult(const NodeSpec& spec, std::vector<T>& items, Fn&& parse) {
    if (!spec.returns_tuple) {
      if (spec.kind == NodeKind::kOutput) return Fail("an output has no type");
      STRATA_TRY(items[0], parse());
      return Ok();
    }
    STRATA_RETURN_IF_ERROR(Expect('('));
    for (T& item : items) {
      STRATA_TRY(item, parse());
      if (!Take(',') && Peek() != ')') return Fail("expected ',' or ')'");
    }
    return Expect(')');
  }

  Result<TypeId> ParseType() {
    SkipBlanks();
    if (Take('?')) return TypeId{};
    if (TakeCall("opaque")) {
      STRATA_TRY(const std::string text, Quoted());
      STRATA_RETURN_IF_ERROR(Expect(')'));
      Type type;
      type.kind = TypeKind::kOpaque;
      type.text = module_->Intern(text);
      return module_->types().Intern(type);
    }
    const size_t begin = at_;
    const size_t end = TypeTextEnd(text_, at_);
    if (end == begin) return Fail("expected a type");
    TypeId id = module_->types().Parse(text_.substr(begin, end - begin));
    if (module_->types()[id].kind == TypeKind::kOpaque) {
      return Fail(
          "not a type; expected something like f32[4, 8][8, 1]cpu, Sym(s0), ? or opaque('…')");
    }
    at_ = end;
    if (module_->types()[id].kind != TypeKind::kTensor) return id;
    Type type = module_->types()[id];
    if (Peek() == '@' && Peek(1) == '(') {
      ++at_;
      const size_t close = ClosingParenthesis(at_);
      if (close == std::string_view::npos) return Fail("expected '@(offset)'");
      STRATA_TRY(type.dim, ParseDim(at_ + 1, close));
      at_ = close + 1;
    }
    if (text_.substr(at_).starts_with("+grad")) {
      at_ += 5;
      type.requires_grad = true;
    }
    return module_->types().Intern(type);
  }

  /// Of the one at `open`, on the same line.
  size_t ClosingParenthesis(size_t open) const {
    int depth = 0;
    for (size_t i = open; i < text_.size() && text_[i] != '\n'; ++i) {
      if (text_[i] == '(') ++depth;
      if (text_[i] == ')' && --depth == 0) return i;
    }
    return std::string_view::npos;
  }

  Result<DimId> ParseDim(size_t begin, size_t end) {
    Result<DimId> dim = module_->dims().Parse(text_.substr(begin, end - begin));
    if (!dim) return FailAt(begin, dim.error().message());
    return dim;
  }

  Result<ValueId> ParseAlias() {
    if (TakeWord("_")) return ValueId{};
    return ParseValue();
  }

  Result<ValueId> ParseValue() {
    SkipBlanks();
    const size_t begin = at_;
    STRATA_TRY(const std::string name, Name());
    if (Peek() == '$') {
      ++at_;
      STRATA_TRY(const int64_t element, Integer(0, UINT16_MAX));
      const auto tuple = tuples_.find(name);
      if (tuple == tuples_.end()) return FailAt(begin, fmt::format("no tuple '{}' above", name));
      const Graph& graph = rewriter_->graph();
      if (element >= graph.node(tuple->second).num_results) {
        return FailAt(begin, fmt::format("'{}' has {} elements", name,
                                         graph.node(tuple->second).num_results));
      }
      return graph.result(tuple->second, static_cast<size_t>(element));
    }
    const auto value = values_.find(name);
    if (value == values_.end()) return FailAt(begin, fmt::format("no value '{}' above", name));
    return value->second;
  }

  Status ParseArguments(std::vector<Arg>& args, std::vector<NamedArg>& kwargs) {
    STRATA_RETURN_IF_ERROR(Expect('('));
    while (!Take(')')) {
      if (std::optional<std::string> key = TakeKeyword()) {
        STRATA_TRY(const Arg value, ParseArg(0));
        kwargs.push_back({module_->Intern(*key), value});
      } else if (!kwargs.empty()) {
        return Fail("a positional argument after a keyword argument");
      } else {
        STRATA_TRY(args.emplace_back(), ParseArg(0));
      }
      if (!Take(',') && Peek() != ')') return Fail("expected ',' or ')'");
    }
    if (kwargs.size() > UINT16_MAX) return Fail("too many keyword arguments");
    return Ok();
  }

  /// `name=`, where the name may be quoted, or a word that is not a name elsewhere.
  std::optional<std::string> TakeKeyword() {
    const std::string word(PeekWord());
    const bool is_key = IsPlainName(word) || std::ranges::find(kKeywords, word) != kKeywords.end();
    if (is_key && TakeKey(word)) return word;
    if (Peek() != '%') return std::nullopt;
    const size_t begin = at_;
    if (Result<std::string> name = Name(); name && Peek() == '=') {
      ++at_;
      return std::move(*name);
    }
    at_ = begin;
    return std::nullopt;
  }

  Result<Arg> ParseArg(int depth) {
    if (depth > kMaxDepth) return Fail("arguments nested too deeply");
    SkipBlanks();
    const char c = Peek();
    if (c == '\'' || c == '"') {
      STRATA_TRY(const std::string text, Quoted());
      return Arg::String(module_->Intern(text));
    }
    if (c == '[') return ParseSequence(ArgKind::kList, ']', depth);
    if (c == '(') return ParseSequence(ArgKind::kTuple, ')', depth);
    if (c == '{') return ParseDict(depth);
    if ((c >= '0' && c <= '9') || c == '-') return ParseNumber();
    if (TakeWord("None")) return Arg::None();
    if (TakeWord("True")) return Arg::Bool(true);
    if (TakeWord("False")) return Arg::Bool(false);
    if (TakeWord("inf")) return Arg::Float(HUGE_VAL);
    if (TakeWord("nan")) return Arg::Float(std::numeric_limits<double>::quiet_NaN());
    if (TakeCall("sym")) {
      const size_t end = TypeTextEnd(text_, at_);
      // Blanks belong to an expression: take up to the closing parenthesis.
      size_t close = end;
      while (close < text_.size() && text_[close] != ')' && text_[close] != '\n') {
        close = TypeTextEnd(text_, close + 1);
      }
      if (close >= text_.size() || text_[close] != ')') return Fail("expected ')'");
      STRATA_TRY(const DimId dim, ParseDim(at_, close));
      at_ = close + 1;
      return Arg::Dim(dim);
    }
    if (TakeCall("device")) return ParseTextArg(&Arg::Device);
    if (TakeCall("raw")) return ParseTextArg(&Arg::Raw);
    if (TakeCall("graph")) {
      STRATA_TRY(const int64_t index, Integer(0, static_cast<int64_t>(module_->num_graphs()) - 1));
      STRATA_RETURN_IF_ERROR(Expect(')'));
      return Arg::Graph({static_cast<int32_t>(index)});
    }
    if (TakeCall("call")) {
      --at_;
      return ParseSequence(ArgKind::kCall, ')', depth);
    }
    if (PeekWord() == "torch" && Peek(5) == '.') {
      size_t end = at_ + 6;
      while (end < text_.size() && IsNameChar(text_[end]))
        ++end;
      const auto dtype = DTypeFromTorchName(text_.substr(at_, end - at_));
      if (!dtype) return Fail("unknown dtype; another literal is written raw('…')");
      at_ = end;
      return Arg::DType(*dtype);
    }
    STRATA_TRY(const ValueId value, ParseValue());
    return Arg(value);
  }

  Result<Arg> ParseTextArg(Arg (*make)(StrId)) {
    STRATA_TRY(const std::string text, Quoted());
    STRATA_RETURN_IF_ERROR(Expect(')'));
    return make(module_->Intern(text));
  }

  Result<Arg> ParseSequence(ArgKind kind, char close, int depth) {
    ++at_;
    std::vector<Arg> elements;
    while (!Take(close)) {
      STRATA_TRY(elements.emplace_back(), ParseArg(depth + 1));
      if (!Take(',') && Peek() != close) return Fail(fmt::format("expected ',' or '{}'", close));
    }
    if (kind == ArgKind::kCall && (elements.empty() || elements[0].kind() != ArgKind::kString)) {
      return Fail("a call starts with its name in quotes");
    }
    return rewriter_->MakeSpan(kind, elements);
  }

  Result<Arg> ParseDict(int depth) {
    ++at_;
    std::vector<Arg> parts;
    while (!Take('}')) {
      STRATA_TRY(parts.emplace_back(), ParseArg(depth + 1));
      STRATA_RETURN_IF_ERROR(Expect(':'));
      STRATA_TRY(parts.emplace_back(), ParseArg(depth + 1));
      if (!Take(',') && Peek() != '}') return Fail("expected ',' or '}'");
    }
    return rewriter_->MakeSpan(ArgKind::kDict, parts);
  }

  Result<Arg> ParseNumber() {
    if (Peek() == '-' && text_.substr(at_ + 1).starts_with("inf")) {
      at_ += 4;
      return Arg::Float(-HUGE_VAL);
    }
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    int64_t integer = 0;
    const auto as_integer = std::from_chars(begin, end, integer);
    double number = 0;
    const auto as_float = std::from_chars(begin, end, number);
    if (as_float.ec != std::errc{}) return Fail("expected a number");
    at_ = static_cast<size_t>(as_float.ptr - text_.data());
    if (as_integer.ec == std::errc{} && as_integer.ptr == as_float.ptr) return Arg::Int(integer);
    if (std::string_view(begin, as_float.ptr).find_first_of(".e") == std::string_view::npos) {
      return FailAt(static_cast<size_t>(begin - text_.data()), "this number exceeds 64 bits");
    }
    return Arg::Float(number);
  }

  // Metadata -----------------------------------------------------------------------------------

  /// Parses `{…}`, and applies it to `id` if that is a node.
  Status ParseMetadata(NodeId id) {
    Rewriter& rewriter = *rewriter_;
    STRATA_RETURN_IF_ERROR(Expect('{'));
    while (!Take('}')) {
      if (std::optional<Phase> phase = TakePhase()) {
        if (id.valid()) rewriter.SetPhase(id, *phase);
      } else if (TakeKey("module")) {
        STRATA_TRY(const std::string path, Path());
        if (id.valid()) rewriter.SetModule(id, path);
      } else if (TakeKey("seq")) {
        STRATA_TRY(const int64_t seq, Integer(0, INT32_MAX));
        if (id.valid()) rewriter.SetSeqNr(id, static_cast<int32_t>(seq));
      } else if (TakeKey("stream")) {
        STRATA_TRY(const int64_t stream, Integer(0, UINT16_MAX));
        if (id.valid()) rewriter.SetStream(id, static_cast<uint16_t>(stream));
      } else if (TakeKey("loc")) {
        STRATA_TRY(const LocId loc, ParseLoc());
        if (id.valid()) rewriter.SetLoc(id, loc);
      } else if (Take('+')) {
        STRATA_TRY(const std::string key, Name());
        STRATA_RETURN_IF_ERROR(Expect('='));
        STRATA_TRY(const std::string value, Quoted());
        if (id.valid()) rewriter.SetAttribute(id, key, value);
      } else {
        return Fail(
            "unknown metadata; known are a phase, module=, seq=, stream=, loc=() and "
            "+name='value'");
      }
    }
    return Ok();
  }

  std::optional<Phase> TakePhase() {
    for (Phase phase : {Phase::kForward, Phase::kLoss, Phase::kBackward, Phase::kOptimizer}) {
      if (TakeWord(ToString(phase))) return phase;
    }
    return std::nullopt;
  }

  Result<LocId> ParseLoc() {
    SourceLoc loc;
    STRATA_RETURN_IF_ERROR(Expect('('));
    STRATA_TRY(const std::string file, Quoted());
    loc.file = module_->Intern(file);
    STRATA_RETURN_IF_ERROR(Expect(','));
    STRATA_TRY(const int64_t line, Integer(INT32_MIN, INT32_MAX));
    loc.line = static_cast<int32_t>(line);
    for (StrId* part : {&loc.function, &loc.code}) {
      STRATA_RETURN_IF_ERROR(Expect(','));
      if (TakeWord("None")) continue;
      STRATA_TRY(const std::string text, Quoted());
      *part = module_->Intern(text);
    }
    STRATA_RETURN_IF_ERROR(Expect(')'));
    return module_->InternLoc(loc);
  }

  std::unique_ptr<Module> module_;
  std::unique_ptr<Rewriter> rewriter_;
  int32_t next_graph_ = 0;
  std::unordered_map<std::string, ValueId> values_;
  std::unordered_map<std::string, NodeId> tuples_;
  std::unordered_map<std::string, bool> names_;
  std::unordered_set<int64_t> stable_ids_;
};

}  // namespace

Result<std::unique_ptr<Module>> ParseText(std::string_view text, std::string_view file,
                                          const TextOrigin* origin) {
  return Parser(text, file, origin).Run();
}

}  // namespace strata
