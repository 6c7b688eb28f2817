#include "runtime/comm/nccl_loader.h"

#include <dlfcn.h>
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

TEST_CASE("booleans have no average, and types that NCCL does not know have no reductions") {
  void* library = ::dlopen(NcclLibrary::DefaultPath().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    MESSAGE("skipped: ", std::string(::dlerror()));
    return;
  }
  void* const symbol = ::dlsym(library, kNcclApiSymbol);
  REQUIRE(symbol != nullptr);
  const NcclApi* api = reinterpret_cast<NcclApiFunction>(symbol)();
  const auto reduce = [&](DType dtype, NcclReduce how) {
    return std::string(api->all_reduce(nullptr, nullptr, nullptr, 0, dtype, how, nullptr));
  };
  CHECK_EQ(reduce(DType::kBool, NcclReduce::kAverage), "truth values have no average");
  CHECK_EQ(reduce(DType::kC64, NcclReduce::kSum), "NCCL has no such element type");
}

TEST_CASE("the error for a missing NCCL library names it and the package to install") {
  const Result<NcclLibrary> library = NcclLibrary::Load("no/such/libstrata_nccl.so");
  REQUIRE(!library);
  CHECK_EQ(
      library.error().message(),
      "this build has no NCCL: no/such/libstrata_nccl.so: run ./dev setup cuda, then build again");
}

TEST_CASE("a file that is not a library does not load") {
  const Result<NcclLibrary> library = NcclLibrary::Load("CMakeLists.txt");
  REQUIRE(!library);
  CHECK(library.error().message().starts_with("cannot load NCCL: CMakeLists.txt: "));
}

}  // namespace
}  // namespace strata
