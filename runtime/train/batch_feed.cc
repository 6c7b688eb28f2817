#include "runtime/train/batch_feed.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <fmt/ranges.h>

#include "runtime/models/layers.h"

namespace strata {

BatchTensors ToTensors(const TrainConfig& config, const Batch& batch, int64_t valid_labels,
                       c10::Device device) {
  const auto ids = [&](const std::vector<int64_t>& values) {
    at::Tensor tensor = at::empty({batch.rows, batch.seq_len()}, at::kLong);
    std::memcpy(tensor.mutable_data_ptr(), values.data(), values.size() * sizeof(int64_t));
    return tensor.to(device);
  };
  BatchTensors tensors{.tokens = ids(batch.tokens), .labels = ids(batch.labels)};
  if (HasPositions(config)) tensors.positions = ids(batch.positions);
  if (HasLabelCount(config)) {
    tensors.valid_labels =
        at::scalar_tensor(static_cast<double>(valid_labels), at::kFloat).to(device);
  }
  return tensors;
}

Result<bool> BatchFeed::HasNext() {
  if (!next_.empty()) return true;
  next_position_ = data_->Position();
  std::vector<Batch> batches;
  int64_t valid = 0;
  while (std::ssize(batches) < config_.accumulation_steps) {
    STRATA_TRY(std::optional<Batch> batch, data_->Next());
    if (!batch) return false;
    valid += std::ranges::count_if(batch->labels, [](int64_t l) { return l != kIgnoredLabel; });
    batches.push_back(*std::move(batch));
  }
  for (const Batch& batch : batches)
    next_.push_back(ToTensors(config_, batch, valid, device_));
  return true;
}

Result<std::vector<BatchTensors>> BatchFeed::Take(int64_t step) {
  STRATA_TRY(const bool has_data, HasNext());
  if (!has_data) {
    return Error("the data end before step {}: {}: train fewer steps, or let them repeat", step,
                 fmt::join(config_.dataloader.dataset_path, ", "));
  }
  return std::exchange(next_, {});
}

std::string BatchFeed::Position() const {
  return next_.empty() ? data_->Position() : next_position_;
}

const std::vector<DataTrait>& BatchFeed::Traits() const {
  if (!traits_) traits_ = data_->Traits();
  return *traits_;
}

Status BatchFeed::Seek(std::string_view position) {
  next_.clear();
  return data_->Seek(position);
}

}  // namespace strata
