#include <vector>

#include "cli/core/command.h"

namespace strata::cli {

// Each is defined in cli/<folder>/<name>.cc; those that need LibTorch run in a program of their
// own, cli/runtime_main.cc.
Result<Exit> RunAttach(Args args);
Result<Exit> RunBench(Args args);
Result<Exit> RunBisect(Args args);
Result<Exit> RunBlame(Args args);
Result<Exit> RunCheck(Args args);
Result<Exit> RunCompletion(Args args);
Result<Exit> RunDiff(Args args);
Result<Exit> RunExport(Args args);
Result<Exit> RunImport(Args args);
Result<Exit> RunLs(Args args);
Result<Exit> RunMemory(Args args);
Result<Exit> RunSimulate(Args args);
Result<Exit> RunMerge(Args args);
Result<Exit> RunOpt(Args args);
Result<Exit> RunPlace(Args args);
Result<Exit> RunProfile(Args args);
Result<Exit> RunPatch(Args args);
Result<Exit> RunEmit(Args args);
Result<Exit> RunProve(Args args);
Result<Exit> RunRanks(Args args);
Result<Exit> RunReport(Args args);
Result<Exit> RunSchedule(Args args);
Result<Exit> RunShow(Args args);
Result<Exit> ExecCalibrate(Args args);
Result<Exit> ExecCompareValues(Args args);
Result<Exit> ExecRun(Args args);
Result<Exit> ExecTrace(Args args);
Result<Exit> ExecTrain(Args args);
Result<Exit> ExecView(Args args);

std::span<const Command> Commands() {
  static const std::vector<Command> commands = {
      {"import", "read logs of PyTorch into a trace", RunImport},
      {"export", "write logs for tlparse, or graphs as FX text", RunExport},
      {"ls", "list the runs, graphs and passes of a trace", RunLs},
      {"show", "print a graph as text, JSON or for Graphviz", RunShow},
      {"diff", "compare two graphs node by node", RunDiff},
      {"patch", "apply a patch of 'strata diff --patch'", RunPatch},
      {"ranks", "find the ranks of a program that differ, and where", RunRanks},
      {"bisect", "find the first pass at which two runs diverge", RunBisect},
      {"blame", "show the history of a node across passes", RunBlame},
      {"prove", "prove that each pass computes what was there before", RunProve},
      {"emit", "write a graph as a Python or C++ program that runs in PyTorch", RunEmit},
      {"report", "write one HTML file that shows what each pass did", RunReport},
      {"view", "open the desktop viewer: strata view T.strata", ExecView},
      {"opt", "run passes on a graph", RunOpt},
      {"place", "find the placements of a step that cost the least", RunPlace},
      {"trace", "trace a training without weights", ExecTrace},
      {"train", "train a model and record its graphs", ExecTrain},
      {"attach", "stop, step and inspect a running training", RunAttach},
      {"schedule", "print, check and search schedules of pipelines", RunSchedule},
      {"merge", "join traces of several ranks", RunMerge},
      {"run", "execute a recorded graph", ExecRun},
      {"profile", "show the time that each node took", RunProfile},
      {"memory", "show what is in memory at the peak of a graph", RunMemory},
      {"simulate", "estimate the time of a step and what its collectives cost", RunSimulate},
      {"calibrate", "measure what ranks of this machine compute and communicate with",
       ExecCalibrate},
      {"compare-values", "compare the values of two graphs on the same inputs", ExecCompareValues},
      {"check", "verify a trace", RunCheck},
      {"bench", "measure the speed of Strata: strata bench ir", RunBench},
      {"completion", "print a completion script for a shell", RunCompletion},
  };
  return commands;
}

}  // namespace strata::cli
