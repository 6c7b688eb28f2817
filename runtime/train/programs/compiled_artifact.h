#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/core/Device.h>

#include "base/result.h"
#include "runtime/plan/device/device.h"
#include "runtime/plan/plan.h"
#include "runtime/train/programs/programs.h"
#include "runtime/train/programs/training_graphs.h"

namespace strata {

/// What decides the graphs of a training: names and values, in order. Equal lists, equal graphs.
using ArtifactFields = std::vector<std::pair<std::string, std::string>>;

/// Of a training with the passes `pipeline` on `device`: the program itself (its build ID),
/// LibTorch, the processor's capability, the device and its own, the mesh, parameters, the passes
/// and what is in the files that they name, and the configuration but for what only the loop around
/// the graphs reads. Errors: the program's own file cannot be read.
Result<ArtifactFields> ArtifactFieldsOf(const TrainSpec& spec, std::string_view pipeline,
                                        const PlanOptions& plan, const DeviceTraits& device);

/// The graphs of a training as a file, `FOLDER/graphs.safetensors`, from which other ranks and
/// later runs start: the graphs after the passes as native text, and the constants that they read.
///
/// One maker at a time holds a lock, the others wait for it and load what it wrote. A lock goes
/// with its process. The file appears under its name only when it is complete, and says of what it
/// was made and what its bytes hash to. A file that is of something else, or damaged, is replaced.
/// Where nothing can be written, the graphs are made and not stored. So a training gets the graphs
/// that it would make, or an error of making them.
/// Source: torchtitan graph_trainer `precompile`, whose key is `fx_trace_default`.
class CompiledArtifact {
 public:
  /// `device`: where constants go. `patience`: how long to wait for another maker.
  CompiledArtifact(std::string folder, ArtifactFields fields, c10::Device device,
                   std::chrono::seconds patience)
      : folder_(std::move(folder)),
        fields_(std::move(fields)),
        device_(device),
        patience_(patience) {}

  /// Fills `traced` from the file; else by `make`, and stores it. Errors: those of `make`.
  Status Take(TracedTraining& traced, const std::function<Status()>& make);
  /// Whether `Take` found the graphs.
  bool was_loaded() const { return was_loaded_; }
  /// Why a file that is there was not used, and why nothing was stored.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// The path of the file.
  std::string path() const;

 private:
  bool Load(TracedTraining& traced);
  void Store(const TracedTraining& traced);

  std::string folder_;
  ArtifactFields fields_;
  c10::Device device_;
  std::chrono::seconds patience_;
  bool was_loaded_ = false;
  std::string unusable_;  ///< why the file was not used
  std::vector<std::string> warnings_;
};

}  // namespace strata
