#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "runtime/train/data/bpe_tokenizer.h"

namespace strata {

struct LoadedTokenizer {
  std::unique_ptr<BpeTokenizer> tokenizer;
  std::unordered_map<std::string, int64_t> ids;  ///< of all tokens, by their names
};

/// Builds a tokenizer from the text of a `tokenizer.json`; `path` names it in errors.
///
/// Errors: not JSON (kCorrupt), a part that is missing or of another form (kCorrupt), a kind of
/// tokenizer, normalizer or pre-tokenizer that is not supported (kUnsupported).
Result<LoadedTokenizer> ParseTokenizer(const std::string& text, const std::string& path);

}  // namespace strata
