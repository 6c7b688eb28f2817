#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/files/safetensors.h"

// Any bytes give an error, or tensors that lie inside them, fit their shapes and do not overlap.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto file = strata::SafetensorsFile::Parse(bytes, "fuzz");
  if (!file) return 0;
  size_t total = 0;
  for (const strata::TensorView& tensor : file->tensors()) {
    STRATA_CHECK(file->Find(tensor.name) == &tensor);
    const bool is_inside = tensor.bytes.data() >= bytes.data() &&
                           tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + size;
    STRATA_CHECK(is_inside, "{}", tensor.name);
    size_t expected = strata::ByteSize(tensor.dtype);
    for (const int64_t length : tensor.shape)
      expected *= static_cast<size_t>(length);
    STRATA_CHECK(tensor.bytes.size() == expected, "{}", tensor.name);
    total += tensor.bytes.size();
  }
  STRATA_CHECK(total <= size);
  return 0;
}
