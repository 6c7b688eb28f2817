#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/json.h"
#include "bench/bench.h"
#include "bench/peers.h"
#include "bench/turns.h"
#include "bench/worker.h"
#include "cli/core/flags.h"
#include "embedded/bench_peers_assets.h"
#include "runtime/aten/threads.h"
#include "runtime/train/programs/attention_program.h"

namespace strata::cli {
namespace {

/// Whole rows, or documents that have half of the causal blocks; no edge is that of a block.
FlexShape WithDocuments(FlexShape shape, bool has_documents) {
  const int64_t first = shape.seq * 17 / 32, second = shape.seq * 12 / 32 - 20;
  shape.documents = {shape.seq};
  if (has_documents) shape.documents = {first, second, shape.seq - first - second};
  return shape;
}

/// Attention as one graph.
class FlexContender final : public Contender {
 public:
  FlexContender(std::string name, FlexShape shape)
      : Contender(std::move(name)), shape_(std::move(shape)) {}

  Result<FirstSteps> Begin() override {
    FirstSteps begun;
    const double wall = Now(CLOCK_MONOTONIC), cpu = Now(CLOCK_PROCESS_CPUTIME_ID);
    STRATA_TRY(program_, AttentionProgram::Make(shape_));
    STRATA_RETURN_IF_ERROR(program_->Run());
    begun.first_wall = (Now(CLOCK_MONOTONIC) - wall) / 1e3;
    begun.first_cpu = (Now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e3;
    begun.losses = {program_->MeanMagnitude()};
    return begun;
  }

  Result<std::vector<StepTime>> Run(int64_t steps) override {
    std::vector<StepTime> times;
    for (int64_t i = 0; i < steps; ++i) {
      const double cpu = Now(CLOCK_PROCESS_CPUTIME_ID), wall = Now(CLOCK_MONOTONIC);
      STRATA_RETURN_IF_ERROR(program_->Run());
      times.push_back(
          {.cpu = Now(CLOCK_PROCESS_CPUTIME_ID) - cpu, .wall = Now(CLOCK_MONOTONIC) - wall});
    }
    return times;
  }

  void End() override { program_.reset(); }

 private:
  FlexShape shape_;
  std::optional<AttentionProgram> program_;
};

/// PyTorch's compiled flex attention, whose CPU kernel has no backward.
Result<std::unique_ptr<PyTorchPeer>> StartFlexPeer(const std::string& python,
                                                   const std::string& name, const FlexShape& shape,
                                                   int threads, const std::string& folder) {
  const std::string script = folder + "/flex_peers.py",
                    file = fmt::format("{}/{}.json", folder, name);
  STRATA_RETURN_IF_ERROR(WriteFile(script, assets::kFlexPeersPy));
  STRATA_RETURN_IF_ERROR(WriteFile(folder + "/train_peers.py", assets::kTrainPeersPy));
  STRATA_RETURN_IF_ERROR(WriteFile(folder + "/peer_models.py", assets::kPeerModelsPy));
  std::string body;
  JsonWriter json(body);
  json.BeginObject()
      .Field("batch", shape.batch)
      .Field("heads", shape.heads)
      .Field("seq", shape.seq)
      .Field("width", shape.width)
      .Field("block", shape.block_size)
      .Field("threads", int32_t{threads})
      .Field("cache", folder + "/inductor")
      .Key("documents")
      .BeginArray();
  for (const int64_t length : shape.documents)
    json.Int(length);
  json.EndArray().EndObject();
  STRATA_RETURN_IF_ERROR(WriteFile(file, body));
  STRATA_TRY(std::unique_ptr<Worker> process,
             Worker::Start(
                 {.words = {python, script, file}, .log = fmt::format("{}/{}.log", folder, name)}));
  return std::make_unique<PyTorchPeer>("compiled, " + name, std::move(process));
}

struct FlexRequest {
  FlexShape shape;
  int64_t rounds = 9;
  int threads = 1;
  std::string python;
};

Status MeasureFlex(const FlexRequest& request) {
  STRATA_TRY(const TemporaryPath folder, TemporaryPath::MakeFolder());
  Contenders all;
  for (const bool has_backward : {false, true}) {
    for (const bool has_documents : {false, true}) {
      FlexShape shape = WithDocuments(request.shape, has_documents);
      shape.has_backward = has_backward;
      all.push_back(std::make_unique<FlexContender>(
          fmt::format("{}, {}", has_documents ? "documents" : "causal",
                      has_backward ? "forward and backward" : "forward"),
          std::move(shape)));
    }
  }
  const size_t num_ours = all.size();
  for (const bool has_documents : {false, true}) {
    if (request.python.empty()) break;
    STRATA_TRY(
        all.emplace_back(),
        StartFlexPeer(request.python, has_documents ? "documents" : "causal",
                      WithDocuments(request.shape, has_documents), request.threads, folder.path()));
  }
  for (const std::unique_ptr<Contender>& one : all) {
    STRATA_TRY(one->first, one->Begin());
  }
  STRATA_RETURN_IF_ERROR(TakeTurns(all, request.rounds, 300.0));
  for (const std::unique_ptr<Contender>& one : all) {
    fmt::print("  {:<34} {:>8.2f} ms   first {:>6.2f} s   mean of |result| {:.7f}\n", one->name,
               Median(one->slices, &StepTime::wall), one->first.first_wall, one->first.losses[0]);
  }
  const auto ratio = [&](size_t a, size_t b) { return RatioOf(*all[a], *all[b], &StepTime::wall); };
  PrintGate("documents / causal, forward", ratio(1, 0), 0.6);
  PrintGate("documents / causal, forward and backward", ratio(3, 2), 0.6);
  for (size_t i = 0; i + num_ours < all.size(); ++i)
    PrintGate(fmt::format("{} / {}", all[i]->name, all[num_ours + i]->name), ratio(i, num_ours + i),
              1.0);
  for (const std::unique_ptr<Contender>& one : all)
    one->End();
  return Ok();
}

}  // namespace

Result<Exit> BenchFlex(Args args) {
  FlexRequest request;
  int64_t threads = 1;
  std::optional<std::string> python;
  Flags flags("bench flex",
              "measures flex attention on the CPU: causal rows, and documents whose blocks are "
              "half of the causal ones, beside what PyTorch's flex attention takes when it is "
              "compiled (forward: its CPU kernel has no backward). All take turns; wall time");
  flags.Option("--heads", "N", &request.shape.heads, "of queries, keys and values (default: 8)", 1);
  flags.Option("--seq", "N", &request.shape.seq, "queries and keys of a row (default: 2048)", 256);
  flags.Option("--width", "N", &request.shape.width, "of a head (default: 64)", 8);
  flags.Option("--rounds", "N", &request.rounds, "turns of each (default: 9)", 1);
  flags.Option("--threads", "N", &threads, "inside operators (default: 1)", 1);
  flags.Option("--python", "PATH", &python, "interpreter with PyTorch; \"\": without PyTorch");
  flags.Example("strata bench flex");
  flags.Example("strata bench flex --threads 2 --seq 4096");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  request.threads = static_cast<int>(threads);
  request.python = python ? *python : FindPeerPython();
  SetThreads(request.threads);
  STRATA_RETURN_IF_ERROR(MeasureFlex(request));
  return Exit::kOk;
}

}  // namespace strata::cli
