#pragma once
#include "runtime/config/config.h"
#include "runtime/config/reader.h"

namespace strata {

/// Reads the table `compile`. Passes are named by the pipeline of the run; keys of torchtitan's
/// that choose among its passes are accepted with their default, and else refused with what to do
/// instead.
void ReadCompile(ConfigReader& reader, CompileConfig& compile);

/// Errors: `ep_overlap` for a model without experts, or chunks that a pass cannot make. REQUIRES:
/// the configuration is complete.
Status CheckExpertOverlap(const ConfigReader& reader, const TrainConfig& config);

/// Errors: `enable_async_tensor_parallel` without ranks that share layers. REQUIRES: as above.
Status CheckAsyncTensor(const ConfigReader& reader, const TrainConfig& config);

/// Errors: `inductor_compilation = "autoparallel_backend"` without collectives, or beside keys that
/// choose other passes. REQUIRES: as above.
Status CheckOverlapPolicy(const ConfigReader& reader, const TrainConfig& config);

/// Errors: `enable_autoparallel` where nothing is placed, or beside keys that place. REQUIRES: as
/// above.
Status CheckAutoParallel(const ConfigReader& reader, const TrainConfig& config);

}  // namespace strata
