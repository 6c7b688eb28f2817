#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace strata {

/// Writes scalars where TensorBoard reads them: an event file, a TFRecord file of
/// `tensorflow.Event` messages (tensorflow/core/util/event.proto).
///
/// Every point is on disk when `Add` returns; a reader of a live file sees all of it. A file begins
/// with a session, so that readers drop what earlier files of the folder say of its steps.
class EventFile {
 public:
  /// `<folder>/events.out.tfevents.<seconds>.<host>.<process>.0`; makes the folder. `seconds` since
  /// 1970, of the first event; `first_step` is the least that will be added.
  static Result<EventFile> Create(const std::string& folder, int64_t first_step, double seconds);

  EventFile(EventFile&&) noexcept;
  EventFile& operator=(EventFile&&) noexcept;
  ~EventFile();

  /// One point of each tag, `loss_metrics/global_avg_loss` say.
  Status Add(int64_t step, double seconds,
             const std::vector<std::pair<std::string_view, double>>& scalars);

  const std::string& path() const { return path_; }

 private:
  EventFile() = default;
  Status Append(std::string_view record);

  std::string path_;
  int descriptor_ = -1;
};

/// A record of a TFRecord file: length, its checksum, data, their checksum.
std::string FormatTfRecord(std::string_view data);

/// CRC-32C (Castagnoli, RFC 3720).
uint32_t Crc32c(std::string_view bytes);

}  // namespace strata
