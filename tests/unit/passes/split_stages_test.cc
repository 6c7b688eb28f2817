#include "passes/pipeline/split_stages.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "passes/pipeline/split_backward.h"
#include "passes/pipeline/split_optimizer.h"
#include "passes/pipeline/split_weight_gradients.h"
#include "passes/pipeline/stage_modules.h"
#include "passes/placement/placement.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/unit/passes/stage_texts.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseOrDie;
using testing::SlotsText;

/// An embedding and a layer with a residual connection: the gradient of the embedding's result is
/// the sum of two.
constexpr std::string_view kStagesStep = R"(graph step
  tok = placeholder : f32[4, 2][2, 1]cpu {module=tok_embeddings +fqn='tok_embeddings.weight' +input='parameter'}
  w = placeholder : f32[2, 2][2, 1]cpu {module=layers.0 +fqn='layers.0.weight' +input='parameter'}
  ids = placeholder : i64[3][1]cpu {+input='batch'}
  mask = aten.ge.Scalar(ids, 0) : b8[3][1]cpu {forward}
  e = aten.embedding.default(tok, ids) : f32[3, 2][2, 1]cpu {forward module=tok_embeddings seq=0}
  t = aten.t.default(w) : f32[2, 2][1, 2]cpu ~w {forward module=layers.0 seq=1}
  m = aten.mm.default(e, t) : f32[3, 2][2, 1]cpu {forward module=layers.0 seq=2}
  h = aten.add.Tensor(e, m) : f32[3, 2][2, 1]cpu {forward module=layers.0 seq=3}
  loss = aten.masked_sum.default(h, mask) : f32[][]cpu {loss module=loss seq=4}
  one = aten.ones_like.default(loss) : f32[][]cpu {backward module=loss}
  gh = aten.expand.default(one, [3, 2]) : f32[3, 2][0, 0]cpu ~one {backward module=loss seq=4}
  tg = aten.t.default(gh) : f32[2, 3][0, 0]cpu ~one {backward module=layers.0 seq=2}
  gw = aten.mm.default(tg, e) : f32[2, 2][2, 1]cpu {backward module=layers.0 seq=2}
  ge = aten.mm.default(gh, w) : f32[3, 2][2, 1]cpu {backward module=layers.0 seq=2}
  gs = aten.add.Tensor(gh, ge) : f32[3, 2][2, 1]cpu {backward module=tok_embeddings seq=0 +is_gradient_acc='True'}
  gt = aten.embedding_dense_backward.default(gs, ids, 4, -1, False) : f32[4, 2][2, 1]cpu {backward module=tok_embeddings seq=0}
  output([loss, gt, gw])
)";

std::string TextOf(const Module& module, std::string_view graph) {
  const Graph* found = module.FindGraph(graph);
  REQUIRE(found != nullptr);
  const std::string text = PrintText(*found, {.types = false, .metadata = false});
  return text.substr(text.find('\n'));
}

std::unique_ptr<Module> Split() {
  auto module = ParseOrDie(kStagesStep);
  SplitStages::Options options;
  options.modules = "tok_embeddings;layers.0";
  CHECK_EQ(OrDie(SplitStages(options).Run(*module)), Changed::kYes);
  CHECK_OK(Verify(*module));
  return module;
}

