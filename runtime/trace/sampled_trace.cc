#include "runtime/trace/sampled_trace.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ops/equal.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/rewriter.h"
#include "runtime/plan/size_fit.h"
#include "runtime/trace/recorder.h"

namespace strata {
namespace {

/// One trace of the program.
struct Sample {
  std::unique_ptr<Module> module;
  const Graph* graph = nullptr;
  Constants constants;
};

std::string_view SymbolOf(const Graph& graph, NodeId node) {
  const Node& n = graph.node(node);
  if (n.num_results != 1) return {};
  const TypeId id = graph.value(graph.result(node)).type;
  if (!id.valid() || graph.module().types()[id].kind != TypeKind::kSymInt) return {};
  return graph.module().dims().name(graph.module().types()[id].dim);
}

/// Makes one graph of the traces: that of the first sample, with expressions for numbers.
class Merger {
 public:
  Merger(Graph& graph, const std::vector<Sample>& others, std::span<const TracedSize> sizes)
      : graph_(graph),
        module_(graph.module()),
        rewriter_(graph),
        others_(others),
        sizes_(sizes),
        fit_(module_.dims()) {
    for (const TracedSize& size : sizes) {
      fit_.AddSize(
          size.symbol.empty() ? module_.dims().Const(size.value) : module_.dims().Sym(size.symbol),
          size.samples);
    }
  }

  Status Run() {
    STRATA_RETURN_IF_ERROR(PairNodes());
    AddUnbackedSizes();
    for (size_t i = 0; i < nodes_.size(); ++i) {
      node_ = i;
      STRATA_RETURN_IF_ERROR(MergeNode());
    }
    return Ok();
  }

 private:
  NodeId node() const { return nodes_[node_]; }
  NodeId Partner(size_t other) const { return partners_[other][node_]; }

  // Structure: the traces have the same nodes, but for numbers.

  Status PairNodes() {
    for (const NodeId node : graph_.nodes())
      nodes_.push_back(node);
    for (const Sample& other : others_) {
      std::vector<NodeId> nodes;
      for (const NodeId node : other.graph->nodes())
        nodes.push_back(node);
      partners_.push_back(std::move(nodes));
    }
    for (size_t other = 0; other < others_.size(); ++other) {
      // The output is the last node of each, so none ends before the other without a difference.
      for (node_ = 0; node_ < nodes_.size(); ++node_) {
        const Graph& graph = *others_[other].graph;
        const std::string_view op = graph_.op(node()), instead = graph.op(Partner(other));
        if (op == instead && graph_.node(node()).kind == graph.node(Partner(other)).kind) continue;
        const auto differs = [&](std::string_view what, size_t here, size_t there) {
          return fmt::format(
              "is computed at {}, and {} at {}: a program with dynamic shapes must do "
              "the same at all of them",
              At(here), what.empty() ? "nothing more" : what, At(there));
        };
        if (graph_.node(node()).kind == NodeKind::kOutput) {
          return Refuse(graph, Partner(other), differs(op, other + 1, 0));
        }
        return Refuse(differs(instead, 0, other + 1));
      }
    }
    return Ok();
  }

  void AddUnbackedSizes() {
    // Where a part begins is the sum of those before it.
    DimId sum;
    std::vector<int64_t> sums;
    for (node_ = 0; node_ < nodes_.size(); ++node_) {
      const std::string_view symbol = SymbolOf(graph_, node());
      if (symbol.empty()) continue;
      std::vector<int64_t> samples = {SampledSizeOf(graph_, node())};
      for (size_t other = 0; other < others_.size(); ++other)
        samples.push_back(SampledSizeOf(*others_[other].graph, Partner(other)));
      const DimId dim = module_.dims().Sym(symbol);
      fit_.AddUnbacked(dim, samples);
      if (graph_.attribute(node(), kSizeIndex) == "0") {
        sum = dim;
        sums = samples;
      } else {
        sum = module_.dims().Add(sum, dim);
        std::ranges::transform(sums, samples, sums.begin(), std::plus());
        fit_.AddUnbacked(sum, sums);
      }
      readers_.emplace(dim, graph_.result(node()));
      for (const std::string_view key : {kSampledSize, kSizeIndex})
        rewriter_.SetAttribute(node(), key, "");
    }
  }

