#include "runtime/train/data/bpe.h"

#include <queue>
#include <tuple>

#include "base/text.h"

namespace strata {

Result<BytePairEncoder> BytePairEncoder::Create(
    std::unordered_map<std::string, int64_t> vocab,
    const std::vector<std::pair<std::string, std::string>>& merges, bool ignore_merges) {
  BytePairEncoder encoder;
  encoder.vocab_ = std::move(vocab);
  encoder.ignore_merges_ = ignore_merges;
  encoder.bytes_.assign(256, -1);
  const auto find = [&](const std::string& bytes) {
    const auto found = encoder.vocab_.find(bytes);
    return found == encoder.vocab_.end() ? int64_t{-1} : found->second;
  };
  for (size_t byte = 0; byte < 256; ++byte)
    encoder.bytes_[byte] = find(std::string(1, static_cast<char>(byte)));
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const int64_t left_id = find(left), right_id = find(right), merged = find(left + right);
    if (left_id < 0 || right_id < 0 || merged < 0) {
      return Error(ErrorCode::kCorrupt, "merge {} is of tokens that are not in the vocabulary",
                   rank + 1);
    }
    // Of a merge that is there twice, the last counts in Hugging Face's library, too.
    encoder.merges_.insert_or_assign({left_id, right_id},
                                     Merge{static_cast<int64_t>(rank), merged});
  }
  return encoder;
}

Status BytePairEncoder::Encode(std::string_view piece, std::vector<int64_t>& ids) const {
  if (ignore_merges_) {
    const auto whole = vocab_.find(std::string(piece));
    if (whole != vocab_.end()) {
      ids.push_back(whole->second);
      return Ok();
    }
  }
  // Symbols in a linked list; a merged one swallows its right neighbour.
  struct Symbol {
    int64_t id = 0;
    size_t before = 0, after = 0;
  };
  const size_t size = piece.size();
  std::vector<Symbol> symbols(size);
  for (size_t i = 0; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(piece[i]);
    if (bytes_[byte] < 0) {
      return Error("no token for byte 0x{:02x} of '{}'", byte, OneLine(piece));
    }
    symbols[i] = {.id = bytes_[byte], .before = i - 1, .after = i + 1};
  }
  // The first learned pair first, of equal ones the leftmost. Entries may be out of date.
  using Candidate = std::tuple<int64_t, size_t, int64_t, int64_t, int64_t>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto consider = [&](size_t left) {
    if (left >= size || symbols[left].after >= size) return;
    const int64_t right_id = symbols[symbols[left].after].id;
    const auto merge = merges_.find({symbols[left].id, right_id});
    if (merge == merges_.end()) return;
    queue.emplace(merge->second.rank, left, symbols[left].id, right_id, merge->second.id);
  };
  for (size_t i = 0; i + 1 < size; ++i)
    consider(i);
  while (!queue.empty()) {
    const auto [rank, left, left_id, right_id, merged] = queue.top();
    queue.pop();
    Symbol& symbol = symbols[left];
    const bool is_current =
        symbol.id == left_id && symbol.after < size && symbols[symbol.after].id == right_id;
    if (!is_current) continue;
    symbols[symbol.after].id = -1;
    symbol.id = merged;
    symbol.after = symbols[symbol.after].after;
    if (symbol.after < size) symbols[symbol.after].before = left;
    consider(symbol.before);
    consider(left);
  }
  for (size_t i = 0; i < size; i = symbols[i].after)
    ids.push_back(symbols[i].id);
  return Ok();
}

}  // namespace strata
