#include <algorithm>
#include <utility>

#include "ir/fx/operators.h"
#include "ir/fx/parser.h"

namespace strata::fx {
namespace {

/// A tuple of more elements than any operator has is a list that happens to be indexed.
constexpr int64_t kMaxElements = 4096;

/// Turns the statements of one scope into nodes.
class Builder {
 public:
  /// `line_ids`: see FxOptions.
  Builder(const Scope& scope, Graph& graph, const std::unordered_map<std::string, GraphId>& bodies,
          std::vector<StableId>* line_ids)
      : scope_(scope),
        module_(graph.module()),
        rewriter_(graph),
        bodies_(bodies),
        line_ids_(line_ids),
        values_(scope.statements.size()),
        uses_(scope.statements.size(), 0),
        get_item_op_(module_.Intern(kGetItem)) {}

  void Run(StrId output_name) {
    for (const Statement& statement : scope_.statements)
      CountUses(statement);
    size_t at = 0;
    while (at < scope_.statements.size())
      at = Add(at);
    AddOutputFacts(output_name);
  }

 private:
  std::span<const Arg> Args(const Statement& s) const {
    return {scope_.pool.data() + s.args_begin, s.num_args};
  }
  std::span<const NamedArg> Kwargs(const Statement& s) const {
    return {scope_.kwargs.data() + s.kwargs_begin, s.num_kwargs};
  }

  void CountUses(const Arg& arg) {
    if (arg.is_value()) {
      ++uses_[static_cast<size_t>(arg.value().index)];
    } else if (arg.is_span()) {
      for (uint32_t i = 0; i < arg.span_size(); ++i)
        CountUses(scope_.pool[arg.span_begin() + i]);
    }
  }
  void CountUses(const Statement& statement) {
    for (const Arg& arg : Args(statement))
      CountUses(arg);
    for (const NamedArg& kwarg : Kwargs(statement))
      CountUses(kwarg.value);
  }

  /// The element that statement `at` takes from statement `producer`; -1 when it takes none.
  int64_t ElementOf(size_t at, size_t producer) const {
    const Statement& s = scope_.statements[at];
    if (s.op != get_item_op_ || s.num_args != 2 || s.num_kwargs != 0 || s.python_type.valid()) {
      return -1;
    }
    const std::span<const Arg> args = Args(s);
    const bool takes = args[0].is_value() &&
                       args[0].value().index == static_cast<int32_t>(producer) &&
                       args[1].kind() == ArgKind::kInt;
    return takes && args[1].as_int() < kMaxElements ? args[1].as_int() : -1;
  }

  /// The end of the getitem lines after `at` that are its elements; `at + 1` when it has none.
  size_t ElementsEnd(size_t at) const {
    const Statement& s = scope_.statements[at];
    const bool may_return_tuple = s.kind != NodeKind::kPlaceholder &&
                                  s.kind != NodeKind::kGetAttr && s.kind != NodeKind::kOutput &&
                                  !s.type.valid() && !s.python_type.valid();
    if (!may_return_tuple || uses_[at] == 0) return at + 1;
    size_t end = at + 1;
    for (int64_t last = -1; end < scope_.statements.size(); ++end) {
      const int64_t element = ElementOf(end, at);
      if (element <= last) break;
      last = element;
    }
    return end - (at + 1) == uses_[at] ? end : at + 1;
  }

  Arg Convert(const Arg& arg) {
    if (arg.is_value()) return values_[static_cast<size_t>(arg.value().index)];
    if (!arg.is_span()) return arg;
    const size_t begin = elements_.size();
    for (uint32_t i = 0; i < arg.span_size(); ++i) {
      const Arg element = Convert(scope_.pool[arg.span_begin() + i]);
      elements_.push_back(element);
    }
    const std::span<const Arg> elements(elements_.data() + begin, elements_.size() - begin);
    const Arg span = rewriter_.MakeSpan(arg.kind(), elements);
    elements_.resize(begin);
    return span;
  }