TEST_CASE("a step is cut by module path; sums of gradients are made before they are sent") {
  const auto module = Split();
  CHECK_EQ(TextOf(*module, "stage0"), R"(
  tok = placeholder
  ids = placeholder
  gs = placeholder
  e = aten.embedding.default(tok, ids)
  gt = aten.embedding_dense_backward.default(gs, ids, 4, -1, False)
  output([e, gt])
)");
  CHECK_EQ(SlotsText(*module, "stage0"),
           "input tok_embeddings.weight; input ids; gradient 0 -> activation 0; grad "
           "tok_embeddings.weight");
  CHECK_EQ(TextOf(*module, "stage1"), R"(
  w = placeholder
  ids = placeholder
  e = placeholder
  mask = aten.ge.Scalar(ids, 0)
  t = aten.t.default(w)
  m = aten.mm.default(e, t)
  h = aten.add.Tensor(e, m)
  loss = aten.masked_sum.default(h, mask)
  one = aten.ones_like.default(loss)
  gh = aten.expand.default(one, [3, 2])
  tg = aten.t.default(gh)
  gw = aten.mm.default(tg, e)
  ge = aten.mm.default(gh, w)
  gs = aten.add.Tensor(gh, ge)
  output([loss, gw, gs])
)");
  CHECK_EQ(SlotsText(*module, "stage1"),
           "input layers.0.weight; input ids; activation 0 -> loss; grad layers.0.weight; gradient "
           "0");
}

TEST_CASE("GR-25: nodes of the step and of its stages carry the stage, and come from the step") {
  const auto module = Split();
  const Graph& step = *module->FindGraph("step");
  const Graph& stage = *module->FindGraph("stage1");
  CHECK_EQ(step.attribute(NodeNamed(step, "e"), kStageAttribute), "0");
  CHECK_EQ(step.attribute(NodeNamed(step, "gs"), kStageAttribute), "1");
  CHECK_EQ(step.attribute(NodeNamed(step, "mask"), kStageAttribute), "");
  CHECK_EQ(stage.attribute(NodeNamed(stage, "m"), kStageAttribute), "1");
  std::map<StableId, StableId> from;
  for (const Provenance& record : module->provenance())
    if (record.from.size() == 1) from[record.node] = record.from[0];
  for (const NodeId node : stage.nodes()) {
    CAPTURE(stage.name(node));
    CHECK_EQ(from.at(stage.node(node).stable_id),
             step.node(NodeNamed(step, stage.name(node))).stable_id);
  }
}

TEST_CASE("a stage is split into forward and backward; views are repeated, inputs read again") {
  const auto module = Split();
  CHECK_EQ(OrDie(SplitBackward().Run(*module)), Changed::kYes);
  CHECK_OK(Verify(*module));
  CHECK_EQ(OrDie(SplitBackward().Run(*module)), Changed::kNo);
  CHECK_EQ(TextOf(*module, "stage0.forward"), R"(
  tok = placeholder
  ids = placeholder
  e = aten.embedding.default(tok, ids)
  output([e])
)");
  CHECK_EQ(SlotsText(*module, "stage0.backward"),
           "input ids; gradient 0 -> grad tok_embeddings.weight");
  CHECK_EQ(TextOf(*module, "stage1.forward"), R"(
  w = placeholder
  ids = placeholder
  e = placeholder
  mask = aten.ge.Scalar(ids, 0)
  t = aten.t.default(w)
  m = aten.mm.default(e, t)
  h = aten.add.Tensor(e, m)
  loss = aten.masked_sum.default(h, mask)
  output([loss, loss])
)");
  CHECK_EQ(SlotsText(*module, "stage1.backward"),
           "input layers.0.weight; activation 0; saved 0 -> grad layers.0.weight; gradient 0");
}

TEST_CASE("GP-07: dI and dW split the backward of a stage; GP-08: not without input gradients") {
  const auto module = Split();
  CHECK_EQ(OrDie(SplitBackward().Run(*module)), Changed::kYes);
  CHECK_EQ(OrDie(SplitWeightGradients().Run(*module)), Changed::kYes);
  CHECK_OK(Verify(*module));
  CHECK_EQ(module->FindGraph("stage0.backward_input"), nullptr);
  CHECK_EQ(TextOf(*module, "stage1.backward_input"), R"(
  w = placeholder
  loss = placeholder
  one = aten.ones_like.default(loss)
  gh = aten.expand.default(one, [3, 2])
  ge = aten.mm.default(gh, w)
  gs = aten.add.Tensor(gh, ge)
  output([gs, one])
)");
  CHECK_EQ(TextOf(*module, "stage1.backward_weight"), R"(
  e = placeholder
  one = placeholder
  gh = aten.expand.default(one, [3, 2])
  tg = aten.t.default(gh)
  gw = aten.mm.default(tg, e)
  output([gw])
)");
  CHECK_EQ(SlotsText(*module, "stage1.backward_weight"),
           "activation 0; kept 0 -> grad layers.0.weight");
}

