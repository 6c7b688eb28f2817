#include "runtime/train/data/tokens.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/random.h"

namespace strata {
namespace {

constexpr std::string_view kTensorName = "tokens";
constexpr uint64_t kAlphabet = 32;
// Keeps synthetic tokens apart from the initial parameters, which have the same seed.
constexpr uint64_t kTokenStream = 0x746f6b656e73;

/// `0, 3, 17`: where element `index` of a tensor is.
std::string PlaceOf(int64_t index, const std::vector<int64_t>& shape) {
  std::vector<int64_t> place;
  for (auto size = shape.rbegin(); size != shape.rend(); ++size) {
    place.insert(place.begin(), index % *size);
    index /= *size;
  }
  return fmt::format("{}", fmt::join(place, ", "));
}

std::string BatchName(int64_t step) {
  return fmt::format("{}.{}", kTensorName, step);
}

}  // namespace

Result<TokenData> TokenData::Load(const std::string& path, const TrainConfig& config) {
  TokenData data(config);
  STRATA_TRY(data.file_, DataFile::Open(path));
  STRATA_TRY(const MappedFile mapped, MappedFile::Open(path));
  STRATA_TRY(const SafetensorsFile file, SafetensorsFile::Parse(mapped.bytes(), path));
  const std::byte* base = mapped.bytes().data();
  STRATA_RETURN_IF_ERROR(file.Find(BatchName(0)) != nullptr ? data.TakeBatches(file, base, config)
                                                            : data.TakeTensor(file, base, config));
  std::string contents;
  for (const TensorView& tensor : file.tensors()) {
    const int64_t offset = tensor.bytes.data() - base;
    STRATA_TRY(const std::string content,
               data.file_->Content(offset, offset + std::ssize(tensor.bytes)));
    contents += fmt::format("{} {}\n", tensor.name, content);
  }
  data.content_ = fmt::format("{} batches with hash {}", data.steps_,
                              SampledHash(std::as_bytes(std::span(contents))));
  return data;
}

/// Finds the first id beyond the vocabulary, with its position.
Status TokenData::CheckIds(const TensorView& tokens, int64_t offset, int64_t vocab_size) const {
  return file_->ForEachPiece(
      offset, offset + std::ssize(tokens.bytes),
      [&](int64_t at, std::span<const std::byte> bytes) -> Status {
        for (size_t i = 0; i < bytes.size() / sizeof(int64_t); ++i) {
          int64_t id = 0;
          std::memcpy(&id, bytes.data() + i * sizeof(id), sizeof(id));
          if (id >= 0 && id < vocab_size) continue;
          const int64_t index =
              (at - offset) / static_cast<int64_t>(sizeof(id)) + static_cast<int64_t>(i);
          return Error(
              "token {} is not in the vocabulary: {}: {}[{}] must be in [0, {}); "
              "use tokens of this vocabulary or another vocab_size",
              id, file_->path(), tokens.name, PlaceOf(index, tokens.shape), vocab_size);
        }
        return Ok();
      });
}

Status TokenData::TakeTensor(const SafetensorsFile& file, const std::byte* base,
                             const TrainConfig& config) {
  const TensorView* tokens = file.Find(kTensorName);
  if (tokens == nullptr) {
    return Error("no tensor 'tokens': {}: store I64 [steps, batch, seq + 1] under this name",
                 file.path());
  }
  const int64_t batches = config.steps * config.accumulation_steps;
  const bool fits = tokens->dtype == TensorDtype::kI64 && tokens->shape.size() == 3 &&
                    tokens->shape[0] >= batches && tokens->shape[1] == config.batch_size &&
                    tokens->shape[2] == config.seq_len + 1;
  if (!fits) {
    return Error("tensor 'tokens' does not fit the configuration: {}: it is {}, {} steps need {}",
                 file.path(), DescribeType(tokens->dtype, tokens->shape), config.steps,
                 DescribeType(TensorDtype::kI64,
                              std::vector{batches, config.batch_size, config.seq_len + 1}));
  }
  const int64_t offset = tokens->bytes.data() - base;
  STRATA_RETURN_IF_ERROR(CheckIds(*tokens, offset, config.vocab_size));
  steps_ = tokens->shape[0];
  const auto bytes = shape_.rows * shape_.columns * static_cast<int64_t>(sizeof(int64_t));
  for (int64_t step = 0; step < steps_; ++step)
    offsets_.push_back(offset + step * bytes);
  return Ok();
}

Status TokenData::TakeBatches(const SafetensorsFile& file, const std::byte* base,
                              const TrainConfig& config) {
  while (const TensorView* tokens = file.Find(BatchName(std::ssize(shapes_)))) {
    const std::vector<int64_t>& shape = tokens->shape;
    if (tokens->dtype != TensorDtype::kI64 || shape.size() != 2 || shape[0] < 1 || shape[1] < 2) {
      return Error("tensor '{}' is no batch: {}: it is {}, store I64 [batch, seq + 1]",
                   tokens->name, file.path(), DescribeType(tokens->dtype, shape));
    }
    const auto check = [&](std::string_view what, std::string_view word, bool is_open, int64_t size,
                           int64_t expected) -> Status {
      if (is_open || size == expected) return Ok();
      return Error(
          "{} of a batch is {}, not {}: {}: {}: give batches of one size, or leave it open with "
          "compile.symbolic_dims={}",
          what, size, expected, file.path(), tokens->name, word);
    };
    STRATA_RETURN_IF_ERROR(
        check("batch_size", "batch", config.compile.symbolic_batch, shape[0], config.batch_size));
    STRATA_RETURN_IF_ERROR(
        check("seq_len", "seq", config.compile.symbolic_seq, shape[1] - 1, config.seq_len));
    const int64_t offset = tokens->bytes.data() - base;
    STRATA_RETURN_IF_ERROR(CheckIds(*tokens, offset, config.vocab_size));
    offsets_.push_back(offset);
    shapes_.push_back({.rows = shape[0], .columns = shape[1]});
  }
  if (std::ssize(shapes_) < steps_) {
    return Error("too few batches: {}: {} of tokens.0, tokens.1, …, and {} steps need {}",
                 file.path(), shapes_.size(), config.steps, steps_);
  }
  steps_ = std::ssize(shapes_);
  return Ok();
}

TokenData::TokenData(const TrainConfig& config)
    : steps_(config.steps * config.accumulation_steps),
      shape_{.rows = config.batch_size, .columns = config.seq_len + 1},
      alphabet_(std::min(kAlphabet, static_cast<uint64_t>(config.vocab_size))),
      key_(Mix(config.seed ^ kTokenStream)),
      seed_(config.seed) {}

std::vector<DataTrait> TokenData::Traits() const {
  if (file_) {
    return {{.name = "source of the data", .value = "--tokens"},
            {.name = "content of --tokens", .value = content_}};
  }
  return {{.name = "source of the data", .value = "synthetic"},
          {.name = "seed", .value = std::to_string(seed_)},
          {.name = "batch_size", .value = std::to_string(shape_.rows)},
          {.name = "seq_len", .value = std::to_string(shape_.columns - 1)}};
}

TokenData::Shape TokenData::shape(int64_t step) const {
  STRATA_CHECK(step >= 0 && step < steps_, "step {} of {}", step, steps_);
  return shapes_.empty() ? shape_ : shapes_[static_cast<size_t>(step)];
}

Result<std::vector<int64_t>> TokenData::Read(int64_t step) const {
  if (!file_) return Step(step);
  const auto [rows, columns] = shape(step);
  std::vector<int64_t> ids(static_cast<size_t>(rows * columns));
  STRATA_RETURN_IF_ERROR(
      file_->Read(offsets_[static_cast<size_t>(step)], std::as_writable_bytes(std::span(ids))));
  return ids;
}

std::vector<int64_t> TokenData::Step(int64_t step) const {
  STRATA_CHECK(!file_);
  const auto [rows, columns] = shape(step);
  const auto count = static_cast<size_t>(rows * columns);
  const size_t first = static_cast<size_t>(step) * count;
  std::vector<int64_t> ids(count);
  uint64_t id = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = RandomBits(key_, first + i);
    const bool starts_anew = i % static_cast<size_t>(columns) == 0 || bits % 8 == 0;
    id = starts_anew ? bits / 8 % alphabet_ : (5 * id + 1) % alphabet_;
    ids[i] = static_cast<int64_t>(id);
  }
  return ids;
}

}  // namespace strata
