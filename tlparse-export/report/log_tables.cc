#include "tlparse-export/report/log_tables.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "tlparse-export/report/texts.h"
#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

constexpr size_t kMaxTableRows = 200;

/// "1,288 records", "1 record".
std::string Count(size_t count, std::string_view one) {
  std::string digits = fmt::to_string(count);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return fmt::format("{} {}{}", digits, one, count == 1 ? "" : "s");
}

std::string Brackets(std::string_view id) {
  return id.empty() || id == "-" ? "Outside" : fmt::format("[{}]", id);
}

/// As the page writes times.
std::string Milliseconds(double ms) {
  if (ms < 1) return fmt::format("{:.{}f} µs", ms * 1000, ms < 0.01 ? 1 : 0);
  if (ms < 1000) return fmt::format("{:.{}f} ms", ms, ms < 10 ? 1 : 0);
  return fmt::format("{:.1f} s", ms / 1000);
}

std::string_view Field(const std::vector<JsonField>& fields, std::string_view key) {
  const auto found = std::ranges::find(fields, key, &JsonField::key);
  return found == fields.end() ? std::string_view() : TrimBlanks(found->value);
}

/// "1/2" of the attempt "1/2_1".
std::string_view WithoutAttempt(std::string_view id) {
  return id.substr(0, id.find('_'));
}

const LogCompile* FindCompile(const LogFacts& log, std::string_view id) {
  const auto found = std::ranges::find(log.compiles, id, &LogCompile::id);
  return found == log.compiles.end() ? nullptr : &*found;
}

/// True when not all ranks say the same.
bool Differ(const std::vector<std::string>& of_ranks) {
  return std::ranges::adjacent_find(of_ranks, std::not_equal_to()) != of_ranks.end();
}

std::vector<std::string> Heads(const std::vector<LogFacts>& logs, std::string_view first,
                               std::string_view mark) {
  std::vector<std::string> heads = {std::string(first)};
  for (const LogFacts& log : logs)
    heads.push_back(fmt::format("{}rank {}", mark, log.rank));
  return heads;
}

LogTable CompilationsTable(const std::vector<LogFacts>& logs, const std::vector<std::string>& ids) {
  LogTable table = {
      .title = "Ranks", .words = "", .heads = Heads(logs, "=compilation", ""), .rows = {}};
  size_t apart = 0;
  for (const std::string& id : ids) {
    std::vector<LogTable::Cell> row = {{Brackets(id), {}}};
    std::vector<std::string> told;
    for (const LogFacts& log : logs) {
      const LogCompile* compile = FindCompile(log, id);
      if (compile == nullptr) {
        told.emplace_back("none");
        row.push_back({told.back(), {}});
        continue;
      }
      told.push_back(fmt::format("{}, {}", Count(static_cast<size_t>(compile->records), "record"),
                                 compile->status));
      if (!compile->caches.empty())
        told.back() += fmt::format(", {}", fmt::join(compile->caches, " "));
      row.push_back({"", {{told.back(), log.run, id, -1}}});
    }
    apart += Differ(told) ? 1 : 0;
    table.rows.push_back(std::move(row));
  }
  table.words = apart == 0 ? "all ranks compiled the same, and their caches agree"
                           : fmt::format("{} differ between ranks", Count(apart, "compilation"));
  return table;
}

/// Payloads of one name in one compilation, the first ones, the second ones, and so on.
void AddPayloadTable(const std::vector<LogFacts>& logs, std::vector<LogTable>& tables) {
  struct Place {
    std::string compile, name;
    std::vector<std::pair<const LogFacts*, const LogFacts::Payload*>> payloads;
  };
  std::vector<Place> places;
  std::map<std::tuple<std::string, std::string, int>, size_t> index;
  for (const LogFacts& log : logs) {
    std::map<std::pair<std::string, std::string>, int> seen;
    for (const LogFacts::Payload& payload : log.payloads) {
      const int nth = seen[{payload.compile, payload.name}]++;
      const auto [at, is_new] =
          index.try_emplace({payload.compile, payload.name, nth}, places.size());
      if (is_new) places.push_back({payload.compile, payload.name, {}});
      places[at->second].payloads.emplace_back(&log, &payload);
    }
  }
  LogTable table = {.title = "Payloads that differ between ranks",
                    .words = "records of one name in one compilation",
                    .heads = {"=compilation", "record", "ranks with equal payloads"},
                    .rows = {}};
  for (const Place& place : places) {
    std::vector<LogTable::Link> groups;
    std::map<std::string, size_t> group_of;
    for (const auto& [log, payload] : place.payloads) {
      const auto [at, is_new] = group_of.try_emplace(payload->sum, groups.size());
      const std::string compile = payload->compile.empty() ? "-" : payload->compile;
      if (is_new) groups.push_back({"", log->run, compile, payload->place});
      std::string& text = groups[at->second].text;
      text += fmt::format("{}{}", text.empty() ? "" : ", ", log->rank);
    }
    if (groups.size() < 2 || table.rows.size() == kMaxTableRows) continue;
    table.rows.push_back({{Brackets(place.compile), {}}, {place.name, {}}, {"", groups}});
  }
  if (!table.rows.empty()) tables.push_back(std::move(table));
}

