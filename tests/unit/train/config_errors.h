#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/config/config.h"
#include "tests/support/results.h"

namespace strata::testing {

/// A configuration without mistakes.
inline constexpr std::string_view kGoodConfig = R"({
  "model": "llama3",
  "dim": 64,
  "n_layers": 3,
  "n_heads": 4,
  "n_kv_heads": 2,
  "head_dim": 16,
  "vocab_size": 256,
  "rope": {
    "theta": 500000.0,
    "scaling": "llama"
  },
  "optimizer": {"lr": 0.001},
  "seq_len": 32,
  "batch_size": 4,
  "steps": 20
})";

/// The message for the good configuration with one piece of its text replaced.
inline std::string ErrorWith(std::string_view old_text, std::string_view new_text) {
  std::string text(kGoodConfig);
  const size_t at = text.find(old_text);
  REQUIRE_NE(at, std::string::npos);
  text.replace(at, old_text.size(), new_text);
  return MessageOf(ParseTrainConfig(text, ConfigFormat::kJson, "c.json"));
}

/// The message for the good configuration with an override.
inline std::string ErrorWithSet(const std::string& assignment) {
  return MessageOf(
      ParseTrainConfig(kGoodConfig, ConfigFormat::kJson, "c.json", std::vector{assignment}));
}

inline std::string ErrorWithSets(const std::vector<std::string>& assignments) {
  return MessageOf(ParseTrainConfig(kGoodConfig, ConfigFormat::kJson, "c.json", assignments));
}

}  // namespace strata::testing
