#include "runtime/train/tokens.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/train/random.h"

namespace strata {
namespace {

constexpr std::string_view kTensorName = "tokens";
constexpr uint64_t kAlphabet = 32;
// Keeps synthetic tokens apart from the initial parameters, which have the same seed.
constexpr uint64_t kTokenStream = 0x746f6b656e73;

/// The first id that is no token of the vocabulary, with its place.
Status CheckVocabulary(const TensorView& tokens, int64_t vocab_size, const std::string& path) {
  const int64_t rows = tokens.shape[1];
  const int64_t columns = tokens.shape[2];
  const int64_t count = tokens.shape[0] * rows * columns;
  for (int64_t i = 0; i < count; ++i) {
    int64_t id = 0;
    std::memcpy(&id, tokens.bytes.data() + static_cast<size_t>(i) * sizeof(id), sizeof(id));
    if (id >= 0 && id < vocab_size) continue;
    return Error(
        "token {} is not in the vocabulary: {}: tokens[{}, {}, {}] must be in [0, {}); "
        "use tokens of this vocabulary or another vocab_size",
        id, path, i / columns / rows, i / columns % rows, i % columns, vocab_size);
  }
  return Ok();
}

}  // namespace

Result<TokenData> TokenData::Load(const std::string& path, const TrainConfig& config) {
  STRATA_TRY(SafetensorsFile file, SafetensorsFile::Open(path));
  const TensorView* tokens = file.Find(kTensorName);
  if (tokens == nullptr) {
    return Error("no tensor 'tokens': {}: store I64 [steps, batch, seq + 1] under this name", path);
  }
  const int64_t batches = config.steps * config.accumulation_steps;
  const bool fits = tokens->dtype == TensorDtype::kI64 && tokens->shape.size() == 3 &&
                    tokens->shape[0] >= batches && tokens->shape[1] == config.batch_size &&
                    tokens->shape[2] == config.seq_len + 1;
  if (!fits) {
    return Error("tensor 'tokens' does not fit the configuration: {}: it is {}, {} steps need {}",
                 path, DescribeType(tokens->dtype, tokens->shape), config.steps,
                 DescribeType(TensorDtype::kI64,
                              std::vector{batches, config.batch_size, config.seq_len + 1}));
  }
  STRATA_RETURN_IF_ERROR(CheckVocabulary(*tokens, config.vocab_size, path));

  TokenData data(config);
  data.steps_ = tokens->shape[0];
  data.file_ = std::move(file);
  return data;
}

TokenData::TokenData(const TrainConfig& config)
    : steps_(config.steps * config.accumulation_steps),
      rows_(config.batch_size),
      columns_(config.seq_len + 1),
      alphabet_(std::min(kAlphabet, static_cast<uint64_t>(config.vocab_size))),
      key_(Mix(config.seed ^ kTokenStream)) {}

std::vector<int64_t> TokenData::Step(int64_t step) const {
  STRATA_CHECK(step >= 0 && step < steps_, "step {} of {}", step, steps_);
  const auto count = static_cast<size_t>(rows_ * columns_);
  const size_t first = static_cast<size_t>(step) * count;
  std::vector<int64_t> ids(count);
  if (file_) {
    const size_t bytes = count * sizeof(int64_t);
    std::memcpy(ids.data(), file_->Find(kTensorName)->bytes.data() + first * sizeof(int64_t),
                bytes);
    return ids;
  }
  uint64_t id = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = RandomBits(key_, first + i);
    const bool starts_anew = i % static_cast<size_t>(columns_) == 0 || bits % 8 == 0;
    id = starts_anew ? bits / 8 % alphabet_ : (5 * id + 1) % alphabet_;
    ids[i] = static_cast<int64_t>(id);
  }
  return ids;
}

}  // namespace strata
