#include "passes/flex/flex_mods.h"

#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "base/python_literal.h"
#include "passes/flex/flex_body.h"

namespace strata {
namespace {

/// Writes a body line by line.
class BodyText {
 public:
  explicit BodyText(std::string head) : text_(std::move(head)) {}

  /// `name = torch.ops.aten.<op>(args)`; returns the name.
  std::string Call(std::string name, std::string_view op, std::string_view args) {
    fmt::format_to(std::back_inserter(text_), "        {} = torch.ops.aten.{}({})\n", name, op,
                   args);
    return name;
  }
  std::string Return(std::string_view name) {
    return fmt::format("{}        return {}\n", text_, name);
  }

 private:
  std::string text_;
};

/// As Python writes floats. A number in another form would be text to the reader.
std::string Number(double number) {
  std::string text;
  AppendFloat(number, text);
  return text;
}

}  // namespace

std::string MaskModText(const FlexMaskSpec& spec) {
  BodyText body(
      fmt::format("class mask_mod(torch.nn.Module):\n"
                  "    def forward(self, b, h, q_idx, kv_idx{}{}):\n",
                  spec.has_documents ? ", " : "", spec.has_documents ? kDocumentIds : ""));
  std::string mask = body.Call("is_before", "ge.Tensor", "q_idx, kv_idx");
  if (spec.window > 0) {
    const std::string distance = body.Call("distance", "sub.Tensor", "q_idx, kv_idx");
    const std::string is_near =
        body.Call("is_near", "lt.Scalar", fmt::format("{}, {}", distance, spec.window));
    mask = body.Call("in_window", "bitwise_and.Tensor", fmt::format("{}, {}", mask, is_near));
  }
  if (spec.prefix > 0) {
    const std::string in_prefix =
        body.Call("in_prefix", "lt.Scalar", fmt::format("kv_idx, {}", spec.prefix));
    mask = body.Call("is_seen", "bitwise_or.Tensor", fmt::format("{}, {}", mask, in_prefix));
  }
  if (spec.has_documents) {
    const std::string query =
        body.Call("query_document", "index.Tensor", fmt::format("{}, [b, q_idx]", kDocumentIds));
    const std::string key =
        body.Call("key_document", "index.Tensor", fmt::format("{}, [b, kv_idx]", kDocumentIds));
    const std::string is_same =
        body.Call("is_same", "eq.Tensor", fmt::format("{}, {}", query, key));
    mask = body.Call("mask", "bitwise_and.Tensor", fmt::format("{}, {}", mask, is_same));
  }
  return body.Return(mask);
}

std::string ScoreModText(const FlexScoreSpec& spec) {
  if (spec.soft_cap == 0.0 && spec.alibi_heads == 0) return std::string(kIdentityScoreMod);
  BodyText body(
      "class score_mod(torch.nn.Module):\n"
      "    def forward(self, score, b, h, q_idx, kv_idx):\n");
  std::string score = "score";
  if (spec.soft_cap != 0.0) {
    const std::string cap = Number(spec.soft_cap);
    const std::string ratio = body.Call("ratio", "div.Scalar", fmt::format("{}, {}", score, cap));
    const std::string tanh = body.Call("tanh", "tanh.default", ratio);
    score = body.Call("capped", "mul.Scalar", fmt::format("{}, {}", tanh, cap));
  }
  if (spec.alibi_heads != 0) {
    const double rate = -8.0 * std::numbers::ln2 / static_cast<double>(spec.alibi_heads);
    const std::string head = body.Call("head", "add.Scalar", "h, 1");
    const std::string power =
        body.Call("power", "mul.Scalar", fmt::format("{}, {}", head, Number(rate)));
    const std::string slope = body.Call("slope", "exp.default", power);
    const std::string distance = body.Call("distance", "sub.Tensor", "kv_idx, q_idx");
    const std::string bias =
        body.Call("bias", "mul.Tensor", fmt::format("{}, {}", distance, slope));
    score = body.Call("biased", "add.Tensor", fmt::format("{}, {}", score, bias));
  }
  return body.Return(score);
}

}  // namespace strata