// --- Joint graphs without phases -----------------------------------------------------------------

/// Placeholders and outputs get slots by their names: inputs, and forward outputs first.
Status SplitText(Module& module, const JointSignature& signature) {
  Graph& graph = *module.FindGraph("g");
  {
    Rewriter rewriter(graph);
    std::vector<StageSlot> outputs;
    for (const NodeId node : graph.placeholders())
      SetInputSlot(rewriter, node,
                   {.kind = StageSlot::Kind::kInput, .name = std::string(graph.name(node))});
    for (size_t i = 0; i < graph.operands(graph.output()).size(); ++i)
      outputs.push_back({.kind = StageSlot::Kind::kExtra, .name = std::to_string(i)});
    SetOutputSlots(rewriter, outputs);
  }
  return SplitJoint(module, graph, signature, "fw", "bw");
}

constexpr std::string_view kMiddle = R"(graph g
  w = placeholder : f32[2, 2][2, 1]cpu
  c = placeholder : f32[2][1]cpu
  x = placeholder : f32[3, 2][2, 1]cpu
  gy = placeholder : f32[3, 2][2, 1]cpu
  h = aten.mm.default(x, w) : f32[3, 2][2, 1]cpu
  y = aten.relu.default(h) : f32[3, 2][2, 1]cpu
  n = aten.sum.dim_IntList(x, [0]) : f32[2][1]cpu
  acc = aten.add_.Tensor(c, n) : f32[2][1]cpu ~c
  gh = aten.threshold_backward.default(gy, h, 0) : f32[3, 2][2, 1]cpu
  xt = aten.t.default(x) : f32[2, 3][1, 2]cpu ~x
  gw = aten.mm.default(xt, gh) : f32[2, 2][2, 1]cpu
  wt = aten.t.default(w) : f32[2, 2][1, 2]cpu ~w
  gx = aten.mm.default(gh, wt) : f32[3, 2][2, 1]cpu
  output([y, gw, gx, x])
)";

TEST_CASE("GP-01: without phases, forward is what its outputs need, and the writes before them") {
  const std::string text(kMiddle);
  // The write to the buffer stands before the last forward output.
  std::string early = text;
  const std::string y = "  y = aten.relu.default(h) : f32[3, 2][2, 1]cpu\n";
  early.erase(early.find(y), y.size());
  early.insert(early.find("  gh ="), y);
  const auto module = ParseOrDie(early);
  CHECK_OK(SplitText(*module, {.forward_outputs = {0}, .backward_inputs = {3}}));
  CHECK_OK(Verify(*module));
  CHECK_EQ(TextOf(*module, "fw"), R"(
  w = placeholder
  c = placeholder
  x = placeholder
  h = aten.mm.default(x, w)
  n = aten.sum.dim_IntList(x, [0])
  acc = aten.add_.Tensor(c, n)
  y = aten.relu.default(h)
  output([y, h])
)");
  CHECK_EQ(TextOf(*module, "bw"), R"(
  w = placeholder
  x = placeholder
  h = placeholder
  gy = placeholder
  gh = aten.threshold_backward.default(gy, h, 0)
  xt = aten.t.default(x)
  gw = aten.mm.default(xt, gh)
  wt = aten.t.default(w)
  gx = aten.mm.default(gh, wt)
  output([gw, gx, x])
)");
}

