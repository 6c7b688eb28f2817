#include "diff/ranks/ranks.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diff/ranks/compare_collectives.h"
#include "diff/ranks/rank_bisect.h"
#include "diff/ranks/rank_form.h"
#include "diff/ranks/rank_rule.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;

TEST_CASE("ranks: rules of values") {
  const auto formula = [](std::vector<int32_t> ranks, std::vector<int64_t> values) {
    const std::optional<RankRule> rule = FindRankRule(ranks, values);
    if (!rule) return std::string("none");
    return rule->text + (rule->exceptions > 0 ? fmt::format(" but {}", rule->exceptions) : "");
  };
  CHECK_EQ(formula({0, 1, 2, 3}, {0, 1, 2, 3}), "rank");
  CHECK_EQ(formula({0, 1, 2, 3}, {0, 32, 64, 96}), "32·rank");
  CHECK_EQ(formula({0, 1, 2, 3}, {5, 6, 7, 8}), "rank + 5");
  CHECK_EQ(formula({0, 1, 2, 3, 4, 5, 6, 7}, {0, 0, 0, 0, 8, 8, 8, 8}), "8·(rank / 4)");
  CHECK_EQ(formula({0, 1, 2, 3, 4, 5, 6, 7}, {0, 8, 0, 8, 0, 8, 0, 8}), "8·(rank % 2)");
  CHECK_EQ(formula({0, 1, 2, 3, 4, 5, 6, 7}, {0, 0, 4, 4, 0, 0, 4, 4}), "4·(rank / 2 % 2)");
  // Two values are always a line: it must begin at 0, or be the end of such a part.
  CHECK_EQ(formula({0, 1}, {0, 16}), "16·rank");
  CHECK_EQ(formula({0, 1}, {16, 32}), "16·rank + 16");
  CHECK_EQ(formula({0, 1}, {1, 2}), "rank + 1");
  CHECK_EQ(formula({0, 1}, {31, 63}), "32·rank + 31");
  CHECK_EQ(formula({0, 1}, {8, 9}), "none");
  CHECK_EQ(formula({0, 1}, {2, 6}), "none");
  CHECK_EQ(formula({0, 1}, {5, 3}), "none");
  CHECK_EQ(formula({0, 1, 2, 3}, {8, 8, 7, 8}), "none");
  CHECK_EQ(formula({0}, {8}), "none");
  // Of a neighbour around an axis.
  CHECK_EQ(formula({0, 1, 2, 3}, {1, 2, 3, 0}), "((rank + 1) % 4)");
  CHECK_EQ(formula({0, 1, 2, 3}, {3, 0, 1, 2}), "((rank - 1) % 4)");
  CHECK_EQ(formula({0, 1, 2, 3}, {12, 16, 4, 8}), "4·((rank + 2) % 4) + 4");
  CHECK_EQ(formula({0, 1}, {8, 0}), "8·((rank + 1) % 2)");
  CHECK_EQ(formula({0, 1}, {2, 1}), "((rank + 1) % 2) + 1");
  CHECK_EQ(formula({0, 1, 2, 3, 4, 5}, {1, 2, 0, 1, 2, 0}), "((rank + 1) % 3)");
  CHECK_EQ(formula({0, 1, 2, 3, 4, 5}, {8, 8, 16, 16, 0, 0}), "8·((rank / 2 + 1) % 3)");
  CHECK_EQ(formula({0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 3, 5, 6, 7, 0}), "((rank + 1) % 8) but 1");
  CHECK_EQ(formula({0, 1, 2, 3}, {1, 0, 1, 0}), "((rank + 1) % 2)");
  CHECK_EQ(formula({0, 1, 2, 3, 4, 5, 6, 7}, {0, 8, 16, 24, 32, 3, 48, 56}), "8·rank but 1");
}

