#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/placement/solver/bounds.h"
#include "passes/placement/solver/elimination.h"
#include "passes/placement/solver/linear_program.h"
#include "passes/placement/solver/multipliers.h"
#include "passes/placement/solver/row_price.h"
#include "passes/placement/solver/solver.h"

namespace strata {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A connected graph of `count` variables with up to four choices, with some forbidden pairs and,
/// for odd seeds, a row that the cheapest choices need not satisfy.
PairwiseProblem RandomProblem(uint32_t seed, int count) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  PairwiseProblem problem;
  for (int i = 0; i < count; ++i) {
    problem.variables.emplace_back();
    for (int choice = 1 + below(4); choice > 0; --choice)
      problem.variables.back().push_back(below(20));
  }
  const auto add_edge = [&](int a, int b) {
    PairwiseProblem::Edge edge;
    edge.a = a;
    edge.b = b;
    for (size_t i = 0; i < problem.variables[static_cast<size_t>(a)].size(); ++i)
      edge.class_a.push_back(static_cast<int>(i));
    for (size_t j = 0; j < problem.variables[static_cast<size_t>(b)].size(); ++j)
      edge.class_b.push_back(static_cast<int>(j));
    edge.num_a = static_cast<int>(edge.class_a.size());
    edge.num_b = static_cast<int>(edge.class_b.size());
    for (int i = 0; i < edge.num_a * edge.num_b; ++i)
      edge.costs.push_back(below(12) == 0 ? kInfinity : below(30));
    problem.edges.push_back(std::move(edge));
  };
  for (int i = 1; i < count; ++i)
    add_edge(below(i), i);
  for (int extra = below(count); extra > 0; --extra) {
    const int a = below(count), b = below(count);
    if (a != b) add_edge(a, b);
  }
  if (seed % 2 == 1) {
    PairwiseProblem::Row row{.name = "bytes", .terms = {}};
    for (int i = 0; i < count; i += 2) {
      row.terms.push_back({i, {}});
      for (size_t choice = 0; choice < problem.variables[static_cast<size_t>(i)].size(); ++choice)
        row.terms.back().weights.push_back(below(10));
    }
    row.limit = 2.0 * count;
    problem.rows.push_back(std::move(row));
  }
  return problem;
}

/// The least cost of all choices; none: no choices are allowed.
std::optional<double> BruteForce(const PairwiseProblem& problem) {
  PairwiseProblem::Choices choices(problem.variables.size());
  double least = kInfinity;
  while (true) {
    if (problem.Satisfies(choices)) least = std::min(least, problem.Cost(choices));
    size_t i = 0;
    for (; i < choices.size(); ++i) {
      if (static_cast<size_t>(++choices[i]) < problem.variables[i].size()) break;
      choices[i] = 0;
    }
    if (i == choices.size()) break;
  }
  return std::isinf(least) ? std::nullopt : std::optional(least);
}

void CheckLeast(const PairwiseProblem& problem, const SolverResult& result,
                std::optional<double> least) {
  if (!least) {
    CHECK(result.status == SolverResult::Status::kInfeasible);
    return;
  }
  REQUIRE(result.status == SolverResult::Status::kOptimal);
  CHECK_EQ(result.cost, doctest::Approx(*least));
  CHECK_EQ(result.bound, doctest::Approx(*least).epsilon(1e-4));
  CHECK_EQ(problem.Cost(result.choices), doctest::Approx(*least));
  CHECK(problem.Satisfies(result.choices));
}

TEST_CASE("auto placement: choices are the cheapest of all, on 300 random graphs") {
  int feasible = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    INFO(fmt::format("seed {}", seed));
    const PairwiseProblem problem = RandomProblem(seed, 5 + static_cast<int>(seed % 5));
    const auto least = BruteForce(problem);
    feasible += least ? 1 : 0;
    CheckLeast(problem, Solve(problem, {}), least);
    CheckLeast(problem, Solve(problem, {.use_lp = false}), least);
    if (HasClp()) CheckLeast(problem, SolveByLinearProgram(problem, {}), least);
  }
  CHECK_GT(feasible, 200);
}

TEST_CASE("auto placement: messages bound the cost and rule out no cheaper choices") {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    INFO(fmt::format("seed {}", seed));
    const PairwiseProblem problem = RandomProblem(seed, 5 + static_cast<int>(seed % 5));
    const auto least = BruteForce(problem);
    const Bounds bounds = FindBounds(problem, {});
    if (!least) {
      CHECK(bounds.choices.empty());
      continue;
    }
    CHECK_LE(bounds.bound, *least * (1 + 1e-9));
    CHECK_GE(bounds.cost, *least * (1 - 1e-9));
    if (!bounds.choices.empty()) {
      CHECK(problem.Satisfies(bounds.choices));
      CHECK_EQ(problem.Cost(bounds.choices), doctest::Approx(bounds.cost));
    }
    if (bounds.cost <= *least * (1 + 1e-9)) continue;
    const auto left = BruteForce(Restrict(problem, bounds.IsLeft(kInfiniteCost)).problem);
    REQUIRE(left);
    CHECK_EQ(*left, doctest::Approx(*least));
  }
}

