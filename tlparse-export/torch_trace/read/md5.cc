#include "tlparse-export/torch_trace/read/md5.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

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
constexpr size_t kBlock = 64;

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

using State = std::array<uint32_t, 4>;

/// `sum` and the round's function of b, c and d. Each step waits for the b of the one before, so
/// what does not depend on it is added first.
template <int kRound>
inline uint32_t AddMix(uint32_t sum, uint32_t b, uint32_t c, uint32_t d) {
  if constexpr (kRound == 0) return sum + (d ^ (b & (c ^ d)));
  if constexpr (kRound == 1) return (sum + (c & ~d)) + (d & b);
  if constexpr (kRound == 2) return sum + (b ^ (c ^ d));
  return sum + (c ^ (b | ~d));
}

template <int kRound>
inline void Round(State& s, const std::array<uint32_t, 16>& words) {
  // words[(step × factor + offset) mod 16]
  constexpr std::array<uint32_t, 4> kFactors = {1, 5, 3, 7}, kOffsets = {0, 1, 5, 0};
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t word = words[(i * kFactors[kRound] + kOffsets[kRound]) & 15];
    const uint32_t known = s[0] + word + kSines[static_cast<size_t>(kRound) * 16 + i];
    const uint32_t sum = AddMix<kRound>(known, s[1], s[2], s[3]);
    s = {s[3], s[1] + std::rotl(sum, kShifts[kRound][i & 3]), s[1], s[2]};
  }
}

void AddBlock(State& state, const char* block) {
  std::array<uint32_t, 16> words;
  std::memcpy(words.data(), block, kBlock);
  State s = state;
  Round<0>(s, words);
  Round<1>(s, words);
  Round<2>(s, words);
  Round<3>(s, words);
  for (size_t i = 0; i < 4; ++i)
    state[i] += s[i];
}

}  // namespace

std::string Md5Hex(std::string_view bytes) {
  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock))
    AddBlock(state, bytes.data());

  // The rest, a 1 bit, zeros, and the length at the end of a block.
  std::array<char, 2 * kBlock> tail{};
  if (!bytes.empty()) std::memcpy(tail.data(), bytes.data(), bytes.size());
  tail[bytes.size()] = static_cast<char>(0x80);
  const size_t blocks = bytes.size() + 1 + sizeof bits <= kBlock ? 1 : 2;
  std::memcpy(tail.data() + blocks * kBlock - sizeof bits, &bits, sizeof bits);
  for (size_t i = 0; i < blocks; ++i)
    AddBlock(state, tail.data() + i * kBlock);

  constexpr std::string_view kHex = "0123456789abcdef";
  std::string hex;
  for (uint32_t word : state) {
    for (int shift = 0; shift < 32; shift += 8) {
      hex += kHex[(word >> (shift + 4)) & 15];
      hex += kHex[(word >> shift) & 15];
    }
  }
  return hex;
}

}  // namespace strata
