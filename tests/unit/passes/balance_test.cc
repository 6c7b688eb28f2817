#include "passes/pipeline/balance.h"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file.h"
#include "ir/module.h"
#include "passes/pipeline/split_stages.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::ParseOrDie;

/// (the longest group, the sum of squares)
std::pair<double, double> CostOf(const std::vector<double>& times,
                                 const std::vector<size_t>& sizes) {
  double longest = 0, squares = 0;
  size_t next = 0;
  for (const size_t size : sizes) {
    double time = 0;
    for (size_t i = 0; i < size; ++i)
      time += times[next++];
    longest = std::max(longest, time);
    squares += time * time;
  }
  CHECK_EQ(next, times.size());
  return {longest, squares};
}

/// All divisions of `left` times into `count` groups, none empty.
std::vector<std::vector<size_t>> AllDivisions(size_t left, size_t count) {
  if (count == 1) return {{left}};
  std::vector<std::vector<size_t>> all;
  for (size_t first = 1; first + count - 1 <= left; ++first) {
    for (std::vector<size_t>& rest : AllDivisions(left - first, count - 1)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

TEST_CASE("times are divided as well as any division does") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> times(1 + random() % 9);
    for (double& time : times)
      time = static_cast<double>(random() % 8);  // sums are exact
    const size_t count = 1 + random() % times.size();
    CAPTURE(times);
    CAPTURE(count);
    std::pair best(1e9, 1e9);
    for (const std::vector<size_t>& sizes : AllDivisions(times.size(), count))
      best = std::min(best, CostOf(times, sizes));
    const std::vector<size_t> sizes = DivideEvenly(times, count);
    CHECK_EQ(sizes.size(), count);
    CHECK_EQ(std::ranges::count(sizes, 0U), 0);
    CHECK(CostOf(times, sizes) == best);
  }
}

/// A large head behind two layers, and the gather of a huge parameter.
constexpr std::string_view kBalanceStep = R"(graph step
  e = placeholder : f32[8, 16][16, 1]cpu {module=tok_embeddings +fqn='tok_embeddings.weight' +input='parameter'}
  p = placeholder : f32[4096, 4096][4096, 1]cpu {module=layers.0 +fqn='layers.0.weight' +input='parameter'}
  n = placeholder : f32[16][1]cpu {module=norm +fqn='norm.weight' +input='parameter'}
  w = placeholder : f32[16, 4096][4096, 1]cpu {module=lm_head +fqn='lm_head.weight' +input='parameter'}
  ids = placeholder : i64[512][1]cpu {+input='batch'}
  x = aten.embedding.default(e, ids) : f32[512, 16][16, 1]cpu {forward module=tok_embeddings}
  g = _c10d_functional.all_gather_into_tensor.default(p, 2, 'fsdp') : f32[8192, 4096][4096, 1]cpu {forward module=layers.0}
  q = _c10d_functional.wait_tensor.default(g) : f32[8192, 4096][4096, 1]cpu ~g {forward module=layers.0}
  s = aten.select.int(q, 0, 0) : f32[4096][1]cpu ~g {forward module=layers.0}
  v = aten.slice.Tensor(s, 0, 0, 16) : f32[16][1]cpu ~g {forward module=layers.0}
  y = aten.add.Tensor(x, v) : f32[512, 16][16, 1]cpu {forward module=layers.0}
  z = aten.relu.default(y) : f32[512, 16][16, 1]cpu {forward module=layers.1}
  m = aten.mul.Tensor(z, n) : f32[512, 16][16, 1]cpu {forward module=norm}
  l = aten.mm.default(m, w) : f32[512, 4096][4096, 1]cpu {forward module=lm_head}
  loss = aten.sum.default(l) : f32[][]cpu {loss module=loss}
  output([loss, None, None, None, None])
)";

