#include "refs/ref.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "base/file.h"
#include "base/selector.h"
#include "base/suggest.h"
#include "base/text.h"
#include "ir/fx/fx.h"
#include "ir/fx/program.h"
#include "ir/text/native_text.h"
#include "refs/ref_log.h"
#include "refs/ref_trace.h"
#include "refs/source_trace.h"
#include "store/trace.h"
#include "tlparse-export/torch_trace/import/input_files.h"
#include "tlparse-export/torch_trace/read/decompress.h"
#include "tlparse-export/torch_trace/read/log.h"
#include "tlparse-export/torch_trace/read/pasted_text.h"

namespace strata {
namespace {

Error BadSelector(std::string_view ref, std::string_view what) {
  return Error(
      "{}: {}: a selector is run=N, rank=N, graph=NAME, pass=N|NAME[:before|:after], "
      "joined by commas",
      what, ref);
}

Result<int64_t> ReadNumber(std::string_view ref, std::string_view key, std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return BadSelector(ref, fmt::format("{} is no number: '{}'", key, text));
  }
  return number;
}

Status ReadSelectorPart(std::string_view part, Ref& ref) {
  const size_t equals = part.find('=');
  const std::string_view key = part.substr(0, equals);
  if (equals == std::string_view::npos) {
    return BadSelector(ref.text, fmt::format("selector without a value: '{}'", part));
  }
  const std::string_view value = part.substr(equals + 1);
  if (key == "run") {
    STRATA_TRY(ref.run, ReadNumber(ref.text, key, value));
  } else if (key == "rank") {
    STRATA_TRY(ref.rank, ReadNumber(ref.text, key, value));
  } else if (key == "graph") {
    ref.graph = FromSelectorValue(value);
  } else if (key == "pass") {
    std::string_view pass = value;
    for (const auto& [suffix, side] :
         {std::pair(":before", Ref::Side::kBefore), std::pair(":after", Ref::Side::kAfter)}) {
      if (!pass.ends_with(suffix)) continue;
      pass.remove_suffix(std::string_view(suffix).size());
      ref.side = side;
      break;
    }
    ref.pass = FromSelectorValue(pass);
  } else {
    const std::vector<std::string> keys{"run", "rank", "graph", "pass"};
    return BadSelector(ref.text,
                       fmt::format("unknown selector '{}'{}", key, DidYouMean(key, keys)));
  }
  return Ok();
}

/// True when the first word of the text is one that Strata's own spelling begins with.
bool LooksLikeNativeText(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (line.starts_with("graph ") || line.starts_with("symbol ")) return true;
    if (!line.empty() && !line.starts_with("//")) return false;
  }
  return false;
}

Result<Snapshot> LoadNativeText(const Ref& ref, std::string_view text, const LoadOptions& options) {
  if (ref.pass || ref.run || ref.rank) {
    return Error(ErrorCode::kNotFound,
                 "no runs and passes: {}: it is the text of graphs, leave out the selector",
                 ref.text);
  }
  Snapshot snapshot;
  snapshot.ref = ref.text;
  STRATA_TRY(snapshot.module, ParseText(text, ref.file));
  std::vector<GraphId> programs = snapshot.module->programs();
  std::vector<std::string> selectors;
  for (GraphId id : programs)
    selectors.push_back(fmt::format("graph={}", snapshot.module->graph(id).name_text()));
  if (ref.graph) {
    std::erase_if(programs,
                  [&](GraphId id) { return snapshot.module->graph(id).name_text() != *ref.graph; });
    if (programs.empty()) {
      return Error(ErrorCode::kNotFound, "no graph '{}': {}: it has {}", *ref.graph, ref.file,
                   Enumerate(selectors));
    }
  }
  if (programs.empty()) return Error("no graph: {}: the text declares none", ref.file);
  if (programs.size() > 1 && !options.whole_text) return Ambiguous(ref, selectors);
  snapshot.graph_id = programs[0];
  snapshot.graph_name = snapshot.graph().name_text();
  return snapshot;
}

}  // namespace

