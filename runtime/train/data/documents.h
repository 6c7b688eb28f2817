#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/train/data/traits.h"

namespace strata {

/// A list of documents, each a list of token ids in [0, vocab_size), read when asked for.
class Documents {
 public:
  virtual ~Documents() = default;
  virtual int64_t size() const = 0;
  /// REQUIRES: 0 <= index < size(). Errors: a line or token that cannot be used, with its place.
  virtual Result<std::vector<int64_t>> Get(int64_t index) const = 0;
  /// What decides which documents these are.
  virtual std::vector<DataTrait> Traits() const = 0;
};

/// The documents of `config.dataloader`:
///
///   tokens  a safetensors file with `tokens` (I64, I32, U32 or U16, one size), or bare numbers of
///           `token_dtype`; documents end after each `end_of_document`, or there are pieces of
///           seq_len + 1 tokens, each beginning with the last token of the one before
///   text    lines of JSON, the text under `text_key`; begun and ended by the tokenizer's tokens
///
/// Of several files the documents follow each other; none is in two files. Documents are read when
/// they are asked for. Errors: no such file, not of this kind, a tokenizer with more tokens than
/// the model.
Result<std::unique_ptr<Documents>> OpenDocuments(const TrainConfig& config);

}  // namespace strata
