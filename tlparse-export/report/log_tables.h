#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace strata {

/// A table of the log's page, in words that are ready to be shown.
struct LogTable {
  /// Where a cell leads: a compilation of a run, or one of its records.
  struct Link {
    std::string text;
    int64_t run = 0;
    std::string compile;
    int64_t record = -1;  ///< its place in the list; -1: the compilation
  };
  struct Cell {
    std::string text;
    std::vector<Link> links;  ///< instead of `text`, if there are any
  };
  std::string title, words;
  std::vector<std::string> heads;  ///< with the marks that `table` of the page takes
  std::vector<std::vector<Cell>> rows;
};
void AppendJson(const LogTable& table, JsonWriter& json);

/// How an attempt to compile ended, and the values in which ranks may differ.
struct LogCompile {
  std::string id;      ///< "0/0", "1/2_1"; "-": records outside of compilations
  std::string status;  ///< "compiled", "restarted", "empty graph", "failed", "no metrics"; "": "-"
  int64_t records = 0, restarts = 0;
  bool has_metrics = false;
  std::vector<std::string> caches;  ///< "hit", "miss", "bypass", in the order of the log
  std::string schedule;             ///< sums of its collectives' schedules
};

/// What of a log is compared between ranks.
struct LogFacts {
  struct Payload {
    std::string compile, name, sum;
    int64_t place = 0;
  };
  int64_t run = 0;
  int32_t rank = 0;
  std::vector<LogCompile> compiles;  ///< in the order of the log
  std::vector<Payload> payloads;
  std::map<std::string, double> expected_ms;  ///< Inductor's estimates, by compilation
  std::vector<std::string> order;  ///< compilations whose graphs ran, one after the other
};

/// "hit", "miss" or "bypass" of a record of a cache; "" of any other record.
std::string CacheWord(std::string_view name);
/// Reads what a `compilation_metrics` says into `compile`; JSON as text.
void JudgeByMetrics(std::string_view metrics, LogCompile& compile);
/// Ends judging, when all attempts are known: those before the last were restarted.
void JudgeAttempts(std::vector<LogCompile>& compiles);

/// Where ranks diverge: compilations and caches, payloads of one name, the order of execution, and
/// what Inductor expects graphs to take. None for fewer than two logs with compilations.
std::vector<LogTable> CompareLogs(const std::vector<LogFacts>& logs);

/// The collectives that Inductor planned (JSON lists of operators) beside those that generated code
/// calls; none without a schedule. Source: tlparse's collectives report.
std::vector<LogTable> CollectivesTable(const std::vector<std::string>& schedules,
                                       const std::vector<std::string>& code);

}  // namespace strata
