#include "runtime/train/data/bpe_tokenizer.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "runtime/train/data/normalize.h"

namespace strata {

void AddedTokens::Add(std::string content, int64_t id) {
  begins_[static_cast<unsigned char>(content[0])] = true;
  tokens_.push_back({.content = std::move(content), .id = id});
  std::ranges::stable_sort(tokens_, std::greater<>(),
                           [](const Token& token) { return token.content.size(); });
}

const AddedTokens::Token* AddedTokens::At(std::string_view text) const {
  const auto found = std::ranges::find_if(
      tokens_, [&](const Token& token) { return text.starts_with(token.content); });
  return found == tokens_.end() ? nullptr : &*found;
}

Status BpeTokenizer::Encode(std::string_view text, std::vector<int64_t>& ids) const {
  return raw_tokens.EncodeAround(text, ids, [&](std::string_view part) {
    const std::string normal = is_nfc ? NormalizeNfc(part) : std::string(part);
    return normal_tokens.EncodeAround(
        normal, ids, [&](std::string_view plain) { return EncodePlain(plain, ids); });
  });
}

std::string BpeTokenizer::Content() const {
  const auto text = [](std::optional<int64_t> id) { return id ? std::to_string(*id) : "none"; };
  return fmt::format("{}, documents from {} to {}", content, text(bos), text(eos));
}

Status BpeTokenizer::EncodePlain(std::string_view text, std::vector<int64_t>& ids) const {
  std::vector<std::string_view> pieces = {text};
  std::deque<std::string> spaced;  // what pieces point into that were given a space
  for (const PieceStep& step : steps) {
    std::vector<std::string_view> finer;
    for (std::string_view piece : pieces) {
      if (step.adds_space && !piece.starts_with(' ')) {
        piece = spaced.emplace_back(fmt::format(" {}", piece));
      }
      if (step.splitter) {
        step.splitter->Split(piece, finer);
      } else {
        finer.push_back(piece);
      }
    }
    pieces = std::move(finer);
  }
  for (const std::string_view piece : pieces)
    STRATA_RETURN_IF_ERROR(encoder->Encode(piece, ids));
  return Ok();
}

}  // namespace strata
