#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "tests/support/graphs.h"

namespace strata::prove {

/// A placed graph and what `lower` makes of it.
struct Lowered {
  std::unique_ptr<Module> placed, lowered;

  explicit Lowered(std::unique_ptr<Module> module)
      : placed(std::move(module)), lowered(placed->Clone()) {
    testing::OrDie(LowerPlacements().Run(*lowered));
  }
  /// A body in native text, placed on `mesh`.
  Lowered(std::string mesh, std::string_view body, std::string plan = "")
      : Lowered(Placed(std::move(mesh), body, std::move(plan))) {}

  const Graph& before() const { return *placed->FindGraph("g"); }
  Graph& after() const { return *lowered->FindGraph("g"); }

 private:
  static std::unique_ptr<Module> Placed(std::string mesh, std::string_view body, std::string plan) {
    auto module = testing::ParseBody(body);
    testing::OrDie(Place({.mesh = std::move(mesh), .plan = std::move(plan)}).Run(*module));
    return module;
  }
};

}  // namespace strata::prove
