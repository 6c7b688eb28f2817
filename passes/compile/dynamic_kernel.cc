#include "passes/compile/dynamic_kernel.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "passes/compile/kernel_maker.h"
#include "passes/compile/no_kernel.h"

namespace strata {
namespace {

using Sizes = std::vector<int64_t>;

/// 0 and 1 are said in the code.
bool AreAlike(const Sizes& a, const Sizes& b) {
  const auto is_alike = [](int64_t x, int64_t y) { return x == y || (x > 1 && y > 1); };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), is_alike);
}

/// Two kernels of one body for different sizes differ in sizes and strides alone, and not in what
/// loops must know beforehand: the columns of a row.
bool HaveOneCode(const Kernel& a, const Kernel& b) {
  const auto is_same_op = [](const Kernel::Op& x, const Kernel::Op& y) {
    return x.code == y.code && x.dtype == y.dtype && x.level == y.level &&
           x.operands == y.operands && x.numbers == y.numbers && x.access == y.access;
  };
  const auto is_same_access = [](const Kernel::Access& x, const Kernel::Access& y) {
    return x.argument == y.argument && x.dtype == y.dtype && AreAlike(x.strides, y.strides);
  };
  const auto is_same_store = [](const Kernel::Store& x, const Kernel::Store& y) {
    return x.op == y.op && x.access == y.access;
  };
  return AreAlike(a.sizes, b.sizes) && a.num_row_dims == b.num_row_dims &&
         a.has_rows == b.has_rows && a.columns() == b.columns() &&
         std::ranges::equal(a.ops, b.ops, is_same_op) &&
         std::ranges::equal(a.accesses, b.accesses, is_same_access) &&
         std::ranges::equal(a.stores, b.stores, is_same_store);
}

void MarkDynamic(Kernel& kernel, const std::vector<Kernel>& others) {
  const auto differs = [&](int64_t number, const auto& number_of) {
    return std::ranges::any_of(others,
                               [&](const Kernel& other) { return number_of(other) != number; });
  };
  for (size_t dim = 0; dim < kernel.sizes.size(); ++dim) {
    kernel.dynamic_sizes.push_back(
        differs(kernel.sizes[dim], [&](const Kernel& other) { return other.sizes[dim]; }));
    for (size_t i = 0; i < kernel.accesses.size(); ++i) {
      kernel.accesses[i].dynamic_strides.push_back(
          differs(kernel.accesses[i].strides[dim],
                  [&](const Kernel& other) { return other.accesses[i].strides[dim]; }));
    }
  }
}

/// Unbacked symbols in the types of the body that `sizes` does not contain, ascending.
std::vector<std::string> DataSizesOf(const Graph& body, const SymbolSizes& sizes) {
  const DimTable& dims = body.module().dims();
  std::set<std::string> found;
  const std::function<void(DimId)> look = [&](DimId dim) {
    if (dims.kind(dim) == DimKind::kSymbol && !sizes.contains(dims.name(dim))) {
      const Symbol* symbol = dims.FindSymbol(body.module().strings().Find(dims.name(dim)));
      if (symbol != nullptr && !symbol->backed) found.emplace(dims.name(dim));
    }
    for (const DimId operand : dims.operands(dim))
      look(operand);
  };
  for (const NodeId node : body.nodes()) {
    for (size_t i = 0; i < body.node(node).num_results; ++i) {
      const TypeId type = body.value(body.result(node, i)).type;
      if (!type.valid()) continue;
      for (const DimId dim : body.module().types()[type].sizes)
        look(dim);
    }
  }
  return {found.begin(), found.end()};
}

/// A kernel with data-dependent sizes: its dynamic numbers are solved from kernels of samples.
Result<Kernel> MakeDataKernel(const Graph& body, bool exact, const SymbolSizes& sizes,
                              const std::vector<std::string>& unbacked_symbols) {
  constexpr int64_t kFirst = 47, kStep = 30;
  SymbolSizes sample = sizes;
  int64_t next = kFirst;
  for (const std::string& symbol : unbacked_symbols)
    sample[symbol] = std::exchange(next, next + 12);
  STRATA_TRY(Kernel kernel, MakeFixedKernel(body, exact, sample));
  std::vector<Kernel> others;
  const auto add = [&](const SymbolSizes& at) {
    auto other = MakeFixedKernel(body, exact, at);
    const bool is_alike = other && HaveOneCode(kernel, *other);
    if (is_alike) others.push_back(std::move(other).value());
    return is_alike;
  };
  SymbolSizes all = sample;
  for (const std::string& symbol : unbacked_symbols) {
    SymbolSizes one = sample;
    one[symbol] += kStep;
    all[symbol] += kStep;
    if (!add(one)) return NoKernel("other code at other sizes");
  }
  if (!add(all)) return NoKernel("other code at other sizes");
  // What is open to other batches, too, is so in the code: one serves them all.
  std::vector<Kernel> marking = others;
  for (const SymbolSizes& at : SampleSizes(body.module())) {
    auto other = MakeFixedKernel(body, exact, at);
    if (other && HaveOneCode(kernel, *other)) marking.push_back(std::move(other).value());
  }
  MarkDynamic(kernel, marking);
  for (Kernel& other : others) {
    other.dynamic_sizes = kernel.dynamic_sizes;
    for (size_t i = 0; i < other.accesses.size(); ++i)
      other.accesses[i].dynamic_strides = kernel.accesses[i].dynamic_strides;
  }
  const std::vector<int64_t> numbers = kernel.dynamic_numbers();
  for (size_t i = 0; i < numbers.size(); ++i) {
    SizeForm form{.constant = numbers[i]};
    for (size_t k = 0; k < unbacked_symbols.size(); ++k) {
      const int64_t change = others[k].dynamic_numbers()[i] - numbers[i];
      if (change % kStep != 0) return NoKernel("numbers that are no multiples of sizes");
      if (change == 0) continue;
      form.factors[static_cast<int32_t>(k)] = change / kStep;
      form.constant -= change / kStep * sample[unbacked_symbols[k]];
    }
    const int64_t check =
        form.At([&](int32_t k) { return all[unbacked_symbols[static_cast<size_t>(k)]]; });
    if (check != others.back().dynamic_numbers()[i])
      return NoKernel("numbers that are products of sizes");
    kernel.dynamic_forms.push_back(std::move(form));
  }
  kernel.unbacked_symbols = unbacked_symbols;
  return kernel;
}

}  // namespace

Result<Kernel> MakeKernel(const Graph& body, bool exact, const SymbolSizes& sizes) {
  const std::vector<std::string> unbacked_symbols = DataSizesOf(body, sizes);
  if (!unbacked_symbols.empty()) return MakeDataKernel(body, exact, sizes, unbacked_symbols);
  STRATA_TRY(Kernel kernel, MakeFixedKernel(body, exact, sizes));
  if (sizes.empty()) return kernel;
  std::vector<Kernel> others;
  for (const SymbolSizes& sample : SampleSizes(body.module())) {
    auto other = MakeFixedKernel(body, exact, sample);
    if (!other || !HaveOneCode(kernel, *other)) return kernel;
    others.push_back(std::move(other).value());
  }
  MarkDynamic(kernel, others);
  return kernel;
}

}  // namespace strata
