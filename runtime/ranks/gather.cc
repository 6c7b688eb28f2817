#include "runtime/ranks/gather.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <fmt/format.h>

#include "runtime/ranks/rank_team.h"

namespace strata {
namespace {

using at::Tensor;

ByteSpan BytesOf(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

/// What every rank gives to all others.
std::vector<ByteSpan> ExchangeEqual(RankGroup& all, std::string call, ByteSpan mine) {
  return all.Exchange({.call = std::move(call),
                       .parts = std::vector(all.size(), mine),
                       .memory = {},
                       .expects = std::vector(all.size(), mine.size())});
}

/// A tensor without elements of the type and sizes of that of `rank`, on every rank.
Tensor LikeOf(RankGroup& all, const Tensor& given, size_t rank, std::string_view what) {
  constexpr size_t kMostSizes = 8;
  struct {
    int64_t type = 0, dims = 0;
    std::array<int64_t, kMostSizes> sizes = {};
  } description;
  if (given.defined()) {
    TORCH_CHECK(given.dim() <= static_cast<int64_t>(kMostSizes), what, " has too many dimensions");
    description.type = static_cast<int64_t>(given.scalar_type());
    description.dims = given.dim();
    std::ranges::copy(given.sizes(), description.sizes.begin());
  }
  const auto received = ExchangeEqual(all, fmt::format("description of {}", what),
                                      std::as_bytes(std::span(&description, 1)));
  std::memcpy(&description, received[rank].data(), sizeof description);
  all.Leave();
  return at::empty(at::IntArrayRef(description.sizes.data(), static_cast<size_t>(description.dims)),
                   at::device(at::kMeta).dtype(static_cast<at::ScalarType>(description.type)));
}

}  // namespace

Tensor GatherOnFirst(const Sharding& sharding, const Tensor& part, std::string_view what,
                     RankRange ranks) {
  RankGroup& all = RankTeam::CurrentWorld();
  const auto is_holder = [&](size_t rank) { return rank - ranks.first < ranks.count; };
  // Of ranks that hold the same, the first gives it.
  std::vector<size_t> source;
  for (size_t rank = 0; rank < ranks.count; ++rank) {
    size_t same = 0;
    while (sharding.PartOf(static_cast<int64_t>(same)) !=
           sharding.PartOf(static_cast<int64_t>(rank)))
      ++same;
    source.push_back(ranks.first + same);
  }
  const auto gives = [&](size_t rank) {
    return is_holder(rank) && source[rank - ranks.first] == rank;
  };
  const Tensor given = part.defined() ? part.cpu().contiguous() : part;
  const Tensor like = ranks.first == 0 ? given : LikeOf(all, given, ranks.first, what);
  const bool is_first = all.index() == 0;
  Offer offer{.call = fmt::format("gather of {}", what),
              .parts = std::vector(all.size(), ByteSpan()),
              .memory = given,
              .expects = std::vector(all.size(), size_t{0})};
  if (gives(all.index())) offer.parts[0] = BytesOf(given);
  for (size_t rank = 0; is_first && rank < all.size(); ++rank)
    offer.expects[rank] = gives(rank) ? like.nbytes() : 0;
  const std::vector<ByteSpan> received = all.Exchange(std::move(offer));
  Tensor whole;
  if (is_first) {
    std::vector<Tensor> parts;
    for (const size_t from : source) {
      parts.push_back(at::from_blob(const_cast<std::byte*>(received[from].data()), like.sizes(),
                                    at::dtype(like.scalar_type())));
    }
    whole = sharding.Gather(parts);
  }
  all.Leave();
  return whole;
}

namespace {

/// The first line of `ours` that `theirs` does not have in its place, and that of `theirs`.
std::string FirstDifference(std::string_view ours, std::string_view theirs) {
  const auto take_line = [](std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    return line;
  };
  std::string_view mine, other;
  do {
    mine = take_line(ours);
    other = take_line(theirs);
  } while (mine == other && !(ours.empty() && theirs.empty()));
  return fmt::format("'{}' and '{}'", mine, other);
}

}  // namespace

void CheckSameOnRanks(std::string_view what, std::string_view text) {
  RankGroup& all = RankTeam::CurrentWorld();
  const size_t length = text.size();
  const std::string call = fmt::format("comparison of {}", what);
  std::vector<size_t> lengths(all.size());
  const auto received = ExchangeEqual(all, call, std::as_bytes(std::span(&length, 1)));
  for (size_t rank = 0; rank < all.size(); ++rank)
    std::memcpy(&lengths[rank], received[rank].data(), sizeof(size_t));
  const auto text_bytes = std::as_bytes(std::span(text.data(), text.size()));
  const std::vector<ByteSpan> texts = all.Exchange({.call = call,
                                                    .parts = std::vector(all.size(), text_bytes),
                                                    .memory = {},
                                                    .expects = lengths});
  std::string others, difference;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (std::ranges::equal(texts[rank], text_bytes)) continue;
    others += fmt::format("{}{}", others.empty() ? "" : ", ", all.ranks()[rank]);
    if (!difference.empty()) continue;
    const auto* begin = reinterpret_cast<const char*>(texts[rank].data());
    difference = FirstDifference(text, {begin, texts[rank].size()});
  }
  all.Leave();
  TORCH_CHECK(others.empty(), "ranks have different ", what, ": rank ", all.ranks()[all.index()],
              " and ranks ", others, ": ", difference,
              ": start all with the same program and configuration");
}

bool IsTrueOnAnyRank(bool mine, std::string_view what) {
  RankGroup& all = RankTeam::CurrentWorld();
  const auto flag = static_cast<std::byte>(mine ? 1 : 0);
  const auto received = ExchangeEqual(all, std::string(what), std::span(&flag, 1));
  const bool any = std::ranges::any_of(received, [](ByteSpan of) { return of[0] != std::byte{0}; });
  all.Leave();
  return any;
}

}  // namespace strata