TEST_CASE("GP-02: an input that backward returns is an input of backward") {
  const auto module = ParseOrDie(kMiddle);
  CHECK_OK(SplitText(*module, {.forward_outputs = {0}, .backward_inputs = {3}}));
  CHECK_EQ(SlotsText(*module, "bw"),
           "input w; input x; saved 0; input gy -> extra 1; extra 2; extra 3");
  CHECK_EQ(SlotsText(*module, "fw"), "input w; input c; input x -> extra 0; saved 0");
}

TEST_CASE("GP-03: positions of inputs and outputs are checked") {
  const auto error = [](std::vector<size_t> outputs, std::vector<size_t> inputs) {
    const auto module = ParseOrDie(kMiddle);
    return MessageOf(SplitText(
        *module, {.forward_outputs = std::move(outputs), .backward_inputs = std::move(inputs)}));
  };
  CHECK_EQ(error({0}, {1, 1}), "backward_only_input_indices must be unique: 1: graph g");
  CHECK_EQ(error({0}, {4}),
           "backward_only_input_indices must reference traced graph placeholders: 4 of 4: graph g");
  CHECK_EQ(error({}, {}), "num_fwd_outputs must be positive: graph g");
  CHECK_EQ(error({4}, {}),
           "num_fwd_outputs exceeds traced graph output count 4: graph g: output 4");
}

TEST_CASE("GP-04: forward outputs cannot depend on gradients of the next stage") {
  const auto module = ParseOrDie(kMiddle);
  CHECK_EQ(MessageOf(SplitText(*module, {.forward_outputs = {0, 2}, .backward_inputs = {3}})),
           "Forward graph outputs require backward-only inputs: graph g: gy: return as forward "
           "outputs what does not depend on gradients");
}

TEST_CASE("GP-05: forward cannot write to a gradient of the next stage") {
  std::string text(kMiddle);
  const std::string write = "aten.add_.Tensor(c, n) : f32[2][1]cpu ~c";
  text.replace(text.find(write), write.size(), "aten.add_.Tensor(gy, x) : f32[3, 2][2, 1]cpu ~gy");
  const std::string y = "  y = aten.relu.default(h) : f32[3, 2][2, 1]cpu\n";
  text.erase(text.find(y), y.size());
  text.insert(text.find("  gh ="), y);
  const auto module = ParseOrDie(text);
  CHECK_EQ(
      MessageOf(SplitText(*module, {.forward_outputs = {0}, .backward_inputs = {3}})),
      "Forward mutation cannot target a backward-only input: graph g: node acc writes gy: copy "
      "it first");
}

// --- Modules and errors --------------------------------------------------------------------------

TEST_CASE("layers are divided among stages as torchtitan divides them") {
  CHECK_EQ(OrDie(StageModules::Split(6, 4)).Text(),
           "tok_embeddings,layers.0;layers.1,layers.2;layers.3,layers.4;layers.5,norm,lm_head");
  CHECK_EQ(OrDie(StageModules::Split(3, 2)).Text(),
           "tok_embeddings,layers.0,layers.1;layers.2,norm,lm_head");
  CHECK_EQ(OrDie(StageModules::Split(2, 1)).Text(),
           "tok_embeddings,layers.0,layers.1,norm,lm_head");
  CHECK_EQ(OrDie(StageModules::Split(4, 4, 0, 0)).Text(),
           "tok_embeddings,layers.0;layers.1;layers.2;layers.3,norm,lm_head");
  CHECK_EQ(MessageOf(StageModules::Split(2, 5)), "5 stages of 2 layers: take at most 4 stages");
  CHECK_EQ(MessageOf(StageModules::Split(6, 4, 3, 1)),
           "the first stage has room for 2 layers, its other modules count as 3: take fewer stages "
           "or a smaller number");
  CHECK_EQ(OrDie(StageModules::Split(12, 2)).StageOf("layers.1.attention"), 0);
  CHECK_EQ(OrDie(StageModules::Split(12, 2)).StageOf("layers.11"), 1);
  CHECK_EQ(OrDie(StageModules::Split(12, 2)).StageOf("rope"), -1);
  CHECK_EQ(MessageOf(StageModules::Parse("a;;b")),
           "a stage without modules: 'a;;b': write modules with `,` between them, stages with `;`");
  CHECK_EQ(MessageOf(StageModules::Parse("a;b,a")),
           "module 'a' is in two stages: 'a;b,a': name it once");
}

