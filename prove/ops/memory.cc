#include <algorithm>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

uint64_t One(Domain domain) {
  return domain == Domain::kInteger ? 1 : Residue{1};
}

Tensor Filled(Domain domain, Sizes sizes, uint64_t word) {
  Tensor tensor(domain, std::move(sizes), word);
  if (domain == Domain::kComplex && word != kUndefined) {
    for (size_t i = 1; i < tensor.storage()->words.size(); i += 2)
      tensor.storage()->words[i] = 0;
  }
  return tensor;
}

/// What memory holds that nothing was written to. Integers have no code for it.
uint64_t Unwritten(Domain domain) {
  return domain == Domain::kInteger ? 0x5555555555555555U : kUndefined;
}

enum class Content : uint8_t { kNothing, kZero, kOne };

uint64_t WordOf(Content content, Domain domain) {
  if (content == Content::kNothing) return Unwritten(domain);
  return content == Content::kZero ? 0 : One(domain);
}

/// zeros_like(self), …
template <Content kContent>
Result<Values> EvaluateLike(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const Domain domain = call.DomainOr(a.domain(), 1);
  return Values{Filled(domain, a.sizes(), WordOf(kContent, domain))};
}

/// zeros(size), …
template <Content kContent>
Result<Values> EvaluateNew(Call& call) {
  const std::optional<Sizes> sizes = call.IntegersAt(0, "size");
  if (!sizes) return Error(ErrorCode::kInvalid, "no sizes");
  const Domain domain = call.DomainOr(Domain::kFloat);
  return Values{Filled(domain, *sizes, WordOf(kContent, domain))};
}

/// new_zeros(self, size), …
template <Content kContent>
Result<Values> EvaluateNewOf(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const std::optional<Sizes> sizes = call.IntegersAt(1, "size");
  if (!sizes) return Error(ErrorCode::kInvalid, "no sizes");
  const Domain domain = call.DomainOr(a.domain());
  return Values{Filled(domain, *sizes, WordOf(kContent, domain))};
}

Result<Values> FilledWith(const Tensor& number, Domain domain, const Sizes& sizes) {
  Tensor target(domain, sizes, 0);
  STRATA_TRY(const Tensor source, ConvertTo(number, domain).Expand(sizes));
  target.Write(source.Read());
  return Values{std::move(target)};
}

Result<Values> EvaluateFull(Call& call) {
  const std::optional<Sizes> sizes = call.IntegersAt(0, "size");
  if (!sizes) return Error(ErrorCode::kInvalid, "no sizes");
  STRATA_TRY(const Tensor number, call.TensorAt(1, "fill_value"));
  return FilledWith(number, call.DomainOr(number.domain()), *sizes);
}

Result<Values> EvaluateFullLike(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor number, call.TensorAt(1, "fill_value"));
  return FilledWith(number, call.DomainOr(a.domain()), a.sizes());
}

/// new_full(self, size, fill_value)
Result<Values> EvaluateNewFull(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const std::optional<Sizes> sizes = call.IntegersAt(1, "size");
  if (!sizes) return Error(ErrorCode::kInvalid, "no sizes");
  STRATA_TRY(const Tensor number, call.TensorAt(2, "fill_value"));
  return FilledWith(number, call.DomainOr(a.domain()), *sizes);
}

/// fill(self, value)
Result<Values> EvaluateFill(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor number, call.TensorAt(1, "value"));
  return FilledWith(number, a.domain(), a.sizes());
}

Result<Values> EvaluateZero(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  return Values{Tensor(a.domain(), a.sizes(), 0)};
}

Result<Values> EvaluateScalarTensor(Call& call) {
  STRATA_TRY(const Tensor number, call.TensorAt(0));
  return Values{ConvertTo(number, call.DomainOr(number.domain())).Copy()};
}

/// arange(end), arange(start, end), arange(start, end, step), of integers.
Result<Values> EvaluateArange(Call& call) {
  const std::optional<Sizes> first = call.IntegersAt(0, "end");
  if (!first) return Error(ErrorCode::kUnsupported, "a range of numbers");
  int64_t start = 0, end = first->front(), step = 1;
  if (call.num_args() > 1) {
    start = end;
    end = call.IntegerAt(1, "end", 0);
    step = call.IntegerAt(2, "step", 1);
  }
  if (step == 0) return Error(ErrorCode::kInvalid, "a step of 0");
  std::vector<uint64_t> words;
  for (int64_t at = start; step > 0 ? at < end : at > end; at += step)
    words.push_back(static_cast<uint64_t>(at));
  Sizes sizes = {static_cast<int64_t>(words.size())};
  const Tensor range = OfWords(Domain::kInteger, std::move(sizes), std::move(words));
  return Values{ConvertTo(range, call.DomainOr(Domain::kInteger))};
}

