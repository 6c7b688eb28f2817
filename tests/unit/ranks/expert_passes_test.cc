// Which passes cut experts into chunks and overlap them, in what order, and what the exchanges of a
// step are labelled as.

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diff/diff.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "passes/core/chunk_attributes.h"
#include "passes/core/collectives.h"
#include "passes/core/pass_manager.h"
#include "passes/expert/exchange_labels.h"
#include "passes/memory/tags.h"
#include "runtime/train/pipeline/pipeline.h"
#include "runtime/train/programs/trace_programs.h"
#include "tests/support/rank_courses.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::Degree;
using testing::MessageOf;
using testing::OrDie;
using testing::Sets;
using testing::operator+;
constexpr std::string_view kOverlappedQwen = R"(model = "qwen3"
dim = 32
n_layers = 3
n_heads = 4
head_dim = 8
vocab_size = 256
seq_len = 16
batch_size = 2
steps = 1
[moe]
num_experts = 4
top_k = 2
moe_hidden_dim = 16
)";

const Sets kRanks = {Degree("data_parallel_shard", 2), Degree("expert_parallel", 2)};
const Sets kOverlappedLayers = kRanks + Sets{"compile.ep_overlap.enabled=true"};
const Sets kOverlappedExperts =
    kOverlappedLayers + Sets{"compile.ep_overlap.module_fqn=layers.*.moe"};

std::vector<std::string> PassesOf(const Sets& sets, std::string_view text = "dce,canonicalize") {
  std::vector<std::string> names;
  for (const auto& pass : OrDie(TrainingPasses(testing::ConfigOf(kOverlappedQwen, sets), text)))
    names.emplace_back(pass->name());
  return names;
}

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

TEST_CASE("CF-01: chunks come after memory, before buckets, and are put in order last") {
  CHECK_EQ(
      PassesOf(kOverlappedExperts + Sets{"compile.memory_policy=sac_and_offload",
                                         "compile.enable_fsdp_ag_rs_overlap=true",
                                         "compile.enable_fsdp_dense_region_overlap=true"},
               "dce,canonicalize,fuse"),
      std::vector<std::string>{"dce", "canonicalize", "place", "lower", "tag-memory", "tag-offload",
                               "recompute", "offload", "ep-chunk", "isolate-expert-groups", "dce",
                               "reassign-groups", "bucket-transformer-blocks", "ep-overlap",
                               "concretize", "schedule-dense-regions", "fuse"});
}

TEST_CASE("CF-02: ranks of tensor parallelism do not cut a graph") {
  for (const Sets& chunks :
       {Sets{"compile.ep_overlap.chunk_dim=seq", "compile.ep_overlap.module_fqn=layers.*.moe"},
        Sets{"compile.ep_overlap.chunk_dim=batch", "compile.ep_overlap.module_fqn=layers.*"}}) {
    Sets sets = Sets{Degree("tensor_parallel", 2), "compile.ep_overlap.enabled=true"} + chunks;
    const auto message = [&] {
      return MessageOf(ParseTrainConfig(kOverlappedQwen, ConfigFormat::kToml, "c.toml", sets));
    };
    CHECK_NE(message().find("Graph EP chunking does not support tensor_parallel_degree > 1"),
             std::string::npos);
    sets.emplace_back("compile.ep_overlap.strategy=eager");
    CHECK_OK(ParseTrainConfig(kOverlappedQwen, ConfigFormat::kToml, "c.toml", sets));
  }
}

TEST_CASE("CF-03: which settings order chunks, and collectives of parameters around them") {
  struct Case {
    Sets sets;
    bool orders_chunks, keeps_clear;
  };
  const Sets dense = {"compile.enable_fsdp_dense_region_overlap=true"};
  for (const auto& [sets, orders_chunks, keeps_clear] :
       {Case{kOverlappedLayers, true, false}, Case{kOverlappedLayers + dense, true, false},
        Case{kOverlappedExperts, true, false}, Case{kOverlappedExperts + dense, true, true},
        Case{kRanks + dense, false, true},
        Case{kOverlappedExperts + Sets{"compile.ep_overlap.strategy=eager"}, true, false}}) {
    INFO(fmt::format("{}", fmt::join(sets, " ")));
    const std::vector<std::string> names = PassesOf(sets);
    CHECK_EQ(Has(names, "ep-overlap"), orders_chunks);
    CHECK_EQ(Has(names, "schedule-dense-regions"), keeps_clear);
  }
}