TEST_CASE("a step that cannot be cut is refused") {
  const auto error = [](std::string_view text, std::string modules) {
    const auto module = ParseOrDie(text);
    SplitStages::Options options;
    options.modules = std::move(modules);
    return MessageOf(SplitStages(options).Run(*module));
  };
  CHECK_EQ(error(kStagesStep, "tok_embeddings"),
           "no stage has the module of parameter 'layers.0.weight': graph step: add it to modules");
  std::string buffer(kStagesStep);
  buffer.replace(buffer.find("input='parameter'"), 17, "input='buffer'");
  buffer.replace(buffer.find("aten.t.default(w)"), 17, "aten.t.default(tok)");
  buffer.replace(buffer.find("[loss, gt, gw]"), 14, "[loss, gw]");
  CHECK_EQ(error(buffer, "tok_embeddings;layers.0"),
           "input 'tok' of stage 0 is read by stage 1: graph step: node t: put its modules on one "
           "stage");
  CHECK_EQ(error("graph g\n  output([])\n", ""), "no graph 'step': split-stages: trace a training");
}

/// The weight of the embedding, in another type, is the head's: a parameter of module `head`.
constexpr std::string_view kTied = R"(graph step
  w = placeholder : f32[4, 2][2, 1]cpu {module=head +fqn='head.weight' +input='parameter'}
  ids = placeholder : i64[3][1]cpu {+input='batch'}
  b = aten._to_copy.default(w, dtype=torch.bfloat16) : bf16[4, 2][2, 1]cpu {forward module=head seq=0}
  e = aten.embedding.default(b, ids) : bf16[3, 2][2, 1]cpu {forward module=tok_embeddings seq=1}
  r = aten.relu.default(e) : bf16[3, 2][2, 1]cpu {forward module=layers.0 seq=2}
  t = aten.t.default(b) : bf16[2, 4][1, 2]cpu ~b {forward module=head seq=3}
  y = aten.mm.default(r, t) : bf16[3, 4][4, 1]cpu {forward module=head seq=4}
  loss = aten.sum.default(y) : bf16[][]cpu {loss module=loss seq=5}
  one = aten.ones_like.default(loss) : bf16[][]cpu {backward module=loss}
  gy = aten.expand.default(one, [3, 4]) : bf16[3, 4][0, 0]cpu ~one {backward module=loss seq=5}
  ty = aten.t.default(gy) : bf16[4, 3][0, 0]cpu ~one {backward module=head seq=4}
  gb = aten.mm.default(ty, r) : bf16[4, 2][2, 1]cpu {backward module=head seq=4}
  gr = aten.mm.default(gy, b) : bf16[3, 2][2, 1]cpu {backward module=head seq=4}
  ge = aten.threshold_backward.default(gr, r, 0) : bf16[3, 2][2, 1]cpu {backward module=layers.0 seq=2}
  gt = aten.embedding_dense_backward.default(ge, ids, 4, -1, False) : bf16[4, 2][2, 1]cpu {backward module=tok_embeddings seq=1}
  gs = aten.add.Tensor(gb, gt) : bf16[4, 2][2, 1]cpu {backward module=head seq=0 +is_gradient_acc='True'}
  gw = aten._to_copy.default(gs, dtype=torch.float32) : f32[4, 2][2, 1]cpu {backward module=head seq=0}
  output([loss, gw])
