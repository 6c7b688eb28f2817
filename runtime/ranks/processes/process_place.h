#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace strata {

/// Which of the processes of a run this one is. Each process is a rank.
struct ProcessPlace {
  int64_t rank = 0, world = 1;
  int64_t local_world = 1;  ///< processes of the run on this machine
  int64_t local_rank = 0;   ///< among them
  /// Where the store is in which processes find each other.
  std::string address = "127.0.0.1";
  uint16_t port = 0;
  /// The launcher holds the store; otherwise the process of rank 0 does.
  bool launcher_has_store = false;
  std::string attempt = "0";  ///< of a launcher that restarts a run

  /// Reads a variable of the environment; empty if there is none.
  using Variables = std::function<std::string(const std::string& name)>;
  static std::string Environment(const std::string& name);

  /// From what a launcher sets; none: the process is the only one of its run.
  ///
  ///   torchrun  RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT
  ///   mpirun    of Open MPI, OMPI_COMM_WORLD_…
  ///   srun      SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST, SLURM_JOB_ID
  ///
  /// MASTER_ADDR and MASTER_PORT apply to all. Without them, srun's ranks meet on the first machine
  /// of the step and mpirun's, if all are on one machine, there, at a port made from the job's
  /// name. Errors: a variable is missing or not a number.
  static Result<std::optional<ProcessPlace>> FromLauncher(const Variables& variables = Environment);

  /// What CUDA_VISIBLE_DEVICES must be, so that the process sees the GPU of its rank and no other:
  /// then `cuda:0` is its GPU on every rank, and all have the same graphs. A launcher may have
  /// chosen that already. Errors: fewer GPUs are visible than ranks are on this machine.
  Result<std::string> VisibleGpu(const Variables& variables = Environment) const;
};

}  // namespace strata
