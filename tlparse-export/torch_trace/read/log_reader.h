#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/database/hash.h"
#include "tlparse-export/torch_trace/read/header.h"
#include "tlparse-export/torch_trace/read/log.h"
#include "tlparse-export/torch_trace/read/python_json.h"
#include "tlparse-export/torch_trace/read/wrapped_record.h"

namespace strata {

/// A payload as it was read. Views are valid during the call that delivers it.
struct ReadPayload {
  std::string_view text;
  Hash128 hash;  ///< of the text
  bool is_graph = false;
};

/// Takes what a LogReader reads, in the order of the log.
class LogSink {
 public:
  virtual ~LogSink() = default;
  /// An event. `record.payload` is not set; `payload` is null for an event without one. `rank` is
  /// what the record says, `thread` who wrote it.
  virtual void OnRecord(LogRecord record, std::optional<int32_t> rank, std::string_view thread,
                        const ReadPayload* payload) = 0;
  virtual void OnString(int64_t id, std::string text) = 0;
  virtual void OnDiagnostic(LogDiagnostic diagnostic) = 0;
};

/// Splits a log into records while it comes in, in pieces of any size, and verifies payloads.
/// Delivers records some at a time, as the checksums of several payloads are computed together:
/// holds some MB of them, or one larger one.
class LogReader {
 public:
  /// REQUIRES: `sink` outlives this.
  explicit LogReader(LogSink& sink) : sink_(sink) {}

  void Feed(std::string_view bytes);
  /// The log has ended: delivers what is left.
  void Finish();
  /// For a log that may still grow: delivers all records, the last one if its md5 shows that it is
  /// whole.
  void FinishWholeRecord();
  /// The log begins anew: what was begun has ended, and lines count from 1.
  void Restart();

 private:
  struct Open {
    size_t line = 0;
    std::string header;  // what the views below are of, unless the record is wrapped
    std::string_view prefix, thread, json;
    std::vector<JsonField> envelope;
    std::optional<WrappedRecord> wrapped;
    bool is_broken = false;  // its JSON cannot be read; its payload is passed over
    bool has_payload = false;
    std::string md5;             // in lower case
    std::string payload;         // each line with its end; without the last one when it is finished
    std::vector<size_t> blanks;  // places in `payload` where an empty line of the file stood
    Hash128 hash;                // of a finished payload
    std::string actual_md5;      // of a finished payload; empty: not computed, as the text is known

    bool is_for_people() const {
      return wrapped && wrapped->payload == WrappedRecord::Payload::kNone;
    }
  };

  void TakeLine(std::string_view line);
  void TakePayloadLine(std::string_view line);
  void OpenRecord(std::string_view line, const LogHeader& header);
  void Unwrap(WrappedRecord record);
  void FinishRecord();
  static void FinishPayload(Open& record);
  /// Delivers the finished records.
  void Deliver();
  void SumPayloads();
  void DeliverRecord(Open& record);
  /// Restores the payload to the logged bytes, as its md5 confirms.
  ReadPayload Verify(Open& record);
  static bool Repair(const std::vector<size_t>& blanks, std::string& text, const std::string& md5);
  void AddString(size_t line, std::string_view value);
  void Diagnose(size_t line, std::string what);
  bool IsKnown(const Open& record) const;

  /// Texts whose md5 was computed, so that those that come often are hashed fast. One per slot.
  struct Known {
    std::string md5;
    Hash128 hash;
    bool is_graph = false;
  };
  static constexpr size_t kKnown = size_t{1} << 14;

  LogSink& sink_;
  std::string partial_;  // the begin of a line
  size_t line_ = 0;      // number of the last line
  std::unique_ptr<Open> open_ = std::make_unique<Open>();
  bool is_open_ = false;
  std::vector<std::unique_ptr<Open>> finished_, unused_;
  size_t finished_bytes_ = 0;           // of payloads
  size_t stray_from_ = 0, strays_ = 0;  // payload lines without a record, reported once
  std::vector<Known> known_ = std::vector<Known>(kKnown);
};

}  // namespace strata