  /// Adds statement `at` with its elements; returns the next one.
  size_t Add(size_t at) {
    const Statement& s = scope_.statements[at];
    const size_t end = ElementsEnd(at);
    args_.clear();
    kwargs_.clear();
    if (s.kind == NodeKind::kGetAttr || s.kind == NodeKind::kCallModule) {
      if (const GraphId* body = FindBody(s.op)) args_.push_back(Arg::Graph(*body));
    }
    for (const Arg& arg : Args(s))
      args_.push_back(Convert(arg));
    for (const NamedArg& kwarg : Kwargs(s))
      kwargs_.push_back({kwarg.name, Convert(kwarg.value)});

    results_.assign(1, s.type);
    if (end > at + 1) {
      results_.assign(static_cast<size_t>(ElementOf(end - 1, at)) + 1, TypeId{});
      for (size_t i = at + 1; i < end; ++i)
        results_[static_cast<size_t>(ElementOf(i, at))] = scope_.statements[i].type;
    }
    NodeSpec spec;
    spec.kind = s.kind;
    spec.op_id = s.op;
    spec.args = args_;
    spec.kwargs = kwargs_;
    if (s.kind == NodeKind::kOutput) {
      spec.name = "output";
    } else {
      spec.name_id = s.name;
      spec.results = results_;
    }
    spec.returns_tuple = end > at + 1;
    spec.stable_id = TakeId(s.line);
    const NodeId node = rewriter_.Create(spec, From::Source());
    rewriter_.SetTextLine(node, s.line);
    if (s.kind != NodeKind::kOutput && !spec.returns_tuple) {
      values_[at] = rewriter_.graph().result(node);
    }
    for (size_t i = at + 1; i < end; ++i) {
      const ValueId element = rewriter_.graph().result(node, static_cast<size_t>(ElementOf(i, at)));
      rewriter_.SetElementName(element, module_.str(scope_.statements[i].name));
      values_[i] = element;
    }
    if (s.argument.valid()) SetAttribute(node, kArgumentKey, s.argument);
    if (s.descriptor.valid()) SetAttribute(node, kDescriptorKey, s.descriptor);
    if (s.python_type.valid()) SetAttribute(node, kPythonTypeKey, s.python_type);
    if (s.comment >= 0 && s.kind != NodeKind::kPlaceholder && s.kind != NodeKind::kOutput) {
      AddComment(node, scope_.comments[static_cast<size_t>(s.comment)]);
    }
    return end;
  }

  StableId TakeId(int32_t line) {
    if (line_ids_ == nullptr || static_cast<size_t>(line) >= line_ids_->size()) {
      return StableId::kNone;
    }
    return std::exchange((*line_ids_)[static_cast<size_t>(line)], StableId::kNone);
  }

  void SetAttribute(NodeId node, std::string_view key, StrId value) {
    rewriter_.SetAttribute(node, key, module_.str(value));
  }

  /// The body that the path `a.b` names from this scope.
  const GraphId* FindBody(StrId op) const {
    if (bodies_.empty()) return nullptr;
    std::string path(module_.str(op));
    std::ranges::replace(path, '.', '/');
    if (!scope_.path.empty()) path.insert(0, scope_.path + "/");
    const auto found = bodies_.find(path);
    return found == bodies_.end() ? nullptr : &found->second;
  }

  void AddComment(NodeId node, const CommentLine& line) {
    const Comment& comment = *line.comment;
    rewriter_.SetPhase(node, line.phase());
    rewriter_.SetSeqNr(node, line.seq_nr());
    rewriter_.SetLoc(node, comment.loc);
    if (comment.module.valid()) rewriter_.SetModule(node, comment.module);
    for (const auto& [key, value] : comment.attributes)
      SetAttribute(node, module_.str(key), value);
  }

