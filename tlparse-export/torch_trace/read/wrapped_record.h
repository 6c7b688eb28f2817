#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {

/// A record that other readers of logs cannot take as it is (an event of an unknown kind, a name
/// that leaves the folder, bytes that are not text), inside an artifact that they can. The object
/// `strata` of the artifact's metadata keeps what it was; readers of logs pass over fields that
/// they do not know:
///
///     {"artifact": {"name": "odd_event", "encoding": "string",
///                   "strata": {"header": "V0101 … x.py:1] {\"odd/event\": {}}", "payload":
///                   "none"}}}
struct WrappedRecord {
  enum class Payload : uint8_t {
    kNone,    ///< the record has none; what the artifact shows is for people
    kText,    ///< the artifact's
    kBase64,  ///< the artifact's, decoded
  };

  std::string header;  ///< the whole line, bytes of a log
  Payload payload = Payload::kText;
};

/// The object `artifact` of an envelope: its value for the key "artifact".
std::string WrapRecord(std::string_view name, std::string_view encoding,
                       const WrappedRecord& record);

/// What the artifact of an envelope wraps; none for every other envelope.
std::optional<WrappedRecord> UnwrapRecord(const std::vector<JsonField>& envelope);

}  // namespace strata