/// prims.iota(length, start, step)
Result<Values> EvaluateIota(Call& call) {
  const int64_t length = call.IntegerAt(0, "length", 0), start = call.IntegerAt(1, "start", 0),
                step = call.IntegerAt(2, "step", 1);
  std::vector<uint64_t> words;
  for (int64_t i = 0; i < length; ++i)
    words.push_back(static_cast<uint64_t>(start + i * step));
  const Tensor range = OfWords(Domain::kInteger, {length}, std::move(words));
  return Values{ConvertTo(range, call.DomainOr(Domain::kInteger))};
}

/// Whether the call makes truth values: 1 of what is not 0.
bool MakesBools(const Call& call, size_t position) {
  const Argument* argument = call.Find(position, "dtype");
  const auto* dtype = argument != nullptr ? std::get_if<DType>(&argument->value) : nullptr;
  return dtype != nullptr && *dtype == DType::kBool;
}

Tensor ToBools(const Tensor& a) {
  std::vector<uint64_t> words = a.Read();
  if (a.domain() == Domain::kComplex) {
    for (size_t i = 0; i < words.size() / 2; ++i)
      words[i] = words[2 * i] != 0 || words[2 * i + 1] != 0 ? 1 : 0;
    words.resize(words.size() / 2);
  }
  for (uint64_t& word : words)
    word = word != 0 ? 1 : 0;
  return OfWords(Domain::kInteger, a.sizes(), std::move(words));
}

/// A copy, maybe of another type. Rounding is not part of the proof.
Result<Values> EvaluateToCopy(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (MakesBools(call, SIZE_MAX)) return Values{ToBools(a)};
  const Domain domain = call.DomainOr(a.domain(), SIZE_MAX);
  if (a.domain() == Domain::kComplex && domain != Domain::kComplex)
    return Error(ErrorCode::kUnsupported, "a complex number as a real one");
  return Values{domain == a.domain() ? a.Copy() : ConvertTo(a, domain)};
}

/// copy(self, src): the elements of src in the sizes of self.
Result<Values> EvaluateCopy(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor source, call.TensorAt(1, "src"));
  STRATA_TRY(const Tensor expanded, ConvertTo(source, a.domain()).Expand(a.sizes()));
  return Values{expanded.Copy()};
}

/// prims.convert_element_type(self, dtype)
Result<Values> EvaluateConvert(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (MakesBools(call, 1)) return Values{ToBools(a)};
  const Domain domain = call.DomainOr(a.domain(), 1);
  if (a.domain() == Domain::kComplex && domain != Domain::kComplex)
    return Error(ErrorCode::kUnsupported, "a complex number as a real one");
  return Values{ConvertTo(a, domain).Copy()};
}

/// Ranks hold the value in another way.
Result<Values> EvaluateRedistribute(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  return Values{a.Copy()};
}

/// eye(n), eye(n, m)
Result<Values> EvaluateEye(Call& call) {
  const int64_t rows = call.IntegerAt(0, "n", 0);
  const int64_t columns = call.IntegerAt(1, "m", rows);
  const Domain domain = call.DomainOr(Domain::kFloat);
  Tensor result(domain, {rows, columns}, 0);
  for (int64_t i = 0; i < std::min(rows, columns); ++i)
    result.storage()
        ->words[static_cast<size_t>(i * result.strides()[0] + i * result.strides()[1])] =
        One(domain);
  return Values{std::move(result)};
}

constexpr OpDefinition kMemoryOps[] = {
    {"aten._to_copy", EvaluateToCopy, true},
    {"aten.arange", EvaluateArange},
    {"aten.clone", EvaluateToCopy, true},
    {"aten.contiguous", EvaluateToCopy, true},
    {"aten.copy", EvaluateCopy, false, true},
    {"aten.empty", EvaluateNew<Content::kNothing>},
    {"aten.empty_like", EvaluateLike<Content::kNothing>, false, true},
    {"aten.eye", EvaluateEye},
    {"aten.fill", EvaluateFill, false, true},
    {"aten.full", EvaluateFull, false, true},
    {"aten.full_like", EvaluateFullLike, false, true},
    {"aten.lift_fresh_copy", EvaluateToCopy, true},
    {"aten.new_empty", EvaluateNewOf<Content::kNothing>, false, true},
    {"aten.new_full", EvaluateNewFull, false, true},
    {"aten.new_ones", EvaluateNewOf<Content::kOne>, false, true},
    {"aten.new_zeros", EvaluateNewOf<Content::kZero>, false, true},
    {"aten.ones", EvaluateNew<Content::kOne>},
    {"aten.ones_like", EvaluateLike<Content::kOne>, false, true},
    {"aten.scalar_tensor", EvaluateScalarTensor, false, true},
    {"aten.zero", EvaluateZero, false, true},
    {"aten.zeros", EvaluateNew<Content::kZero>},
    {"aten.zeros_like", EvaluateLike<Content::kZero>, false, true},
    {"prims.convert_element_type", EvaluateConvert, true},
    {"prims.iota", EvaluateIota},
    {"strata.redistribute", EvaluateRedistribute, true},
};

}  // namespace

std::span<const OpDefinition> MemoryOps() {
  return kMemoryOps;
}

}  // namespace strata::prove
