#include "cli/core/dotted_options.h"

#include <doctest/doctest.h>

namespace strata::cli {
namespace {

using Words = std::vector<std::string>;

Words Rewritten(const Words& words) {
  return WithSetOptions(words);
}

TEST_CASE("an option with a dot overrides the configuration") {
  CHECK_EQ(Rewritten({"c.toml", "--training.steps", "100", "--threads", "2"}),
           Words{"c.toml", "--set", "training.steps=100", "--threads", "2"});
  CHECK_EQ(Rewritten({"--optimizer.lr=1e-4", "c.toml"}),
           Words{"--set", "optimizer.lr=1e-4", "c.toml"});
  CHECK_EQ(Rewritten({"--checkpoint.load_step", "-1"}), Words{"--set", "checkpoint.load_step=-1"});
  CHECK_EQ(Rewritten({"--training.num-tokens-per-train-step", "8"}),
           Words{"--set", "training.num_tokens_per_train_step=8"});
}

TEST_CASE("an option with a dot and without a value is a switch") {
  CHECK_EQ(Rewritten({"--checkpoint.enable", "--resume"}),
           Words{"--set", "checkpoint.enable=true", "--resume"});
  CHECK_EQ(Rewritten({"c.toml", "--dataloader.no-shuffle"}),
           Words{"c.toml", "--set", "dataloader.shuffle=false"});
  CHECK_EQ(Rewritten({"--dataloader.no_shuffle", "--trace", "t"}),
           Words{"--set", "dataloader.shuffle=false", "--trace", "t"});
}

TEST_CASE("values, files with dots and words after -- are no overrides") {
  const Words words{"--trace", "out/t.strata", "--metrics=m.jsonl", "--set", "a.b=--c.d",
                    "--",      "--e.f"};
  CHECK_EQ(Rewritten(words), words);
}

}  // namespace
}  // namespace strata::cli