  /// The value that a data-dependent size had while tracing.
  static int64_t SampledSizeOf(const Graph& graph, NodeId node) {
    return std::stoll(std::string(graph.attribute(node, kSampledSize)));
  }

  // Numbers.

  Status MergeNode() {
    const Node& n = graph_.node(node());
    std::vector<std::span<const Arg>> others;
    for (size_t other = 0; other < others_.size(); ++other) {
      const Graph& graph = *others_[other].graph;
      const Node& partner = graph.node(Partner(other));
      if (partner.num_args != n.num_args || partner.num_kwargs != n.num_kwargs ||
          partner.num_results != n.num_results) {
        return Refuse(fmt::format("has other arguments at {} than at {}", At(0), At(other + 1)));
      }
      others.push_back(graph.args(Partner(other)));
    }
    STRATA_RETURN_IF_ERROR(MergeArgs(n.args_begin, others));
    for (size_t i = 0; i < n.num_kwargs; ++i) {
      std::vector<Arg> values;
      for (size_t other = 0; other < others_.size(); ++other)
        values.push_back(others_[other].graph->kwarg(Partner(other), i).value);
      const uint32_t slot = n.args_begin + n.num_args + static_cast<uint32_t>(2 * i) + 1;
      STRATA_RETURN_IF_ERROR(MergeArg(slot, values));
    }
    for (size_t i = 0; i < n.num_results; ++i)
      STRATA_RETURN_IF_ERROR(MergeType(i));
    return Ok();
  }

  Status MergeArgs(uint32_t first, const std::vector<std::span<const Arg>>& others) {
    for (size_t i = 0; i < others[0].size(); ++i) {
      std::vector<Arg> values;
      for (const std::span<const Arg> other : others)
        values.push_back(other[i]);
      STRATA_RETURN_IF_ERROR(MergeArg(first + static_cast<uint32_t>(i), values));
    }
    return Ok();
  }

  Status MergeArg(uint32_t slot, const std::vector<Arg>& others) {
    const Arg arg = graph_.slot(slot);
    for (size_t other = 0; other < others.size(); ++other) {
      if (!IsSimilar(arg, others[other], *others_[other].graph)) {
        return Refuse(fmt::format("has other arguments at {} than at {}", At(0), At(other + 1)));
      }
    }
    if (arg.is_span()) {
      std::vector<std::span<const Arg>> elements;
      for (size_t other = 0; other < others.size(); ++other)
        elements.push_back(others_[other].graph->elements(others[other]));
      return MergeArgs(arg.span_begin(), elements);
    }
    if (arg.kind() == ArgKind::kFloat) return CheckFloats(arg, others);
    if (arg.kind() != ArgKind::kInt) return Ok();
    std::vector<int64_t> numbers = {arg.as_int()};
    for (const Arg& other : others)
      numbers.push_back(other.as_int());
    STRATA_TRY(const DimId dim, Fit(numbers));
    if (module_.dims().AsConst(dim) == arg.as_int()) return Ok();
    STRATA_TRY(const Arg merged, ArgOf(dim));
    rewriter_.SetSlot(node(), slot, merged);
    return Ok();
  }

  /// Equal but for numbers.
  bool IsSimilar(const Arg& arg, const Arg& other, const Graph& graph) const {
    if (arg.kind() != other.kind()) return false;
    switch (arg.kind()) {
      case ArgKind::kValue:
        return arg.value().index == other.value().index;
      case ArgKind::kBool:
        return arg.as_bool() == other.as_bool();
      case ArgKind::kDType:
        return arg.dtype() == other.dtype();
      case ArgKind::kString:
      case ArgKind::kDevice:
      case ArgKind::kRaw:
        return module_.str(arg.str()) == graph.module().str(other.str());
      default:
        return !arg.is_span() || arg.span_size() == other.span_size();
    }
  }

