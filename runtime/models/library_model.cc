#include "runtime/models/library_model.h"

#include <dlfcn.h>
#include <map>
#include <mutex>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "include/strata/model.h"
#include "runtime/aten/operator_library.h"
#include "runtime/trace/scope.h"

namespace strata {
namespace {

using MakeModelFn = user::Model* (*)(user::Context&);

/// The functions that make models, by path. Libraries stay loaded: models may outlive every table.
class Libraries {
 public:
  static Libraries& Instance() {
    static Libraries libraries;
    return libraries;
  }

  Status Load(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (makers_.contains(path)) return Ok();
    STRATA_TRY(void* const library, OpenTorchLibrary(path, "model"));
    const auto version = reinterpret_cast<int (*)()>(dlsym(library, "strata_model_interface"));
    const auto make = reinterpret_cast<MakeModelFn>(dlsym(library, "strata_make_model"));
    if (version == nullptr || make == nullptr) {
      return Error("no model in the library: {}: name its class by STRATA_MODEL(…)", path);
    }
    if (version() != user::kModelInterface) {
      return Error(
          "library for another version of Strata: {}: interface {}, not {}; build it with this "
          "version's strata/model.h",
          path, version(), user::kModelInterface);
    }
    makers_.emplace(path, make);
    return Ok();
  }

  MakeModelFn Find(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto found = makers_.find(path);
    STRATA_CHECK(found != makers_.end(), "{} was not loaded", path);
    return found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, MakeModelFn> makers_;
};

class LibraryContext final : public user::Context {
 public:
  LibraryContext(const TrainConfig& config, Weights& weights)
      : sizes_{.vocab_size = config.vocab_size,
               .seq_len = config.seq_len,
               .dim = config.dim,
               .n_layers = config.n_layers,
               .n_heads = config.n_heads,
               .n_kv_heads = config.n_kv_heads,
               .hidden_dim = config.hidden_dim},
        weights_(&weights) {}

  const user::Sizes& sizes() const override { return sizes_; }
  at::Tensor Parameter(std::string_view name, const std::vector<int64_t>& shape,
                       const user::Init& init) override {
    TORCH_CHECK(weights_ != nullptr, "parameter ", name,
                " is asked for after the constructor of the model");
    return weights_->Parameter(
        {.name = std::string(name), .shape = shape, .init = {.mean = init.mean, .std = init.std}});
  }
  void EnterModule(std::string_view name, std::source_location where) override {
    scopes_.push_back(std::make_unique<ModuleScope>(name, where));
  }
  void LeaveModule() override { scopes_.pop_back(); }

  /// The weights live no longer than the constructor of the model.
  void Close() { weights_ = nullptr; }

 private:
  user::Sizes sizes_;
  Weights* weights_;
  std::vector<std::unique_ptr<ModuleScope>> scopes_;
};

class LibraryModel final : public Model {
 public:
  LibraryModel(const TrainConfig& config, Weights& weights)
      : context_(config, weights), model_(Libraries::Instance().Find(config.model_path)(context_)) {
    context_.Close();
  }

  ModelOutput Forward(const ModelInput& input) const override {
    return {.hidden = model_->Hidden(input.tokens, input.positions), .tokens_per_expert = {}};
  }
  at::Tensor Logits(const at::Tensor& hidden) const override { return model_->Logits(hidden); }

 private:
  LibraryContext context_;
  std::unique_ptr<user::Model> model_;
};

}  // namespace

Status LoadModelLibrary(const TrainConfig& config) {
  return config.model == ModelFamily::kLibrary ? Libraries::Instance().Load(config.model_path)
                                               : Ok();
}

std::unique_ptr<Model> MakeLibraryModel(const TrainConfig& config, Weights& weights) {
  return std::make_unique<LibraryModel>(config, weights);
}

}  // namespace strata
