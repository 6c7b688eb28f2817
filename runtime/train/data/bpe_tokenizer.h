#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/train/data/bpe.h"
#include "runtime/train/data/pretokenizer.h"
#include "runtime/train/data/tokenizer.h"

namespace strata {

/// Tokens that are cut out of a text before anything else is done to it.
class AddedTokens {
 public:
  void Add(std::string content, int64_t id);

  /// Calls `encode` for what lies between them, the leftmost and of those the longest.
  template <class EncodePart>
  Status EncodeAround(std::string_view text, std::vector<int64_t>& ids, EncodePart encode) const {
    size_t begin = 0;
    for (size_t at = 0; at < text.size() && !tokens_.empty();) {
      const bool may_begin = begins_[static_cast<unsigned char>(text[at])];
      const Token* token = may_begin ? At(text.substr(at)) : nullptr;
      if (token == nullptr) {
        ++at;
        continue;
      }
      if (at > begin) STRATA_RETURN_IF_ERROR(encode(text.substr(begin, at - begin)));
      ids.push_back(token->id);
      begin = at += token->content.size();
    }
    return begin < text.size() ? encode(text.substr(begin)) : Ok();
  }

 private:
  struct Token {
    std::string content;
    int64_t id = 0;
  };

  /// The longest that `text` begins with; null without one.
  const Token* At(std::string_view text) const;

  std::vector<Token> tokens_;       // longest first
  std::array<bool, 256> begins_{};  // a token, that byte
};

/// What cuts a text into the pieces that are encoded, one step after the other.
struct PieceStep {
  bool adds_space = false;  // before a piece that begins with none
  std::optional<RegexSplitter> splitter;
};

/// Byte-level byte pair encoding, as a `tokenizer.json` describes it.
class BpeTokenizer final : public Tokenizer {
 public:
  Status Encode(std::string_view text, std::vector<int64_t>& ids) const override;
  int64_t vocab_size() const override { return size; }
  std::optional<int64_t> bos_id() const override { return bos; }
  std::optional<int64_t> eos_id() const override { return eos; }
  std::string Content() const override;

  std::optional<BytePairEncoder> encoder;
  std::vector<PieceStep> steps;
  bool is_nfc = false;
  AddedTokens raw_tokens, normal_tokens;  // of the text as it is, and as it is normalized
  int64_t size = 0;
  std::optional<int64_t> bos, eos;
  std::string content;  // of tokenizer.json

 private:
  Status EncodePlain(std::string_view text, std::vector<int64_t>& ids) const;
};

}  // namespace strata
