#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/result.h"
#include "tlparse-export/torch_trace/read/log_reader.h"

namespace {

using namespace strata;

/// Writes down every call.
class Notes final : public LogSink {
 public:
  void OnRecord(LogRecord record, std::optional<int32_t> rank, std::string_view thread,
                const ReadPayload* payload) override {
    text += fmt::format("{} {} {} {} {} {} {} {}\n", record.line, record.kind, record.name,
                        record.compile, record.envelope, record.prefix, rank.value_or(-1), thread);
    if (payload != nullptr) text += fmt::format("{} {}\n", payload->is_graph, payload->text);
  }
  void OnString(int64_t id, std::string string) override {
    text += fmt::format("{} {}\n", id, string);
  }
  void OnDiagnostic(LogDiagnostic diagnostic) override {
    text += fmt::format("{}: {}\n", diagnostic.line, diagnostic.what);
  }

  std::string text;
};

std::string Read(std::string_view log, size_t piece, bool pauses) {
  Notes notes;
  LogReader reader(notes);
  while (!log.empty()) {
    reader.Feed(log.substr(0, piece));
    if (pauses) reader.FinishWholeRecord();
    log.remove_prefix(std::min(piece, log.size()));
  }
  reader.Finish();
  return std::move(notes.text);
}

}  // namespace

// A log reads the same in whatever pieces it arrives. Looking for a whole record is allowed at any
// time.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = size_t{data[0]} + 1;
  const std::string_view log(reinterpret_cast<const char*>(data) + 1, size - 1);
  STRATA_CHECK(Read(log, size, false) == Read(log, piece, false));
  static_cast<void>(Read(log, piece, true));
  return 0;
}