TEST_CASE("auto placement: the price of a row bounds the cost, and proves that none fits") {
  int priced = 0, infeasible = 0;
  for (uint32_t seed = 1; seed < 300; seed += 2) {
    INFO(fmt::format("seed {}", seed));
    PairwiseProblem problem = RandomProblem(seed, 5 + static_cast<int>(seed % 5));
    problem.rows[0].limit *= 0.1 + 0.01 * (seed % 100);
    const auto least = BruteForce(problem);
    PairwiseProblem rowless = problem;
    rowless.rows.clear();
    const SolverResult free = Solve(rowless, {});
    if (free.choices.empty() || problem.Satisfies(free.choices)) continue;
    const auto find_price = [&](double guess) {
      return FindRowPrice(
          problem, free.choices, guess,
          [](const PairwiseProblem& rest, double known) {
            return Solve(rest, {.known_cost = known});
          },
          60, std::make_shared<WorkClock>());
    };
    const RowPrice price = find_price(0);
    CheckLeast(problem, Solve(problem, {}), least);
    CHECK_EQ(price.is_feasible, least.has_value());
    infeasible += least ? 0 : 1;
    if (!least) continue;
    ++priced;
    CHECK_LE(price.bound, *least + 1e-6);
    REQUIRE(!price.choices.empty());
    CHECK(problem.Satisfies(price.choices));
    CHECK_GE(price.cost, *least - 1e-6);
    CHECK_GE(price.bound, free.cost - 1e-6);
    CHECK_GT(price.heavier, problem.rows[0].limit);
    CHECK_LE(price.lighter, problem.rows[0].limit);
    for (const double part : {0.01, 0.7, 1.0, 1.4, 100.0}) {
      INFO(fmt::format("guess {} of the price", part));
      const RowPrice guessed = find_price(part * price.price);
      CHECK_EQ(guessed.bound, doctest::Approx(price.bound));
      REQUIRE(!guessed.choices.empty());
      CHECK(problem.Satisfies(guessed.choices));
      CHECK_GT(guessed.heavier, problem.rows[0].limit);
      CHECK_LE(guessed.lighter, problem.rows[0].limit);
    }
  }
  CHECK_GT(priced, 40);
  CHECK_GT(infeasible, 10);
}

TEST_CASE("auto placement: elimination gives up where its tables would be large") {
  const PairwiseProblem problem = RandomProblem(2, 9);
  CHECK_GT(EliminationEntries(problem), 4);
  CHECK(!SolveByElimination(problem, 4));
}

TEST_CASE("auto placement: when time is up, the best choices and a bound come back") {
  PairwiseProblem problem = RandomProblem(1, 60);
  for (PairwiseProblem::Edge& edge : problem.edges)
    for (double& cost : edge.costs)
      cost = std::min(cost, 50.0);
  for (PairwiseProblem::Row& row : problem.rows)
    row.limit *= 5;  // the search has no time to find choices that just fit
  const SolverResult result = SolveByMultipliers(problem, {.seconds = 0});
  REQUIRE(!result.choices.empty());
  CHECK(problem.Satisfies(result.choices));
  CHECK_EQ(problem.Cost(result.choices), doctest::Approx(result.cost));
  CHECK_LE(result.bound, result.cost * (1 + 1e-9));
}

TEST_CASE("auto placement: a limit ends the search always at the same place") {
  const PairwiseProblem problem = RandomProblem(3, 80);
  int ended = 0;
  for (const bool use_lp : {true, false}) {
    for (double seconds = 1e-6; seconds < 1e-1; seconds *= 2) {
      const SolverOptions first{.seconds = seconds, .use_lp = use_lp},
          second{.seconds = seconds, .use_lp = use_lp};
      const SolverResult a = Solve(problem, first), b = Solve(problem, second);
      ended += a.status == SolverResult::Status::kOptimal ? 0 : 1;
      CHECK_EQ(a.status, b.status);
      CHECK_EQ(a.choices, b.choices);
      CHECK_EQ(a.bound, b.bound);
      CHECK_EQ(first.clock->seconds(), second.clock->seconds());
      CHECK_LE(a.bound, a.choices.empty() ? kInfiniteCost : a.cost * (1 + 1e-9));
    }
  }
  CHECK_GT(ended, 0);
}

}  // namespace
}  // namespace strata