TEST_CASE("stages are balanced by modelled times; what runs once in a step takes none") {
  const auto module = ParseOrDie(kBalanceStep);
  const Graph& step = *module->FindGraph("step");
  CHECK_EQ(OrDie(BalancedStages(step, 2, {})).Text(),
           "tok_embeddings,layers.0,layers.1,norm;lm_head");
  CHECK_EQ(OrDie(BalancedStages(step, 5, {})).Text(),
           "tok_embeddings;layers.0;layers.1;norm;lm_head");
  CHECK_EQ(MessageOf(BalancedStages(step, 6, {})), "6 stages of 5 modules: take at most 5 stages");
  CHECK_EQ(MessageOf(BalancedStages(step, 0, {})), "0 stages: a pipeline has at least 1");
}

std::string Profile(const std::vector<std::pair<std::string, int>>& times) {
  std::string rows;
  for (const auto& [module, ns] : times)
    rows +=
        fmt::format(R"({}{{"name": "{}", "time_ns": {}}})", rows.empty() ? "" : ", ", module, ns);
  return fmt::format(
      R"({{"schema": "strata.profile/1", "graph": "step", "steps": 1, "rows": [{}]}})", rows);
}

TEST_CASE("recorded times of modules replace the modelled ones") {
  const auto module = ParseOrDie(kBalanceStep);
  const Graph& step = *module->FindGraph("step");
  const testing::TempDir dir;
  const std::string path = dir / "times.json";
  const auto balance = [&](const std::vector<std::pair<std::string, int>>& times) {
    OrDie(WriteFile(path, Profile(times)));
    return BalancedStages(step, 2, {.topology = "", .times = path});
  };
  // The time of the loss is that of the head, and parts of a layer count for it.
  CHECK_EQ(OrDie(balance({{"tok_embeddings", 10},
                          {"layers.0", 1},
                          {"layers.0.attention", 9},
                          {"layers.1", 10},
                          {"norm", 1},
                          {"lm_head", 4},
                          {"loss", 6}}))
               .Text(),
           "tok_embeddings,layers.0;layers.1,norm,lm_head");
  CHECK_EQ(OrDie(balance({{"tok_embeddings", 30},
                          {"layers.0", 10},
                          {"layers.1", 10},
                          {"norm", 1},
                          {"lm_head", 9}}))
               .Text(),
           "tok_embeddings;layers.0,layers.1,norm,lm_head");
  std::string message = MessageOf(balance({{"tok_embeddings", 30}, {"layers.0", 10}}));
  message.replace(message.find(path), path.size(), "t.json");
  CHECK_EQ(message,
           "no time of module 'layers.1': t.json: record this model on one rank, and write the "
           "file with strata profile 'T#graph=step' --by module --json");
}

Result<Changed> Split(std::string_view text, SplitStages::Options options) {
  const auto module = ParseOrDie(text);
  return SplitStages(std::move(options)).Run(*module);
}

TEST_CASE(
    "the pass balances stages; modules that are named by hand must be the model's, in order") {
  const auto module = ParseOrDie(kBalanceStep);
  SplitStages::Options options;
  options.balance = true;
  CHECK_EQ(OrDie(SplitStages(options).Run(*module)), Changed::kYes);
  const Graph& step = *module->FindGraph("step");
  CHECK_EQ(step.attribute(step.output(), kStageModulesAttribute),
           "tok_embeddings,layers.0,layers.1,norm;lm_head");

  const auto error = [](std::string modules) {
    SplitStages::Options named;
    named.modules = std::move(modules);
    return MessageOf(Split(kBalanceStep, named));
  };
  CHECK_EQ(error("tok_embeddings,layers.0,layers.1;nrom,lm_head"),
           "no module 'nrom': graph step: name modules of the model, did you mean 'norm'");
  CHECK_EQ(error("tok_embeddings,layers.1;layers.0,norm,lm_head"),
           "module 'layers.1' of stage 0 reads what module 'layers.0' of stage 1 computes: graph "
           "step: node z: name modules in the order of the forward pass");
  CHECK_EQ(error("tok_embeddings,layers.0;layers.1,lm_head"),
           "no stage has the module of parameter 'norm.weight': graph step: add it to modules");
}

}  // namespace
}  // namespace strata
