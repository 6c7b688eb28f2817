#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace strata {

/// Writes one log of TORCH_TRACE that tlparse takes with `--strict` and that imports back to the
/// records that were given. Checksums are computed anew. Every record carries the rank, or none
/// does. What tlparse would refuse is wrapped into an artifact (wrapped_record.h).
class LogWriter {
 public:
  /// `rank`: what every record says; none: no record does.
  static Result<LogWriter> Create(const std::string& path, std::optional<int32_t> rank);

  /// A file name of stack frames. Before the records that use it.
  Status AddString(int64_t id, std::string_view text);

  /// `prefix` is a header up to its JSON object `envelope`; no payload is not an empty one.
  Status AddRecord(std::string_view prefix, std::string_view envelope,
                   std::optional<std::string_view> payload);

  Status Commit();

  int64_t num_records() const { return num_records_; }
  int64_t num_wrapped() const { return num_wrapped_; }

 private:
  LogWriter(AtomicFile file, std::optional<int32_t> rank) : file_(std::move(file)), rank_(rank) {}
  Status Wrap(std::string_view prefix, std::string_view envelope,
              std::optional<std::string_view> payload);
  Status Write(std::string_view prefix, std::string_view envelope,
               std::optional<std::string_view> payload);

  AtomicFile file_;
  std::optional<int32_t> rank_;
  std::string buffer_;
  int64_t num_records_ = 0, num_wrapped_ = 0;
};

/// A name that tlparse can use for a file, like `name`.
std::string PlainName(std::string_view name);

}  // namespace strata
