#include "runtime/train/data/tokens.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::TempDir;

TrainConfig SmallConfig() {
  TrainConfig config;
  config.steps = 3;
  config.batch_size = 2;
  config.seq_len = 4;
  config.vocab_size = 100;
  config.seed = 5;
  return config;
}

/// A tokens file in a folder of its own; ids count up unless changed.
struct TokensFile {
  TempDir dir;
  std::string path = dir / "t.safetensors";
  std::vector<int64_t> shape = {3, 2, 5};
  std::vector<int64_t> ids = std::vector<int64_t>(30);
  std::string name = "tokens";
  TensorDtype dtype = TensorDtype::kI64;

  TokensFile() {
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<int64_t>(i);
  }

  Result<TokenData> Load(const TrainConfig& config = SmallConfig()) const {
    REQUIRE_OK(WriteSafetensors(path, {{name, dtype, shape, std::as_bytes(std::span(ids))}}));
    return TokenData::Load(path, config);
  }

  std::string LoadError(const TrainConfig& config = SmallConfig()) const {
    std::string message = MessageOf(Load(config));
    if (const size_t at = message.find(path); at != std::string::npos) {
      message.replace(at, path.size(), "t.safetensors");
    }
    return message;
  }
};

TEST_CASE("each step has its rows of the file") {
  const TokensFile file;
  const Result<TokenData> data = file.Load();
  REQUIRE_OK(data);
  CHECK_EQ(data->steps(), 3);
  CHECK_EQ(*data->Read(0), std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK_EQ(*data->Read(2), std::vector<int64_t>{20, 21, 22, 23, 24, 25, 26, 27, 28, 29});
}

TEST_CASE("a file may hold more steps than the run takes") {
  TrainConfig config = SmallConfig();
  config.steps = 2;
  CHECK_OK(TokensFile().Load(config));
}

TEST_CASE("a tokens file that does not fit is told with both shapes") {
  TrainConfig config = SmallConfig();
  config.steps = 4;
  CHECK_EQ(TokensFile().LoadError(config),
           "tensor 'tokens' does not fit the configuration: t.safetensors: it is I64 [3, 2, 5], 4 "
           "steps need I64 [4, 2, 5]");
  config = SmallConfig();
  config.seq_len = 8;
  CHECK_EQ(TokensFile().LoadError(config),
           "tensor 'tokens' does not fit the configuration: t.safetensors: it is I64 [3, 2, 5], 3 "
           "steps need I64 [3, 2, 9]");
  TokensFile flat;
  flat.shape = {30};
  CHECK_EQ(flat.LoadError(),
           "tensor 'tokens' does not fit the configuration: t.safetensors: it is I64 [30], 3 steps "
           "need I64 [3, 2, 5]");
  TokensFile doubles;
  doubles.dtype = TensorDtype::kF64;
  CHECK_EQ(doubles.LoadError(),
           "tensor 'tokens' does not fit the configuration: t.safetensors: it is F64 [3, 2, 5], 3 "
           "steps need I64 [3, 2, 5]");
}

TEST_CASE("a file without the tensor says how to store it") {
  TokensFile file;
  file.name = "token";
  CHECK_EQ(file.LoadError(),
           "no tensor 'tokens': t.safetensors: store I64 [steps, batch, seq + 1] under this name");
}

TEST_CASE("the first token outside the vocabulary is told with its place") {
  TokensFile large;
  large.ids[17] = 100;
  large.ids[29] = 101;
  CHECK_EQ(
      large.LoadError(),
      "token 100 is not in the vocabulary: t.safetensors: tokens[1, 1, 2] must be in [0, 100); "
      "use tokens of this vocabulary or another vocab_size");
  TokensFile negative;
  negative.ids[4] = -100;
  CHECK_EQ(negative.LoadError(),
           "token -100 is not in the vocabulary: t.safetensors: tokens[0, 0, 4] must be in [0, "
           "100); use tokens of this vocabulary or another vocab_size");
}

TEST_CASE("a missing tokens file is an error") {
  CHECK_EQ(MessageOf(TokenData::Load("/no/such/file", SmallConfig())),
           "no such file: /no/such/file: check the path");
}

TEST_CASE("synthetic tokens are a function of seed and step") {
  const TokenData data = TokenData::Synthetic(SmallConfig());
  CHECK_EQ(data.steps(), 3);
  CHECK_EQ(data.Step(1).size(), 10);
  CHECK_EQ(data.Step(1), TokenData::Synthetic(SmallConfig()).Step(1));
  CHECK_NE(data.Step(1), data.Step(2));
  TrainConfig other = SmallConfig();
  other.seed = 6;
  CHECK_NE(data.Step(1), TokenData::Synthetic(other).Step(1));
}

TEST_CASE("synthetic tokens stay in a small vocabulary") {
  TrainConfig config = SmallConfig();
  config.vocab_size = 2;
  config.seq_len = 200;
  const std::vector<int64_t> ids = TokenData::Synthetic(config).Step(0);
  CHECK(std::ranges::all_of(ids, [](int64_t id) { return id == 0 || id == 1; }));
}

TEST_CASE("synthetic tokens follow a rule in seven of eight cases") {
  TrainConfig config = SmallConfig();
  config.seq_len = 4000;
  const std::vector<int64_t> ids = TokenData::Synthetic(config).Step(0);
  int followed = 0;
  std::map<int64_t, int> counts;
  for (size_t i = 1; i < ids.size(); ++i) {
    if (ids[i] == (5 * ids[i - 1] + 1) % 32) ++followed;
    ++counts[ids[i]];
  }
  const double share = static_cast<double>(followed) / static_cast<double>(ids.size() - 1);
  // 7/8 and the accidental 1/8 · 1/32, within five standard errors.
  CHECK(std::abs(share - 0.879) < 0.02);
  CHECK_EQ(counts.size(), 32);
}

}  // namespace
}  // namespace strata
