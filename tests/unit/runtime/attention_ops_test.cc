#include <string>
#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/attention.h"

namespace strata {
namespace {

TEST_CASE("attention: arguments stand where the schemas of LibTorch say") {
  for (const AttentionOp& op : AttentionOps()) {
    INFO(op.base);
    const auto handle =
        c10::Dispatcher::singleton().findSchema({fmt::format("aten::{}", op.base), ""});
    REQUIRE(handle.has_value());
    const auto& arguments = handle->schema().arguments();
    const auto name = [&](size_t position) -> std::string_view {
      return arguments.at(position).name();
    };
    CHECK_EQ(name(op.query), "query");
    CHECK_EQ(name(op.query + 1), "key");
    CHECK_EQ(name(op.query + 2), "value");
    CHECK_EQ(name(op.dropout), "dropout_p");
    CHECK_EQ(name(op.causal), "is_causal");
    const auto mask = handle->schema().argumentIndexWithName(
        op.mask == AttentionOp::Mask::kByName ? AttentionOp::kMaskName : "attn_bias");
    CHECK_EQ(mask.has_value(), op.mask != AttentionOp::Mask::kNone);
    if (op.mask == AttentionOp::Mask::kByPosition) CHECK_EQ(*mask, op.mask_position);
    if (op.mask == AttentionOp::Mask::kByName)
      CHECK(arguments.at(static_cast<size_t>(*mask)).kwarg_only());
    if (!op.is_backward) continue;
    CHECK_EQ(name(op.output), "out");
    CHECK_EQ(name(op.log_sums), "logsumexp");
  }
}

}  // namespace
}  // namespace strata
