#include "runtime/offload/host_memory.h"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include <doctest/doctest.h>

#include "tests/support/temp_dir.h"

namespace strata {
namespace {

TEST_CASE("host memory: pages of zeros, in memory or in a file without a name") {
  const testing::TempDir folder;
  for (const std::string& where : {std::string(), folder.path()}) {
    constexpr int64_t kBytes = 3 << 20;
    const std::shared_ptr<void> memory = AllocateHostMemory(kBytes, where);
    auto* const bytes = static_cast<char*>(memory.get());
    CHECK_EQ(bytes[0], 0);
    CHECK_EQ(bytes[kBytes - 1], 0);
    bytes[kBytes - 1] = 7;
    CHECK_EQ(bytes[kBytes - 1], 7);
    CHECK(std::filesystem::is_empty(folder.path()));
  }
  CHECK_EQ(AllocateHostMemory(0, folder.path()), nullptr);
}

TEST_CASE("host memory: a folder that cannot have the file is an error") {
  const testing::TempDir folder;
  const std::string missing = folder / "missing";
  CHECK_THROWS_AS(AllocateHostMemory(4096, missing), std::system_error);
}

}  // namespace
}  // namespace strata
