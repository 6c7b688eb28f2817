#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/fx/fx.h"
#include "ir/module.h"
#include "ir/verify.h"
#include "passes/flex/annotate_flex.h"
#include "passes/flex/flex_body.h"
#include "passes/flex/flex_mods.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::NodeNamed;
using testing::OrDie;

/// The error of a body, or "".
std::string Refusal(std::string_view text, FlexRole role, size_t num_buffers = 0) {
  Module module;
  const int64_t sizes[] = {2, 8};
  const std::vector<TypeId> buffers(num_buffers, module.types().Tensor(DType::kI64, sizes, "cpu"));
  const auto body = AddFlexBody(module, text, role, "body", buffers, "cpu");
  return body ? "" : body.error().message();
}

constexpr std::string_view kCapped = R"(class score_mod(torch.nn.Module):
    def forward(self, score, b, h, q_idx, kv_idx):
        ratio = torch.ops.aten.div.Scalar(score, 50.0)
        tanh = torch.ops.aten.tanh.default(ratio)
        capped = torch.ops.aten.mul.Scalar(tanh, 50.0)
        return capped
)";

TEST_CASE("a soft cap is a body of three operators") {
  CHECK_EQ(ScoreModText({.soft_cap = 50.0}), kCapped);
}

TEST_CASE("a body of a module has types, and its text makes an equal body") {
  Module module;
  const int64_t sizes[] = {2, 8};
  const TypeId documents = module.types().Tensor(DType::kI64, sizes, "cpu");
  const std::string text = MaskModText({.window = 3, .has_documents = true});
  const GraphId id = OrDie(
      AddFlexBody(module, text, FlexRole::kMask, "mask_mod_0", std::span(&documents, 1), "cpu"));
  CHECK(Verify(module).has_value());
  CHECK(module.graph(id).is_body());
  const std::string printed = FlexBodyText(module.graph(id));
  CHECK_EQ(printed, R"(class GraphModule(torch.nn.Module):
    def forward(
        self,
        b: "i32[][]cpu",
        h: "i32[][]cpu",
        q_idx: "i32[][]cpu",
        kv_idx: "i32[][]cpu",
        document_id: "i64[2, 8][8, 1]cpu",
    ):
        is_before: "b8[][]cpu" = torch.ops.aten.ge.Tensor(q_idx, kv_idx)
        distance: "i32[][]cpu" = torch.ops.aten.sub.Tensor(q_idx, kv_idx)
        is_near: "b8[][]cpu" = torch.ops.aten.lt.Scalar(distance, 3)
        in_window: "b8[][]cpu" = torch.ops.aten.bitwise_and.Tensor(is_before, is_near)
        query_document: "i32[][]cpu" = torch.ops.aten.index.Tensor(document_id, [b, q_idx])
        key_document: "i32[][]cpu" = torch.ops.aten.index.Tensor(document_id, [b, kv_idx])
        is_same: "b8[][]cpu" = torch.ops.aten.eq.Tensor(query_document, key_document)
        mask: "b8[][]cpu" = torch.ops.aten.bitwise_and.Tensor(in_window, is_same)
        return mask
)");
  Module other;
  const TypeId again = other.types().Tensor(DType::kI64, sizes, "cpu");
  const GraphId copy = OrDie(
      AddFlexBody(other, printed, FlexRole::kMask, "mask_mod_0", std::span(&again, 1), "cpu"));
  CHECK_EQ(FlexBodyText(other.graph(copy)), printed);
}

TEST_CASE("the program of a mask knows which of row and head it reads") {
  Module module;
  const GraphId causal =
      OrDie(AddFlexBody(module, MaskModText({}), FlexRole::kMask, "causal", {}, "cpu"));
  const FlexProgram program = OrDie(MakeFlexProgram(module.graph(causal), FlexRole::kMask));
  CHECK_FALSE(program.Reads(0));
  CHECK_FALSE(program.Reads(1));
  CHECK(program.Reads(2));
  CHECK(program.Reads(3));
}

TEST_CASE("the derivative of a body is a body") {
  Module module;
  const std::string joint = OrDie(JointText(kCapped));
  const GraphId id = OrDie(AddFlexBody(module, joint, FlexRole::kJoint, "joint", {}, "cpu"));
  CHECK_EQ(FlexBodyText(module.graph(id)), R"(class GraphModule(torch.nn.Module):
    def forward(
        self,
        score: "f32[][]cpu",
        b: "i32[][]cpu",
        h: "i32[][]cpu",
        q_idx: "i32[][]cpu",
        kv_idx: "i32[][]cpu",
        grad_out: "f32[][]cpu",
    ):
        ratio: "f32[][]cpu" = torch.ops.aten.div.Scalar(score, 50.0)
        tanh: "f32[][]cpu" = torch.ops.aten.tanh.default(ratio)
        capped: "f32[][]cpu" = torch.ops.aten.mul.Scalar(tanh, 50.0)
        mul: "f32[][]cpu" = torch.ops.aten.mul.Tensor(grad_out, 50.0)
        mul_1: "f32[][]cpu" = torch.ops.aten.mul.Tensor(tanh, tanh)
        rsub: "f32[][]cpu" = torch.ops.aten.rsub.Scalar(mul_1, 1.0)
        mul_2: "f32[][]cpu" = torch.ops.aten.mul.Tensor(mul, rsub)
        div: "f32[][]cpu" = torch.ops.aten.div.Tensor(mul_2, 50.0)
        return [div, None, None, None, None]
)");
}

