#include "runtime/train/files/metrics.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "base/file.h"
#include "base/random.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::TempDir;

std::string Line(int64_t step) {
  return FormatMetrics({.step = step, .loss = 2.0F, .grad_norm = 1.0F, .lr = 0.5}) + "\n";
}

TEST_CASE("a metrics line prints fp32 values as PyTorch's reference does") {
  // The first step of the llama3_tiny fixture.
  CHECK_EQ(
      FormatMetrics(
          {.step = 1, .loss = 6.25009822845459F, .grad_norm = 0.9477152824401855F, .lr = 0.001}),
      R"({"step": 1, "loss": 6.25009822845459, "grad_norm": 0.9477152824401855, "lr": 0.001})");
}

TEST_CASE("a printed value reads back as the very same number") {
  for (uint64_t i = 0; i < 2000; ++i) {
    const auto bits = static_cast<uint32_t>(RandomBits(7, i));
    const float value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    const std::string line =
        FormatMetrics({.step = 1, .loss = value, .grad_norm = 0.0F, .lr = 0.0});
    const std::string digits = line.substr(line.find("loss\": ") + 7);
    CHECK_EQ(std::strtod(digits.c_str(), nullptr), static_cast<double>(value));
  }
}

TEST_CASE("a loss that is no number leaves valid JSON") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK_EQ(FormatMetrics({.step = 2, .loss = std::nanf(""), .grad_norm = infinity, .lr = 0.5}),
           R"({"step": 2, "loss": null, "grad_norm": null, "lr": 0.5})");
}

TEST_CASE("metrics of a live run can be followed, and get their name at its end") {
  const TempDir dir;
  Result<MetricsWriter> writer = MetricsWriter::Create(dir / "m.jsonl");
  REQUIRE_OK(writer);
  CHECK_OK(writer->Write({.step = 1, .loss = 2.5F, .grad_norm = 1.0F, .lr = 0.5}));
  CHECK_EQ(*ReadFile(dir / "m.jsonl.partial"),
           "{\"step\": 1, \"loss\": 2.5, \"grad_norm\": 1, \"lr\": 0.5}\n");
  CHECK_FALSE(std::filesystem::exists(dir / "m.jsonl"));
  CHECK_OK(writer->Write({.step = 2, .loss = 2.25F, .grad_norm = 0.5F, .lr = 0.25}));
  CHECK_OK(writer->Commit());
  CHECK_EQ(*ReadFile(dir / "m.jsonl"),
           "{\"step\": 1, \"loss\": 2.5, \"grad_norm\": 1, \"lr\": 0.5}\n"
           "{\"step\": 2, \"loss\": 2.25, \"grad_norm\": 0.5, \"lr\": 0.25}\n");
}

TEST_CASE("a resumed run keeps the metrics of the steps before") {
  const TempDir dir;
  const auto first = Line(1), second = Line(2);
  for (const char* left : {"m.jsonl", "m.jsonl.partial"}) {
    REQUIRE_OK(WriteFile(dir / left, first + second + "{\"step\": 3, \"lo"));
    Result<MetricsWriter> writer = MetricsWriter::Create(dir / "m.jsonl", 1);
    REQUIRE_OK(writer);
    CHECK_OK(writer->Write({.step = 2, .loss = 2.0F, .grad_norm = 1.0F, .lr = 0.5}));
    CHECK_OK(writer->Commit());
    CHECK_EQ(*ReadFile(dir / "m.jsonl"), first + second);
  }
}

TEST_CASE("metrics that began in a later step are kept by their steps") {
  const TempDir dir;
  REQUIRE_OK(WriteFile(dir / "m.jsonl", Line(4) + Line(5) + Line(6)));
  Result<MetricsWriter> writer = MetricsWriter::Create(dir / "m.jsonl", 5);
  REQUIRE_OK(writer);
  CHECK_OK(writer->Write({.step = 6, .loss = 2.0F, .grad_norm = 1.0F, .lr = 0.5}));
  CHECK_OK(writer->Commit());
  CHECK_EQ(*ReadFile(dir / "m.jsonl"), Line(4) + Line(5) + Line(6));
}

TEST_CASE("metrics that cannot be written are an error of the first line") {
  Result<MetricsWriter> writer = MetricsWriter::Create("/dev/full");
  REQUIRE_OK(writer);
  CHECK_EQ(MessageOf(writer->Write({})),
           "disk full: /dev/full: free some space or write to another disk");
}

}  // namespace
}  // namespace strata
