#include "runtime/train/data/data.h"

#include <charconv>
#include <utility>

#include "base/text.h"

namespace strata {
namespace {

class TokenSource final : public DataSource {
 public:
  explicit TokenSource(TokenData tokens) : tokens_(std::move(tokens)) {}

  Result<std::optional<Batch>> Next() override {
    if (next_ == tokens_.steps()) return std::optional<Batch>();
    const auto [rows, columns] = tokens_.shape(next_);
    STRATA_TRY(const std::vector<int64_t> ids, tokens_.Read(next_++));
    const int64_t seq_len = columns - 1;
    Batch batch{.rows = rows, .tokens = {}, .labels = {}, .positions = {}};
    for (int64_t row = 0; row < rows; ++row) {
      const auto first = ids.begin() + row * columns;
      batch.tokens.insert(batch.tokens.end(), first, first + seq_len);
      batch.labels.insert(batch.labels.end(), first + 1, first + columns);
      for (int64_t position = 0; position < seq_len; ++position)
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

  std::vector<DataTrait> Traits() const override { return tokens_.Traits(); }

 private:
  TokenData tokens_;
  int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<DataSource> MakeTokenSource(TokenData tokens) {
  return std::make_unique<TokenSource>(std::move(tokens));
}

}  // namespace strata
