#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace strata {

/// Memory for offloaded values, from the system and not from LibTorch's allocator: pages of zeros
/// that take room when they are written first. Freed with the last reference. Null for 0 bytes.
///
/// With `folder` the pages are those of a file in it, which has no name and goes with the memory:
/// the system writes them to the disk and takes their room where memory is short. The disk's room
/// is taken at once, so that a full disk is found here and not when a page is written.
///
/// Throws std::bad_alloc, and std::system_error for a file that cannot be made.
std::shared_ptr<void> AllocateHostMemory(int64_t bytes, const std::string& folder);

}  // namespace strata
