#include "cli/bench_peers.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "embedded/bench_peers_assets.h"
#include "ir/file.h"
#include "runtime/train/safetensors.h"
#include "runtime/train/tokens.h"

namespace strata::cli {
namespace {

using nlohmann::ordered_json;

/// A folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "strata-bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string File(std::string_view name) const { return fmt::format("{}/{}", path_, name); }
  bool exists() const { return !path_.empty(); }

 private:
  std::string path_;
};

ordered_json Describe(const TrainConfig& c) {
  return {{"dim", c.dim},
          {"n_layers", c.n_layers},
          {"n_heads", c.n_heads},
          {"n_kv_heads", c.n_kv_heads},
          {"head_dim", c.head_dim},
          {"hidden_dim", c.hidden_dim},
          {"vocab_size", c.vocab_size},
          {"norm_eps", c.norm_eps},
          {"seq_len", c.seq_len},
          {"rope",
           {{"theta", c.rope.theta},
            {"scaling_factor", c.rope.scaling_factor},
            {"low_freq_factor", c.rope.low_freq_factor},
            {"high_freq_factor", c.rope.high_freq_factor},
            {"original_max_position_embeddings", c.rope.original_max_position_embeddings}}},
          {"optimizer",
           {{"lr", c.optimizer.lr},
            {"beta1", c.optimizer.beta1},
            {"beta2", c.optimizer.beta2},
            {"eps", c.optimizer.eps},
            {"weight_decay", c.optimizer.weight_decay},
            {"max_grad_norm", c.optimizer.max_grad_norm.value_or(1e30)}}}};
}

Status WriteInit(const Trainer& trainer, int64_t steps, const std::string& path) {
  const TrainConfig& c = trainer.config();
  const TokenData tokens = TokenData::Synthetic(c);
  std::vector<int64_t> all;
  for (int64_t step = 0; step < steps; ++step) {
    const std::vector<int64_t> batch = tokens.Step(step);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  std::vector<TensorView> tensors = trainer.Parameters();
  tensors.push_back({.name = "tokens",
                     .dtype = TensorDtype::kI64,
                     .shape = {steps, c.batch_size, c.seq_len + 1},
                     .bytes = std::as_bytes(std::span(all))});
  return WriteSafetensors(path, std::move(tensors));
}

std::string Quoted(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

StepCost Read(const ordered_json& line) {
  const auto numbers = [&](const char* key) { return line.at(key).get<std::vector<double>>(); };
  return {.name = "PyTorch " + line.at("peer").get<std::string>(),
          .cpu = Median(numbers("cpu_ms")),
          .wall = Median(numbers("wall_ms")),
          .first_step = line.at("first_step_s").get<double>(),
          .first_step_cpu = 0,
          .peak_bytes = line.at("peak_bytes").get<int64_t>(),
          .planned_bytes = 0,
          .losses = numbers("losses")};
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Result<std::vector<StepCost>> MeasurePeers(const std::string& python, const Trainer& trainer,
                                           int threads, int64_t steps,
                                           const std::vector<std::string>& peers) {
  const TemporaryFolder folder;
  if (!folder.exists()) return Error(ErrorCode::kIo, "cannot make a temporary folder");
  const std::string init = folder.File("init.safetensors"), request = folder.File("request.json"),
                    script = folder.File("train_peers.py");
  STRATA_RETURN_IF_ERROR(WriteInit(trainer, 8, init));
  STRATA_RETURN_IF_ERROR(WriteFile(script, assets::kTrainPeersPy));
  const ordered_json body = {{"config", Describe(trainer.config())},
                             {"init", init},
                             {"peers", peers},
                             {"threads", threads},
                             {"steps", steps}};
  STRATA_RETURN_IF_ERROR(WriteFile(request, body.dump()));

  const std::string log = folder.File("log");
  const std::string command =
      fmt::format("TORCHINDUCTOR_CACHE_DIR={} {} {} {} 2>{}", Quoted(folder.File("inductor")),
                  Quoted(python), Quoted(script), Quoted(request), Quoted(log));
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return Error(ErrorCode::kIo, "cannot run {}", python);
  std::string text;
  char buffer[4096];
  while (const size_t count = std::fread(buffer, 1, sizeof(buffer), pipe))
    text.append(buffer, count);
  const int status = ::pclose(pipe);

  std::vector<StepCost> costs;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const ordered_json line =
        ordered_json::parse(text.substr(begin, end - begin), nullptr, /*allow_exceptions=*/false);
    if (line.is_object() && line.contains("peer")) costs.push_back(Read(line));
    begin = end + 1;
  }
  if (status != 0 && costs.empty()) {
    std::string why = "see its messages";
    if (auto messages = ReadFile(log)) {
      while (messages->ends_with('\n'))
        messages->pop_back();
      why = messages->substr(messages->rfind('\n') + 1);
    }
    return Error("PyTorch cannot be measured: {}: {}", python, why);
  }
  return costs;
}

}  // namespace strata::cli
