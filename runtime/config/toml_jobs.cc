#include "runtime/config/toml_jobs.h"

#include <string>
#include <string_view>
#include <vector>

namespace strata {

void ReadTomlJob(ConfigReader& reader) {
  std::string flavor;
  reader.Read("flavor", flavor);
  constexpr std::string_view kNoPython = "a configuration runs no Python, remove it";
  reader.Fix("job.custom_config_module", "", kNoPython);
  reader.Table("experimental");
  reader.Fix("experimental.custom_import", "", kNoPython);
  reader.Fix("experimental.custom_args_module", "", kNoPython);

  reader.Fix("converters", std::vector<std::string>(),
             "models compute in float32 or bfloat16, take [] and "
             "training.mixed_precision_param");
  // Only converters read these tables.
  if (reader.Has("converters")) {
    for (const std::string_view table : {"float8", "mx", "quantize"})
      reader.IgnoreTable(table);
  }
  reader.Fix("optimizer.early_step_in_backward", false,
             "the optimizer is a graph after the step's, take false");
  reader.Fix("memory_estimation.enable", false,
             "strata memory lists what a step needs without a run, take false");
  reader.IgnoreTable("memory_estimation");
  reader.Fix("fault_tolerance.enable", false,
             "--resume continues a run that was killed, take false");
  reader.IgnoreTable("fault_tolerance");
  reader.Fix("parallelism.enable_compiled_autograd", false,
             "the traced graph has the backward pass, take false");
  reader.Ignore("parallelism.disable_loss_parallel");           // passes place the loss
  reader.Ignore("parallelism.context_parallel_rotate_method");  // no rank has a part of a sequence
}

}  // namespace strata
