#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/train/data/tokens.h"
#include "runtime/train/data/traits.h"

namespace strata {

/// What one forward pass reads; row-major `[rows, seq]`.
struct Batch {
  int64_t rows = 0;
  std::vector<int64_t> tokens;
  std::vector<int64_t> labels;     ///< -100: does not count
  std::vector<int64_t> positions;  ///< within the document

  int64_t seq_len() const { return rows == 0 ? 0 : static_cast<int64_t>(tokens.size()) / rows; }
};

/// Gives a run its batches, in an order that its configuration fixes, and can continue from a
/// position.
class DataSource {
 public:
  virtual ~DataSource() = default;
  /// Nothing: the data are at their end. Errors: a line, document or token that cannot be used.
  virtual Result<std::optional<Batch>> Next() = 0;
  /// The place of the next batch, a word without blanks; for `Seek`.
  virtual std::string Position() const = 0;
  /// Continues from a position of an equal source. Errors: not a position of this source.
  virtual Status Seek(std::string_view position) = 0;
  /// What its positions depend on, the most important first. Empty: unknown.
  virtual std::vector<DataTrait> Traits() const { return {}; }

  /// What the data read so far lost, in a sentence; empty: nothing.
  virtual std::string Warning() const { return {}; }

  /// Goes back to the place where the source was made, or first asked for this.
  Status Rewind() {
    if (first_.empty()) first_ = Position();
    return Seek(first_);
  }

 private:
  std::string first_;
};

/// Batch i is entry i of `tokens`, positions from 0 in each row.
std::unique_ptr<DataSource> MakeTokenSource(TokenData tokens);

}  // namespace strata
