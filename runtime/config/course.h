#pragma once
#include <map>
#include <string>

#include "runtime/config/config.h"

namespace strata {

/// The fields that decide what a training computes, by key, with the values that the run uses:
/// model, optimizer, schedule, loss and precision. Not the number of steps, nor what a DataTrait
/// describes.
std::map<std::string, std::string> CourseFields(const TrainConfig& config);

/// The model that the fields of a run describe; everything else is a default. Errors: fields of
/// another version, or none.
Result<TrainConfig> ModelOfCourse(const std::map<std::string, std::string>& fields);

/// `optimizer.lr is 0.01, was 0.001; rope.theta is …`: how `config` differs from a run with the
/// fields `before`, by key; empty: it does not. A schedule as long as the run may change its length
/// with it.
std::string ChangesSince(const std::map<std::string, std::string>& before,
                         const TrainConfig& config);

}  // namespace strata