void AddOrderTable(const std::vector<LogFacts>& logs, std::vector<LogTable>& tables) {
  size_t most = 0;
  for (const LogFacts& log : logs)
    most = std::max(most, log.order.size());
  if (most == 0) return;
  LogTable table = {
      .title = "Order of execution", .words = "", .heads = Heads(logs, "#place", "="), .rows = {}};
  table.heads.emplace_back("what differs");
  std::vector<std::vector<LogTable::Cell>> equal;
  for (size_t i = 0; i < most; ++i) {
    std::vector<std::string> ids, schedules, caches;
    for (const LogFacts& log : logs) {
      ids.push_back(i < log.order.size() ? log.order[i] : "–");
      const LogCompile* compile = FindCompile(log, ids.back());
      schedules.push_back(compile == nullptr ? "" : compile->schedule);
      caches.push_back(compile == nullptr ? "" : fmt::format("{}", fmt::join(compile->caches, "")));
    }
    std::vector<std::string_view> words;
    if (Differ(ids)) words.emplace_back("graph");
    if (Differ(schedules)) words.emplace_back("collectives");
    if (Differ(caches)) words.emplace_back("cache");
    std::vector<LogTable::Cell> row = {{fmt::to_string(i), {}}};
    for (const std::string& id : ids)
      row.push_back({id == "–" ? id : Brackets(id), {}});
    row.push_back({words.empty() ? "–" : fmt::format("{}", fmt::join(words, ", ")), {}});
    (words.empty() ? equal : table.rows).push_back(std::move(row));
  }
  if (table.rows.empty()) {
    table.words = fmt::format("all ranks ran the same {}", Count(most, "graph"));
    table.rows = std::move(equal);
  } else {
    table.words = fmt::format("ranks differ at {} of {}", table.rows.size(), Count(most, "place"));
  }
  table.rows.resize(std::min(table.rows.size(), kMaxTableRows));
  tables.push_back(std::move(table));
}

void AddExpectedTable(const std::vector<LogFacts>& logs, std::vector<LogTable>& tables) {
  std::set<std::string> compiles;
  for (const LogFacts& log : logs) {
    for (const auto& [compile, ms] : log.expected_ms)
      compiles.insert(compile);
  }
  if (compiles.empty()) return;
  LogTable table = {.title = "Expected run time",
                    .words = "estimates of Inductor, added up",
                    .heads = Heads(logs, "=compilation", "#"),
                    .rows = {}};
  table.heads.emplace_back("#slowest / fastest");
  for (const std::string& compile : compiles) {
    std::vector<LogTable::Cell> row = {{Brackets(compile), {}}};
    std::vector<double> known;
    for (const LogFacts& log : logs) {
      const auto ms = log.expected_ms.find(compile);
      const bool is_known = ms != log.expected_ms.end() && ms->second > 0;
      if (is_known) known.push_back(ms->second);
      row.push_back({is_known ? Milliseconds(ms->second) : "–", {}});
    }
    if (known.empty()) continue;
    const auto [least, most] = std::ranges::minmax(known);
    row.push_back({fmt::format("{:.2f}", most / least), {}});
    table.rows.push_back(std::move(row));
  }
  tables.push_back(std::move(table));
}

/// The kind of collective that an operator is; "other" for kinds that the table does not list.
std::string CollectiveOf(std::string_view op) {
  for (std::string_view known :
       {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "wait_tensor"}) {
    if (op.find(known) != std::string_view::npos) return std::string(known);
  }
  return "other";
}

/// Operators that a program calls as `…c10d_functional.NAME.default(`; not those of comments.
std::vector<std::string> CalledCollectives(std::string_view code) {
  constexpr std::string_view kNamespace = "c10d_functional.", kEnd = ".default(";
  std::vector<std::string> ops;
  while (!code.empty()) {
    const std::string_view line = code.substr(0, code.find('\n'));
    code.remove_prefix(std::min(code.size(), line.size() + 1));
    std::string_view rest = line.substr(0, line.find('#'));
    for (size_t at; (at = rest.find(kNamespace)) != std::string_view::npos;) {
      rest.remove_prefix(at + kNamespace.size());
      const size_t end =
          static_cast<size_t>(std::ranges::find_if_not(rest, IsWordChar) - rest.begin());
      if (rest.substr(end).starts_with(kEnd)) ops.emplace_back(rest.substr(0, end));
    }
  }
  return ops;
}

}  // namespace

