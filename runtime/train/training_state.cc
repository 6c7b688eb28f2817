#include "runtime/train/training_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>

#include <fmt/format.h>

#include "base/text.h"
#include "runtime/aten/parallel.h"
#include "runtime/config/parameters.h"
#include "runtime/files/tensor_io.h"
#include "runtime/train/programs/joint_program.h"

namespace strata {
namespace {

using at::Tensor;

constexpr std::string_view kExpAvg = "state.{}.exp_avg";
constexpr std::string_view kExpAvgSq = "state.{}.exp_avg_sq";
constexpr const char* kStepName = "state.step";

// Elements that are drawn together: as few as keep all threads busy, since their floats are held
// beside what they are converted to.
constexpr int64_t kDrawnTogether = int64_t{1} << 22;

std::span<float> ValuesOf(const Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

/// Draws the values of all tensors as one range, so that threads share small ones, too.
void Draw(std::span<const ParameterSpec> specs, uint64_t seed, std::span<const Tensor> tensors) {
  std::vector<int64_t> ends;  // in the elements of all
  int64_t count = 0;
  for (const Tensor& tensor : tensors)
    ends.push_back(count += tensor.numel());
  ParallelFor(count, 16384, [&](int64_t begin, int64_t end) {
    auto i = static_cast<size_t>(std::ranges::upper_bound(ends, begin) - ends.begin());
    for (; begin < end; ++i) {
      const int64_t first = begin - (ends[i] - tensors[i].numel());
      const int64_t size = std::min(end, ends[i]) - begin;
      InitializeParameter(
          specs[i], seed,
          ValuesOf(tensors[i]).subspan(static_cast<size_t>(first), static_cast<size_t>(size)),
          first);
      begin += size;
    }
  });
}

std::vector<Tensor> InitialValues(std::span<const ParameterSpec> specs, const TrainConfig& config,
                                  const std::optional<InitialWeights>& given, c10::Device device) {
  std::vector<Tensor> values;
  while (values.size() < specs.size()) {
    const auto rest = specs.subspan(values.size());
    std::vector<Tensor> tensors;
    for (int64_t elements = 0; tensors.size() < rest.size() && elements < kDrawnTogether;) {
      tensors.push_back(at::empty(rest[tensors.size()].shape, at::kFloat));
      elements += tensors.back().numel();
    }
    if (!given) Draw(rest.first(tensors.size()), config.seed, tensors);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (given) given->Read(rest[i], ValuesOf(tensors[i]));
      values.push_back(tensors[i].to(ParameterType(config)).to(device));
    }
  }
  return values;
}

TensorView ViewOf(std::string name, const Tensor& tensor) {
  return {.name = std::move(name),
          .dtype = *StoredType(tensor.scalar_type()),
          .shape = tensor.sizes().vec(),
          .bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

Error Misfit(const TensorFiles& files, std::string_view what) {
  return Error("tensors do not fit the model: {}: {}; resume with the configuration of the run",
               files.path(), what);
}

/// Overwrites a tensor with the stored one of the same name.
Status ReadInto(const TensorFiles& files, const TensorView& target, Tensor& tensor) {
  const TensorView* stored = files.Find(target.name);
  if (stored == nullptr) return Misfit(files, fmt::format("{} is missing", target.name));
  if (stored->shape != target.shape || stored->dtype != target.dtype) {
    return Misfit(files, fmt::format("{} is {}, not {}", target.name,
                                     DescribeType(stored->dtype, stored->shape),
                                     DescribeType(target.dtype, target.shape)));
  }
  const Tensor host = tensor.is_cpu() ? tensor : at::empty(tensor.sizes(), tensor.scalar_type());
  std::memcpy(host.mutable_data_ptr(), stored->bytes.data(), stored->bytes.size());
  if (!host.is_same(tensor)) tensor.copy_(host);
  return Ok();
}

/// Rejects tensors of other models: one with fewer layers would take a part of them.
Status CheckNoOthers(const TensorFiles& files, const std::vector<TensorView>& views) {
  for (const TensorView* stored : files.tensors()) {
    if (std::ranges::find(views, stored->name, &TensorView::name) == views.end())
      return Misfit(files, fmt::format("the model has no {}", OneLine(stored->name)));
  }
  return Ok();
}

Status ReadAll(const TensorFiles& files, const std::vector<TensorView>& targets,
               std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i)
    STRATA_RETURN_IF_ERROR(ReadInto(files, targets[i], tensors[i]));
  return Ok();
}

}  // namespace

TrainingState::TrainingState(const TrainSpec& spec, const std::optional<InitialWeights>& given,
                             c10::Device device)
    : specs_(spec.model), has_rope_table_(HasRopeTable(spec.config)) {
  const TrainConfig& config = spec.config;
  parameters = InitialValues(specs_.parameters, config, given, device);
  buffers = InitialValues(specs_.buffers, config, given, device);
  optimizer = InitialState(config, parameters);
  rope_table = RopeTable(config);
  if (spec.program && given) {
    constant_specs_ = spec.program->constants();
    constants = spec.program->Constants(*given);
  }
  MoveTo(device);
}

std::vector<Tensor*> TrainingState::Tensors() {
  std::vector<Tensor*> tensors;
  const auto add = [&](std::vector<Tensor>& group) {
    for (Tensor& tensor : group)
      tensors.push_back(&tensor);
  };
  add(parameters);
  add(buffers);
  if (has_rope_table_) tensors.push_back(&rope_table);
  add(constants);
  add(optimizer.exp_avg);
  add(optimizer.exp_avg_sq);
  tensors.push_back(&optimizer.step);
  tensors.push_back(&optimizer.lr);
  add(optimizer.group_lr);
  return tensors;
}

void TrainingState::MoveTo(c10::Device device) {
  for (Tensor* tensor : Tensors())
    if (tensor->defined()) *tensor = tensor->to(device);
}

TensorView TrainingState::ViewOnHost(std::string name, const Tensor& tensor) const {
  if (tensor.is_cpu()) return ViewOf(std::move(name), tensor);
  host_copies_.push_back(tensor.cpu());
  return ViewOf(std::move(name), host_copies_.back());
}

std::vector<TensorView> TrainingState::Views(std::span<const ParameterSpec> specs,
                                             std::span<const Tensor> tensors,
                                             std::string_view format) const {
  std::vector<TensorView> views;
  for (size_t i = 0; i < tensors.size(); ++i)
    views.push_back(ViewOnHost(fmt::format(fmt::runtime(format), specs[i].name), tensors[i]));
  return views;
}

/// As files have them: of a complex tensor real and imaginary parts.
std::vector<Tensor> TrainingState::StoredConstants() const {
  std::vector<Tensor> stored = constants;
  for (Tensor& tensor : stored)
    if (tensor.is_complex()) tensor = at::view_as_real(tensor);
  return stored;
}

std::vector<TensorView> TrainingState::ModelViews() const {
  std::vector<TensorView> views = Views(specs_.parameters, parameters, "{}");
  for (TensorView& buffer : Views(specs_.buffers, buffers, "{}"))
    views.push_back(std::move(buffer));
  for (TensorView& constant : Views(constant_specs_, StoredConstants(), "{}"))
    views.push_back(std::move(constant));
  return views;
}

std::vector<TensorView> TrainingState::OptimizerViews() const {
  std::vector<TensorView> views = Views(specs_.parameters, optimizer.exp_avg, kExpAvg);
  for (TensorView& view : Views(specs_.parameters, optimizer.exp_avg_sq, kExpAvgSq))
    views.push_back(std::move(view));
  views.push_back(ViewOnHost(kStepName, optimizer.step));
  return views;
}

std::vector<TensorView> TrainingState::ViewsByParameter(std::span<const Tensor> tensors) const {
  return Views(specs_.parameters, tensors, "{}");
}

Status TrainingState::Restore(const Checkpoint& checkpoint,
                              const CheckpointConfig::Exclude& exclude) {
  if (!checkpoint.optimizer || checkpoint.info.is_hugging_face) {
    return Error(
        "checkpoint of the model alone: {}: it holds no optimizer state; start from it with --init",
        checkpoint.model.path());
  }
  STRATA_RETURN_IF_ERROR(CheckNoOthers(checkpoint.model, ModelViews()));
  const std::vector<ParameterSpec>& specs = specs_.parameters;
  STRATA_RETURN_IF_ERROR(ReadAll(checkpoint.model, Views(specs, parameters, "{}"), parameters));
  STRATA_RETURN_IF_ERROR(ReadAll(checkpoint.model, Views(specs_.buffers, buffers, "{}"), buffers));
  std::vector<Tensor> stored_constants = StoredConstants();
  STRATA_RETURN_IF_ERROR(
      ReadAll(checkpoint.model, Views(constant_specs_, stored_constants, "{}"), stored_constants));
  if (exclude.optimizer) return Ok();
  const TensorFiles& stored = *checkpoint.optimizer;
  STRATA_RETURN_IF_ERROR(
      ReadAll(stored, Views(specs, optimizer.exp_avg, kExpAvg), optimizer.exp_avg));
  STRATA_RETURN_IF_ERROR(
      ReadAll(stored, Views(specs, optimizer.exp_avg_sq, kExpAvgSq), optimizer.exp_avg_sq));
  return ReadInto(stored, ViewOnHost(kStepName, optimizer.step), optimizer.step);
}

FutureState MakeBeside(const TrainSpec& spec, std::optional<InitialWeights> given,
                       c10::Device device, int threads) {
  if (threads == 1) return Ready(TrainingState(spec, given, device));
  return std::async(std::launch::async,
                    [&spec, given = std::move(given), device] {
                      return std::make_shared<TrainingState>(spec, given, device);
                    })
      .share();
}

FutureState Ready(TrainingState state) {
  std::promise<std::shared_ptr<TrainingState>> made;
  made.set_value(std::make_shared<TrainingState>(std::move(state)));
  return made.get_future().share();
}

}  // namespace strata