TEST_CASE("what bodies cannot be is refused, with the node and what to do") {
  CHECK_EQ(Refusal(R"(class f(torch.nn.Module):
    def forward(self, score, b, h, q_idx, kv_idx):
        sin = torch.ops.aten.sin.default(score)
        return sin
)",
                   FlexRole::kScore),
           "body: sin: aten.sin.default is no operator of bodies: docs/attention.md lists them");
  CHECK_EQ(Refusal(R"(class f(torch.nn.Module):
    def forward(self, b, h, q_idx, kv_idx):
        sub = torch.ops.aten.sub.Tensor(q_idx, kv_idx)
        return sub
)",
                   FlexRole::kMask),
           "body: output: a mask_mod returns a condition: compare numbers");
  CHECK_EQ(Refusal(R"(class f(torch.nn.Module):
    def forward(self, b, h, q_idx, kv_idx, table):
        ge = torch.ops.aten.ge.Tensor(q_idx, table)
        return ge
)",
                   FlexRole::kMask, 1),
           "body: ge: a buffer is read by aten.index.Tensor only");
  CHECK_EQ(Refusal(MaskModText({}), FlexRole::kMask, 1),
           "body has 4 inputs: flex attention: a mask_mod of 1 buffers has 5");
  CHECK_EQ(MessageOf(FlexBufferNames("class f(torch.nn.Module):\n    def forward(self, b, h):\n"
                                     "        return b\n",
                                     FlexRole::kMask, "mask.txt")),
           "2 inputs are too few: mask.txt: a mask_mod has 4, then its buffers");
}

/// An attention whose parameter `w` is an attribute, too.
constexpr std::string_view kAttention = R"(class g(torch.nn.Module):
    def forward(self, q: "f32[1, 2, 4, 8][64, 32, 8, 1]cpu"):
        w = self.w
        score_mod_0 = self.score_mod_0
        mask_mod_0 = self.mask_mod_0
        flex = torch.ops.higher_order.flex_attention(q, q, w, score_mod_0, (4, 4, q, q, q, q, q, q, q, q, 4, 4, mask_mod_0), 0.5, {}, (), ())
        a = flex[0]
        flex_1 = torch.ops.higher_order.flex_attention(a, q, w, score_mod_0, (4, 4, q, q, q, q, q, q, q, q, 4, 4, mask_mod_0), 0.5, {}, (), ())
        b = flex_1[0]
        relu = torch.ops.aten.relu.default(b)
        return [relu]

    class score_mod_0(torch.nn.Module):
        def forward(self, score, b, h, q_idx, kv_idx):
            neg = torch.ops.aten.neg.default(score)
            return neg

    class mask_mod_0(torch.nn.Module):
        def forward(self, b, h, q_idx, kv_idx):
            ge = torch.ops.aten.ge.Tensor(q_idx, kv_idx)
            return ge
)";

/// Annotations as `node annotation`, of all graphs.
std::string Annotations(const Module& module) {
  std::string text = "\n";
  for (int32_t i = 0; i < static_cast<int32_t>(module.num_graphs()); ++i) {
    const Graph& graph = module.graph(GraphId{i});
    for (const NodeId node : graph.nodes()) {
      const std::string_view mark = graph.attribute(node, "custom.compile_with_inductor");
      if (!mark.empty()) text += fmt::format("{} {}\n", graph.name(node), mark);
    }
  }
  return text;
}

TEST_CASE("FA-1: flex attention, its attributes and the nodes of its bodies are annotated") {
  FxDocument document = OrDie(ParseFx(kAttention));
  AnnotateFlex pass(AnnotateFlex::Options{.config = "{'a': 1}", .mask_config = {}});
  CHECK(OrDie(pass.Run(*document.module)) == Changed::kYes);
  CHECK_EQ(Annotations(*document.module), R"(
score_mod_0 {'inductor_configs': {'a': 1}}
mask_mod_0 {'inductor_configs': {'a': 1}}
flex {'inductor_configs': {'a': 1}}
flex_1 {'inductor_configs': {'a': 1}}
score {}
b {}
h {}
q_idx {}
kv_idx {}
neg {}
output {}
b {}
h {}
q_idx {}
kv_idx {}
ge {}
output {}
)");
  CHECK(OrDie(pass.Run(*document.module)) == Changed::kNo);
}

TEST_CASE("FA-2: tensors among the attributes, and other nodes, are not annotated") {
  FxDocument document = OrDie(ParseFx(kAttention));
  OrDie(AnnotateFlex().Run(*document.module));
  const Graph& graph = document.graph();
  for (const std::string_view name : {"q", "w", "relu"}) {
    CAPTURE(name);
    CHECK_EQ(graph.attribute(NodeNamed(graph, name), "custom.compile_with_inductor"), "");
  }
}

TEST_CASE("FA-3: a later annotation takes the place of the first, also on a shared body") {
  FxDocument document = OrDie(ParseFx(kAttention));
  OrDie(AnnotateFlex(AnnotateFlex::Options{.config = "{'a': 1}", .mask_config = {}})
            .Run(*document.module));
  OrDie(AnnotateFlex(AnnotateFlex::Options{.config = {}, .mask_config = "{'b': 2}"})
            .Run(*document.module));
  const std::string annotations = Annotations(*document.module);
  CHECK_EQ(annotations.find("'a'"), std::string::npos);
  CHECK_NE(annotations.find("mask_mod_0 {}"), std::string::npos);
  CHECK_NE(annotations.find("ge {'inductor_configs': {'b': 2}}"), std::string::npos);
}

}  // namespace
}  // namespace strata
