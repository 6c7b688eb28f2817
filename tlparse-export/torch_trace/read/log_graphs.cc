#include "tlparse-export/torch_trace/read/log_graphs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace strata {
namespace {

constexpr std::string_view kBefore = "before_", kAfter = "after_";

/// PyTorch's post-grad passes do not say `after_`.
constexpr std::string_view kPostGradEnd = "inductor_post_grad_graph", kPostGrad = "post_grad_graph";

constexpr std::string_view kTangents = "tangents_";

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsNameChar(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Whether a name `tangents_1`, `tangents_2`, … stands in `text`.
bool NamesTangents(std::string_view text) {
  for (size_t at = text.find(kTangents); at < text.size(); at = text.find(kTangents, at + 1)) {
    const size_t end = at + kTangents.size();
    const bool is_whole = at == 0 || !IsNameChar(text[at - 1]);
    if (is_whole && end < text.size() && IsDigit(text[end])) return true;
  }
  return false;
}

}  // namespace

bool TakesTangents(std::string_view graph) {
  const size_t begin = graph.find("def forward(");
  if (begin == std::string_view::npos) return false;
  graph.remove_prefix(begin);
  return NamesTangents(graph.substr(0, std::min(graph.find("):"), graph.find(") ->"))));
}

bool CodeTakesTangents(std::string_view code) {
  return NamesTangents(code);
}

std::string BackwardName(std::string_view record) {
  const bool says_so = record.find("backward") != std::string_view::npos ||
                       record.find("joint") != std::string_view::npos;
  return fmt::format("{}{}", record, says_so ? "" : "_backward");
}

std::string_view PassEndedBy(std::string_view record) {
  if (record == kPostGradEnd) return kPostGrad;
  return record.starts_with(kAfter) ? record.substr(kAfter.size()) : std::string_view{};
}

bool IsCacheHit(std::string_view record) {
  return record == "fx_graph_cache_hit" || record == "aotautograd_cache_hit";
}

std::string_view WithoutGraphId(std::string_view text) {
  const auto trim = [&] { text = text.substr(0, text.find_last_not_of(" \n") + 1); };
  trim();
  const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
  if (text.substr(std::min(text.find_first_not_of(' ', line), text.size()))
          .starts_with("# graph id:")) {
    text = text.substr(0, line);
    trim();
  }
  return text;
}

GraphStep GraphTracker::Add(std::string_view record, std::string_view compile, int32_t text,
                            bool takes_tangents) {
  const auto name_of = [&](std::string_view name) {
    return takes_tangents ? BackwardName(name) : std::string(name);
  };
  if (record.starts_with(kBefore) && record.size() > kBefore.size()) {
    const std::string_view pass = record.substr(kBefore.size());
    const GraphStep step = Begin(name_of(pass), compile, text);
    Open begun{.graph = step.graph,
               .snapshot = step.snapshot,
               .text = text,
               .is_strange = step.snapshot > 0 && !step.is_same,
               .is_continued = step.continued.has_value(),
               .compile = std::string(compile),
               .record = std::string(record)};
    const auto [open, is_new] = open_.try_emplace(Key(compile, pass), begun);
    if (!is_new) Abandon(std::exchange(open->second, std::move(begun)));
    return step;
  }
  if (const std::string_view pass = PassEndedBy(record); !pass.empty()) {
    if (const auto open = open_.extract(Key(compile, pass)); !open.empty()) {
      const Open& begun = open.mapped();
      GraphStep step = AddSnapshot(begun.graph, compile, text);
      if (begun.is_strange) {
        step.ended.push_back({begun.record, begun.snapshot - 1, begun.snapshot, false});
      }
      step.ended.push_back({std::string(pass), begun.snapshot, step.snapshot, begun.text == text});
      graphs_[begun.graph].has_passes = true;
      return step;
    }
  }
  const std::string name = name_of(record == kPostGradEnd ? kPostGrad : record);
  return AddSnapshot(NewGraph(name, compile), compile, text);
}

GraphStep GraphTracker::Begin(std::string_view name, std::string_view compile, int32_t text) {
  if (const std::optional<size_t> known = FindGraph(compile, text)) {
    return AddSnapshot(*known, compile, text);
  }
  if (!compile.empty() || !last_outside_)
    return AddSnapshot(NewGraph(name, compile), compile, text);
  const size_t last = *last_outside_;
  if (graphs_[last].has_passes) return AddSnapshot(last, compile, text);
  const size_t graph = NewGraph(name, compile);
  graphs_[graph].snapshots = 1;
  GraphStep step = AddSnapshot(graph, compile, text);
  step.continued = {last, graphs_[last].snapshots - 1};
  return step;
}

void GraphTracker::Abandon(Open open) {
  if (open.is_strange && !open.is_continued) abandoned_.push_back(std::move(open));
}

std::vector<GraphTracker::Orphan> GraphTracker::TakeOrphans() {
  for (auto& [key, open] : std::exchange(open_, {}))
    Abandon(std::move(open));
  std::ranges::sort(abandoned_, {}, [](const Open& o) { return std::pair(o.graph, o.snapshot); });
  std::vector<Orphan> orphans;
  for (const Open& open : std::exchange(abandoned_, {})) {
    orphans.push_back({open.graph, open.snapshot, NewGraph(open.record, open.compile), open.text});
  }
  return orphans;
}

/// The graph of the compilation that has this text now.
std::optional<size_t> GraphTracker::FindGraph(std::string_view compile, int32_t text) const {
  const auto found = of_text_.find({std::string(compile), text});
  const bool is_known = found != of_text_.end() && graphs_[found->second].last_text == text;
  return is_known ? std::optional(found->second) : std::nullopt;
}

GraphStep GraphTracker::AddSnapshot(size_t graph, std::string_view compile, int32_t text) {
  Graph& at = graphs_[graph];
  GraphStep step{.graph = graph, .snapshot = at.snapshots, .is_same = at.last_text == text};
  ++at.snapshots;
  at.last_text = text;
  of_text_[{std::string(compile), text}] = graph;
  if (compile.empty()) last_outside_ = graph;
  return step;
}

size_t GraphTracker::NewGraph(std::string_view name, std::string_view compile) {
  std::string base(name);
  const auto& [first, is_first] = first_compile_.try_emplace(base, compile);
  if (!is_first && first->second != compile && !compile.empty()) {
    base += fmt::format("@{}", compile);
  }
  int& count = counts_[base];
  std::string unique;
  do {
    ++count;
    unique = count == 1 ? base : fmt::format("{}.{}", base, count);
  } while (!names_.insert(unique).second);
  graphs_.push_back({.name = std::move(unique)});
  return graphs_.size() - 1;
}

void AddOrphans(GraphTracker& tracker, LogRun& run) {
  for (const GraphTracker::Orphan& orphan : tracker.TakeOrphans()) {
    const LogSnapshot snapshot = run.graphs[orphan.graph].snapshots[orphan.snapshot];
    run.graphs.push_back({tracker.name(orphan.new_graph), {snapshot}});
  }
}

void AddStep(const GraphStep& step, const GraphTracker& tracker, LogRun& run) {
  if (step.graph == run.graphs.size()) run.graphs.push_back({tracker.name(step.graph), {}});
  LogGraph& graph = run.graphs[step.graph];
  if (step.continued) {
    const auto [other, snapshot] = *step.continued;
    graph.snapshots.push_back(run.graphs[other].snapshots[snapshot]);
  }
  graph.snapshots.push_back({run.records.size() - 1, run.records.back().payload});
  for (const GraphStep::Pass& ended : step.ended) {
    LogPass pass;
    pass.index = static_cast<int32_t>(run.passes.size());
    pass.name = ended.name;
    pass.graph = step.graph;
    pass.before = ended.before;
    pass.after = ended.after;
    pass.unchanged = ended.is_unchanged;
    run.passes.push_back(std::move(pass));
  }
}

}  // namespace strata