void AppendJson(const LogTable& table, JsonWriter& json) {
  json.BeginArray().String(table.title).String(table.words).BeginArray();
  for (const std::string& head : table.heads)
    json.String(head);
  json.EndArray().BeginArray();
  for (const std::vector<LogTable::Cell>& row : table.rows) {
    json.BeginArray();
    for (const LogTable::Cell& cell : row) {
      if (cell.links.empty()) {
        json.String(Texts::Cut(cell.text));
        continue;
      }
      json.BeginArray();
      for (const LogTable::Link& link : cell.links) {
        json.BeginArray().String(Texts::Cut(link.text)).Int(link.run);
        json.String(Texts::Cut(link.compile)).Int(link.record).EndArray();
      }
      json.EndArray();
    }
    json.EndArray();
  }
  json.EndArray().EndArray();
}

std::string CacheWord(std::string_view name) {
  for (std::string_view word : {"hit", "miss", "bypass"}) {
    if (name.find(fmt::format("cache_{}", word)) != std::string_view::npos)
      return std::string(word);
  }
  return "";
}

void JudgeByMetrics(std::string_view metrics, LogCompile& compile) {
  const auto fields = ReadJsonObject(metrics).value_or(std::vector<JsonField>{});
  compile.has_metrics = true;
  const std::string_view failed = Field(fields, "fail_type");
  const bool is_failed =
      !failed.empty() && failed != "null" && failed != "\"\"" && failed != "false" && failed != "0";
  compile.status = is_failed                                ? "failed"
                   : Field(fields, "graph_op_count") == "0" ? "empty graph"
                                                            : "compiled";
  const auto reasons = ReadJsonArray(Field(fields, "restart_reasons"));
  if (reasons) compile.restarts += static_cast<int64_t>(reasons->size());
}

void JudgeAttempts(std::vector<LogCompile>& compiles) {
  std::map<std::string, int, std::less<>> attempts, measured;
  for (const LogCompile& compile : compiles) {
    ++attempts[std::string(WithoutAttempt(compile.id))];
    measured[std::string(WithoutAttempt(compile.id))] += compile.has_metrics ? 1 : 0;
  }
  for (LogCompile& compile : compiles) {
    const std::string base(WithoutAttempt(compile.id));
    if (compile.id == "-") {
      compile.status = "";
    } else if (!compile.has_metrics) {
      // The metrics of the last attempt report restarts; the attempts before it were restarted.
      compile.status = measured[base] > 0 ? "restarted" : "no metrics";
    } else if (compile.restarts > 0 && attempts[base] == 1 && compile.status == "compiled") {
      compile.status = "restarted";
    }
  }
}

std::vector<LogTable> CompareLogs(const std::vector<LogFacts>& logs) {
  std::vector<std::string> ids;
  for (const LogFacts& log : logs) {
    for (const LogCompile& compile : log.compiles) {
      if (compile.id != "-" && std::ranges::find(ids, compile.id) == ids.end())
        ids.push_back(compile.id);
    }
  }
  std::vector<LogTable> tables;
  if (logs.size() < 2 || ids.empty()) return tables;
  tables.push_back(CompilationsTable(logs, ids));
  AddPayloadTable(logs, tables);
  AddOrderTable(logs, tables);
  AddExpectedTable(logs, tables);
  return tables;
}

std::vector<LogTable> CollectivesTable(const std::vector<std::string>& schedules,
                                       const std::vector<std::string>& code) {
  if (schedules.empty()) return {};
  std::vector<std::pair<std::string, std::array<int64_t, 2>>> counts;
  const auto add = [&](std::string_view op, size_t side) {
    const std::string name = CollectiveOf(op);
    auto found = std::ranges::find(counts, name, &decltype(counts)::value_type::first);
    if (found == counts.end()) found = counts.insert(found, {name, {0, 0}});
    ++found->second[side];
  };
  for (const std::string& schedule : schedules) {
    for (std::string_view op : ReadJsonArray(schedule).value_or(std::vector<std::string_view>{}))
      add(op, 0);
  }
  for (const std::string& text : code) {
    for (const std::string& op : CalledCollectives(text))
      add(op, 1);
  }
  if (counts.empty()) return {};
  LogTable table = {.title = "Collectives",
                    .words = "the code calls what is scheduled",
                    .heads = {"=collective", "#scheduled", "#in the code"},
                    .rows = {}};
  int64_t waits = 0;
  for (const auto& [name, sides] : counts) {
    if (sides[0] != sides[1]) table.words = "schedule and code differ";
    waits += name == "wait_tensor" ? -sides[1] : sides[1];
    table.rows.push_back(
        {{name, {}}, {fmt::to_string(sides[0]), {}}, {fmt::to_string(sides[1]), {}}});
  }
  if (waits > 0)
    table.words += fmt::format(", {} missing", Count(static_cast<size_t>(waits), "wait"));
  return {std::move(table)};
}

}  // namespace strata
