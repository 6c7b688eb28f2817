#include "runtime/plan/device/attention.h"

#include <string>

#include <doctest/doctest.h>

#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;

DeviceTraits Gpu(double capability, bool deterministic = false, int64_t cudnn = 91900) {
  return {.name = "cuda:0",
          .is_gpu = true,
          .capability = capability,
          .cudnn = cudnn,
          .deterministic = deterministic};
}

constexpr AttentionShape kPlain{.dtype = DType::kBF16, .head_dim = 128};
constexpr AttentionShape kGrouped{.dtype = DType::kBF16, .head_dim = 64, .is_grouped = true};
constexpr AttentionShape kWide{.dtype = DType::kBF16, .head_dim = 192};
constexpr AttentionShape kWidest{.dtype = DType::kF16, .head_dim = 320};
constexpr AttentionShape kOdd{.dtype = DType::kBF16, .head_dim = 208};
constexpr AttentionShape kMasked{.dtype = DType::kBF16, .head_dim = 64, .has_mask = true};
constexpr AttentionShape kFloat{.dtype = DType::kF32, .head_dim = 64};

std::string Choose(const DeviceTraits& device, const AttentionShape& shape) {
  const auto kernel = ChooseAttention(device, shape);
  return kernel ? std::string(ToString(*kernel)) : MessageOf(kernel);
}

TEST_CASE("attention by capability, type and shape") {
  struct Row {
    double capability;
    std::string plain, grouped, wide, odd, widest, masked, full;
  };
  const std::string kNone = "no attention kernel for bf16 on a GPU of compute capability 7.5";
  const Row kRows[] = {
      {7.5, kNone, kNone, kNone, kNone, "efficient", kNone, "efficient"},
      {8.0, "flash", "flash", "flash", "flash", "efficient", "efficient", "efficient"},
      {8.6, "flash", "flash", "flash", "efficient", "efficient", "efficient", "efficient"},
      {8.9, "flash", "flash", "flash", "efficient", "efficient", "efficient", "efficient"},
      {9.0, "cudnn", "flash", "flash", "flash", "efficient", "efficient", "efficient"},
      {10.0, "cudnn", "flash", "flash", "flash", "efficient", "efficient", "efficient"},
      {10.3, "cudnn", "flash", "flash", "flash", "efficient", "efficient", "efficient"},
      {12.0, "flash", "flash", "flash", "efficient", "efficient", "efficient", "efficient"},
      {12.1, "flash", "flash", "flash", "efficient", "efficient", "efficient", "efficient"},
  };
  for (const Row& row : kRows) {
    CAPTURE(row.capability);
    CHECK_EQ(Choose(Gpu(row.capability), kPlain), row.plain);
    CHECK_EQ(Choose(Gpu(row.capability), kGrouped), row.grouped);
    CHECK_EQ(Choose(Gpu(row.capability), kWide), row.wide);
    CHECK_EQ(Choose(Gpu(row.capability), kOdd), row.odd);
    CHECK_EQ(Choose(Gpu(row.capability), kWidest), row.widest);
    CHECK_EQ(Choose(Gpu(row.capability), kMasked), row.masked);
    CHECK_EQ(Choose(Gpu(row.capability), kFloat), row.full);
  }
  CHECK_EQ(Choose(DeviceTraits(), kPlain), "cpu");
}

TEST_CASE("deterministic runs, old libraries and single keys do without cuDNN's attention") {
  CHECK_EQ(Choose(Gpu(9.0, /*deterministic=*/true), kPlain), "flash");
  CHECK_EQ(Choose(Gpu(9.0, /*deterministic=*/false, 91100), kPlain), "flash");
  CHECK_EQ(Choose(Gpu(9.0, /*deterministic=*/false, 91500), kPlain), "flash");
  CHECK_EQ(Choose(Gpu(9.0, /*deterministic=*/false, 91501), kPlain), "cudnn");
  CHECK_EQ(Choose(Gpu(9.0), {.dtype = DType::kBF16, .head_dim = 64, .is_single = true}), "flash");
}

TEST_CASE("what no kernel computes is an error") {
  CHECK_EQ(Choose(Gpu(9.0), {.dtype = DType::kF64, .head_dim = 64}),
           "no attention kernel for f64 on a GPU of compute capability 9.0");
  CHECK_EQ(Choose(Gpu(7.0), kFloat),
           "no attention kernel for f32 on a GPU of compute capability 7.0");
}

}  // namespace
}  // namespace strata