graph validate
  w = placeholder : f32[4, 2][2, 1]cpu {module=head +fqn='head.weight' +input='parameter'}
  ids = placeholder : i64[3][1]cpu {+input='batch'}
  e = aten.embedding.default(w, ids) : f32[3, 2][2, 1]cpu {forward module=tok_embeddings}
  r = aten.relu.default(e) : f32[3, 2][2, 1]cpu {forward module=layers.0}
  t = aten.t.default(w) : f32[2, 4][1, 2]cpu ~w {forward module=head}
  y = aten.mm.default(r, t) : f32[3, 4][4, 1]cpu {forward module=head}
  sum = aten.sum.default(y) : f32[][]cpu {loss module=loss}
  ne = aten.ne.Scalar(ids, -100) : b8[3][1]cpu {loss module=loss}
  count = aten.sum.default(ne) : i64[][]cpu {loss module=loss}
  output([sum, count])
graph optimizer
  w = placeholder : f32[4, 2][2, 1]cpu {module=head}
  dw = placeholder : f32[4, 2][2, 1]cpu {module=head}
  n = aten.linalg_vector_norm.default(dw) : f32[][]cpu {optimizer module=head}
  c = aten.mul.Tensor(dw, n) : f32[4, 2][2, 1]cpu {optimizer module=head}
  u = aten.add_.Tensor(w, c) : f32[4, 2][2, 1]cpu ~w {optimizer module=head}
  output([n])
)";

TEST_CASE("a parameter that two stages read is an input of both, and of the first one's update") {
  const auto module = ParseOrDie(kTied);
  SplitStages::Options options;
  options.modules = "tok_embeddings;layers.0;head";
  CHECK_EQ(OrDie(SplitStages(options).Run(*module)), Changed::kYes);
  CHECK_OK(Verify(*module));
  // Casts are repeated, gradients summed where the parameter is.
  CHECK_EQ(TextOf(*module, "stage0"), R"(
  w = placeholder
  ids = placeholder
  gb = placeholder
  ge = placeholder
  b = aten._to_copy.default(w, dtype=torch.bfloat16)
  e = aten.embedding.default(b, ids)
  gt = aten.embedding_dense_backward.default(ge, ids, 4, -1, False)
  gs = aten.add.Tensor(gb, gt)
  gw = aten._to_copy.default(gs, dtype=torch.float32)
  output([e, gw])
)");
  CHECK_EQ(
      SlotsText(*module, "stage0"),
      "input head.weight; input ids; gradient 0; gradient 1 -> activation 0; grad head.weight");
  // The gradient passes through the stage between.
  CHECK_EQ(SlotsText(*module, "stage1"),
           "activation 0; gradient 0; gradient 1 -> activation 0; gradient 0; gradient 1");
  CHECK_EQ(SlotsText(*module, "stage2"),
           "input head.weight; activation 0 -> loss; gradient 0; gradient 1");
  CHECK_EQ(TextOf(*module, "stage2.validate"), R"(
  w = placeholder
  ids = placeholder
  r = placeholder
  t = aten.t.default(w)
  y = aten.mm.default(r, t)
  sum = aten.sum.default(y)
  ne = aten.ne.Scalar(ids, -100)
  count = aten.sum.default(ne)
  output([sum, count])
)");
  CHECK_EQ(SlotsText(*module, "stage0.validate"), "input head.weight; input ids -> activation 0");
  OrDie(SplitBackward().Run(*module));
  OrDie(SplitOptimizer({.ranks = 3}).Run(*module));
  CHECK_OK(Verify(*module));
  CHECK_EQ(module->FindGraph("optimizer.rank0")->placeholders().size(), 2);
  CHECK_EQ(module->FindGraph("optimizer.rank2")->placeholders().size(), 0);
}

