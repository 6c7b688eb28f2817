#include "tlparse-export/torch_trace/read/wrapped_record.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/base64.h"
#include "base/json.h"
#include "base/unicode.h"

namespace strata {
namespace {

using Payload = WrappedRecord::Payload;

constexpr std::array<std::pair<Payload, std::string_view>, 3> kPayloads = {
    {{Payload::kNone, "none"}, {Payload::kText, "text"}, {Payload::kBase64, "base64"}}};

/// The value of a field of the object that `text` is; empty when there is none.
std::string_view Find(std::string_view text, std::string_view key) {
  const auto fields = ReadJsonObject(text);
  if (!fields) return {};
  const auto found = std::ranges::find(*fields, key, &JsonField::key);
  return found == fields->end() ? std::string_view{} : found->value;
}

}  // namespace

std::string WrapRecord(std::string_view name, std::string_view encoding,
                       const WrappedRecord& record) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("name", name).Field("encoding", encoding);
  json.Key("strata").BeginObject();
  if (IsUtf8(record.header)) {
    json.Field("header", record.header);
  } else {
    json.Field("header_base64", ToBase64(record.header));
  }
  json.Field("payload", std::ranges::find(kPayloads, record.payload, [](const auto& p) {
                          return p.first;
                        })->second);
  json.EndObject().EndObject();
  return out;
}

std::optional<WrappedRecord> UnwrapRecord(const std::vector<JsonField>& envelope) {
  const auto artifact = std::ranges::find(envelope, "artifact", &JsonField::key);
  if (artifact == envelope.end()) return std::nullopt;
  const std::string_view wrapped = Find(artifact->value, "strata");
  if (wrapped.empty()) return std::nullopt;
  std::optional<std::string> header = ReadJsonString(Find(wrapped, "header"));
  if (!header) {
    const std::optional<std::string> encoded = ReadJsonString(Find(wrapped, "header_base64"));
    if (encoded) header = FromBase64(*encoded);
  }
  if (!header) return std::nullopt;
  const std::string payload = ReadJsonString(Find(wrapped, "payload")).value_or("");
  const auto* const kind =
      std::ranges::find_if(kPayloads, [&](const auto& p) { return p.second == payload; });
  if (kind == kPayloads.end()) return std::nullopt;
  return WrappedRecord{*std::move(header), kind->first};
}

}  // namespace strata
