#include "tlparse-export/torch_trace/read/md5.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

namespace strata {
namespace {

// floor(2^32 × |sin(i + 1)|)
constexpr std::array<uint32_t, 64> kSines = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
constexpr std::array<std::array<int, 4>, 4> kShifts = {
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};
constexpr std::array<uint32_t, 4> kStart = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
constexpr size_t kBlock = 64, kWords = kBlock / sizeof(uint32_t);

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

// A word of one text, or of several texts, one in each lane. Each step of a text waits for the step
// before it, so a processor has time for many texts at once.
constexpr size_t kLanes = 16;
using Lanes [[gnu::vector_size(kLanes * sizeof(uint32_t))]] = uint32_t;

// AVX-512 (x86-64-v4) rotates, and computes a function of three words, in one instruction.
#if defined(__x86_64__)
#define STRATA_FOR_EACH_PROCESSOR [[gnu::target_clones("arch=x86-64-v4", "avx2", "default")]]
#else
#define STRATA_FOR_EACH_PROCESSOR
#endif

template <class Word>
struct State {
  Word a, b, c, d;
};

/// `sum` and the round's function of b, c and d. Each step waits for the b of the one before, so
/// what does not depend on it is added first.
template <int kRound, class Word>
[[gnu::always_inline]] inline void AddMix(Word& sum, const State<Word>& s) {
  if constexpr (kRound == 0) sum += s.d ^ (s.b & (s.c ^ s.d));
  if constexpr (kRound == 1) sum = (sum + (s.c & ~s.d)) + (s.d & s.b);
  if constexpr (kRound == 2) sum += s.b ^ (s.c ^ s.d);
  if constexpr (kRound == 3) sum += s.c ^ (s.b | ~s.d);
}

template <int kRound, class Word>
[[gnu::always_inline]] inline void Round(State<Word>& s, const std::array<Word, kWords>& words) {
  // words[(step × factor + offset) mod 16]
  constexpr std::array<uint32_t, 4> kFactors = {1, 5, 3, 7}, kOffsets = {0, 1, 5, 0};
  for (uint32_t i = 0; i < kWords; ++i) {
    Word sum = s.a + words[(i * kFactors[kRound] + kOffsets[kRound]) % kWords] +
               kSines[static_cast<size_t>(kRound) * kWords + i];
    AddMix<kRound>(sum, s);
    const int shift = kShifts[kRound][i % 4];
    const Word rotated = (sum << shift) | (sum >> (32 - shift));
    s = {s.d, s.b + rotated, s.b, s.c};
  }
}

template <class Word>
[[gnu::always_inline]] inline void AddWords(State<Word>& state,
                                            const std::array<Word, kWords>& words) {
  State<Word> s = state;
  Round<0>(s, words);
  Round<1>(s, words);
  Round<2>(s, words);
  Round<3>(s, words);
  state = {state.a + s.a, state.b + s.b, state.c + s.c, state.d + s.d};
}

void AddBlocks(State<uint32_t>& state, const char* blocks, size_t count) {
  for (; count > 0; --count, blocks += kBlock) {
    std::array<uint32_t, kWords> words;
    std::memcpy(words.data(), blocks, kBlock);
    AddWords(state, words);
  }
}

/// Writes the block at `offset` of each lane as words of all lanes: transposes it in squares of
/// four words, which every processor has instructions for.
[[gnu::always_inline]] inline void LoadWords(const std::array<const char*, kLanes>& blocks,
                                             size_t offset, std::array<Lanes, kWords>& words) {
  using Four [[gnu::vector_size(16)]] = uint32_t;
  for (size_t word = 0; word < kWords; word += 4) {
    for (size_t lane = 0; lane < kLanes; lane += 4) {
      std::array<Four, 4> rows;
      for (size_t i = 0; i < 4; ++i)
        std::memcpy(&rows[i], blocks[lane + i] + offset + word * sizeof(uint32_t), sizeof(Four));
      const Four a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
      const Four b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
      const Four c = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
      const Four d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
      const std::array<Four, 4> columns = {
          __builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
          __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7)};
      for (size_t i = 0; i < 4; ++i)
        std::memcpy(reinterpret_cast<uint32_t*>(&words[word + i]) + lane, &columns[i],
                    sizeof(Four));
    }
  }
}

/// The next `count` blocks of each lane.
STRATA_FOR_EACH_PROCESSOR void AddBlocks(State<Lanes>& state,
                                         std::array<const char*, kLanes> blocks, size_t count) {
  State<Lanes> s = state;
  for (size_t block = 0; block < count; ++block) {
    std::array<Lanes, kWords> words;
    LoadWords(blocks, block * kBlock, words);
    AddWords(s, words);
  }
  state = s;
}

/// What of a text is not added yet: whole blocks, then its last blocks: the rest, a 1 bit, zeros,
/// and the length.
class Blocks {
 public:
  Blocks() = default;
  explicit Blocks(std::string_view text) : at_(text.data()), whole_(text.size() / kBlock) {
    const size_t rest = text.size() % kBlock;
    const uint64_t bits = uint64_t{text.size()} * 8;
    if (rest > 0) std::memcpy(tail_.data(), text.data() + whole_ * kBlock, rest);
    tail_[rest] = static_cast<char>(0x80);
    in_tail_ = rest + 1 + sizeof bits <= kBlock ? 1 : 2;
    std::memcpy(tail_.data() + in_tail_ * kBlock - sizeof bits, &bits, sizeof bits);
  }