TEST_CASE("AN-01: of a layer's exchanges those of tokens and their waits are labelled") {
  for (const Sets& sets : {kOverlappedLayers, kOverlappedExperts}) {
    const TrainConfig config = testing::ConfigOf(kOverlappedQwen, sets + Sets{"batch_size=4"});
    Module module;
    Constants constants;
    REQUIRE_OK(TraceTraining(TrainSpec(config), module, constants));
    PassManager manager;
    for (auto& pass : OrDie(TrainingPasses(config, "dce,canonicalize")))
      manager.Add(std::move(pass));
    OrDie(manager.Run(module));
    REQUIRE_OK(Verify(module));
    const Graph& step = *module.FindGraph(kStepGraph);
    std::map<std::string, int64_t> labels;
    for (const NodeId node : step.nodes()) {
      if (!IsCollective(step, node, CollectiveKind::kAllToAll)) continue;
      const std::string_view label = step.attribute(node, kExchangeAttribute);
      const std::string_view phase = IsBackward(step, node) ? "backward" : "forward";
      ++labels[fmt::format("{} {} chunk {}", phase, label.empty() ? "counts" : label,
                           step.attribute(node, kChunkIdAttribute))];
      const NodeId wait = OnlyWaitOf(step, node);
      REQUIRE(wait.valid());
      CHECK_EQ(step.attribute(wait, kExchangeWaitAttribute), label);
      CHECK_EQ(step.attribute(wait, kExchangeAttribute), "");
    }
    // Counts need no gradient.
    std::map<std::string, int64_t> expected;
    for (const char* chunk : {"0", "1"}) {
      for (const char* exchange : {"forward counts", "forward dispatch", "forward combine",
                                   "backward combine", "backward dispatch"})
        expected[fmt::format("{} chunk {}", exchange, chunk)] = 3;
    }
    CHECK_EQ(labels, expected);
  }
}

/// The copies of nodes that ep-chunk makes: of which node, and the copy.
using Copies = std::set<std::pair<std::string, std::string>>;

Copies CopiesOf(const Graph& step) {
  Copies copies;
  for (const NodeId node : step.nodes())
    if (const std::string_view original = step.attribute(node, kChunkedOriginalAttribute);
        !original.empty())
      copies.emplace(original, step.name(node));
  return copies;
}

/// Those that the diff of two texts names, without elements of tuples: these have no attributes.
Copies ClonesOf(const GraphDiff& diff) {
  Copies clones;
  for (const Relation& relation : diff.relations) {
    if (relation.kind != RelationKind::kClone) continue;
    const EntityId original = relation.before.front();
    if (diff.before[original].element.valid()) continue;
    for (const EntityId copy : relation.after)
      clones.emplace(diff.before.name(original), diff.after.name(copy));
  }
  return clones;
}

TEST_CASE("the diff of two texts names the copies that chunks are") {
  const Sets one_rank = {"compile.ep_overlap.enabled=true"},
             recompute = {"compile.memory_policy=full"};
  for (const Sets& sets : {kOverlappedLayers, kOverlappedExperts, one_rank,
                           kOverlappedLayers + recompute, kOverlappedExperts + recompute,
                           one_rank + Sets{"compile.ep_overlap.num_chunks=4", "batch_size=8"}}) {
    INFO(fmt::format("{}", fmt::join(sets, " ")));
    const TrainConfig config = testing::ConfigOf(kOverlappedQwen, Sets{"batch_size=4"} + sets);
    Module module;
    Constants constants;
    REQUIRE_OK(TraceTraining(TrainSpec(config), module, constants));
    std::string before, after;
    for (auto& pass : OrDie(TrainingPasses(config, "dce,canonicalize"))) {
      const bool is_chunk = pass->name() == "ep-chunk";
      if (is_chunk) before = PrintText(module);
      PassManager manager;
      manager.Add(std::move(pass));
      OrDie(manager.Run(module));
      if (is_chunk) after = PrintText(module);
    }
    const auto old_step = OrDie(ParseText(before)), new_step = OrDie(ParseText(after));
    const GraphDiff diff =
        OrDie(Diff(*old_step->FindGraph(kStepGraph), *new_step->FindGraph(kStepGraph)));
    const Copies copies = CopiesOf(*new_step->FindGraph(kStepGraph)), clones = ClonesOf(diff);
    Copies right;
    std::ranges::set_intersection(copies, clones, std::inserter(right, right.end()));
    REQUIRE_GT(copies.size(), 200);
    CHECK_GE(static_cast<double>(right.size()), 0.99 * static_cast<double>(copies.size()));
    CHECK_GE(static_cast<double>(right.size()), 0.99 * static_cast<double>(clones.size()));
  }
}

}  // namespace
}  // namespace strata
