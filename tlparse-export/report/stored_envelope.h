#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tlparse-export/torch_trace/export/stored_records.h"
#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {

/// Whether records of the kind only describe inputs; a log has many, which are of no use one by
/// one.
bool IsDescription(std::string_view kind);

/// A field of an envelope, as JSON; "" without it. The view is of `envelope`.
std::string_view EnvelopeField(const std::vector<JsonField>& envelope, std::string_view key);

/// The JSON under the record's kind: what it says beside its payload.
std::string MetadataOf(const StoredRecord& record, const std::vector<JsonField>& envelope);

}  // namespace strata