  bool is_done() const { return in_tail_ == 0; }
  /// Blocks that lie in one piece from `data` on.
  size_t size() const { return whole_ > 0 ? whole_ : in_tail_; }
  const char* data() const { return whole_ > 0 ? at_ : tail_.data() + tail_at_; }
  /// REQUIRES: count <= size().
  void Drop(size_t count) {
    if (whole_ > 0) {
      whole_ -= count;
      at_ += count * kBlock;
    } else {
      in_tail_ -= count;
      tail_at_ += count * kBlock;
    }
  }

 private:
  const char* at_ = nullptr;
  size_t whole_ = 0, in_tail_ = 0, tail_at_ = 0;
  std::array<char, 2 * kBlock> tail_{};
};

std::string Hex(const State<uint32_t>& state) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string hex;
  for (const uint32_t word : {state.a, state.b, state.c, state.d}) {
    for (int shift = 0; shift < 32; shift += 8) {
      hex += kHex[(word >> (shift + 4)) & 15];
      hex += kHex[(word >> shift) & 15];
    }
  }
  return hex;
}

std::string Finish(State<uint32_t> state, Blocks blocks) {
  for (; !blocks.is_done(); blocks.Drop(blocks.size()))
    AddBlocks(state, blocks.data(), blocks.size());
  return Hex(state);
}

constexpr State<uint32_t> kStartState = {kStart[0], kStart[1], kStart[2], kStart[3]};

/// Takes texts through lanes: a lane that has finished one begins another.
class LaneQueue {
 public:
  explicit LaneQueue(std::span<const std::string_view> texts)
      : texts_(texts), sums_(texts.size()), waiting_(texts.size()) {
    // The longest first, so that lanes end together.
    std::iota(waiting_.begin(), waiting_.end(), size_t{0});
    std::ranges::stable_sort(waiting_, {}, [&](size_t i) { return texts_[i].size(); });
    for (size_t lane = 0; lane < kLanes; ++lane)
      Refill(lane);
  }

  std::vector<std::string> Run() {
    while (num_running_ > 1)
      Step();
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if (!blocks_[lane].is_done()) sums_[text_of_[lane]] = Finish(StateOf(lane), blocks_[lane]);
    }
    return std::move(sums_);
  }

 private:
  void Step() {
    // A lane without a text repeats what another one does.
    size_t count = SIZE_MAX, running = 0;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if (blocks_[lane].is_done()) continue;
      running = lane;
      count = std::min(count, blocks_[lane].size());
    }
    std::array<const char*, kLanes> at;
    for (size_t lane = 0; lane < kLanes; ++lane)
      at[lane] = blocks_[blocks_[lane].is_done() ? running : lane].data();
    AddBlocks(state_, at, count);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if (blocks_[lane].is_done()) continue;
      blocks_[lane].Drop(count);
      if (!blocks_[lane].is_done()) continue;
      sums_[text_of_[lane]] = Hex(StateOf(lane));
      --num_running_;
      Refill(lane);
    }
  }

  void Refill(size_t lane) {
    if (waiting_.empty()) return;
    text_of_[lane] = waiting_.back();
    waiting_.pop_back();
    blocks_[lane] = Blocks(texts_[text_of_[lane]]);
    state_.a[lane] = kStart[0];
    state_.b[lane] = kStart[1];
    state_.c[lane] = kStart[2];
    state_.d[lane] = kStart[3];
    ++num_running_;
  }

  State<uint32_t> StateOf(size_t lane) const {
    return {state_.a[lane], state_.b[lane], state_.c[lane], state_.d[lane]};
  }

  const std::span<const std::string_view> texts_;
  std::vector<std::string> sums_;
  std::vector<size_t> waiting_;  // the next one last
  std::array<Blocks, kLanes> blocks_;
  std::array<size_t, kLanes> text_of_{};
  State<Lanes> state_{};
  size_t num_running_ = 0;
};

}  // namespace

std::string Md5Hex(std::string_view bytes) {
  return Finish(kStartState, Blocks(bytes));
}

std::vector<std::string> Md5HexOfAll(std::span<const std::string_view> texts) {
  return LaneQueue(texts).Run();
}

}  // namespace strata
