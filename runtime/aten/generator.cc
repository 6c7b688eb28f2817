#include "runtime/aten/generator.h"

#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

namespace strata {
namespace {

thread_local std::optional<at::Generator> own;

}  // namespace

void UseOwnGenerator() {
  own = at::detail::createCPUGenerator();
}

const std::optional<at::Generator>& OwnGenerator() {
  return own;
}

void SeedGenerator(uint64_t seed) {
  if (!own) return at::manual_seed(seed);
  const std::lock_guard lock(own->mutex());
  own->set_current_seed(seed);
}

}  // namespace strata