  Status CheckFloats(const Arg& arg, const std::vector<Arg>& others) {
    for (size_t other = 0; other < others.size(); ++other) {
      if (arg.as_float() == others[other].as_float()) continue;
      return Refuse(
          fmt::format("takes {} at {} and {} at {}: only whole numbers can depend on "
                      "dynamic sizes, divide by the size instead",
                      arg.as_float(), At(0), others[other].as_float(), At(other + 1)));
    }
    return Ok();
  }

  Status MergeType(size_t result) {
    const ValueId value = graph_.result(node(), result);
    const TypeId id = graph_.value(value).type;
    std::vector<const Type*> others;
    for (size_t other = 0; other < others_.size(); ++other) {
      const Graph& graph = *others_[other].graph;
      const Value& partner = graph.value(graph.result(Partner(other), result));
      const bool same_alias = partner.alias_of.index == graph_.value(value).alias_of.index;
      if (partner.type.valid() != id.valid() || !same_alias) {
        return Refuse(fmt::format("gives another result at {} than at {}", At(0), At(other + 1)));
      }
      if (id.valid()) others.push_back(&graph.module().types()[partner.type]);
    }
    if (!id.valid()) return Ok();
    Type type = module_.types()[id];
    if (type.kind != TypeKind::kTensor) return Ok();
    for (size_t other = 0; other < others.size(); ++other) {
      if (others[other]->dtype != type.dtype || others[other]->sizes.size() != type.sizes.size()) {
        return Refuse(fmt::format("gives another result at {} than at {}", At(0), At(other + 1)));
      }
    }
    for (std::vector<DimId> Type::* dims : {&Type::sizes, &Type::strides}) {
      for (size_t i = 0; i < (type.*dims).size(); ++i) {
        STRATA_TRY((type.*dims)[i],
                   FitDim((type.*dims)[i], others, [&](const Type& t) { return (t.*dims)[i]; }));
      }
    }
    STRATA_TRY(type.dim, FitDim(type.dim, others, [](const Type& t) { return t.dim; }));
    rewriter_.SetType(value, module_.types().Intern(type));
    return Ok();
  }

  template <class Fn>
  Result<DimId> FitDim(DimId dim, const std::vector<const Type*>& others, Fn&& dim_of) {
    // No offset is one of 0.
    const auto number = [](const Module& module, DimId d) {
      return d.valid() ? module.dims().AsConst(d).value_or(0) : 0;
    };
    std::vector<int64_t> numbers = {number(module_, dim)};
    for (size_t other = 0; other < others.size(); ++other)
      numbers.push_back(number(others_[other].graph->module(), dim_of(*others[other])));
    STRATA_TRY(const DimId fitted, Fit(numbers));
    if (!dim.valid() && module_.dims().AsConst(fitted) == 0) return dim;
    return fitted;
  }

  Result<DimId> Fit(const std::vector<int64_t>& numbers) {
    const auto [known, is_new] = fitted_.try_emplace(numbers);
    if (is_new) known->second = fit_.Fit(numbers);
    if (known->second) return *known->second;
    return Refuse(
        fmt::format("has a number that is {} at {} and {} at {}: no sum or product of "
                    "the dynamic sizes",
                    numbers[0], At(0), numbers[1], At(1)));
  }

  /// A data-dependent size is an operand: the node that reads it. So no user comes before it.
  Result<Arg> ArgOf(DimId dim) const {
    if (const auto reader = readers_.find(dim); reader != readers_.end()) {
      return Arg(reader->second);
    }
    if (const auto number = module_.dims().AsConst(dim)) return Arg::Int(*number);
    if (MentionsUnbacked(dim)) {
      return Refuse(
          fmt::format("takes {}: sizes that are read from data can be arguments only as "
                      "they are, split instead of slicing",
                      module_.dims().ToString(dim)));
    }
    return Arg::Dim(dim);
  }

  bool MentionsUnbacked(DimId dim) const {
    if (readers_.contains(dim)) return true;
    return std::ranges::any_of(module_.dims().operands(dim),
                               [&](DimId operand) { return MentionsUnbacked(operand); });
  }

