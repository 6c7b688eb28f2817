#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/Device.h>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/train/data/data.h"
#include "runtime/train/programs/programs.h"

namespace strata {

/// A batch as tensors of `device`. `valid_labels` is an input of graphs that take it
/// (HasLabelCount).
BatchTensors ToTensors(const TrainConfig& config, const Batch& batch, int64_t valid_labels,
                       c10::Device device);

/// Gives a training the batches of one step after the other.
class BatchFeed {
 public:
  BatchFeed(const TrainConfig& config, std::unique_ptr<DataSource> data, c10::Device device)
      : config_(config), data_(std::move(data)), device_(device) {}

  /// Whether the data last for the next step. Errors: data that cannot be used.
  Result<bool> HasNext();
  /// The batches of the next step, which is `step` in errors: no data for it.
  Result<std::vector<BatchTensors>> Take(int64_t step);
  /// Where the data of the next step begin; for `Seek`.
  std::string Position() const;
  Status Seek(std::string_view position);
  /// Of the data.
  std::string Warning() const { return data_->Warning(); }
  /// Those of the data, looked at once.
  const std::vector<DataTrait>& Traits() const;

 private:
  TrainConfig config_;
  std::unique_ptr<DataSource> data_;
  c10::Device device_;
  std::vector<BatchTensors> next_;  // of the next step, once asked for
  std::string next_position_;       // of `next_` in the data
  mutable std::optional<std::vector<DataTrait>> traits_;
};

}  // namespace strata