TEST_CASE("ranks: what may differ by rank is not in a form, everything else is") {
  const auto form = [](std::string_view text) { return RankFormOf(ParseBody(text)->graph({0})); };
  const RankForm first = form(R"(
  x = placeholder : f32[8, 8]cuda:0
  s = aten.slice.Tensor(x, 0, 0, 4) : f32[4, 8]cuda:0
  r = _c10d_functional.all_reduce.default(s, "sum", "tp_0") : f32[4, 8]cuda:0
  output(r)
)");
  const RankForm second = form(R"(
  y = placeholder : f32[8, 8]cuda:1
  t = aten.slice.Tensor(y, 0, 4, 8) : f32[4, 8]cuda:1
  u = _c10d_functional.all_reduce.default(t, "sum", "tp_1") : f32[4, 8]cuda:1
  output(u)
)");
  CHECK_EQ(ToString(first.hash), ToString(second.hash));
  CHECK_EQ(first.values, std::vector<int64_t>{0, 4});
  CHECK_EQ(second.values, std::vector<int64_t>{4, 8});
  CHECK_EQ(first.device, 0);
  CHECK_EQ(second.device, 1);
  CHECK_EQ(second.groups, std::vector<std::string>{"tp_1"});
  const auto hash = [&](std::string_view call) {
    return ToString(form(fmt::format(R"(
  x = placeholder
  s = {}
  output(s)
)",
                                     call))
                        .hash);
  };
  CHECK_NE(hash("aten.slice.Tensor(x, 0, 0, 4)"), hash("aten.slice.Tensor(x, 1, 0, 4)"));
  CHECK_NE(hash("aten.view.default(x, [4])"), hash("aten.view.default(x, [5])"));
  CHECK_NE(hash("c10d.all_reduce(x, \"sum\", \"0\")"), hash("c10d.all_reduce(x, \"max\", \"0\")"));
  CHECK_EQ(hash("aten.add.Tensor(x, 4)"), hash("aten.add.Tensor(x, 5)"));
  CHECK_NE(hash("aten.add.Tensor(x, 4.0)"), hash("aten.add.Tensor(x, 5.0)"));
}

TEST_CASE("ranks: arguments may be given by name") {
  const auto form = [](std::string_view call) {
    return RankFormOf(
        ParseBody(fmt::format("  x = placeholder\n  s = {}\n  output(s)\n", call))->graph({0}));
  };
  const auto differ = [&](std::string_view call, std::string_view other) {
    const RankForm one = form(call), two = form(other);
    return std::pair(one.hash == two.hash ? "values" : "forms", two.values);
  };
  using Values = std::vector<int64_t>;
  CHECK_EQ(
      differ("prims.iota.default(4, start=0, step=1)", "prims.iota.default(4, start=4, step=1)"),
      std::pair("values", Values{4}));
  CHECK_EQ(differ("torch.clamp(x, min=0, max=31)", "torch.clamp(x, min=32, max=63)"),
           std::pair("values", Values{32, 63}));
  CHECK_EQ(
      differ("prims.iota.default(4, start=0, step=1)", "prims.iota.default(4, start=0, step=2)")
          .first,
      "forms");
  CHECK_EQ(differ("prims.iota.default(4, start=0)", "prims.iota.default(5, start=0)").first,
           "forms");
}

TEST_CASE("ranks: which part of a split tensor is used follows from the rank") {
  const auto form = [](std::string_view text) { return RankFormOf(ParseBody(text)->graph({0})); };
  const auto chosen = [&](int rank) {
    return form(fmt::format(R"(
  x = placeholder : f32[8, 8]
  c = aten.split.Tensor(x, 4)
  g = _operator.getitem(c, {})
  z = aten.zeros.default([4, 8])
  b = aten.cat.default([{}])
  output(g, b)
)",
                            rank, rank == 0 ? "g, z" : "z, g"));
  };
  CHECK_EQ(ToString(chosen(0).hash), ToString(chosen(1).hash));
  CHECK_EQ(chosen(0).values, std::vector<int64_t>{0, 0});
  CHECK_EQ(chosen(1).values, std::vector<int64_t>{1, 1});
  // Where several parts are used, each has its own meaning.
  const auto both = [&](int first) {
    return form(fmt::format(R"(
  x = placeholder : f32[8, 8]
  c = aten.split.Tensor(x, 4)
  q = _operator.getitem(c, {})
  k = _operator.getitem(c, {})
  m = aten.div.Tensor(q, k)
  output(m)
)",
                            first, 1 - first));
  };
  CHECK_NE(ToString(both(0).hash), ToString(both(1).hash));
}

