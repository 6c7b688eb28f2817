#include "runtime/plan/device/cuda_loader.h"

#include <string>

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("a GPU opens, or one line says which part is missing") {
  const auto device = OpenCuda({});
  if (device) {
    CHECK((*device)->traits().is_gpu);
    CHECK((*device)->traits().capability >= 7.5);
    return;
  }
  const std::string& message = device.error().message();
  INFO(message);
  CHECK_EQ(device.error().code(), ErrorCode::kUnsupported);
  CHECK((message.starts_with("this build has no CUDA: ") ||
         message.starts_with("cannot load CUDA: ") || message.starts_with("no GPU can be used: ")));
  CHECK_EQ(message.find('\n'), std::string::npos);
}

TEST_CASE("a missing library is named, with what to install") {
  const auto device = OpenCuda({}, "no/such/libstrata_cuda.so");
  REQUIRE(!device);
  CHECK_EQ(
      device.error().message(),
      "this build has no CUDA: no/such/libstrata_cuda.so: run ./dev setup cuda, then build again");
}

TEST_CASE("a file that is no library does not load") {
  const auto device = OpenCuda({}, "CMakeLists.txt");
  REQUIRE(!device);
  CHECK(device.error().message().starts_with("cannot load CUDA: CMakeLists.txt: "));
}

}  // namespace
}  // namespace strata
