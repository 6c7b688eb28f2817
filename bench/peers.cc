#include "bench/peers.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <simdjson.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "embedded/bench_peers_assets.h"
#include "runtime/files/safetensors.h"
#include "runtime/train/data/tokens.h"

extern char** environ;

namespace strata::cli {
namespace {

namespace dom = simdjson::dom;

void Describe(const RopeConfig& rope, JsonWriter& json) {
  const char* const scaling = rope.scaling == RopeScaling::kLlama  ? "llama"
                              : rope.scaling == RopeScaling::kYarn ? "yarn"
                                                                   : "none";
  json.BeginObject()
      .Field("theta", rope.theta)
      .Field("backend", rope.backend == RopeBackend::kComplex ? "complex" : "cos_sin")
      .Field("scaling", scaling)
      .Field("max_seq_len", rope.max_seq_len)
      .Field("scaling_factor", rope.scaling_factor)
      .Field("low_freq_factor", rope.low_freq_factor)
      .Field("high_freq_factor", rope.high_freq_factor)
      .Field("original_max_position_embeddings", rope.original_max_position_embeddings)
      .Field("rope_factor", rope.rope_factor)
      .Field("beta_fast", rope.beta_fast)
      .Field("beta_slow", rope.beta_slow)
      .Field("original_seq_len", rope.original_seq_len)
      .EndObject();
}

void Describe(const MlaConfig& mla, JsonWriter& json) {
  json.BeginObject()
      .Field("q_lora_rank", mla.q_lora_rank)
      .Field("kv_lora_rank", mla.kv_lora_rank)
      .Field("qk_nope_head_dim", mla.qk_nope_head_dim)
      .Field("qk_rope_head_dim", mla.qk_rope_head_dim)
      .Field("v_head_dim", mla.v_head_dim)
      .Field("mscale", mla.mscale)
      .EndObject();
}

void Describe(const MoeConfig& moe, JsonWriter& json) {
  json.BeginObject()
      .Field("num_experts", moe.num_experts)
      .Field("top_k", moe.top_k)
      .Field("moe_hidden_dim", moe.moe_hidden_dim)
      .Field("num_shared_experts", moe.num_shared_experts)
      .Field("score_func", moe.score_func == ScoreFunction::kSoftmax ? "softmax" : "sigmoid")
      .Field("route_norm", moe.route_norm)
      .Field("route_scale", moe.route_scale)
      .Field("num_expert_groups", moe.num_expert_groups)
      .Field("num_limited_groups", moe.num_limited_groups)
      .Field("score_before_experts", moe.score_before_experts)
      .Field("use_grouped_mm", moe.use_grouped_mm)
      .Key("load_balance_coeff");
  moe.load_balance_coeff ? json.Double(*moe.load_balance_coeff) : json.Null();
  json.EndObject();
}

/// The configuration under the names that bench/peers/train_peers.py reads.
void Describe(const TrainConfig& c, JsonWriter& json) {
  json.BeginObject()
      .Field("model", Name(c.model))
      .Field("dim", c.dim)
      .Field("n_layers", c.n_layers)
      .Field("n_dense_layers", c.n_dense_layers)
      .Field("n_heads", c.n_heads)
      .Field("n_kv_heads", c.n_kv_heads)
      .Field("head_dim", c.head_dim)
      .Field("hidden_dim", c.hidden_dim)
      .Field("vocab_size", c.vocab_size)
      .Field("qk_norm", c.qk_norm)
      .Field("enable_weight_tying", c.enable_weight_tying)
      .Field("device", c.device == DeviceKind::kCuda ? "cuda" : "cpu")
      .Field("precision", Name(c.mixed_precision_param))
      .Field("norm_eps", c.norm_eps);
  Describe(c.rope, json.Key("rope"));
  Describe(c.mla, json.Key("mla"));
  json.Key("moe");
  if (c.moe) {
    Describe(*c.moe, json);
  } else {
    json.Null();
  }
  json.Key("optimizer")
      .BeginObject()
      .Field("lr", c.optimizer.lr)
      .Field("beta1", c.optimizer.beta1)
      .Field("beta2", c.optimizer.beta2)
      .Field("eps", c.optimizer.eps)
      .Field("weight_decay", c.optimizer.weight_decay)
      .Field("max_grad_norm", c.optimizer.max_grad_norm.value_or(1e30))
      .EndObject();
  json.EndObject();
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
  dom::parser parser;   // of answers

  ~State() {
    if (connection >= 0) ::close(connection);  // it reads the end of its orders
    while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  Error GaveUp() const {
    const std::string why = LastLineOf(log);
    return Error("PyTorch cannot be measured: {}: {}", python, why.empty() ? "it ended" : why);
  }

  /// The answer is valid until the next call.
  Result<dom::element> Ask(std::string order) {
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
    dom::element answer;
    const auto error = parser.parse(read.data(), end).get(answer);
    read.erase(0, end + 1);
    if (error != simdjson::SUCCESS || !answer.is_object()) return GaveUp();
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
  std::string body;
  JsonWriter json(body);
  Describe(trainer.config(), json.BeginObject().Key("config"));
  json.Field("init", init)
      .Field("peer", peer)
      .Field("threads", int32_t{threads})
      .Field("cache", folder + "/inductor")
      .EndObject();
  STRATA_RETURN_IF_ERROR(WriteFile(request, body));

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
  STRATA_TRY(const dom::element answer, state_->Ask("begin"));
  FirstSteps first{.first_wall = answer["first_wall_s"].get_double().value(),
                   .first_cpu = answer["first_cpu_s"].get_double().value(),
                   .peak_bytes = answer["peak_bytes"].get_int64().value(),
                   .losses = {}};
  const dom::array losses = answer["losses"].get_array().value();
  for (const dom::element loss : losses)
    first.losses.push_back(loss.get_double().value());
  return first;
}

Result<std::vector<StepTime>> PeerProcess::Run(int64_t steps) {
  STRATA_TRY(const dom::element answer, state_->Ask(fmt::format("run {}", steps)));
  std::vector<StepTime> times;
  const dom::array of_steps = answer["times_ms"].get_array().value();
  for (const dom::element time : of_steps)
    times.push_back(
        {.cpu = time.at(0).get_double().value(), .wall = time.at(1).get_double().value()});
  return times;
}

}  // namespace strata::cli