Error Ambiguous(const Ref& ref, const std::vector<std::string>& selectors) {
  constexpr size_t kShown = 40;
  std::string list;
  for (const std::string& selector : std::span(selectors).first(std::min(selectors.size(), kShown)))
    list += fmt::format("\n  {}#{}", ref.file, selector);
  if (selectors.size() > kShown) list += fmt::format("\n  and {} more", selectors.size() - kShown);
  return Error(ErrorCode::kAmbiguous, "REF names several graphs: {}: say which one:{}", ref.text,
               list);
}

DiffOptions OptionsFor(const Snapshot& before, const Snapshot& after) {
  DiffOptions options;
  options.stable_ids = !before.origin.empty() && before.origin == after.origin &&
                       before.graph_name == after.graph_name;
  if (options.stable_ids) options.provenance = before.births;
  return options;
}

Result<Ref> ParseRef(std::string_view text) {
  Ref ref;
  ref.text = text;
  ref.file = text;
  const size_t hash = text.rfind('#');
  std::error_code ignored;
  if (hash == std::string_view::npos || std::filesystem::exists(ref.file, ignored)) return ref;
  ref.file = text.substr(0, hash);
  std::string_view selector = text.substr(hash + 1);
  while (!selector.empty()) {
    const size_t comma = std::min(selector.find(','), selector.size());
    STRATA_RETURN_IF_ERROR(ReadSelectorPart(selector.substr(0, comma), ref));
    selector.remove_prefix(std::min(comma + 1, selector.size()));
  }
  return ref;
}

Status CheckWholeFile(const std::string& text) {
  const size_t hash = text.rfind('#');
  std::error_code ignored;
  if (hash == std::string::npos || std::filesystem::exists(text, ignored)) return Ok();
  if (!std::filesystem::exists(text.substr(0, hash), ignored)) return Ok();
  return Error("takes whole files: {}: leave out '{}'", text, text.substr(hash));
}

Result<Snapshot> LoadRef(std::string_view text, const LoadOptions& options) {
  STRATA_TRY(const Ref ref, ParseRef(text));
  if (LooksLikeTrace(ref.file)) return LoadFromTrace(ref, ref.file);
  if (HoldsRuns(ref.file)) {
    STRATA_TRY(const SourceTrace source, SourceTrace::Open(ref.file, "", options.warn));
    return LoadFromTrace(ref, source.path());
  }
  STRATA_TRY(std::string bytes, ReadFile(ref.file));
  STRATA_TRY(std::string read, Decompress(std::move(bytes), ref.file));
  // A program is a whole file. In pasted text, what stands around a graph is skipped.
  if (LooksLikeFxProgram(read)) return LoadFxProgram(ref, read, options);
  const PastedText pasted = ReadPasted(std::move(read));
  const std::string& content = pasted.text;
  for (const std::string& warning : pasted.warnings) {
    if (options.warn) options.warn(fmt::format("{}: {}", ref.file, warning));
  }
  if (LooksLikeNativeText(content)) return LoadNativeText(ref, content, options);
  if (LooksLikeLog(content)) return LoadFromLog(ref, content, options);
  if (LooksLikeFxGraph(content)) return LoadFxText(ref, content, options);
  return Error("not a graph: {}: give a trace, a log of PyTorch, or the text of a graph", ref.file);
}

Result<SnapshotPair> LoadRefs(std::string_view before, std::string_view after,
                              const LoadOptions& options) {
  Result<Snapshot> first = LoadRef(before, options);
  if (!first && first.error().code() != ErrorCode::kAmbiguous) return std::move(first).error();
  STRATA_TRY(Snapshot second, LoadRef(after, options));
  if (!first) return std::move(first).error();
  return SnapshotPair{*std::move(first), std::move(second)};
}

}  // namespace strata
