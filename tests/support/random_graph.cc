#include "tests/support/random_graph.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ir/rewriter.h"
#include "tests/support/mini_eval.h"

namespace strata::testing {
namespace {

/// Runs each node when it is created: the tensors decide which operator fits next, and give the
/// types.
class Generator {
 public:
  Generator(uint32_t seed, const RandomGraphOptions& options)
      : options_(options),
        random_(seed),
        module_(std::make_unique<Module>()),
        graph_(module_->AddGraph("g")),
        rewriter_(graph_),
        interpreter_(graph_) {}

  std::unique_ptr<Module> Run() {
    for (int i = 0; i < 3; ++i)
      AddInput();
    while (graph_.num_nodes() < options_.num_nodes)
      AddCall();
    std::vector<Arg> outputs;
    for (int i = 0; i < 4; ++i)
      outputs.push_back(Pick());
    NodeSpec spec;
    spec.kind = NodeKind::kOutput;
    const std::vector<Arg> args = {rewriter_.MakeSpan(ArgKind::kList, outputs)};
    spec.args = args;
    rewriter_.Create(spec, From::Source());
    return std::move(module_);
  }

 private:
  // std::uniform_int_distribution differs between standard libraries.
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint32_t>(bound));
  }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  /// Prefers late values, so that chains grow.
  ValueId Pick() {
    const int64_t last = static_cast<int64_t>(values_.size());
    return values_[static_cast<size_t>(std::max(Below(last), Below(last)))];
  }
  /// A value of the same shape, perhaps `value` itself.
  ValueId PickLike(ValueId value) {
    std::vector<ValueId> fitting;
    for (ValueId other : values_) {
      if (Tensor(other).sizes == Tensor(value).sizes) fitting.push_back(other);
    }
    return fitting[static_cast<size_t>(Below(static_cast<int64_t>(fitting.size())))];
  }
  const MiniTensor& Tensor(ValueId value) const { return interpreter_.tensor(value); }
  TypeId TypeOf(const MiniTensor& tensor) {
    Type type;
    type.dtype = DType::kF32;
    type.device = module_->Intern("cpu");
    type.has_strides = true;
    for (int64_t size : tensor.sizes)
      type.sizes.push_back(module_->dims().Const(size));
    for (int64_t stride : tensor.strides)
      type.strides.push_back(module_->dims().Const(stride));
    return module_->types().Intern(type);
  }

  void AddInput() {
    std::vector<int64_t> sizes(static_cast<size_t>(1 + Below(3)));
    for (int64_t& size : sizes)
      size = int64_t{1} << Below(3);
    int64_t count = 1;
    for (int64_t size : sizes)
      count *= size;
    const auto tensor =
        MiniTensor::Make(sizes, std::vector<float>(static_cast<size_t>(count), 1.0f));
    NodeSpec spec;
    spec.kind = NodeKind::kPlaceholder;
    const NodeId node = rewriter_.Create(spec, From::Source());
    interpreter_.Bind(node, tensor);
    Learn(node);
  }

