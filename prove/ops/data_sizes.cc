#include <utility>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

/// nonzero(self): a row of indices for each element that is not 0.
Result<Values> EvaluateNonzero(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  if (a.domain() == Domain::kComplex)
    return Error(ErrorCode::kUnsupported, "complex numbers that are not 0");
  const size_t dims = a.sizes().size();
  const std::vector<uint64_t> words = a.Read();
  std::vector<uint64_t> rows;
  int64_t count = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == 0) continue;
    ++count;
    rows.resize(rows.size() + dims);
    auto rest = static_cast<int64_t>(i);
    for (size_t dim = dims; dim-- > 0;) {
      rows[rows.size() - dims + dim] = static_cast<uint64_t>(rest % a.sizes()[dim]);
      rest /= a.sizes()[dim];
    }
  }
  return Values{OfWords(Domain::kInteger, {count, std::ssize(a.sizes())}, std::move(rows))};
}

/// sym_size(self, dim)
Result<Values> EvaluateSize(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const int64_t given = call.IntegerAt(1, "dim", 0), rank = a.dim();
  const int64_t dim = given < 0 ? given + rank : given;
  if (dim < 0 || dim >= rank) return Error(ErrorCode::kInvalid, "no such dimension");
  return Values{a.sizes()[static_cast<size_t>(dim)]};
}

/// sym_numel(self)
Result<Values> EvaluateCount(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  return Values{a.numel()};
}

/// What a run checks of its sizes computes nothing.
Result<Values> EvaluateCheck(Call& /*call*/) {
  return Values{};
}

constexpr OpDefinition kDataSizeOps[] = {
    {"aten._assert_async", EvaluateCheck},
    {"aten._assert_scalar", EvaluateCheck},
    {"aten._assert_tensor_metadata", EvaluateCheck},
    {"aten.nonzero", EvaluateNonzero},
    {"aten.sym_constrain_range", EvaluateCheck},
    {"aten.sym_constrain_range_for_size", EvaluateCheck},
    {"aten.sym_numel", EvaluateCount},
    {"aten.sym_size", EvaluateSize},
};

}  // namespace

std::span<const OpDefinition> DataSizeOps() {
  return kDataSizeOps;
}

}  // namespace strata::prove
