#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/train/files/checkpoint.h"

namespace strata {

/// A file of a checkpoint, as it was written.
struct ManifestFile {
  std::string name, hash;
  int64_t bytes = 0;
};

/// The content of `checkpoint.json`.
struct Manifest {
  CheckpointInfo info;
  std::vector<ManifestFile> files;
};

/// Of the bytes of a file.
std::string ManifestHash(std::span<const std::byte> bytes);

std::string PrintManifest(const CheckpointInfo& info, std::span<const ManifestFile> files);

/// Errors hold only what is wrong.
Result<Manifest> ParseManifest(const std::string& text);

}  // namespace strata
