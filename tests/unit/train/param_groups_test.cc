#include "runtime/train/programs/param_groups.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;

TrainConfig ConfigWithGroups(std::string_view groups) {
  return OrDie(ParseTrainConfig(fmt::format(R"(
model = "llama3"
dim = 8
n_layers = 1
n_heads = 2
vocab_size = 11
seq_len = 4
batch_size = 1
steps = 1
[optimizer]
lr = 0.01
{})",
                                            groups),
                                ConfigFormat::kToml, "groups.toml"));
}

const std::vector<ParameterSpec> kParameters = {
    {.name = "tok_embeddings.weight", .shape = {2}, .init = {}},
    {.name = "layers.0.attention_norm.weight", .shape = {2}, .init = {}},
    {.name = "layers.0.feed_forward.w1.weight", .shape = {2}, .init = {}}};

TEST_CASE("the first group that matches a parameter's name says what AdamW does with it") {
  const TrainConfig config = ConfigWithGroups(R"(
[optimizer.param_groups.norms]
pattern = "norm"
weight_decay = 0.0
[optimizer.param_groups.outer]
pattern = "^tok_|norm"
lr = 0.02
beta2 = 0.9
)");
  const auto settings = OrDie(AdamWOfParameters(config.optimizer, kParameters));
  REQUIRE_EQ(settings.size(), 3);
  CHECK_EQ(settings[0].lr, 0.02);
  CHECK_EQ(settings[0].beta2, 0.9);
  CHECK_EQ(settings[0].weight_decay, 0.1);
  CHECK_EQ(settings[1].lr, 0.01);
  CHECK_EQ(settings[1].weight_decay, 0.0);
  CHECK(settings[2] == static_cast<const AdamWConfig&>(config.optimizer));
  CHECK_EQ(GroupLearningRates(config.optimizer), std::vector<double>{0.02});
}

TEST_CASE("a group without a parameter, or without a regular expression, is refused") {
  CHECK_EQ(MessageOf(AdamWOfParameters(
               ConfigWithGroups("[optimizer.param_groups.bias]\npattern = \"bias$\"\n").optimizer,
               kParameters)),
           "no parameter matches 'bias$': optimizer.param_groups.bias.pattern: the model has "
           "layers.0.feed_forward.w1.weight and others, and the first group that matches takes a "
           "parameter");
  CHECK_EQ(MessageOf(AdamWOfParameters(
               ConfigWithGroups("[optimizer.param_groups.x]\npattern = \"w[1\"\n").optimizer,
               kParameters)),
           "no regular expression: optimizer.param_groups.x.pattern: 'w[1': missing ]: [1");
}

}  // namespace
}  // namespace strata
