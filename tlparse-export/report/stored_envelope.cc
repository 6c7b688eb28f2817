#include "tlparse-export/report/stored_envelope.h"

#include <algorithm>

#include <fmt/format.h>

namespace strata {

bool IsDescription(std::string_view kind) {
  return kind.starts_with("describe_");
}

std::string_view EnvelopeField(const std::vector<JsonField>& envelope, std::string_view key) {
  const auto found = std::ranges::find(envelope, key, &JsonField::key);
  return found == envelope.end() ? std::string_view{} : found->value;
}

std::string MetadataOf(const StoredRecord& record, const std::vector<JsonField>& envelope) {
  const std::string_view event = EnvelopeField(envelope, record.kind);
  if (event != "{}") return std::string(event);
  // Outside of compilations, a record states where it was written.
  const std::string_view stack = EnvelopeField(envelope, "stack");
  return stack.empty() ? std::string() : fmt::format("{{\"stack\": {}}}", stack);
}

}  // namespace strata
