#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace strata {

/// Turns text into token ids.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Appends the ids of `text` (UTF-8), without those that begin and end a document. Errors: text
  /// that the vocabulary has no ids for.
  virtual Status Encode(std::string_view text, std::vector<int64_t>& ids) const = 0;
  /// Ids are below it.
  virtual int64_t vocab_size() const = 0;
  virtual std::optional<int64_t> bos_id() const = 0;
  virtual std::optional<int64_t> eos_id() const = 0;
  /// `bytes`, or ContentOf of the files that it was made of.
  virtual std::string Content() const = 0;
};

/// A byte is its own id; documents begin with 256 and end with 257.
std::unique_ptr<Tokenizer> MakeByteTokenizer();

/// `bytes`, or the path of a Hugging Face `tokenizer.json` or of the folder that holds one, beside
/// which `tokenizer_config.json` names the tokens that begin and end a document.
///
/// Supported: byte-level BPE as of GPT-2, Llama 3, Qwen and DeepSeek-V3 (`ignore_merges`, added
/// tokens, `Split` by regular expressions, `NFC`). Errors: unreadable files, and whatever else a
/// tokenizer may be made of, named.
Result<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& name);

}  // namespace strata
