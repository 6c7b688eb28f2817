#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"

namespace strata {

/// Causal flex attention within documents, alone.
struct FlexShape {
  int64_t batch = 1, heads = 8, seq = 2048, width = 64;
  int64_t block_size = 128;             ///< of the block mask
  std::vector<int64_t> documents = {};  ///< their lengths, which fill each row
  bool has_backward = false;            ///< also the gradients of query, key and value
};

/// Flex attention of synthetic inputs, traced and bound as a training does it: to be measured.
class AttentionProgram {
 public:
  static Result<AttentionProgram> Make(const FlexShape& shape);
  AttentionProgram(AttentionProgram&&) noexcept;
  AttentionProgram& operator=(AttentionProgram&&) noexcept;
  ~AttentionProgram();

  Status Run();
  /// Of the elements of the result. REQUIRES: `Run` has run.
  double MeanMagnitude() const;

 private:
  struct State;
  explicit AttentionProgram(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace strata
