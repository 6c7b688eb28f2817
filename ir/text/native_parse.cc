#include <optional>
#include <unordered_set>
#include <vector>

#include "ir/text/native_operands.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"

namespace strata {
namespace {

class Parser : NativeOperands {
 public:
  Parser(std::string_view text, std::string_view file, const TextOrigin* origin)
      : NativeOperands(text, file, origin) {}

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
        STRATA_TRY(const std::string_view name, Name());
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
    STRATA_RETURN_IF_ERROR(Name());
    TakeWord("body");
    TakeWord("foreign");
    rewriter_.reset();
    Graph& graph = module_->graph({next_graph_++});
    rewriter_ = std::make_unique<Rewriter>(graph);
    return Ok();
  }

  Status ParseSymbol() {
    Symbol symbol;
    STRATA_TRY(const std::string_view name, Name());
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

  /// A node's line, without its metadata.
  struct NodeLine {
    size_t begin = 0;
    NodeKind kind = NodeKind::kCall;
    bool returns_tuple = false;
    std::string_view name, op;
    std::vector<std::string_view> elements;  // of a tuple; "" where unnamed
    std::vector<Arg> args;
    std::vector<NamedArg> kwargs;
    std::vector<TypeId> types;     // one per result
    std::vector<ValueId> aliases;  // one per result
    StableId stable_id = StableId::kNone;
    std::optional<int32_t> text_line;
  };

  Status ParseNode() {
    SkipBlanks();
    NodeLine line;
    line.begin = at_;
    if (rewriter_->graph().output().valid()) return Fail("a node after the output");
    STRATA_RETURN_IF_ERROR(ParseNames(line));
    STRATA_RETURN_IF_ERROR(ParseCall(line));
    STRATA_RETURN_IF_ERROR(ParseTypes(line));
    STRATA_RETURN_IF_ERROR(NewName(line.begin, line.name));
    STRATA_TRY(const NodeMetadata metadata, ParseMetadata());
    STRATA_RETURN_IF_ERROR(ParseIdentity(line));
    const NodeId id = Create(line);
    Apply(metadata, id);
    return DefineResults(line, id);
  }

  /// `name =`, `(a, _, b) =` or `output`.
  Status ParseNames(NodeLine& line) {
    if (PeekWord() == "output") {
      at_ += 6;
      line.kind = NodeKind::kOutput;
      line.name = "output";
      return Ok();
    }
    if (!Take('(')) {
      STRATA_TRY(line.name, Name());
      return Expect('=');
    }
    line.returns_tuple = true;
    while (!Take(')')) {
      if (TakeWord("_")) {
        line.elements.emplace_back();
      } else {
        STRATA_TRY(line.elements.emplace_back(), Name());
      }
      if (!Take(',') && Peek() != ')') return Fail("expected ',' or ')'");
    }
    return Expect('=');
  }

  /// `placeholder`, `attr path`, or an operator and its arguments; then `as name` for a tuple.
  Status ParseCall(NodeLine& line) {
    if (line.kind != NodeKind::kOutput) STRATA_RETURN_IF_ERROR(ParseOperator(line));
    const bool args_optional =
        line.kind == NodeKind::kPlaceholder || line.kind == NodeKind::kGetAttr;
    if (!args_optional || Peek() == '(') {
      STRATA_RETURN_IF_ERROR(ParseArguments(line.args, line.kwargs));
    }
    if (TakeWord("as")) {
      STRATA_TRY(line.name, Name());
    }
    if (line.returns_tuple && line.name.empty()) {
      return Fail("expected 'as NAME': a tuple has a name too");
    }
    return Ok();
  }

  Status ParseOperator(NodeLine& line) {
    if (PeekWord() == "placeholder") {
      at_ += 11;
      line.kind = NodeKind::kPlaceholder;
      return Ok();
    }
    if (TakeWord("attr")) {
      line.kind = NodeKind::kGetAttr;
    } else if (TakeWord("method")) {
      line.kind = NodeKind::kCallMethod;
    } else if (TakeWord("submodule")) {
      line.kind = NodeKind::kCallModule;
    }
    STRATA_TRY(line.op, Path());
    return Ok();
  }

  /// `: type ~alias`, both optional.
  Status ParseTypes(NodeLine& line) {
    line.types.resize(line.returns_tuple ? line.elements.size() : 1);
    line.aliases.resize(line.types.size());
    if (Take(':')) STRATA_RETURN_IF_ERROR(PerResult(line, line.types, [&] { return ParseType(); }));
    if (!Take('~')) return Ok();
    return PerResult(line, line.aliases, [&] { return ParseAlias(); });
  }

  /// `#id line=N`, both optional.
  Status ParseIdentity(NodeLine& line) {
    if (Take('#')) {
      const size_t begin = at_ - 1;
      STRATA_TRY(const int64_t number, Integer(1));
      if (!stable_ids_.insert(number).second) return FailAt(begin, "this id is another node's");
      line.stable_id = StableId{static_cast<uint64_t>(number)};
      module_->ReserveStableIds(static_cast<uint64_t>(number) + 1);
    }
    if (TakeKey("line")) {
      STRATA_TRY(const int64_t number, Integer(0, INT32_MAX));
      line.text_line = static_cast<int32_t>(number);
    }
    return Ok();
  }

  NodeId Create(const NodeLine& line) {
    NodeSpec spec{.kind = line.kind,
                  .op = line.op,
                  .args = line.args,
                  .kwargs = line.kwargs,
                  .returns_tuple = line.returns_tuple,
                  .name = line.name,
                  .stable_id = line.stable_id};
    if (line.kind != NodeKind::kOutput) spec.results = line.types;
    const NodeId id = rewriter_->Create(spec, From::Source());
    if (line.text_line) rewriter_->SetTextLine(id, *line.text_line);
    return id;
  }

  /// Aliases, and names for the lines below.
  Status DefineResults(const NodeLine& line, NodeId id) {
    const Graph& graph = rewriter_->graph();
    Named& named = Meaning(graph.node(id).name);
    if (line.returns_tuple) {
      named.tuple = id;
    } else if (line.kind != NodeKind::kOutput) {
      named.value = graph.result(id);
    }
    for (size_t i = 0; i < line.aliases.size(); ++i) {
      if (line.aliases[i].valid()) rewriter_->SetAlias(graph.result(id, i), line.aliases[i]);
    }
    for (size_t i = 0; i < line.elements.size(); ++i) {
      if (line.elements[i].empty()) continue;
      STRATA_TRY(Named* const element, NewName(line.begin, line.elements[i]));
      element->value = graph.result(id, i);
      rewriter_->SetElementName(graph.result(id, i), line.elements[i]);
    }
    return Ok();
  }

  Result<Named*> NewName(size_t begin, std::string_view name) {
    Named& named = Meaning(module_->Intern(name));
    if (named.graph.valid())
      return FailAt(begin, fmt::format("the name '{}' is taken by an earlier node", name));
    named.graph = rewriter_->graph().id();
    return &named;
  }

  /// One item, or for a tuple as many in parentheses as it has elements.
  template <class T, class Fn>
  Status PerResult(const NodeLine& line, std::vector<T>& items, Fn&& parse) {
    if (!line.returns_tuple) {
      if (line.kind == NodeKind::kOutput) return Fail("an output has no type");
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

  // Metadata -----------------------------------------------------------------------------------

  /// What `{…}` says; a part that is absent keeps its default.
  struct NodeMetadata {
    std::optional<Phase> phase;
    std::optional<std::string_view> module;
    std::optional<int32_t> seq_nr;
    std::optional<uint16_t> stream;
    std::optional<LocId> loc;
    std::vector<std::pair<std::string_view, std::string_view>> attributes;
  };

  /// `{…}`, optional.
  Result<NodeMetadata> ParseMetadata() {
    NodeMetadata metadata;
    if (!Take('{')) return metadata;
    while (!Take('}')) {
      if (std::optional<Phase> phase = TakePhase()) {
        metadata.phase = phase;
      } else if (TakeKey("module")) {
        STRATA_TRY(metadata.module, Path());
      } else if (TakeKey("seq")) {
        STRATA_TRY(const int64_t seq_nr, Integer(0, INT32_MAX));
        metadata.seq_nr = static_cast<int32_t>(seq_nr);
      } else if (TakeKey("stream")) {
        STRATA_TRY(const int64_t stream, Integer(0, UINT16_MAX));
        metadata.stream = static_cast<uint16_t>(stream);
      } else if (TakeKey("loc")) {
        STRATA_TRY(metadata.loc, ParseLoc());
      } else if (Take('+')) {
        STRATA_TRY(const std::string_view key, Name());
        STRATA_RETURN_IF_ERROR(Expect('='));
        STRATA_TRY(const std::string_view value, Quoted());
        metadata.attributes.emplace_back(key, value);
      } else {
        return Fail(
            "unknown metadata; known are a phase, module=, seq=, stream=, loc=() and "
            "+name='value'");
      }
    }
    return metadata;
  }

  void Apply(const NodeMetadata& metadata, NodeId id) {
    if (metadata.phase) rewriter_->SetPhase(id, *metadata.phase);
    if (metadata.module) rewriter_->SetModule(id, *metadata.module);
    if (metadata.seq_nr) rewriter_->SetSeqNr(id, *metadata.seq_nr);
    if (metadata.stream) rewriter_->SetStream(id, *metadata.stream);
    if (metadata.loc) rewriter_->SetLoc(id, *metadata.loc);
    for (const auto& [key, value] : metadata.attributes)
      rewriter_->SetAttribute(id, key, value);
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
    STRATA_TRY(const std::string_view file, Quoted());
    loc.file = module_->Intern(file);
    STRATA_RETURN_IF_ERROR(Expect(','));
    STRATA_TRY(const int64_t line, Integer(INT32_MIN, INT32_MAX));
    loc.line = static_cast<int32_t>(line);
    for (StrId* part : {&loc.function, &loc.code}) {
      STRATA_RETURN_IF_ERROR(Expect(','));
      if (TakeWord("None")) continue;
      STRATA_TRY(const std::string_view text, Quoted());
      *part = module_->Intern(text);
    }
    STRATA_RETURN_IF_ERROR(Expect(')'));
    return module_->InternLoc(loc);
  }

  int32_t next_graph_ = 0;
  std::unordered_set<int64_t> stable_ids_;
};

}  // namespace

Result<std::unique_ptr<Module>> ParseText(std::string_view text, std::string_view file,
                                          const TextOrigin* origin) {
  return Parser(text, file, origin).Run();
}

}  // namespace strata
