#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/fx/fx.h"
#include "ir/rewriter.h"
#include "passes/flex/body_copier.h"
#include "passes/flex/flex_body.h"

namespace strata {
namespace {

/// Reverse-mode derivative of a score_mod. Formulas: PyTorch's derivatives.yaml.
class Differentiator {
 public:
  Differentiator(const Graph& from, const FlexProgram& program, Graph& joint)
      : from_(from), program_(program), rewriter_(joint), copier_(from, rewriter_) {}

  void Run() {
    CopyForward();
    FindDependent();
    if (program_.result.op >= 0) Add(program_.result.op, gradient_);
    for (size_t i = program_.ops.size(); i-- > 0;) {
      const auto known = gradients_.find(static_cast<int32_t>(i));
      if (known != gradients_.end() && program_.ops[i].code != "input")
        Propagate(program_.ops[i], known->second);
    }
    const auto score = gradients_.find(0);
    // A score that nothing reads has no gradient.
    std::vector<Arg> results = {score != gradients_.end()
                                    ? score->second
                                    : Call("aten.mul.Scalar", {gradient_, Arg::Float(0.0)})};
    results.resize(from_.placeholders().size(), Arg::None());
    const Arg list = rewriter_.MakeSpan(ArgKind::kList, results);
    rewriter_.Create({.kind = NodeKind::kOutput, .args = std::span(&list, 1)}, From::Source());
  }

 private:
  void CopyForward() {
    size_t inputs = 0;
    for (const NodeId node : from_.nodes()) {
      if (from_.node(node).kind == NodeKind::kOutput) continue;
      const bool is_input = from_.node(node).kind == NodeKind::kPlaceholder;
      if (inputs == NumScalars(FlexRole::kScore) && !has_gradient_input_) AddGradientInput();
      const NodeId copy = copier_.Copy(node);
      const TypeId type = from_.value(from_.result(node)).type;
      if (is_input && type.valid()) {
        Module& module = rewriter_.graph().module();
        rewriter_.SetType(rewriter_.graph().result(copy),
                          module.types().Parse(from_.module().types().ToString(type)));
      }
      if (is_input) ++inputs;
    }
    if (!has_gradient_input_) AddGradientInput();
  }

  void AddGradientInput() {
    const NodeId node =
        rewriter_.Create({.kind = NodeKind::kPlaceholder, .name = "grad_out"}, From::Source());
    gradient_ = rewriter_.graph().result(node);
    has_gradient_input_ = true;
  }

  void FindDependent() {
    for (const FlexProgram::Op& op : program_.ops) {
      bool depends = op.code == "input" && op.index == 0;
      if (op.kind == FlexProgram::Kind::kFloat) {
        for (const FlexProgram::Operand& operand : op.operands)
          depends = depends || (operand.op >= 0 && depends_[static_cast<size_t>(operand.op)]);
      }
      depends_.push_back(depends);
    }
  }

  Arg Call(std::string_view op, std::initializer_list<Arg> args) {
    const std::vector<Arg> list(args);
    const NodeId node = rewriter_.Create({.op = op, .args = list}, From::Source());
    return rewriter_.graph().result(node);
  }
  Arg Mul(Arg a, Arg b) { return Call("aten.mul.Tensor", {a, b}); }
  Arg Neg(Arg a) { return Call("aten.neg.default", {a}); }
  /// `condition ? a : 0`
  Arg Where(Arg condition, Arg a) {
    return Call("aten.where.ScalarOther", {condition, a, Arg::Float(0.0)});
  }

  /// The operand as the joint graph has it.
  Arg At(const FlexProgram::Operand& operand) const {
    if (operand.op >= 0)
      return copier_.ValueOf(from_.result(program_.ops[static_cast<size_t>(operand.op)].node));
    return operand.kind == FlexProgram::Kind::kInt ? Arg::Int(static_cast<int64_t>(operand.number))
                                                   : Arg::Float(operand.number);
  }

  void Add(int32_t op, Arg gradient) {
    if (op < 0 || !depends_[static_cast<size_t>(op)]) return;
    const auto [known, is_new] = gradients_.try_emplace(op, gradient);
    if (!is_new) known->second = Call("aten.add.Tensor", {known->second, gradient});
  }

