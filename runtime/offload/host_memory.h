#pragma once
#include <cstdint>
#include <memory>

namespace strata {

/// Memory for offloaded values, from the system and not from LibTorch's allocator: pages of zeros
/// that take room when they are written first. Freed with the last reference. Null for 0 bytes.
/// Throws std::bad_alloc.
std::shared_ptr<void> AllocateHostMemory(int64_t bytes);

}  // namespace strata
