#include <string>

#include "base/file.h"
#include "cli/core/command.h"
#include "cli/core/flags.h"
#include "runtime/ranks/measure_topology.h"

namespace strata::cli {

Result<Exit> RunCalibrate(Args args) {
  std::string output = "-";
  Flags flags("calibrate",
              "measures what ranks of this machine compute and communicate with, for --topology of "
              "simulate and place");
  flags.Option("-o,--output", "FILE", &output,
               "where the topology goes (default: standard output)");
  flags.Example("strata calibrate -o here.toml");
  flags.Example("strata simulate 't.strata#graph=step' --topology here.toml");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  STRATA_TRY(const Topology topology, MeasureTopology());
  STRATA_RETURN_IF_ERROR(WriteFile(output, topology.ToToml()));
  return Exit::kOk;
}

}  // namespace strata::cli
