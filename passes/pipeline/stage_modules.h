#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace strata {

/// Which modules each stage of a pipeline has.
class StageModules {
 public:
  /// Modules of a decoder with `num_layers` layers, in the order of the forward pass: embedding,
  /// layers, norm and head. The embedding counts as `first_less` layers, norm and head as
  /// `last_less`. Stages get equally many, the first ones one more where the number is not divided.
  /// Errors: more stages than layers; a first or last stage without room for its modules.
  /// Source: torchtitan's generate_llm_fqn_per_model_part.
  static Result<StageModules> Split(int64_t num_layers, int64_t num_stages, int64_t first_less = 1,
                                    int64_t last_less = 1);
  /// Errors: a stage without modules, a module that is named twice.
  static Result<StageModules> Of(std::vector<std::vector<std::string>> modules);
  /// `tok_embeddings,layers.0;layers.1,norm,lm_head`. Errors: those of `Of`.
  static Result<StageModules> Parse(std::string_view text);
  /// The modules of a decoder in the order of the forward pass.
  static std::vector<std::string> Decoder(int64_t num_layers);
  std::string Text() const;

  int64_t size() const { return static_cast<int64_t>(modules_.size()); }
  const std::vector<std::string>& of(int64_t stage) const {
    return modules_[static_cast<size_t>(stage)];
  }
  /// The stage of a module: of the listed module that it is, or is inside of. -1: none is.
  int64_t StageOf(std::string_view module) const;

 private:
  std::vector<std::vector<std::string>> modules_;
};

/// Number of layers of the model whose step `graph` is: one more than the largest number N of a
/// module `layers.N`.
int64_t CountLayers(const Graph& graph);

}  // namespace strata
