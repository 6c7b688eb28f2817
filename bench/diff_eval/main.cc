// Evaluates the differ; README.md explains the measurements.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "bench/diff_eval/experiments/grouping.h"
#include "bench/diff_eval/experiments/pairs.h"
#include "bench/diff_eval/experiments/passes.h"
#include "bench/diff_eval/experiments/synthetic.h"

namespace {

constexpr std::string_view kUsage =
    "usage: diff_eval pairs DIR [--baselines] [--verbose]\n"
    "       diff_eval passes TRACE… [--verbose]\n"
    "       diff_eval synthetic GRAPH… [--seeds FIRST COUNT] [--rates LIST] [--all-kinds] "
    "[--only KIND] [--baselines] [--verbose] [--dump DIR]\n"
    "       diff_eval grouping [--seeds FIRST COUNT] [--verbose]\n"
    "\n"
    "GRAPH is FX text, or a folder of it; LIST are shares of the nodes, as in 0.001,0.02,0.2.\n";

using strata::Status;

int Number(const std::string& text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Numbers with commas between them.
std::vector<double> Numbers(const std::string& text) {
  std::vector<double> numbers;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');)
    numbers.push_back(std::strtod(word.c_str(), nullptr));
  return numbers;
}

void AddGraphs(const std::string& path, std::vector<std::string>& graphs) {
  if (!std::filesystem::is_directory(path)) return graphs.push_back(path);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file() && entry.path().extension() == ".txt")
      graphs.push_back(entry.path().string());
  }
  std::ranges::sort(graphs);
}

int Report(const Status& status) {
  if (status) return 0;
  std::fprintf(stderr, "diff_eval: error: %s\n", status.error().message().c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  strata::bench::SyntheticOptions options;
  std::vector<std::string> words;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--baselines") {
      options.baselines = true;
    } else if (args[i] == "--verbose") {
      options.verbose = true;
    } else if (args[i] == "--all-kinds") {
      options.all_kinds = true;
    } else if (args[i] == "--only" && i + 1 < args.size()) {
      options.only = args[++i];
    } else if (args[i] == "--rates" && i + 1 < args.size()) {
      options.rates = Numbers(args[++i]);
    } else if (args[i] == "--dump" && i + 1 < args.size()) {
      options.dump = args[++i];
    } else if (args[i] == "--seeds" && i + 2 < args.size()) {
      options.first_seed = static_cast<uint32_t>(Number(args[++i]));
      options.num_seeds = static_cast<uint32_t>(Number(args[++i]));
    } else {
      words.push_back(args[i]);
    }
  }
  if (words.size() == 2 && words[0] == "pairs") {
    return Report(strata::bench::EvaluatePairs(words[1], options.baselines, options.verbose));
  }
  if (words.size() >= 2 && words[0] == "passes") {
    return Report(strata::bench::EvaluatePasses({words.begin() + 1, words.end()}, options.verbose));
  }
  if (words.size() >= 2 && words[0] == "synthetic" && !options.rates.empty()) {
    for (size_t i = 1; i < words.size(); ++i)
      AddGraphs(words[i], options.graphs);
    return Report(strata::bench::EvaluateSynthetic(options));
  }
  if (words.size() == 1 && words[0] == "grouping") {
    return Report(
        strata::bench::EvaluateGrouping(options.first_seed, options.num_seeds, options.verbose));
  }
  std::fwrite(kUsage.data(), 1, kUsage.size(), stderr);
  return 2;
}
