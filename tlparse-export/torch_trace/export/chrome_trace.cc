#include "tlparse-export/torch_trace/export/chrome_trace.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <simdjson.h>
#include <utility>

#include <fmt/format.h>

namespace strata {
namespace {

/// PyTorch annotates each call of a compiled graph: `## Call CompiledFxGraph <key> ##`.
constexpr std::string_view kCall = "## Call CompiledFxGraph ";
/// The key where the compiler uses no cache.
constexpr std::string_view kNoKey = "None";

std::string_view TextOf(simdjson::dom::element event, const char* key) {
  std::string_view text;
  return event[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

double NumberOf(simdjson::dom::element event, const char* key) {
  double number = 0;
  return event[key].get(number) == simdjson::SUCCESS ? number : 0;
}

int64_t IntegerOf(simdjson::simdjson_result<simdjson::dom::element> value, int64_t otherwise) {
  int64_t number = 0;
  return value.get(number) == simdjson::SUCCESS ? number : otherwise;
}

/// A call of a compiled graph.
struct Region {
  size_t graph;
  size_t call;  ///< its number among those of its graph
  double begin_us, end_us;
  int64_t thread;
};

/// Collects what ran in the calls.
class Collector {
 public:
  explicit Collector(const std::vector<ChromeEvent>& events) : events_(events) {}

  std::vector<CompiledCalls> Run() {
    for (const ChromeEvent& event : events_) {
      if (event.kind == ChromeEvent::Kind::kKernel) kernels_.emplace(event.external, &event);
      if (event.name.starts_with(kCall)) AddRegion(event);
    }
    const bool has_device = std::ranges::any_of(
        events_, [](const ChromeEvent& e) { return e.kind == ChromeEvent::Kind::kKernel; });
    for (const Region& region : regions_)
      has_device ? AddKernels(region) : AddOperators(region);
    for (CompiledCalls& graph : graphs_)
      Close(graph);
    return std::move(graphs_);
  }

 private:
  using Places = std::vector<std::vector<double>>;  // by call: of each run

  void AddRegion(const ChromeEvent& event) {
    std::string key = event.name.substr(kCall.size());
    key = key.substr(0, key.find(' '));
    if (key == kNoKey) key = KeyOfContent(event);
    auto found = std::ranges::find(graphs_, key, &CompiledCalls::key);
    if (found == graphs_.end()) {
      graphs_.push_back({.key = std::move(key), .items = {}});
      runs_.emplace_back();
      found = graphs_.end() - 1;
    }
    regions_.push_back({static_cast<size_t>(found - graphs_.begin()),
                        static_cast<size_t>(found->calls), event.begin_us, event.end_us(),
                        event.thread});
    ++found->calls;
  }

  /// What ran in a call, as a key: without a cache of the compiler, graphs have no other.
  std::string KeyOfContent(const ChromeEvent& call) const {
    std::string key(kNoKey);
    ForEachInside({0, 0, call.begin_us, call.end_us(), call.thread},
                  [&](const ChromeEvent& event) { key += "\n" + event.name; });
    return key;
  }

  /// Calls `visit` with the events of the CPU inside of a call, in order of their begin.
  void ForEachInside(const Region& region,
                     const std::function<void(const ChromeEvent&)>& visit) const {
    auto event = std::ranges::lower_bound(events_, region.begin_us, {}, &ChromeEvent::begin_us);
    for (; event != events_.end() && event->begin_us <= region.end_us; ++event) {
      if (event->kind == ChromeEvent::Kind::kCpu && event->thread == region.thread &&
          event->end_us() <= region.end_us && !event->name.starts_with(kCall))
        visit(*event);
    }
  }

  void AddRun(const Region& region, const std::string& name, double us) {
    const auto call = static_cast<size_t>(graphs_[region.graph].calls);
    Places& places = runs_[region.graph][name];
    places.resize(std::max(places.size(), call));
    places[region.call].push_back(us);
  }

  /// Operators and kernels of the call that are not inside of others.
  void AddOperators(const Region& region) {
    double end = region.begin_us;
    ForEachInside(region, [&](const ChromeEvent& event) {
      if (event.begin_us < end) return;
      end = event.end_us();
      AddRun(region, event.name, event.duration_us);
      graphs_[region.graph].unseen_us -= event.duration_us;
    });
    graphs_[region.graph].unseen_us += region.end_us - region.begin_us;
  }

  /// Kernels that the call launched: by the operator that launched them, one run of it whatever
  /// their number, or by their own name.
  void AddKernels(const Region& region) {
    struct Launch {
      std::string_view name;
      double begin_us = 0, us = 0;
    };
    std::vector<Launch> launches;
    std::set<int64_t> seen;
    ForEachInside(region, [&](const ChromeEvent& event) {
      if (event.external < 0 || !seen.insert(event.external).second) return;
      const bool is_operator = event.name.find("::") != std::string::npos;
      const auto [first, last] = kernels_.equal_range(event.external);
      for (auto kernel = first; kernel != last; ++kernel) {
        const ChromeEvent& ran = *kernel->second;
        if (kernel == first || !is_operator) {
          launches.push_back({is_operator ? event.name : ran.name, ran.begin_us, 0});
        }
        launches.back().us += ran.duration_us;
      }
    });
    std::ranges::stable_sort(launches, {}, &Launch::begin_us);
    for (const Launch& launch : launches)
      AddRun(region, std::string(launch.name), launch.us);
  }

  void Close(CompiledCalls& graph) {
    for (auto& [name, calls] : runs_[static_cast<size_t>(&graph - graphs_.data())]) {
      CompiledCalls::Item item{.name = name, .us_of_place = {}};
      const size_t count = calls.empty() ? 0 : calls[0].size();
      const bool is_regular = std::ranges::all_of(
          calls, [&](const std::vector<double>& call) { return call.size() == count; });
      if (is_regular) {
        item.per_call = static_cast<int64_t>(count);
        item.us_of_place.assign(count, 0);
      }
      for (const std::vector<double>& call : calls) {
        for (size_t i = 0; i < call.size(); ++i) {
          item.us += call[i];
          if (is_regular) item.us_of_place[i] += call[i];
        }
      }
      graph.us += item.us;
      graph.items.push_back(std::move(item));
    }
  }

  const std::vector<ChromeEvent>& events_;
  std::multimap<int64_t, const ChromeEvent*> kernels_;  // by `external`
  std::vector<Region> regions_;
  std::vector<CompiledCalls> graphs_;
  std::vector<std::map<std::string, Places>> runs_;  // by graph and name
};

}  // namespace

Result<std::vector<ChromeEvent>> ReadChromeTrace(std::string_view text, std::string_view path) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::array list;
  const auto no_trace = [&] {
    return Error(
        "no trace of the profiler: {}: give what export_chrome_trace of torch.profiler "
        "wrote",
        path);
  };
  if (parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return no_trace();
  if (root["traceEvents"].get(list) != simdjson::SUCCESS && root.get(list) != simdjson::SUCCESS) {
    return no_trace();
  }
  std::vector<ChromeEvent> events;
  for (const simdjson::dom::element event : list) {
    if (TextOf(event, "ph") != "X") continue;
    const std::string_view category = TextOf(event, "cat");
    const bool is_kernel = category == "kernel";
    if (!is_kernel && category != "cpu_op" && category != "user_annotation") continue;
    ChromeEvent read;
    read.kind = is_kernel ? ChromeEvent::Kind::kKernel : ChromeEvent::Kind::kCpu;
    read.name = TextOf(event, "name");
    read.begin_us = NumberOf(event, "ts");
    read.duration_us = NumberOf(event, "dur");
    read.thread = IntegerOf(event["tid"], 0);
    read.external = IntegerOf(event["args"]["External id"], -1);
    events.push_back(std::move(read));
  }
  std::ranges::stable_sort(events, [](const ChromeEvent& a, const ChromeEvent& b) {
    // Of two that begin at once, the longer one is around the other.
    return a.begin_us != b.begin_us ? a.begin_us < b.begin_us : a.duration_us > b.duration_us;
  });
  return events;
}

std::vector<CompiledCalls> FindCompiledCalls(const std::vector<ChromeEvent>& events) {
  return Collector(events).Run();
}

}  // namespace strata
