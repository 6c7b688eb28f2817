#include "passes/compile/region_body.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "ir/ops.h"
#include "ir/rewriter.h"
#include "ir/symbol_sizes.h"
#include "passes/core/node_copy.h"

namespace strata {
namespace {

/// Writes regions of one graph as bodies.
class BodyWriter {
 public:
  BodyWriter(const Graph& graph, const FusionRegions& regions, const RegionPlan& plan)
      : graph_(graph), regions_(regions), plan_(plan) {}

  void Write(Graph& body) {
    Rewriter rewriter(body);
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
      const TypeId type = CopyType(body.module(), graph_.value(plan_.inputs[i]).type);
      const NodeId node = rewriter.Create({.kind = NodeKind::kPlaceholder,
                                           .results = std::span(&type, 1),
                                           .name = fmt::format("arg{}", i)},
                                          From({}));
      values_[plan_.inputs[i]] = body.result(node);
    }
    for (const NodeId member : plan_.members)
      CopyNode(rewriter, member);
    std::vector<Arg> results;
    for (const NodeId output : plan_.outputs)
      results.push_back(values_.at(graph_.result(output)));
    const Arg list = rewriter.MakeSpan(ArgKind::kList, results);
    rewriter.Create({.kind = NodeKind::kOutput, .args = std::span(&list, 1)}, From({}));
  }

 private:
  TypeId CopyType(Module& module, TypeId id) {
    const Type type = graph_.module().types()[id];
    Type copy;
    copy.kind = type.kind;
    copy.dtype = type.dtype;
    copy.has_strides = type.has_strides;
    copy.device = module.Intern(graph_.module().str(type.device));
    for (const DimId dim : type.sizes)
      copy.sizes.push_back(LocalDim(dim, module));
    for (const DimId dim : type.strides)
      copy.strides.push_back(LocalDim(dim, module));
    return module.types().Intern(copy);
  }

  /// Data-dependent sizes have names of the body's own, u0, u1, … in order: experts of different
  /// sizes share one body.
  DimId LocalDim(DimId dim, Module& module) {
    const DimTable& dims = graph_.module().dims();
    if (dims.AsConst(dim)) return CopyDim(graph_.module(), dim, module);
    if (dims.kind(dim) == DimKind::kSymbol) {
      const Symbol* symbol = dims.FindSymbol(graph_.module().strings().Find(dims.name(dim)));
      if (symbol == nullptr || symbol->backed) return CopyDim(graph_.module(), dim, module);
      const auto [name, is_new] =
          data_sizes_.try_emplace(dim, fmt::format("u{}", data_sizes_.size()));
      const DimId local = module.dims().Sym(name->second);
      if (const StrId known = module.Intern(name->second); !module.dims().FindSymbol(known))
        module.dims().SetSymbol({.name = known, .hint = std::nullopt, .backed = false});
      return local;
    }
    std::vector<DimId> operands;
    for (const DimId operand :
         std::vector<DimId>(dims.operands(dim).begin(), dims.operands(dim).end()))
      operands.push_back(LocalDim(operand, module));
    const StrId head = dims.kind(dim) == DimKind::kCall ? module.Intern(dims.name(dim)) : StrId{};
    return module.dims().Make(dims.kind(dim), operands, head);
  }

  /// `aten.add.Tensor` of `aten.add_.Tensor`.
  static std::string Functional(std::string_view op) {
    std::string name(op);
    return name.erase(name.rfind('.') - 1, 1);
  }

  void CopyNode(Rewriter& rewriter, NodeId node) {
    if (values_.contains(graph_.result(node))) return;
    // Views that stand between members come along.
    graph_.ForEachOperand(node, [&](ValueId operand) {
      if (!values_.contains(operand)) CopyNode(rewriter, graph_.value(operand).def);
    });
    Graph& body = rewriter.graph();
    const auto copy = [&](const Arg& arg) { return CopyArg(graph_, arg, rewriter, values_); };
    std::vector<Arg> args;
    for (const Arg& arg : graph_.args(node))
      args.push_back(copy(arg));
    std::vector<NamedArg> kwargs;
    for (size_t i = 0; i < graph_.node(node).num_kwargs; ++i) {
      const NamedArg kwarg = graph_.kwarg(node, i);
      kwargs.push_back({body.module().Intern(graph_.module().str(kwarg.name)), copy(kwarg.value)});
    }
    const ValueId result = graph_.result(node);
    const TypeId type = CopyType(body.module(), graph_.value(result).type);
    const std::optional<ValueId> written = regions_.WrittenInput(node);
    const bool mutates = TraitsOf(graph_.op(node)).mutates;
    const std::string op =
        mutates && !written ? Functional(graph_.op(node)) : std::string(graph_.op(node));
    const NodeId made = rewriter.Create(
        {.op = op, .args = args, .kwargs = kwargs, .results = std::span(&type, 1)}, From({}));
    const bool is_view = !mutates && graph_.value(result).alias_of.valid();
    if (written || is_view) {
      rewriter.SetAlias(body.result(made), values_.at(graph_.args(node)[0].value()));
    }
    values_[result] = body.result(made);
  }

  const Graph& graph_;
  const FusionRegions& regions_;
  const RegionPlan& plan_;
  CopiedValues values_;
  std::map<DimId, std::string> data_sizes_;  // names in the body
};

}  // namespace

void WriteBody(const Graph& graph, const FusionRegions& regions, const RegionPlan& plan,
               Graph& body) {
  BodyWriter(graph, regions, plan).Write(body);
}

}  // namespace strata
