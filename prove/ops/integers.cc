#include <algorithm>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

using Words = std::vector<uint64_t>;

enum class Bits : uint8_t { kAnd, kOr, kXor };

uint64_t Combine(Bits bits, uint64_t x, uint64_t y) {
  switch (bits) {
    case Bits::kAnd:
      return x & y;
    case Bits::kOr:
      return x | y;
    case Bits::kXor:
      return x ^ y;
  }
  return 0;
}

template <Bits kBits, bool kLogical>
Result<Values> EvaluateBits(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  STRATA_TRY(Tensor result, Map(a, b, Domain::kInteger, [](uint64_t x, uint64_t y) {
               return kLogical ? Combine(kBits, static_cast<uint64_t>(x != 0),
                                         static_cast<uint64_t>(y != 0))
                               : Combine(kBits, x, y);
             }));
  return Values{std::move(result)};
}

/// Of truth values: 0 and 1, which the domain represents as integers.
Result<Values> EvaluateNot(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  return Values{Map(a, Domain::kInteger, [](uint64_t x) { return static_cast<uint64_t>(x == 0); })};
}

int64_t FloorDivide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const int64_t quotient = a / b;
  return quotient - static_cast<int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

enum class Division : uint8_t { kFloor, kRemainder, kTruncatedRemainder };

template <Division kDivision>
Result<Values> EvaluateFloorDivide(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor b, call.TensorAt(1, "other"));
  if (Common(a.domain(), b.domain()) != Domain::kInteger)
    return Error(ErrorCode::kUnsupported, "division that rounds, of numbers");
  STRATA_TRY(Tensor result, Map(a, b, Domain::kInteger, [](uint64_t x, uint64_t y) {
               if (kDivision == Division::kTruncatedRemainder)
                 return y == 0 ? 0 : Word(Signed(x) % Signed(y));
               const int64_t quotient = FloorDivide(Signed(x), Signed(y));
               return kDivision == Division::kFloor ? Word(quotient)
                                                    : Word(Signed(x) - quotient * Signed(y));
             }));
  return Values{std::move(result)};
}

/// where(condition, self, other)
Result<Values> EvaluateWhere(Call& call) {
  STRATA_TRY(const Tensor condition, call.TensorAt(0));
  STRATA_TRY(const Tensor a, call.TensorAt(1, "self"));
  STRATA_TRY(const Tensor b, call.TensorAt(2, "other"));
  const Domain domain = Common(a.domain(), b.domain());
  STRATA_TRY(const Sizes of_values, BroadcastSizes(a.sizes(), b.sizes()));
  STRATA_TRY(const Sizes sizes, BroadcastSizes(of_values, condition.sizes()));
  STRATA_TRY(const Tensor x, ConvertTo(a, domain).Expand(sizes));
  STRATA_TRY(const Tensor y, ConvertTo(b, domain).Expand(sizes));
  STRATA_TRY(const Tensor mask, condition.Expand(sizes));
  Words words = x.Read();
  const Words others = y.Read(), truth = mask.Read();
  const size_t per = words.size() / std::max<size_t>(truth.size(), 1);
  for (size_t i = 0; i < words.size(); ++i) {
    if (truth[i / per] == 0) words[i] = others[i];
  }
  return Values{OfWords(domain, sizes, std::move(words))};
}

/// masked_fill(self, mask, value)
Result<Values> EvaluateMaskedFill(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor mask, call.TensorAt(1, "mask"));
  STRATA_TRY(const Tensor value, call.TensorAt(2, "value"));
  STRATA_TRY(const Sizes sizes, BroadcastSizes(a.sizes(), mask.sizes()));
  STRATA_TRY(const Tensor x, a.Expand(sizes));
  STRATA_TRY(const Tensor hidden, mask.Expand(sizes));
  const uint64_t fill = ConvertTo(value, a.domain()).Read()[0];
  Words words = x.Read();
  const Words truth = hidden.Read();
  for (size_t i = 0; i < words.size(); ++i) {
    if (truth[i] != 0) words[i] = fill;
  }
  return Values{OfWords(a.domain(), sizes, std::move(words))};
}

constexpr OpDefinition kIntegerOps[] = {
    {"aten.bitwise_and", EvaluateBits<Bits::kAnd, false>},
    {"aten.bitwise_not", EvaluateNot},
    {"aten.bitwise_or", EvaluateBits<Bits::kOr, false>},
    {"aten.bitwise_xor", EvaluateBits<Bits::kXor, false>},
    {"aten.floor_divide", EvaluateFloorDivide<Division::kFloor>},
    {"aten.fmod", EvaluateFloorDivide<Division::kTruncatedRemainder>},
    {"aten.logical_and", EvaluateBits<Bits::kAnd, true>},
    {"aten.logical_not", EvaluateNot},
    {"aten.logical_or", EvaluateBits<Bits::kOr, true>},
    {"aten.logical_xor", EvaluateBits<Bits::kXor, true>},
    {"aten.masked_fill", EvaluateMaskedFill},
    {"aten.remainder", EvaluateFloorDivide<Division::kRemainder>},
    {"aten.where", EvaluateWhere},
};

}  // namespace

std::span<const OpDefinition> IntegerOps() {
  return kIntegerOps;
}

}  // namespace strata::prove