TEST_CASE("ranks: sites say where the values stand") {
  const auto module = ParseBody(R"(
  x = placeholder
  s = aten.slice.Tensor(x, 0, 2, 4)
  t = runtime.send(s, 3)
  output(t)
)");
  std::vector<std::string> sites;
  for (const RankSite& site : RankSitesOf(module->graph({0})))
    sites.push_back(site.node + " " + site.path + (site.names_a_rank ? " rank" : ""));
  CHECK_EQ(fmt::format("{}", fmt::join(sites, ", ")), "s args[2], s args[3], t args[1] rank");
}

/// Collectives of ranks that each run one graph.
std::string Mismatches(const std::vector<std::string>& bodies) {
  std::vector<RankCollectives> ranks;
  for (size_t i = 0; i < bodies.size(); ++i) {
    const auto module = ParseBody("  x = placeholder : f32[8]\n" + bodies[i] + "  output(x)\n");
    ranks.push_back({static_cast<int32_t>(i), std::make_shared<const std::vector<Collective>>(
                                                  CollectivesOf(module->graph({0})))});
  }
  std::string text = "\n";
  for (const CollectiveMismatch& m : CompareCollectives(ranks)) {
    text += fmt::format("{} {} at {}, ranks {}: {}\n", ToString(m.kind), m.group, m.index,
                        fmt::join(m.ranks, " "), m.what);
  }
  return text;
}

std::string AllReduce(std::string_view name, std::string_view group, std::string_view op = "sum") {
  return fmt::format(
      R"(
  {0} = _c10d_functional.all_reduce.default(x, "{2}", "{1}") : f32[8]
  w{0} = _c10d_functional.wait_tensor.default({0}) : f32[8]
)",
      name, group, op);
}
std::string AllGather(std::string_view name, int size, std::string_view group) {
  return fmt::format(
      R"(
  {0} = _c10d_functional.all_gather_into_tensor.default(x, {1}, "{2}")
  w{0} = _c10d_functional.wait_tensor.default({0})
)",
      name, size, group);
}

TEST_CASE("ranks: groups that differ by stage do not disagree") {
  const std::string first = AllReduce("a", "tp0") + AllReduce("b", "dp");
  const std::string second = AllReduce("a", "tp1") + AllReduce("b", "tp1") + AllReduce("c", "dp");
  CHECK_EQ(Mismatches({first, first, second, second}), "\n");
}

TEST_CASE("ranks: one name for all groups of an axis") {
  // Stages of two ranks each: groups are 0,1 and 2,3.
  const std::string first = AllGather("a", 2, "tp");
  const std::string second = AllGather("a", 2, "tp") + AllReduce("b", "tp", "max");
  CHECK_EQ(Mismatches({first, first, second, second}), "\n");
  // Every second rank: groups are 0,2 and 1,3.
  CHECK_EQ(Mismatches({first, second, first, second}), "\n");
  CHECK_EQ(Mismatches({first, second, second, second}), R"(
missing tp at 1, ranks 0: missing: all_reduce f32[8]
)");
}

TEST_CASE("ranks: a collective that one rank lacks does not shift the others") {
  const std::string all = AllReduce("a", "g") + AllReduce("b", "g", "max") + AllReduce("c", "g");
  const std::string lacking = AllReduce("a", "g") + AllReduce("c", "g");
  CHECK_EQ(Mismatches({all, all, lacking}), R"(
missing g at 1, ranks 2: missing: all_reduce f32[8]
)");
  CHECK_EQ(Mismatches({all, lacking, lacking}), R"(
extra g at 1, ranks 0: missing on the other ranks: all_reduce f32[8]
)");
}

