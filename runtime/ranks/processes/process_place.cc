#include "runtime/ranks/processes/process_place.h"

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace strata {
namespace {

using Variables = ProcessPlace::Variables;

constexpr const char* kVisibleGpus = "CUDA_VISIBLE_DEVICES";

/// What a launcher calls its variables.
struct Launcher {
  std::string_view name;
  const char *rank, *world, *local_rank, *local_world;
};

constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
};

/// Errors: the value is not a number from `least` to `most`.
Result<int64_t> Number(const Variables& variables, const char* name, int64_t least, int64_t most) {
  const std::string text = variables(name);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || number < least || number > most) {
    return Error("not a number from {} to {}: {}='{}': set what the launcher sets, or unset it",
                 least, most, name, text);
  }
  return number;
}

/// `2` of `2(x3),1`, as Slurm counts tasks of machines; 1 of other texts.
int64_t LeadingNumber(const std::string& text) {
  int64_t number = 1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number < 1 ? 1 : number;
}

/// `node03` of `node[03-05,07],login1`.
std::string FirstHost(const std::string& list) {
  const size_t bracket = list.find('[');
  if (bracket == list.npos || list.find(',') < bracket) return list.substr(0, list.find(','));
  const size_t end = list.find_first_of("-,]", bracket + 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

/// A port that all ranks make from the job's name, outside of those that systems hand out.
uint16_t PortOf(std::string_view job) {
  uint32_t hash = 2166136261;  // FNV-1a
  for (const char c : job)
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return static_cast<uint16_t>(15'000 + hash % 15'000);
}

/// Where the ranks of a launcher meet that does not say it. Empty: it cannot be known.
void FindMeetingPlace(const Launcher& launcher, const Variables& variables, ProcessPlace& place) {
  if (launcher.name == "srun") {
    place.address = FirstHost(variables("SLURM_STEP_NODELIST"));
    place.port = PortOf(variables("SLURM_JOB_ID") + "." + variables("SLURM_STEP_ID"));
  } else if (launcher.name == "mpirun") {
    const std::string job = variables("PMIX_NAMESPACE");
    place.address = place.local_world == place.world ? "127.0.0.1" : "";
    place.port = job.empty() ? 0 : PortOf(job);
  } else {
    place.address.clear();
  }
}

Error Missing(const Launcher& launcher, const char* name) {
  return Error("a variable of the launcher is missing: {}: {} set {}; set it, or unset {}", name,
               launcher.name, launcher.rank, launcher.rank);
}

}  // namespace

std::string ProcessPlace::Environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? value : "";
}

Result<std::optional<ProcessPlace>> ProcessPlace::FromLauncher(const Variables& variables) {
  constexpr int64_t kMostRanks = 1 << 20;
  for (const Launcher& launcher : kLaunchers) {
    if (variables(launcher.rank).empty()) continue;
    if (variables(launcher.world).empty()) {
      // A shell of Slurm's has a rank, and is none of a run.
      if (launcher.name == "srun") continue;
      return Missing(launcher, launcher.world);
    }
    ProcessPlace place;
    STRATA_TRY(place.world, Number(variables, launcher.world, 1, kMostRanks));
    STRATA_TRY(place.rank, Number(variables, launcher.rank, 0, place.world - 1));
    if (place.world == 1) return std::optional<ProcessPlace>();
    place.local_world = LeadingNumber(variables(launcher.local_world));
    if (!variables(launcher.local_rank).empty()) {
      STRATA_TRY(place.local_rank, Number(variables, launcher.local_rank, 0, kMostRanks));
    }
    FindMeetingPlace(launcher, variables, place);
    if (const std::string address = variables("MASTER_ADDR"); !address.empty())
      place.address = address;
    if (place.address.empty()) return Missing(launcher, "MASTER_ADDR");
    if (!variables("MASTER_PORT").empty()) {
      STRATA_TRY(const int64_t port, Number(variables, "MASTER_PORT", 1, 65'535));
      place.port = static_cast<uint16_t>(port);
    }
    if (place.port == 0) return Missing(launcher, "MASTER_PORT");
    place.launcher_has_store = variables("TORCHELASTIC_USE_AGENT_STORE") == "True";
    if (const std::string attempt = variables("TORCHELASTIC_RESTART_COUNT"); !attempt.empty())
      place.attempt = attempt;
    return std::optional(place);
  }
  return std::optional<ProcessPlace>();
}

Result<std::string> ProcessPlace::VisibleGpu(const Variables& variables) const {
  const std::string visible = variables(kVisibleGpus);
  if (visible.empty()) return fmt::format("{}", local_rank);
  std::vector<std::string> gpus;
  std::istringstream list(visible);
  for (std::string gpu; std::getline(list, gpu, ',');)
    gpus.push_back(gpu);
  if (gpus.size() == 1) return gpus[0];
  if (local_rank < std::ssize(gpus)) return gpus[static_cast<size_t>(local_rank)];
  return Error("fewer GPUs than ranks of this machine: {}='{}': rank {} is number {} here",
               kVisibleGpus, visible, rank, local_rank);
}

}  // namespace strata