TEST_CASE("a gradient is not sent to a later stage, though the parameter's module is there") {
  // Both summands are cast before they are added, as where chunks of a loss sum up in float32.
  std::string text(kTied);
  const size_t begin = text.find("  gs = "), end = text.find("graph validate");
  text.replace(
      begin, end - begin,
      R"(  fb = aten._to_copy.default(gb, dtype=torch.float32) : f32[4, 2][2, 1]cpu {backward module=head seq=0}
  ft = aten._to_copy.default(gt, dtype=torch.float32) : f32[4, 2][2, 1]cpu {backward module=head seq=0}
  gs = aten.add.Tensor(fb, ft) : f32[4, 2][2, 1]cpu {backward module=head seq=0 +is_gradient_acc='True'}
  output([loss, gs])
)");
  const auto module = ParseOrDie(text);
  SplitStages::Options options;
  options.modules = "tok_embeddings;layers.0;head";
  CHECK_EQ(OrDie(SplitStages(options).Run(*module)), Changed::kYes);
  CHECK_EQ(
      SlotsText(*module, "stage0"),
      "input head.weight; input ids; gradient 0; gradient 1 -> activation 0; grad head.weight");
  CHECK_EQ(OrDie(SplitBackward().Run(*module)), Changed::kYes);
}

// --- Optimizer -----------------------------------------------------------------------------------

TEST_CASE("ranks exchange the norms of their gradients, and update their parameters") {
  const auto module = ParseOrDie(std::string(kStagesStep) + R"(
graph optimizer
  tok = placeholder : f32[4][1]cpu {module=tok_embeddings}
  w = placeholder : f32[2][1]cpu {module=layers.0}
  dtok = placeholder : f32[4][1]cpu {module=tok_embeddings}
  dw = placeholder : f32[2][1]cpu {module=layers.0}
  a = aten.linalg_vector_norm.default(dtok) : f32[][]cpu {optimizer module=tok_embeddings}
  b = aten.linalg_vector_norm.default(dw) : f32[][]cpu {optimizer module=layers.0}
  s = aten.stack.default([a, b]) : f32[2][1]cpu {optimizer module=clip}
  n = aten.linalg_vector_norm.default(s) : f32[][]cpu {optimizer module=clip}
  c = aten.mul.Tensor(dtok, n) : f32[4][1]cpu {optimizer module=tok_embeddings}
  u = aten.add_.Tensor(tok, c) : f32[4][1]cpu ~tok {optimizer module=tok_embeddings}
  d = aten.mul.Tensor(dw, n) : f32[2][1]cpu {optimizer module=layers.0}
  v = aten.add_.Tensor(w, d) : f32[2][1]cpu ~w {optimizer module=layers.0}
  output([n])
)");
  SplitStages::Options options;
  options.modules = "tok_embeddings;layers.0";
  OrDie(SplitStages(options).Run(*module));
  CHECK_EQ(OrDie(SplitOptimizer({.ranks = 2}).Run(*module)), Changed::kYes);
  CHECK_OK(Verify(*module));
  const Graph& second = *module->FindGraph("optimizer.rank1");
  CHECK_EQ(second.attribute(second.output(), kMeshAttribute), "pp=2");
  CHECK_EQ(TextOf(*module, "optimizer.rank1"), R"(
  w = placeholder
  dw = placeholder
  b = aten.linalg_vector_norm.default(dw)
  full_pp = aten.full.default([], 0.0, dtype=torch.float32, device=device('cpu'), pin_memory=False)
  stack_pp = aten.stack.default([full_pp, b])
  all_reduce_pp = _c10d_functional.all_reduce.default(stack_pp, 'sum', 'pp')
  wait_tensor_pp = _c10d_functional.wait_tensor.default(all_reduce_pp)
  select_pp = aten.select.int(wait_tensor_pp, 0, 0)
  select_pp_1 = aten.select.int(wait_tensor_pp, 0, 1)
  s = aten.stack.default([select_pp, select_pp_1])
  n = aten.linalg_vector_norm.default(s)
  d = aten.mul.Tensor(dw, n)
  v = aten.add_.Tensor(w, d)
  output([n])
)");
  CHECK_EQ(MessageOf(SplitOptimizer({.ranks = 3}).Run(*module)),
           "2 stages on 3 ranks: split-optimizer: take a multiple of the number of ranks");
}

}  // namespace
}  // namespace strata
