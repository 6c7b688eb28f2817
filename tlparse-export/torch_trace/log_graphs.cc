#include "tlparse-export/torch_trace/log_graphs.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

namespace strata {
namespace {

/// The text without the line that names an object's address.
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

void NumberGraphs(std::vector<LogPayload>& payloads) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t i = 0; i < payloads.size(); ++i) {
    if (!payloads[i].is_graph) continue;
    payloads[i].graph_id =
        ids.try_emplace(WithoutGraphId(payloads[i].text), static_cast<int32_t>(i)).first->second;
  }
}

constexpr std::string_view kBefore = "before_", kAfter = "after_";

/// PyTorch's post-grad passes do not say `after_`.
std::string_view PassEndedBy(std::string_view name) {
  if (name == "inductor_post_grad_graph") return "post_grad_graph";
  return name.starts_with(kAfter) ? name.substr(kAfter.size()) : std::string_view{};
}

class GraphFinder {
 public:
  GraphFinder(const std::vector<LogPayload>& payloads, LogRun& run)
      : payloads_(payloads), run_(run) {}

  void Run() {
    FindClosed();
    for (size_t i = 0; i < run_.records.size(); ++i) {
      const LogRecord& record = run_.records[i];
      if (!record.has_graph) continue;
      const std::string_view name = record.name;
      const std::string_view ended = PassEndedBy(name);
      const auto open = open_.find(KeyOf(record, ended));
      if (name.starts_with(kBefore) && is_closed_[i]) {
        Begin(i);
      } else if (!ended.empty() && open != open_.end() && !open->second.empty()) {
        const OpenPass begin = open->second.back();
        open->second.pop_back();
        End(begin, i);
      } else {
        AddGraph(record.name, i);
      }
    }
    std::ranges::sort(run_.passes, {}, [&](const LogPass& pass) {
      return run_.graphs[pass.graph].moments[pass.before].record;
    });
    for (size_t i = 0; i < run_.passes.size(); ++i)
      run_.passes[i].index = static_cast<int32_t>(i);
    NameGraphs();
  }

 private:
  /// A `before_` record whose `after_` has not come.
  struct OpenPass {
    size_t record, graph, moment;
  };
  /// What a graph is called before names are made unique.
  struct BaseName {
    std::string name, compile;
  };

  int32_t GraphIdOf(int32_t payload) const {
    return payloads_[static_cast<size_t>(payload)].graph_id;
  }

  static std::string KeyOf(const LogRecord& record, std::string_view pass) {
    return fmt::format("{}\n{}", record.compile, pass);
  }

  /// Which `before_` records have an end before their pass begins anew.
  void FindClosed() {
    is_closed_.assign(run_.records.size(), false);
    std::unordered_map<std::string, bool> ends_next;
    for (size_t i = run_.records.size(); i-- > 0;) {
      const LogRecord& record = run_.records[i];
      if (!record.has_graph) continue;
      const std::string_view name = record.name;
      if (const std::string_view ended = PassEndedBy(name); !ended.empty()) {
        ends_next[KeyOf(record, ended)] = true;
      } else if (name.starts_with(kBefore)) {
        bool& ends = ends_next[KeyOf(record, name.substr(kBefore.size()))];
        is_closed_[i] = ends;
        ends = false;
      }
    }
  }

  void AddMoment(size_t graph, size_t record) {
    const LogRecord& r = run_.records[record];
    run_.graphs[graph].moments.push_back({record, r.payload});
    graph_of_text_[KeyOf(r, std::to_string(GraphIdOf(r.payload)))] = graph;
    if (r.compile.empty()) last_outside_ = graph;
  }

  size_t AddGraph(std::string name, size_t record) {
    const size_t graph = run_.graphs.size();
    run_.graphs.emplace_back();
    base_names_.push_back({std::move(name), run_.records[record].compile});
    AddMoment(graph, record);
    return graph;
  }

  /// The graph that a pass which begins with this record goes on with.
  std::optional<size_t> FindGraph(const LogRecord& record) const {
    if (record.compile.empty()) return last_outside_;
    const auto found =
        graph_of_text_.find(KeyOf(record, std::to_string(GraphIdOf(record.payload))));
    if (found == graph_of_text_.end()) return std::nullopt;
    const LogMoment& last = run_.graphs[found->second].moments.back();
    if (GraphIdOf(last.payload) != GraphIdOf(record.payload)) return std::nullopt;
    return found->second;
  }

  void Begin(size_t record) {
    const LogRecord& r = run_.records[record];
    const std::string pass = r.name.substr(kBefore.size());
    std::optional<size_t> graph = FindGraph(r);
    if (graph) {
      AddMoment(*graph, record);
    } else {
      graph = AddGraph(pass, record);
    }
    open_[KeyOf(r, pass)].push_back({record, *graph, run_.graphs[*graph].moments.size() - 1});
  }

  void End(const OpenPass& begin, size_t record) {
    AddMoment(begin.graph, record);
    const LogGraph& graph = run_.graphs[begin.graph];
    LogPass pass;
    pass.name = run_.records[begin.record].name.substr(kBefore.size());
    pass.graph = begin.graph;
    pass.before = begin.moment;
    pass.after = graph.moments.size() - 1;
    pass.unchanged = GraphIdOf(graph.moments[pass.before].payload) ==
                     GraphIdOf(graph.moments[pass.after].payload);
    run_.passes.push_back(std::move(pass));
  }

  void NameGraphs() {
    std::unordered_map<std::string, std::string> compile_of;
    std::unordered_map<std::string, bool> is_shared;
    for (const BaseName& base : base_names_) {
      const auto [it, inserted] = compile_of.try_emplace(base.name, base.compile);
      if (!inserted && it->second != base.compile) is_shared[base.name] = true;
    }
    std::unordered_map<std::string, int> seen;
    for (size_t i = 0; i < run_.graphs.size(); ++i) {
      std::string name = base_names_[i].name;
      if (is_shared.contains(name) && !base_names_[i].compile.empty()) {
        name += "@" + base_names_[i].compile;
      }
      const int count = ++seen[name];
      if (count > 1) name += fmt::format(".{}", count);
      run_.graphs[i].name = std::move(name);
    }
  }

  const std::vector<LogPayload>& payloads_;
  LogRun& run_;
  std::vector<bool> is_closed_;                                  // by record
  std::unordered_map<std::string, std::vector<OpenPass>> open_;  // by compilation and pass
  std::unordered_map<std::string, size_t> graph_of_text_;        // by compilation and graph id
  std::optional<size_t> last_outside_;                           // of all compilations
  std::vector<BaseName> base_names_;                             // by graph
};

}  // namespace

void FindGraphs(std::vector<LogPayload>& payloads, LogRun& run) {
  NumberGraphs(payloads);
  GraphFinder(payloads, run).Run();
}

}  // namespace strata
