#include "runtime/comm/nccl_loader.h"

#include <string>

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("NCCL loads with a version and a GPU, or says which part is missing") {
  const Result<NcclLibrary> library = NcclLibrary::Load();
  if (library) {
    CHECK(library->version().starts_with("2."));
    CHECK(library->device_count() >= 1);
    return;
  }
  const std::string& message = library.error().message();
  INFO(message);
  CHECK_EQ(library.error().code(), ErrorCode::kUnsupported);
  CHECK((message.starts_with("this build has no NCCL: ") ||
         message.starts_with("cannot load NCCL: ") || message.starts_with("NCCL 2.")));
  CHECK_EQ(message.find('\n'), std::string::npos);
}

TEST_CASE("a missing NCCL library is named, with what to install") {
  const Result<NcclLibrary> library = NcclLibrary::Load("no/such/libstrata_nccl.so");
  REQUIRE(!library);
  CHECK_EQ(
      library.error().message(),
      "this build has no NCCL: no/such/libstrata_nccl.so: run ./dev setup cuda, then build again");
}

TEST_CASE("a file that is no library does not load") {
  const Result<NcclLibrary> library = NcclLibrary::Load("CMakeLists.txt");
  REQUIRE(!library);
  CHECK(library.error().message().starts_with("cannot load NCCL: CMakeLists.txt: "));
}

}  // namespace
}  // namespace strata