TEST_CASE("ranks: a group that not all of its ranks use") {
  const std::string all = AllReduce("a", "dp");
  // It has four ranks: whoever does not run it is missing.
  CHECK_EQ(Mismatches({all + AllGather("g", 4, "tp"), all + AllGather("g", 4, "tp"),
                       all + AllGather("g", 4, "tp"), all}),
           R"(
missing tp at 0, ranks 3: missing: all_gather_into_tensor f32[8] and whatever else its group runs
)");
  CHECK_EQ(Mismatches({all, all, all, all + AllGather("g", 4, "tp")}), R"(
missing tp at 0, ranks 0 1 2: missing: all_gather_into_tensor f32[8] and whatever else its group runs
)");
  CHECK_EQ(Mismatches({all, all, all, all + AllGather("g", 2, "tp")}), R"(
missing tp at 0, ranks 3: missing on other ranks: all_gather_into_tensor f32[8]: its group has 2 ranks, 1 runs it
)");
  // The name of an axis stands for several groups: 0,1 and 2,3.
  CHECK_EQ(
      Mismatches({AllGather("g", 2, "tp"), AllGather("g", 2, "tp"), AllGather("g", 2, "tp"), all}),
      R"(
missing tp at 0, ranks 3: missing: all_gather_into_tensor f32[8] and whatever else its group runs
)");
  // Two ranks of four were given, each of another group; and two of eight.
  CHECK_EQ(Mismatches({AllGather("g", 2, "tp0"), AllGather("g", 2, "tp1")}), "\n");
  CHECK_EQ(Mismatches({AllGather("g", 8, "g"), all}), "\n");
  // It may be a group of one.
  CHECK_EQ(Mismatches({all, all + AllReduce("b", "alone")}), "\n");
}

TEST_CASE("ranks: a group that lists a rank which does not use it") {
  const auto reduce = [](std::string_view ranks) {
    return fmt::format("  r = c10d_functional.all_reduce.default(x, \"sum\", \"\", [{}], 2)\n",
                       ranks);
  };
  CHECK_EQ(Mismatches({reduce("0, 1"), reduce("0, 1")}), "\n");
  CHECK_EQ(Mismatches({reduce("0, 1"), "", reduce("2, 3")}), R"(
missing [0, 1] at 0, ranks 1: missing: all_reduce f32[8] and whatever else its group runs
)");
}

TEST_CASE("ranks: a name of a group that one rank has for itself") {
  const std::string all = AllReduce("a", "dp") + AllReduce("b", "tp");
  const std::string odd = AllReduce("a", "dp") + AllReduce("b", "pt");
  CHECK_EQ(Mismatches({all, all, odd, all}), R"(
group pt at 0, ranks 2: group: all_reduce f32[8] in 'pt', on the other ranks in 'tp'
)");
  // A group that the others have, too.
  const std::string dp = AllReduce("a", "dp") + AllReduce("b", "dp");
  CHECK_EQ(Mismatches({all, all, dp, all}), R"(
group dp at 0, ranks 2: group: all_reduce f32[8] in 'dp', on the other ranks in 'tp'
)");
  // Two groups of two.
  CHECK_EQ(Mismatches({all, odd, all, odd}), "\n");
}

TEST_CASE("ranks: sends meet receives") {
  const auto send = [](int peer) { return fmt::format("  s{0} = runtime.send(x, {0})\n", peer); };
  const auto receive = [](std::string_view name, int peer) {
    return fmt::format("  {} = runtime.recv(x, {})\n", name, peer);
  };
  CHECK_EQ(Mismatches({send(1), receive("r", 0)}), "\n");
  CHECK_EQ(Mismatches({send(1), ""}), R"(
peer 0 to 1 at 0, ranks 0 1: missing: rank 1 does not receive send f32[8]
)");
  CHECK_EQ(Mismatches({send(1), receive("r", 0) + receive("t", 0)}), R"(
peer 0 to 1 at 1, ranks 0 1: missing: rank 0 does not send recv f32[8]
)");
}

