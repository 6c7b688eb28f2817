#pragma once
#include <cstdint>
#include <string_view>

namespace strata {

/// True when tlparse 0.4.3 surely takes this record, also with `--strict`, and writes nothing
/// outside of its output folder: the header line has the form and the envelope the types that its
/// src/types.rs declares, names may be names of files, and the payload is what its parser of that
/// event reads. Rank and checksum are not looked at.
///
/// `prefix` is the line up to the JSON object `envelope`.
bool TlparseTakes(std::string_view prefix, std::string_view envelope, std::string_view payload);

/// True for a header line, up to its JSON object, as tlparse's expression finds it.
bool IsPlainPrefix(std::string_view prefix);

/// True for text that goes through tlparse's reader of lines unchanged.
bool IsPlainPayload(std::string_view payload);

/// True for a name that may be part of a file's name for tlparse.
bool IsFileName(std::string_view name);

/// Ids of strings that tlparse keeps in a table without gaps in its raw.jsonl.
inline constexpr int64_t kMaxTlparseStringId = 65535;

}  // namespace strata
