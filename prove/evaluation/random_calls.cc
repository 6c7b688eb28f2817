#include "prove/evaluation/random_calls.h"

#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "ir/ops.h"

namespace strata::prove {
namespace {

/// The number at a position; none: a value of the graph.
std::optional<double> NumberOr(const Call& call, size_t position, std::string_view name,
                               double otherwise) {
  return call.Find(position, name) == nullptr ? otherwise : call.LiteralAt(position, name);
}

std::string WithBounds(std::string_view kind, std::optional<double> first,
                       std::optional<double> second) {
  return first && second ? fmt::format("{} {} {}", kind, *first, *second) : "";
}

/// randint(high, size), randint.low(low, high, size), randint_like(self, …), random_(self, …)
std::string IntegersOf(const Call& call, std::string_view base) {
  const size_t first = base == "randint" ? 0 : 1;
  const bool has_low = call.op().find(".low") != std::string_view::npos ||
                       (base == "random_" && call.op().ends_with(".from"));
  const size_t high = has_low ? first + 1 : first;
  if (call.Find(high, "high") == nullptr) return "";
  return WithBounds("integers", has_low ? call.LiteralAt(first, "low") : 0,
                    call.LiteralAt(high, "high"));
}

}  // namespace

std::string DrawnBy(const Call& call) {
  const std::string_view base = BaseName(call.op());
  if (base == "rand" || base == "rand_like") return WithBounds("uniform", 0, 1);
  if (base == "randn" || base == "randn_like") return WithBounds("normal", 0, 1);
  if (base == "uniform_")
    return WithBounds("uniform", NumberOr(call, 1, "from", 0), NumberOr(call, 2, "to", 1));
  if (base == "normal_")
    return WithBounds("normal", NumberOr(call, 1, "mean", 0), NumberOr(call, 2, "std", 1));
  if (call.op() == "aten.bernoulli.p" || call.op() == "aten.bernoulli_.float") {
    const std::optional<double> p = NumberOr(call, 1, "p", 0.5);
    return p ? TruthsOf(*p) : "";
  }
  if (base == "randint" || base == "randint_like" || base == "random_")
    return IntegersOf(call, base);
  return "";
}

std::string TruthsOf(double p) {
  return fmt::format("truths {}", p);
}

}  // namespace strata::prove
