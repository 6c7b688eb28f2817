#pragma once
#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/config/reader.h"

namespace strata {

/// Reads torchtitan's keys of pipeline parallelism.
void ReadPipeline(ConfigReader& reader, PipelineConfig& pipeline);

/// Computes stages and microbatches. A batch is split into microbatches of
/// `pipeline_parallel_microbatch_size` sequences, or is one of `num_pp_microbatches` microbatches:
/// `config.batch_size` is that of a microbatch then, and `config.accumulation_steps` and
/// `config.validator.steps` count microbatches. Errors: stages that the layers do not fill,
/// microbatches that the schedule does not take, keys without a pipeline. REQUIRES: the model and
/// the training are complete.
Status CompletePipeline(const ConfigReader& reader, TrainConfig& config);

}  // namespace strata
