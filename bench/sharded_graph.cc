#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/bench.h"
#include "ir/rewriter.h"

namespace strata::cli {
namespace {

constexpr int kParametersPerLayer = 8;
constexpr std::array<int64_t, 2> kWhole = {64, 64}, kPart = {8, 64};

/// Writes layers whose parameters are gathered for a product each, in forward and again in
/// backward, and whose gradients are reduced.
class ShardedBuilder {
 public:
  explicit ShardedBuilder(Module& module)
      : module_(module),
        rewriter_(module.AddGraph("step")),
        whole_(module.types().Tensor(DType::kF32, kWhole, "cpu")),
        part_(module.types().Tensor(DType::kF32, kPart, "cpu")) {}

  void Build(int layers) {
    std::vector<std::vector<ValueId>> parameters;
    for (int layer = 0; layer < layers; ++layer) {
      parameters.emplace_back();
      for (int i = 0; i < kParametersPerLayer; ++i) {
        const ValueId parameter = Input(part_);
        rewriter_.SetAttribute(Graph().value(parameter).def, "fqn",
                               fmt::format("layers.{}.m{}.weight", layer, i));
        parameters.back().push_back(parameter);
      }
    }
    ValueId x = Input(whole_);
    rewriter_.SetAttribute(Graph().value(x).def, "input", "batch");
    phase_ = Phase::kForward;
    std::vector<ValueId> saved;
    for (int layer = 0; layer < layers; ++layer) {
      saved.push_back(x);
      for (int i = 0; i < kParametersPerLayer; ++i) {
        module_path_ = fmt::format("layers.{}.m{}", layer, i);
        const ValueId weight = Gathered(parameters[Index(layer)][Index(i)]);
        x = Call("aten.relu.default", {Call("aten.mm.default", {x, weight}, whole_)}, whole_);
      }
    }
    phase_ = Phase::kBackward;
    std::vector<Arg> results;
    for (int layer = layers - 1; layer >= 0; --layer) {
      for (int i = kParametersPerLayer - 1; i >= 0; --i) {
        module_path_ = fmt::format("layers.{}.m{}", layer, i);
        const ValueId gradient = Call("aten.mm.default", {saved[Index(layer)], x}, whole_);
        results.emplace_back(Reduced(gradient));
        x = Call("aten.mm.default", {x, Gathered(parameters[Index(layer)][Index(i)])}, whole_);
      }
    }
    NodeSpec output;
    output.kind = NodeKind::kOutput;
    const Arg list = rewriter_.MakeSpan(ArgKind::kList, results);
    output.args = {&list, 1};
    rewriter_.Create(output, From::Source());
  }

 private:
  static size_t Index(int i) { return static_cast<size_t>(i); }
  strata::Graph& Graph() { return rewriter_.graph(); }
  Arg String(std::string_view text) { return Arg::String(module_.Intern(text)); }

  ValueId Input(TypeId type) {
    NodeSpec spec;
    spec.kind = NodeKind::kPlaceholder;
    spec.results = {&type, 1};
    return Graph().result(rewriter_.Create(spec, From::Source()));
  }

  ValueId Call(std::string_view op, std::initializer_list<Arg> args, TypeId type) {
    NodeSpec spec;
    spec.op = op;
    spec.args = {args.begin(), args.size()};
    spec.results = {&type, 1};
    const NodeId node = rewriter_.Create(spec, From::Source());
    rewriter_.SetModule(node, module_path_);
    rewriter_.SetPhase(node, phase_);
    return Graph().result(node);
  }

  ValueId Waited(ValueId launched) {
    const ValueId complete =
        Call("_c10d_functional.wait_tensor.default", {launched}, Graph().value(launched).type);
    rewriter_.SetAlias(complete, launched);
    return complete;
  }
  ValueId Gathered(ValueId part) {
    return Waited(Call("_c10d_functional.all_gather_into_tensor.default",
                       {part, Arg::Int(8), String("fsdp")}, whole_));
  }
  ValueId Reduced(ValueId gradient) {
    return Waited(Call("_c10d_functional.reduce_scatter_tensor.default",
                       {gradient, String("sum"), Arg::Int(8), String("fsdp")}, part_));
  }

  Module& module_;
  Rewriter rewriter_;
  const TypeId whole_, part_;
  Phase phase_ = Phase::kForward;
  std::string module_path_;
};

}  // namespace

std::unique_ptr<Module> ShardedStepGraph(int nodes) {
  constexpr int kNodesPerLayer = kParametersPerLayer * 11;
  auto module = std::make_unique<Module>();
  ShardedBuilder(*module).Build(std::max(1, nodes / kNodesPerLayer));
  return module;
}

}  // namespace strata::cli
