#pragma once
#include "base/result.h"
#include "ir/module.h"
#include "runtime/trace/tracer.h"
#include "runtime/train/programs/programs.h"

namespace strata {

/// Adds the graphs `step` and `optimizer` to `module`, between them `accumulate` when a step has
/// several batches, and last `validate` with `config.validator`. Dynamic sizes of the
/// batch (`config.compile`) are symbols of the step: s0 sequences, s1 tokens of a sequence (with a
/// chunked loss, of a chunk). Graphs are traced for the current target (runtime/trace/scope.h).
///
///   step        inputs: parameters, buffers, rope table or constants if there are such, tokens,
///   labels, positions and label count
///               if there are such
///               outputs: loss, gradients, tokens per expert
///   accumulate  inputs: gradients, tokens per expert, and the same of one more batch
///               outputs: gradients, tokens per expert
///   optimizer   inputs: parameters, gradients, exp_avg, exp_avg_sq, buffers, tokens per expert,
///               step, learning rate, those of parameter groups
///               output: gradient norm
///   validate    inputs: as step, without label count
///               outputs: sum of the losses, number of labels
///
/// Errors: what cannot be traced, parameter groups that do not fit the model.
Status TraceTraining(const TrainSpec& spec, Module& module, Constants& constants);

}  // namespace strata
