#include "bench/peers.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "embedded/bench_peers_assets.h"
#include "runtime/files/safetensors.h"
#include "runtime/train/data/tokens.h"

extern char** environ;

namespace strata::cli {
namespace {

using nlohmann::ordered_json;

ordered_json Describe(const RopeConfig& rope) {
  const char* const scaling = rope.scaling == RopeScaling::kLlama  ? "llama"
                              : rope.scaling == RopeScaling::kYarn ? "yarn"
                                                                   : "none";
  return {{"theta", rope.theta},
          {"backend", rope.backend == RopeBackend::kComplex ? "complex" : "cos_sin"},
          {"scaling", scaling},
          {"max_seq_len", rope.max_seq_len},
          {"scaling_factor", rope.scaling_factor},
          {"low_freq_factor", rope.low_freq_factor},
          {"high_freq_factor", rope.high_freq_factor},
          {"original_max_position_embeddings", rope.original_max_position_embeddings},
          {"rope_factor", rope.rope_factor},
          {"beta_fast", rope.beta_fast},
          {"beta_slow", rope.beta_slow},
          {"original_seq_len", rope.original_seq_len}};
}

ordered_json Describe(const MlaConfig& mla) {
  return {{"q_lora_rank", mla.q_lora_rank},
          {"kv_lora_rank", mla.kv_lora_rank},
          {"qk_nope_head_dim", mla.qk_nope_head_dim},
          {"qk_rope_head_dim", mla.qk_rope_head_dim},
          {"v_head_dim", mla.v_head_dim},
          {"mscale", mla.mscale}};
}

ordered_json Describe(const std::optional<MoeConfig>& moe) {
  if (!moe) return nullptr;
  ordered_json described = {
      {"num_experts", moe->num_experts},
      {"top_k", moe->top_k},
      {"moe_hidden_dim", moe->moe_hidden_dim},
      {"num_shared_experts", moe->num_shared_experts},
      {"score_func", moe->score_func == ScoreFunction::kSoftmax ? "softmax" : "sigmoid"},
      {"route_norm", moe->route_norm},
      {"route_scale", moe->route_scale},
      {"num_expert_groups", moe->num_expert_groups},
      {"num_limited_groups", moe->num_limited_groups},
      {"score_before_experts", moe->score_before_experts},
      {"use_grouped_mm", moe->use_grouped_mm},
      {"load_balance_coeff", nullptr}};
  if (moe->load_balance_coeff) described["load_balance_coeff"] = *moe->load_balance_coeff;
  return described;
}

/// What bench/peers/train_peers.py calls a configuration.
ordered_json Describe(const TrainConfig& c) {
  return {{"model", Name(c.model)},
          {"dim", c.dim},
          {"n_layers", c.n_layers},
          {"n_dense_layers", c.n_dense_layers},
          {"n_heads", c.n_heads},
          {"n_kv_heads", c.n_kv_heads},
          {"head_dim", c.head_dim},
          {"hidden_dim", c.hidden_dim},
          {"vocab_size", c.vocab_size},
          {"qk_norm", c.qk_norm},
          {"enable_weight_tying", c.enable_weight_tying},
          {"device", c.device == DeviceKind::kCuda ? "cuda" : "cpu"},
          {"precision", Name(c.mixed_precision_param)},
          {"norm_eps", c.norm_eps},
          {"rope", Describe(c.rope)},
          {"mla", Describe(c.mla)},
          {"moe", Describe(c.moe)},
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

std::string LastLineOf(const std::string& path) {
  auto text = ReadFile(path);
  if (!text) return "";
  while (text->ends_with('\n'))
    text->pop_back();
  return text->substr(text->rfind('\n') + 1);
}

}  // namespace

struct PeerProcess::State {
  std::string python, log;
  pid_t child = -1;
  int connection = -1;  // the child's stdin and stdout
  std::string read;     // what came beyond the last line

  ~State() {
    if (connection >= 0) ::close(connection);  // it reads the end of its orders
    while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  Error GaveUp() const {
    const std::string why = LastLineOf(log);
    return Error("PyTorch cannot be measured: {}: {}", python, why.empty() ? "it ended" : why);
  }

  Result<ordered_json> Ask(std::string order) {
    order += '\n';
    if (::send(connection, order.data(), order.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(order.size())) {
      return GaveUp();
    }
    size_t end = std::string::npos;
    while ((end = read.find('\n')) == std::string::npos) {
      std::array<char, 4096> buffer{};
      const ssize_t count = ::recv(connection, buffer.data(), buffer.size(), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return GaveUp();
      read.append(buffer.data(), static_cast<size_t>(count));
    }
    ordered_json answer =
        ordered_json::parse(read.substr(0, end), nullptr, /*allow_exceptions=*/false);
    read.erase(0, end + 1);
    if (!answer.is_object()) return GaveUp();
    return answer;
  }
};

PeerProcess::PeerProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
PeerProcess::~PeerProcess() = default;

Result<std::unique_ptr<PeerProcess>> PeerProcess::Start(const std::string& python,
                                                        const std::string& peer,
                                                        const Trainer& trainer, int threads,
                                                        const std::string& folder) {
  const std::string init = folder + "/init.safetensors", request = folder + "/" + peer + ".json",
                    script = folder + "/train_peers.py";
  if (!std::filesystem::exists(init)) STRATA_RETURN_IF_ERROR(WriteInit(trainer, 8, init));
  STRATA_RETURN_IF_ERROR(WriteFile(script, assets::kTrainPeersPy));
  STRATA_RETURN_IF_ERROR(WriteFile(folder + "/peer_models.py", assets::kPeerModelsPy));
  const ordered_json body = {{"config", Describe(trainer.config())},
                             {"init", init},
                             {"peer", peer},
                             {"threads", threads},
                             {"cache", folder + "/inductor"}};
  STRATA_RETURN_IF_ERROR(WriteFile(request, body.dump()));

  auto state = std::make_unique<State>();
  state->python = python;
  state->log = folder + "/" + peer + ".log";
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error(ErrorCode::kIo, "cannot make a socket pair");
  }
  state->connection = ends[0];
  std::vector<std::string> words{python, script, request};
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, state->log.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  const int failure =
      ::posix_spawnp(&state->child, python.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failure != 0) {
    state->child = -1;
    return Error(ErrorCode::kIo, "cannot run {}", python);
  }
  return std::unique_ptr<PeerProcess>(new PeerProcess(std::move(state)));
}

Result<FirstSteps> PeerProcess::Begin() {
  STRATA_TRY(const ordered_json answer, state_->Ask("begin"));
  return FirstSteps{.first_wall = answer.at("first_wall_s").get<double>(),
                    .first_cpu = answer.at("first_cpu_s").get<double>(),
                    .peak_bytes = answer.at("peak_bytes").get<int64_t>(),
                    .losses = answer.at("losses").get<std::vector<double>>()};
}

Result<std::vector<StepTime>> PeerProcess::Run(int64_t steps) {
  STRATA_TRY(const ordered_json answer, state_->Ask(fmt::format("run {}", steps)));
  std::vector<StepTime> times;
  for (const ordered_json& time : answer.at("times_ms"))
    times.push_back({.cpu = time.at(0).get<double>(), .wall = time.at(1).get<double>()});
  return times;
}

}  // namespace strata::cli
