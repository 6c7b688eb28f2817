#pragma once
#include <string>

#include <doctest/doctest.h>

#include "base/result.h"

namespace strata::testing {

/// The whole message of a failure; empty for a success.
template <class T>
std::string MessageOf(const Result<T>& result) {
  return result ? std::string() : result.error().message();
}

}  // namespace strata::testing

/// Success, or a failed check that shows the message.
#define CHECK_OK(...) CHECK_EQ(::strata::testing::MessageOf(__VA_ARGS__), "")
#define REQUIRE_OK(...) REQUIRE_EQ(::strata::testing::MessageOf(__VA_ARGS__), "")