  // Messages.

  /// `batch 3, seq 17`.
  std::string At(size_t sample) const {
    std::vector<std::string> parts;
    for (const TracedSize& size : sizes_)
      if (!size.name.empty())
        parts.push_back(fmt::format("{} {}", size.name, size.samples[sample]));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  Error Refuse(std::string_view why) const { return Refuse(graph_, node(), why); }

  static Error Refuse(const Graph& graph, NodeId node, std::string_view why) {
    const Module& module = graph.module();
    const Node& n = graph.node(node);
    const std::string_view path = module.str(n.module);
    std::string where(path.empty() ? ToString(n.phase) : path);
    if (n.loc.valid()) {
      const SourceLoc& loc = module.loc(n.loc);
      where += fmt::format(" ({}:{})", module.str(loc.file), loc.line);
    }
    return Error(ErrorCode::kUnsupported, "cannot trace {}: {}: {}",
                 graph.op(node).empty() ? graph.name(node) : graph.op(node), where, why);
  }

  Graph& graph_;
  Module& module_;
  Rewriter rewriter_;
  const std::vector<Sample>& others_;
  std::span<const TracedSize> sizes_;
  SizeFit fit_;
  std::map<std::vector<int64_t>, std::optional<DimId>> fitted_;
  std::map<DimId, ValueId> readers_;  // of data-dependent sizes, by symbol
  std::vector<NodeId> nodes_;
  std::vector<std::vector<NodeId>> partners_;  // by other trace
  size_t node_ = 0;
};

/// Tensors from outside must not depend on sizes: the graph has those of the first trace.
Status CheckConstants(const Constants& constants, const Constants& others) {
  for (size_t i = 0; i < std::min(constants.size(), others.size()); ++i) {
    const at::Tensor &a = constants[i].second, &b = others[i].second;
    if (a.is_same(b)) continue;
    if (a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && at::equal(a, b)) continue;
    return Error(ErrorCode::kUnsupported,
                 "cannot trace: {}: a tensor from outside that depends on dynamic shapes: make it "
                 "an input",
                 constants[i].first);
  }
  return Ok();
}

}  // namespace

Status TraceSampled(Module& module, std::span<const TracedSize> sizes,
                    const std::function<TraceRequest(std::span<const int64_t> sizes)>& request,
                    Constants& constants) {
  const auto at = [&](size_t sample) {
    std::vector<int64_t> values;
    for (const TracedSize& size : sizes)
      values.push_back(size.samples[sample]);
    TraceRequest asked = request(values);
    asked.size_seed = sample;
    return asked;
  };
  const TraceRequest first = at(0);
  const size_t known_constants = constants.size();
  STRATA_RETURN_IF_ERROR(Trace(module, first, constants));
  const Constants added(constants.begin() + static_cast<ptrdiff_t>(known_constants),
                        constants.end());
  std::vector<Sample> others;
  for (size_t sample = 1; sample < sizes[0].samples.size(); ++sample) {
    Sample& other = others.emplace_back();
    other.module = std::make_unique<Module>();
    // Attribute paths count the constants of all graphs.
    other.constants.assign(constants.begin(),
                           constants.begin() + static_cast<ptrdiff_t>(known_constants));
    STRATA_RETURN_IF_ERROR(Trace(*other.module, at(sample), other.constants));
    other.graph = other.module->FindGraph(first.graph);
    other.constants.erase(other.constants.begin(),
                          other.constants.begin() + static_cast<ptrdiff_t>(known_constants));
  }
  for (const TracedSize& size : sizes) {
    if (size.symbol.empty()) continue;
    module.dims().SetSymbol({.name = module.Intern(size.symbol),
                             .hint = size.value,
                             .min = size.min,
                             .max = size.max,
                             .backed = true});
  }
  STRATA_RETURN_IF_ERROR(Merger(*module.FindGraph(first.graph), others, sizes).Run());
  for (const Sample& other : others)
    STRATA_RETURN_IF_ERROR(CheckConstants(added, other.constants));
  return Ok();
}

}  // namespace strata