  void AddOutputFacts(StrId output_name) {
    NodeId output = rewriter_.graph().output();
    if (!output.valid()) {
      NodeSpec spec;
      spec.kind = NodeKind::kOutput;
      spec.name = "output";
      output = rewriter_.Create(spec, From::Source());
    }
    if (output_name.valid()) rewriter_.SetName(output, module_.str(output_name));
    const bool is_body = rewriter_.graph().is_body();
    const std::string_view class_name = module_.str(scope_.class_name);
    if (!is_body && scope_.class_name.valid() && class_name != "GraphModule") {
      SetAttribute(output, kClassKey, scope_.class_name);
    }
    if (scope_.is_boxed) {
      rewriter_.SetAttribute(output, kSignatureKey, "boxed");
    } else if (!is_body && !scope_.is_expanded) {
      rewriter_.SetAttribute(output, kSignatureKey, "compact");
    }
    if (scope_.binds_symbols) rewriter_.SetAttribute(output, kSymbolsKey, "bound");
    if (scope_.descriptors.valid()) SetAttribute(output, kDescriptorsKey, scope_.descriptors);
    if (scope_.return_form.valid()) SetAttribute(output, kReturnKey, scope_.return_form);
    if (scope_.return_type.valid()) SetAttribute(output, kReturnTypeKey, scope_.return_type);
    if (scope_.flatten.valid()) SetAttribute(output, kFlattenKey, scope_.flatten);
    if (scope_.arguments.valid()) SetAttribute(output, kArgumentsKey, scope_.arguments);
    bool by_key = false, by_prefix = false;
    for (const CommentLine& line : scope_.comments) {
      by_key |= line.marks_backward_by_key();
      by_prefix |= line.comment->marks_backward_by_prefix;
    }
    if (by_key != by_prefix) {
      rewriter_.SetAttribute(output, kBackwardKey, by_key ? "key" : "prefix");
    } else if (!by_key && MarkDependents()) {
      rewriter_.SetAttribute(output, kBackwardKey, "none");
    }
  }

  /// In a text whose comments do not name phases, what depends on gradients of outputs is backward.
  /// False: nothing does.
  bool MarkDependents() {
    const Graph& graph = rewriter_.graph();
    std::vector<bool> depends(static_cast<size_t>(graph.node_bound()));
    bool any = false;
    for (NodeId id : graph.nodes()) {
      const Node& node = graph.node(id);
      bool is_dependent =
          node.kind == NodeKind::kPlaceholder && graph.name(id).starts_with(kTangents);
      graph.ForEachOperand(id, [&](ValueId value) {
        is_dependent |= depends[static_cast<size_t>(graph.value(value).def.index)];
      });
      depends[static_cast<size_t>(id.index)] = is_dependent;
      if (!is_dependent || node.phase != Phase::kForward) continue;
      rewriter_.SetPhase(id, Phase::kBackward);
      any = true;
    }
    return any;
  }

  const Scope& scope_;
  Module& module_;
  Rewriter rewriter_;
  const std::unordered_map<std::string, GraphId>& bodies_;
  std::vector<StableId>* line_ids_;
  std::vector<ValueId> values_;  // by statement
  std::vector<uint32_t> uses_;   // by statement
  const StrId get_item_op_;
  std::vector<Arg> args_, elements_;
  std::vector<NamedArg> kwargs_;
  std::vector<TypeId> results_;
};

}  // namespace

void Parser::Build(Scope& scope, Graph& graph) {
  StrId output_name;
  const StrId taken = module_.Intern("output");
  const bool is_taken = std::ranges::any_of(scope.statements, [&](const Statement& s) {
    return s.kind != NodeKind::kOutput && s.name == taken;
  });
  if (is_taken) {
    for (int suffix = 1; !output_name.valid(); ++suffix) {
      const StrId name = module_.Intern(fmt::format("output_{}", suffix));
      const bool clashes =
          std::ranges::any_of(scope.statements, [&](const Statement& s) { return s.name == name; });
      if (!clashes) output_name = name;
    }
  }
  Builder(scope, graph, bodies_, options_.line_ids).Run(output_name);
}

}  // namespace strata::fx