/// A history of texts that are the graph's snapshots.
History HistoryOf(int32_t rank, const std::vector<std::string>& bodies) {
  History history;
  history.rank = rank;
  history.ref = fmt::format("T#rank={}", rank);
  history.graphs = {"g"};
  for (size_t i = 0; i < bodies.size(); ++i) {
    const auto snapshot = static_cast<int32_t>(i);
    history.snapshots.push_back({0, fmt::format("{},snapshot={}", history.ref, i), bodies[i]});
    HistoryStep& step = history.steps.emplace_back();
    step.before = snapshot - 1;
    step.after = snapshot;
    step.pass_index = snapshot - 1;
    if (i > 0) step.pass = fmt::format("p{}", i - 1);
  }
  history.load = [bodies](int32_t snapshot) {
    std::shared_ptr<const Module> module = ParseBody(bodies[static_cast<size_t>(snapshot)]);
    return Result<LoadedGraph>(LoadedGraph{std::move(module), GraphId{0}});
  };
  history.provenance = [](const HistoryStep&) { return std::vector<Provenance>(); };
  return history;
}

std::string Body(std::string_view op, int64_t offset = 0) {
  return fmt::format(
      R"(
  x = placeholder
  a = aten.{}.default(x)
  b = aten.slice.Tensor(a, 0, {}, 64)
  output(b)
)",
      op, offset);
}

TEST_CASE("ranks: many equal ranks are loaded once, classes are told in order") {
  std::vector<History> histories;
  int loads = 0;
  for (int32_t rank = 0; rank < 512; ++rank) {
    const bool odd = rank == 100 || rank == 300;
    histories.push_back(HistoryOf(rank, {Body("sin"), Body(odd ? "tan" : "cos")}));
    auto load = histories.back().load;
    histories.back().load = [load, &loads](int32_t snapshot) {
      ++loads;
      return load(snapshot);
    };
  }
  const RanksReport report = OrDie(CompareRanks(histories));
  REQUIRE_EQ(report.classes.size(), 2);
  CHECK_EQ(report.classes[RankClassId{0}].ranks.size(), 510);
  CHECK_EQ(report.classes[RankClassId{1}].ranks, std::vector<int32_t>{100, 300});
  REQUIRE_EQ(report.differences.size(), 1);
  CHECK_EQ(report.differences[0].pass_index, 0);
  CHECK_EQ(report.differences[0].pass, "p0");
  CHECK_EQ(report.differences[0].node, "a");
  CHECK_EQ(report.differences[0].what, "change aten.cos.default to aten.tan.default");
  CHECK_EQ(report.FirstRanks(), std::vector<int32_t>{100, 300});
  CHECK_LT(loads, 16);
}

TEST_CASE("ranks: equal but for names is equal") {
  const std::string body = Body("sin");
  std::string renamed = body;
  for (size_t at = 0; (at = renamed.find("a = ", at)) != std::string::npos;)
    renamed.replace(at, 1, "q");
  renamed.replace(renamed.find("(a, "), 4, "(q, ");
  const RanksReport report = OrDie(CompareRanks({HistoryOf(0, {body}), HistoryOf(1, {renamed})}));
  CHECK(report.Equal());
  CHECK(report.classes[RankClassId{0}].identical);
}

