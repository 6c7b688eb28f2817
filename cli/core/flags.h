#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/core/command.h"
#include "runtime/exec/value_tolerance.h"

namespace strata::cli {

/// The command line of one verb, declared line by line:
///
///     std::string ref, format = "text";
///     bool meta = false;
///     Flags flags("show", "prints one snapshot");
///     flags.Positional("REF", &ref, "what to show");
///     flags.Choice("--format", &format, {"text", "json"}, "how to print");
///     flags.Switch("--meta", &meta, "names and places too");
///     flags.Example("strata show step.txt --format json");
///     STRATA_TRY(bool go_on, flags.Parse(args));
///     if (!go_on) return Exit::kOk;
///
/// Targets hold the defaults, and live as long as the Flags. A name is "--long" or "-s,--long".
class Flags {
 public:
  Flags(std::string_view command, std::string_view summary);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  /// A required word; the order of declaration is the order on the line.
  void Positional(std::string_view name, std::string* target, std::string_view help);
  void OptionalPositional(std::string_view name, std::string* target, std::string_view help);
  /// All words that are left, at least `min`.
  void Positionals(std::string_view name, std::vector<std::string>* target, size_t min,
                   std::string_view help);

  void Switch(std::string_view name, bool* target, std::string_view help);
  void Option(std::string_view name, std::string_view value, std::string* target,
              std::string_view help);
  void Option(std::string_view name, std::string_view value, std::optional<std::string>* target,
              std::string_view help);
  /// A whole number from `least` to `most`.
  void Option(std::string_view name, std::string_view value, int64_t* target, std::string_view help,
              int64_t least = 0, int64_t most = std::numeric_limits<int64_t>::max());
  /// A number that is not negative.
  void Option(std::string_view name, std::string_view value, double* target, std::string_view help);
  /// May be given several times; one value each time.
  void Repeated(std::string_view name, std::string_view value, std::vector<std::string>* target,
                std::string_view help);
  /// One of `choices`; `*target` is the default.
  void Choice(std::string_view name, std::string* target, std::vector<std::string> choices,
              std::string_view help);
  /// `--threads N` of a command that executes graphs; 0, which cannot be given, is the default of
  /// runtime/aten/threads.h.
  void Threads(int64_t* target);
  /// `--operators FILE`, of LoadOperators in runtime/aten/operator_library.h.
  void Operators(std::vector<std::string>* target);
  /// How far values may be from equal: two options, the names of which are given.
  void Tolerance(std::string_view ulps, std::string_view relative, ValueTolerance* target);
  void Required(std::string_view name, std::string_view value, std::string* target,
                std::string_view help);

  /// A line of the help's last section.
  void Example(std::string_view line);

  /// False: the help was asked for and printed. Errors name the flag and where to read about it.
  Result<bool> Parse(Args args);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata::cli
