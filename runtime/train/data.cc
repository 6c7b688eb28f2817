#include "runtime/train/data.h"

#include <charconv>
#include <utility>

#include "ir/text.h"

namespace strata {
namespace {

class TokenSource final : public DataSource {
 public:
  TokenSource(TokenData tokens, const TrainConfig& config)
      : tokens_(std::move(tokens)), rows_(config.batch_size), seq_len_(config.seq_len) {}

  Result<std::optional<Batch>> Next() override {
    if (next_ == tokens_.steps()) return std::optional<Batch>();
    const std::vector<int64_t> ids = tokens_.Step(next_++);
    Batch batch;
    for (int64_t row = 0; row < rows_; ++row) {
      const auto first = ids.begin() + row * (seq_len_ + 1);
      batch.tokens.insert(batch.tokens.end(), first, first + seq_len_);
      batch.labels.insert(batch.labels.end(), first + 1, first + seq_len_ + 1);
      for (int64_t position = 0; position < seq_len_; ++position)
        batch.positions.push_back(position);
    }
    return std::optional(std::move(batch));
  }

  std::string Position() const override { return std::to_string(next_); }

  Status Seek(std::string_view position) override {
    int64_t batch = -1;
    const char* end = position.data() + position.size();
    const auto read = std::from_chars(position.data(), end, batch);
    if (read.ptr != end || batch < 0 || batch > tokens_.steps()) {
      return Error("no place of the data: '{}': resume with the tokens that the run began with",
                   OneLine(position));
    }
    next_ = batch;
    return Ok();
  }

 private:
  TokenData tokens_;
  int64_t rows_, seq_len_;
  int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<DataSource> MakeTokenSource(TokenData tokens, const TrainConfig& config) {
  return std::make_unique<TokenSource>(std::move(tokens), config);
}

}  // namespace strata