  void Learn(NodeId node) {
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      const ValueId result = graph_.result(node, i);
      rewriter_.SetType(result, TypeOf(Tensor(result)));
      const ValueId owner = owners_.emplace(Tensor(result).storage.get(), result).first->second;
      if (options_.states_aliases && owner != result) rewriter_.SetAlias(result, owner);
      values_.push_back(result);
    }
  }

  void Call(std::string_view op, std::initializer_list<Arg> args) {
    const NodeId node = rewriter_.Create(op, args, From::Source());
    const Status done = interpreter_.Step(node);
    if (!done) {  // a view would need a copy, so this is a reshape
      STRATA_CHECK(op.find("view") != op.npos, "{}", done.error().message());
      rewriter_.SetOp(node, "aten.reshape.default");
      STRATA_CHECK(interpreter_.Step(node));
    }
    Learn(node);
  }

  void Split(ValueId x) {
    const MiniTensor& t = Tensor(x);
    if (t.sizes.empty() || t.sizes[0] < 2) return;
    const int64_t length = 1 + Below(t.sizes[0] - 1);
    const auto parts = static_cast<size_t>((t.sizes[0] + length - 1) / length);
    NodeSpec spec;
    spec.op = "aten.split.Tensor";
    const std::vector<Arg> args = {x, Arg::Int(length)};
    spec.args = args;
    const std::vector<TypeId> types(parts);
    spec.results = types;
    spec.returns_tuple = true;
    const NodeId node = rewriter_.Create(spec, From::Source());
    STRATA_CHECK(interpreter_.Step(node));
    for (size_t i = 0; i < parts; ++i) {
      rewriter_.SetElementName(graph_.result(node, i), fmt::format("part_{}_{}", node.index, i));
    }
    Learn(node);
  }

  Arg Sizes(std::vector<int64_t> sizes) {
    std::vector<Arg> ints;
    for (int64_t size : sizes)
      ints.push_back(Arg::Int(size));
    return rewriter_.MakeSpan(ArgKind::kList, ints);
  }

  /// The same shape in half of the cases, else two adjacent dimensions merged or one of size 1
  /// added.
  std::vector<int64_t> NewShape(const MiniTensor& t) {
    std::vector<int64_t> sizes = t.sizes;
    if (OneIn(2)) return sizes;
    if (sizes.size() > 1) {
      sizes[0] *= sizes[1];
      sizes.erase(sizes.begin() + 1);
    } else {
      sizes.insert(sizes.begin(), 1);
    }
    return sizes;
  }

  void AddCall() {
    const ValueId x = Pick();
    const MiniTensor t = Tensor(x);
    const auto rank = static_cast<int64_t>(t.sizes.size());
    switch (Below(options_.in_place ? 16 : 12)) {
      case 0:
        return Call("aten.relu.default", {x});
      case 1:
        return Call("aten.neg.default", {x});
      case 2:
        return Call("aten.add.Tensor", {x, PickLike(x)});
      case 3:
        return Call("aten.clone.default", {x});
      case 4:
        return Call("aten.detach.default", {x});
      case 5:
        if (rank <= 2) Call("aten.t.default", {x});
        return;
      case 6:
        return Call("aten.view.default", {x, Sizes(NewShape(t))});
      case 7:
        return Call("aten._unsafe_view.default", {x, Sizes(NewShape(t))});
      case 8:
        return Call("aten.reshape.default", {x, Sizes(NewShape(t))});
      case 9: {
        if (rank == 0) return;
        const int64_t dim = Below(2 * rank) - rank;
        const int64_t size = t.sizes[static_cast<size_t>(dim < 0 ? dim + rank : dim)];
        const int64_t end = OneIn(2) ? INT64_MAX : size + Below(2) - 1;
        return Call("aten.slice.Tensor",
                    {x, Arg::Int(dim), Arg::Int(OneIn(3) ? 1 : 0), Arg::Int(end)});
      }
      case 10:
        return Split(x);
      case 11:
        if (rank == 2) Call("aten.mm.default", {Transposed(x), x});
        return;
      case 12:
        return Call("aten.add_.Tensor", {x, PickLike(x)});
      case 13:
        return Call("aten.mul_.Tensor", {x, Arg::Int(2)});
      case 14:
        if (ReshapesInPlace(x)) Call("aten.t_.default", {x});
        return;
      default:
        if (ReshapesInPlace(x)) Call("aten.unsqueeze_.default", {x, Arg::Int(0)});
        return;
    }
  }

  ValueId Transposed(ValueId x) {
    Call("aten.t.default", {x});
    return values_.back();
  }
  bool ReshapesInPlace(ValueId x) const {
    const bool is_input = graph_.node(graph_.value(x).def).kind == NodeKind::kPlaceholder;
    return options_.reshapes_in_place && Tensor(x).sizes.size() <= 2 && !is_input;
  }

  RandomGraphOptions options_;
  std::mt19937 random_;
  std::unique_ptr<Module> module_;
  Graph& graph_;
  Rewriter rewriter_;
  MiniInterpreter interpreter_;
  std::vector<ValueId> values_;
  std::map<const void*, ValueId> owners_;  // of storages, the first value in each
};

}  // namespace

std::unique_ptr<Module> RandomGraph(uint32_t seed, const RandomGraphOptions& options) {
  return Generator(seed, options).Run();
}

}  // namespace strata::testing