TEST_CASE("ranks: what is 0 on one rank must be a size on the other") {
  const auto told = [](std::string_view first, std::string_view second) {
    const auto body = [](std::string_view call) {
      return fmt::format(
          R"(
  x = placeholder : f32[8, 6]
  w = placeholder : f32[50, 6]
  a = {} : f32[4, 6]
  output(a)
)",
          call);
    };
    const std::vector<History> ranks = {HistoryOf(0, {body(first)}), HistoryOf(1, {body(second)})};
    const RanksReport report = OrDie(CompareRanks(ranks));
    CHECK_EQ(OrDie(FindRankDivergence(ranks[0], ranks[1])).has_value(), !report.Equal());
    return report.Equal() ? report.constants[0].path + " = " + report.constants[0].formula
                          : report.differences[0].what;
  };
  CHECK_EQ(told("aten.slice.Tensor(x, 0, 0, 9)", "aten.slice.Tensor(x, 0, 4, 9)"),
           "args[2] = 4·rank");
  CHECK_EQ(told("aten.slice.Tensor(x, 0, 0, 9)", "aten.slice.Tensor(x, 0, 3, 9)"),
           "args[2]: 0 on rank 0, 3 on rank 1");
  // Of another node: rows of the table that this rank has; of all: where its part begins.
  CHECK_EQ(told("aten.sub.Tensor(x, 0)", "aten.sub.Tensor(x, 50)"), "args[1] = 50·rank");
  CHECK_EQ(told("aten.as_strided.default(x, [4, 6], [6, 1], 0)",
                "aten.as_strided.default(x, [4, 6], [6, 1], 24)"),
           "args[3] = 24·rank");
  CHECK_EQ(told("aten.eq.Scalar(x, 0)", "aten.eq.Scalar(x, 1)"), "args[1] = rank");
  CHECK_EQ(told("aten.sub.Tensor(x, 1)", "aten.sub.Tensor(x, 2)"), "args[1] = rank + 1");
  CHECK_EQ(told("aten.sub.Tensor(x, 2)", "aten.sub.Tensor(x, 3)"),
           "args[1]: 2 on rank 0, 3 on rank 1");
  CHECK_EQ(told("aten.roll.default(x, [1])", "aten.roll.default(x, [0])"),
           "args[1][0] = ((rank + 1) % 2)");
  CHECK_EQ(told("aten.roll.default(x, [3])", "aten.roll.default(x, [0])"),
           "args[1][0]: 0 on rank 1, 3 on rank 0");
  CHECK_EQ(told("aten.full_like.default(x, 0)", "aten.full_like.default(x, 7)"),
           "args[1]: 0 on rank 0, 7 on rank 1");
}

TEST_CASE("ranks: what differs at a place of shards, and is no integer, is named") {
  const auto told = [](std::string_view first, std::string_view second) {
    const auto history = [](int32_t rank, std::string_view call) {
      return HistoryOf(rank, {fmt::format(
                                 R"(
  x = placeholder : f32[8, 6]
  b = aten.slice.Tensor(x, 0, {}, 6) : f32[4, 6]
  a = {} : f32[4, 6]
  output(a)
)",
                                 4 * rank, call)});
    };
    const std::vector<History> ranks = {history(0, first), history(1, second)};
    const auto divergence = OrDie(FindRankDivergence(ranks[0], ranks[1]));
    REQUIRE(divergence);
    CHECK_EQ(divergence->node(), "a");
    const RanksReport report = OrDie(CompareRanks(ranks));
    CHECK_EQ(report.differences[0].node, "a");
    CHECK_EQ(report.differences[0].what, divergence->what);
    return divergence->what;
  };
  CHECK_EQ(told("aten.add.Tensor(b, 0.5)", "aten.add.Tensor(b, 1.0)"),
           "change args[1] of aten.add.Tensor: 0.5 → 1.0");
  CHECK_EQ(told("aten.add.Tensor(b, 1)", "aten.add.Tensor(b, 1.0)"),
           "change args[1] of aten.add.Tensor: 1 → 1.0");
  CHECK_EQ(told("c10d.all_reduce(b, \"sum\", \"tp_0\")", "c10d.all_reduce(b, \"max\", \"tp_1\")"),
           "change args[1] of c10d.all_reduce: 'sum' → 'max'");
}

TEST_CASE("ranks: constants by rank keep ranks together, others part them") {
  std::vector<History> histories;
  for (int32_t rank = 0; rank < 8; ++rank)
    histories.push_back(HistoryOf(rank, {Body("sin", 8 * rank)}));
  RanksReport report = OrDie(CompareRanks(histories));
  CHECK(report.Equal());
  CHECK(!report.classes[RankClassId{0}].identical);
  REQUIRE_EQ(report.constants.size(), 1);
  CHECK_EQ(report.constants[0].formula, "8·rank");
  histories[5] = HistoryOf(5, {Body("sin", 3)});
  report = OrDie(CompareRanks(histories));
  REQUIRE_EQ(report.classes.size(), 2);
  CHECK_EQ(report.classes[RankClassId{1}].ranks, std::vector<int32_t>{5});
  CHECK_EQ(report.differences[0].node, "b");
  CHECK_EQ(report.differences[0].what, "args[2]: 3 on rank 5, 8·rank on the others");
}

}  // namespace
}  // namespace strata
