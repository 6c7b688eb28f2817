#include "runtime/exec/step/memory_meter.h"

#include <algorithm>
#include <mutex>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace strata {
namespace {

class Reporter final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*address*/, int64_t bytes, size_t /*allocated*/,
                         size_t /*reserved*/, c10::Device /*device*/) override {
    const std::scoped_lock lock(mutex_);
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }
  bool memoryProfilingEnabled() const override { return true; }

  int64_t peak() const {
    const std::scoped_lock lock(mutex_);
    return peak_;
  }
  int64_t live() const {
    const std::scoped_lock lock(mutex_);
    return live_;
  }

 private:
  mutable std::mutex mutex_;
  int64_t live_ = 0, peak_ = 0;
};

}  // namespace

struct MemoryMeter::State {
  std::shared_ptr<Reporter> reporter = std::make_shared<Reporter>();
  c10::DebugInfoGuard guard{c10::DebugInfoKind::PROFILER_STATE, reporter};
};

MemoryMeter::MemoryMeter() : state_(std::make_unique<State>()) {}
MemoryMeter::~MemoryMeter() = default;

int64_t MemoryMeter::peak_bytes() const {
  return state_->reporter->peak();
}

int64_t MemoryMeter::live_bytes() const {
  return state_->reporter->live();
}

}  // namespace strata