  bool Needs(const FlexProgram::Op& op, size_t operand) const {
    const int32_t at = op.operands[operand].op;
    return at >= 0 && depends_[static_cast<size_t>(at)];
  }

  void Propagate(const FlexProgram::Op& op, Arg g) {
    const Arg out = copier_.ValueOf(from_.result(op.node));
    if (op.operands.size() == 1) {
      if (Needs(op, 0)) Add(op.operands[0].op, OfUnary(op, g, At(op.operands[0]), out));
      return;
    }
    const size_t first = op.code == "where" ? 1 : 0;
    for (size_t i = first; i < op.operands.size(); ++i)
      if (Needs(op, i)) Add(op.operands[i].op, OfBinary(op, i - first, g, out));
  }

  Arg OfUnary(const FlexProgram::Op& op, Arg g, Arg x, Arg out) {
    const auto one_minus = [&](Arg y) { return Call("aten.rsub.Scalar", {y, Arg::Float(1.0)}); };
    if (op.code == "neg") return Neg(g);
    if (op.code == "exp") return Mul(g, out);
    if (op.code == "log") return Call("aten.div.Tensor", {g, x});
    if (op.code == "sqrt")
      return Call("aten.div.Tensor", {g, Call("aten.mul.Scalar", {out, Arg::Float(2.0)})});
    if (op.code == "tanh") return Mul(g, one_minus(Mul(out, out)));
    if (op.code == "sigmoid") return Mul(Mul(g, one_minus(out)), out);
    if (op.code == "relu") return Where(Call("aten.gt.Scalar", {out, Arg::Float(0.0)}), g);
    if (op.code == "abs") {
      return Call("aten.sub.Tensor", {Where(Call("aten.gt.Scalar", {x, Arg::Float(0.0)}), g),
                                      Where(Call("aten.lt.Scalar", {x, Arg::Float(0.0)}), g)});
    }
    STRATA_CHECK(op.code == "cast", "no derivative of {}", op.code);
    return g;
  }

  Arg OfBinary(const FlexProgram::Op& op, size_t operand, Arg g, Arg out) {
    const bool is_first = operand == 0;
    if (op.code == "where") {
      const Arg condition = At(op.operands[0]);
      return Where(is_first ? condition : Call("aten.logical_not.default", {condition}), g);
    }
    const Arg mine = At(op.operands[operand]), other = At(op.operands[1 - operand]);
    if (op.code == "add") return g;
    if (op.code == "sub") return is_first ? g : Neg(g);
    if (op.code == "rsub") return is_first ? Neg(g) : g;
    if (op.code == "mul") return Mul(g, other);
    if (op.code == "div") {
      if (is_first) return Call("aten.div.Tensor", {g, other});
      return Neg(Mul(g, Call("aten.div.Tensor", {out, mine})));
    }
    if (op.code == "remainder" && is_first) return g;
    STRATA_CHECK(op.code == "maximum" || op.code == "minimum", "no derivative of {}", op.code);
    // Half of the gradient each where they are equal.
    const Arg wins =
        Call(op.code == "maximum" ? "aten.gt.Tensor" : "aten.lt.Tensor", {mine, other});
    const Arg half = Call("aten.mul.Scalar", {g, Arg::Float(0.5)});
    return Call("aten.add.Tensor",
                {Where(wins, g), Where(Call("aten.eq.Tensor", {mine, other}), half)});
  }

  const Graph& from_;
  const FlexProgram& program_;
  Rewriter rewriter_;
  BodyCopier copier_;
  Arg gradient_;
  bool has_gradient_input_ = false;
  std::vector<bool> depends_;         // on the score, by op
  std::map<int32_t, Arg> gradients_;  // by op
};

}  // namespace

Result<std::string> JointText(std::string_view score_mod) {
  STRATA_TRY(const FxDocument document, ParseFx(score_mod, {.file = "score_mod", .strict = true}));
  STRATA_TRY(const FlexProgram program, MakeFlexProgram(document.graph(), FlexRole::kScore));
  Module module;
  Graph& joint = module.AddGraph("joint_graph");
  Differentiator(document.graph(), program, joint).Run();
  return FlexBodyText(joint);
}

}  // namespace strata
