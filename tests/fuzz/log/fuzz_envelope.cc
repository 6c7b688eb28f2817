#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "tlparse-export/torch_trace/read/header.h"
#include "tlparse-export/torch_trace/read/python_json.h"
#include "tlparse-export/torch_trace/read/wrapped_record.h"

namespace {

using namespace strata;

constexpr int kMaxDepth = 8;

/// Reads all that is inside; values are parts of the text.
void ReadAll(std::string_view text, int depth) {
  if (depth == kMaxDepth) return;
  const auto check = [&](std::string_view part) {
    STRATA_CHECK(part.data() >= text.data() &&
                 part.data() + part.size() <= text.data() + text.size());
    ReadAll(part, depth + 1);
  };
  if (const auto fields = ReadJsonObject(text)) {
    static_cast<void>(UnwrapRecord(*fields));
    for (const JsonField& field : *fields)
      check(field.value);
  }
  if (const auto elements = ReadJsonArray(text)) {
    for (const std::string_view element : *elements)
      check(element);
  }
  static_cast<void>(ReadJsonInt(text));
  if (const auto string = ReadJsonString(text)) {
    std::string again;
    AppendJsonString(*string, again);
    STRATA_CHECK(ReadJsonString(again).has_value());
  }
}

}  // namespace

// Any line is a header or none; any text is JSON or none.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ReadAll(text, 0);
  if (const auto header = ReadHeader(text)) {
    static_cast<void>(TimeOf(header->prefix));
    ReadAll(header->json, 0);
  }
  return 0;
}
