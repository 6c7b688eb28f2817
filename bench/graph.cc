#include <array>
#include <string>

#include <fmt/format.h>

#include "bench/bench.h"
#include "ir/rewriter.h"

namespace strata::cli {
namespace {

constexpr std::array<int64_t, 3> kActivation = {2, 128, 64};
constexpr std::array<int64_t, 2> kFlat = {256, 64}, kWeight = {64, 64};

/// Writes blocks until there are enough nodes.
class Builder {
 public:
  Builder(Module& module, uint32_t seed)
      : module_(module), graph_(module.AddGraph("step")), rewriter_(graph_), state_(seed) {
    activation_ = module.types().Tensor(DType::kBF16, kActivation, "cpu");
    flat_ = module.types().Tensor(DType::kBF16, kFlat, "cpu");
    weight_ = module.types().Tensor(DType::kBF16, kWeight, "cpu");
  }

  void Build(int nodes) {
    const int blocks = std::max(1, nodes / kNodesPerBlock);
    std::vector<ValueId> weights;
    for (int i = 0; i < blocks; ++i) {
      weights.push_back(Node(NodeKind::kPlaceholder, "", {}, weight_, fmt::format("w_{}", i)));
    }
    ValueId x = Node(NodeKind::kPlaceholder, "", {}, activation_, "x");
    std::vector<ValueId> saved;
    for (int i = 0; i < blocks; ++i) {
      phase_ = Phase::kForward;
      x = Forward(x, weights[static_cast<size_t>(i)], i);
      saved.push_back(x);
    }
    phase_ = Phase::kBackward;
    std::vector<Arg> results = {x};
    for (int i = blocks - 1; i >= 0; --i) {
      x = Backward(x, saved[static_cast<size_t>(i)], weights[static_cast<size_t>(i)], i);
      results.push_back(x);
    }
    NodeSpec output;
    output.kind = NodeKind::kOutput;
    const Arg list = rewriter_.MakeSpan(ArgKind::kList, results);
    output.args = {&list, 1};
    rewriter_.Create(output, From::Source());
  }

 private:
  static constexpr int kNodesPerBlock = 20;

  ValueId Forward(ValueId x, ValueId w, int block) {
    module_path_ = fmt::format("layers.{}.attention_norm", block);
    const ValueId square = Call("aten.pow.Tensor_Scalar", {x, Arg::Int(2)}, activation_);
    const ValueId norm = Call("aten.mul.Tensor", {x, square}, activation_);
    module_path_ = fmt::format("layers.{}.attention.wq", block);
    const ValueId t = Call("aten.t.default", {w}, weight_);
    const ValueId view = Call("aten.view.default", {norm, Sizes(kFlat)}, flat_);
    const ValueId mm = Call("aten.mm.default", {view, t}, flat_);
    const ValueId back = Call("aten._unsafe_view.default", {mm, Sizes(kActivation)}, activation_);
    module_path_ = fmt::format("layers.{}", block);
    const ValueId scaled = Call("aten.mul.Tensor", {back, Arg::Float(Random())}, activation_);
    return Call("aten.add.Tensor", {x, scaled}, activation_);
  }

  ValueId Backward(ValueId grad, ValueId saved, ValueId w, int block) {
    module_path_ = fmt::format("layers.{}.attention.wq", block);
    const ValueId view = Call("aten.view.default", {grad, Sizes(kFlat)}, flat_);
    const ValueId t = Call("aten.t.default", {view}, flat_);
    const ValueId saved_view = Call("aten.view.default", {saved, Sizes(kFlat)}, flat_);
    const ValueId weight_grad = Call("aten.mm.default", {t, saved_view}, weight_);
    const ValueId input_grad = Call("aten.mm.default", {view, w}, flat_);
    const ValueId cast = Call("aten._to_copy.default", {weight_grad}, weight_);
    const ValueId detached = Call("aten.detach.default", {cast}, weight_);
    module_path_ = fmt::format("layers.{}.attention_norm", block);
    const ValueId back = Call("aten.view.default", {input_grad, Sizes(kActivation)}, activation_);
    const ValueId product = Call("aten.mul.Tensor", {back, saved}, activation_);
    const ValueId sum = Call("aten.add.Tensor", {product, grad}, activation_);
    return Call("aten.mul.Tensor", {sum, detached}, activation_);
  }

  Arg Sizes(std::span<const int64_t> sizes) {
    std::vector<Arg> elements;
    for (int64_t size : sizes)
      elements.push_back(Arg::Int(size));
    return rewriter_.MakeSpan(ArgKind::kList, elements);
  }

  ValueId Call(std::string_view op, std::initializer_list<Arg> args, TypeId type) {
    return Node(NodeKind::kCall, op, {args.begin(), args.size()}, type, {});
  }

  ValueId Node(NodeKind kind, std::string_view op, std::span<const Arg> args, TypeId type,
               std::string_view name) {
    NodeSpec spec;
    spec.kind = kind;
    spec.op = op;
    spec.args = args;
    spec.results = {&type, 1};
    spec.name = name;
    const NodeId id = rewriter_.Create(spec, From::Source());
    if (kind == NodeKind::kCall) {
      rewriter_.SetModule(id, module_path_);
      rewriter_.SetPhase(id, phase_);
      rewriter_.SetSeqNr(id, seq_nr_++);
    }
    return graph_.result(id);
  }

  double Random() {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 8) / 16777216.0;
  }

  Module& module_;
  Graph& graph_;
  Rewriter rewriter_;
  uint32_t state_;
  TypeId activation_, flat_, weight_;
  std::string module_path_;
  Phase phase_ = Phase::kForward;
  int32_t seq_nr_ = 0;
};

}  // namespace

std::unique_ptr<Module> TransformerLikeGraph(int nodes, uint32_t seed) {
  auto module = std::make_unique<Module>();
  Builder(*module, seed).Build(nodes);
  return module;
}

}  // namespace strata::cli
