#include "viewer/compare/overlay.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/unicode.h"
#include "scene/cost.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kMostKinds = 8;
constexpr std::string_view kComputeTime = "place.compute_us",
                           kCommunicationTime = "place.communication_us", kStage = "stage";

std::string NanosecondsText(double ns) {
  return TimeText(ns * 1e-6);
}
std::string MicrosecondsText(double us) {
  return TimeText(us * 1e-3);
}
std::string TimeChangeText(double us) {
  return ChangeText(us * 1e-3, TimeText);
}
std::string BytesChangeText(double bytes) {
  return ChangeText(bytes, BytesText);
}
std::string ValueText(double value) {
  return RealText(value);
}
std::string CountText(double count) {
  return NumberText(static_cast<int64_t>(count));
}

/// Where a property of nodes comes from.
enum class From : uint8_t {
  kNode,
  kType,       ///< nodes of equal types have equal kinds
  kRun,        ///< what a run measured
  kCosts,      ///< of both graphs: numbers have a sign and add up
  kAttribute,  ///< of one name
};

/// What an overlay shows; the same keys and labels as the report's page.
struct Property {
  const char* key;
  const char* label;
  std::string (*unit)(double);  ///< of numbers
  bool sums;                    ///< numbers of a slab add up
  double (*number)(const Comparison& c, SceneNodeId node);
  std::string (*kind)(const Comparison& c, SceneNodeId node);
  From from = From::kNode;
  std::string_view attribute = {};  ///< its name, of kAttribute
};

double FlopsAt(const Comparison& c, SceneNodeId node) {
  const Entity& entity = c.listing_of(node)[c.entity_of(node)];
  const double flops = entity.element.valid() ? 0 : FlopsOf(c.graph_of(node), entity.node);
  return flops > 0 ? flops : kNone;
}
double BytesAt(const Comparison& c, SceneNodeId node) {
  const double bytes = c.BytesOf(node);
  return bytes > 0 ? bytes : kNone;
}
template <class Tell>
double Measured(const Comparison& c, SceneNodeId node, Tell tell) {
  const NodeStatistics* measured = c.MeasuredOf(node);
  return measured != nullptr ? tell(*measured) : kNone;
}
double TimeAt(const Comparison& c, SceneNodeId node) {
  return Measured(c, node, [](const NodeStatistics& m) {
    return m.time_ns > 0 ? static_cast<double>(m.time_ns) : kNone;
  });
}
double MadeAt(const Comparison& c, SceneNodeId node) {
  return Measured(c, node, [](const NodeStatistics& m) {
    return m.bytes > 0 ? static_cast<double>(m.bytes) : kNone;
  });
}
double ChangeOf(double cost) {
  return cost == 0 ? kNone : cost;
}
double TimeChangeAt(const Comparison& c, SceneNodeId node) {
  return ChangeOf(c.CostChangeOf(node).us);
}
double BytesChangeAt(const Comparison& c, SceneNodeId node) {
  return ChangeOf(c.CostChangeOf(node).bytes);
}
double PeakChangeAt(const Comparison& c, SceneNodeId node) {
  return ChangeOf(c.CostChangeOf(node).peak);
}
double LeastAt(const Comparison& c, SceneNodeId node) {
  return Measured(c, node, [](const NodeStatistics& m) { return m.has_values ? m.min : kNone; });
}
double GreatestAt(const Comparison& c, SceneNodeId node) {
  return Measured(c, node, [](const NodeStatistics& m) { return m.has_values ? m.max : kNone; });
}
double MeanAt(const Comparison& c, SceneNodeId node) {
  return Measured(c, node, [](const NodeStatistics& m) { return m.has_values ? m.mean : kNone; });
}
double NotFiniteAt(const Comparison& c, SceneNodeId node) {
  return Measured(c, node, [](const NodeStatistics& m) {
    const int64_t count = m.has_values ? m.nan_count + m.inf_count : 0;
    return count > 0 ? static_cast<double>(count) : kNone;
  });
}

/// The first attribute of a node whose name `fits`, as the report writes it: "key=value".
template <class Fits>
std::string TagAt(const Comparison& c, SceneNodeId node, Fits fits) {
  const Entity& entity = c.listing_of(node)[c.entity_of(node)];
  if (entity.element.valid() || entity.kind == EntityKind::kOutput) return "";
  const Graph& graph = c.graph_of(node);
  for (const auto& [key, value] : graph.attributes(entity.node)) {
    if (fits(graph.module().str(key)))
      return Visible(fmt::format("{}={}", graph.module().str(key), graph.module().str(value)));
  }
  return "";
}
/// The number that an attribute of a call or input says.
double Tagged(const Comparison& c, SceneNodeId node, std::string_view key) {
  const Entity& entity = c.listing_of(node)[c.entity_of(node)];
  if (entity.element.valid()) return kNone;
  const std::string_view text = c.graph_of(node).attribute(entity.node, key);
  double number = kNone;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}
double ComputeAt(const Comparison& c, SceneNodeId node) {
  return Tagged(c, node, kComputeTime);
}
double CommunicationAt(const Comparison& c, SceneNodeId node) {
  return Tagged(c, node, kCommunicationTime);
}
std::string PlacementAt(const Comparison& c, SceneNodeId node) {
  return std::string(PlacementsOf(c.TypeOf(node)));
}
std::string MemoryTagAt(const Comparison& c, SceneNodeId node) {
  return TagAt(c, node, [](std::string_view key) {
    return key.find("recompute") != key.npos || key.find("offload") != key.npos;
  });
}
std::string StageAt(const Comparison& c, SceneNodeId node) {
  const Entity& entity = c.listing_of(node)[c.entity_of(node)];
  if (entity.element.valid() || entity.kind == EntityKind::kOutput) return "";
  const std::string_view stage = c.graph_of(node).attribute(entity.node, kStage);
  return stage.empty() ? std::string() : fmt::format("stage {}", stage);
}
std::string FirstTagAt(const Comparison& c, SceneNodeId node) {
  return TagAt(c, node, [](std::string_view) { return true; });
}

const std::array<Property, 21>& Properties() {
  static const std::array<Property, 21> kProperties = {{
      {"time", "Time of a step", NanosecondsText, true, TimeAt, nullptr, From::kRun},
      {"bytes", "Memory of outputs", BytesText, true, BytesAt, nullptr},
      {"measured", "Memory measured", BytesText, true, MadeAt, nullptr, From::kRun},
      {"flops", "FLOPs", FlopsText, true, FlopsAt, nullptr},
      {"compute", "Computation, modelled", MicrosecondsText, true, ComputeAt, nullptr,
       From::kAttribute, kComputeTime},
      {"communication", "Communication, modelled", MicrosecondsText, true, CommunicationAt, nullptr,
       From::kAttribute, kCommunicationTime},
      {"dtime", "Δ time", TimeChangeText, true, TimeChangeAt, nullptr, From::kCosts},
      {"dbytes", "Δ bytes moved", BytesChangeText, true, BytesChangeAt, nullptr, From::kCosts},
      {"dpeak", "Δ peak", BytesChangeText, true, PeakChangeAt, nullptr, From::kCosts},
      {"least", "Least value", ValueText, false, LeastAt, nullptr, From::kRun},
      {"greatest", "Greatest value", ValueText, false, GreatestAt, nullptr, From::kRun},
      {"mean", "Mean value", ValueText, false, MeanAt, nullptr, From::kRun},
      {"nan", "NaN and infinite", CountText, true, NotFiniteAt, nullptr, From::kRun},
      {"shape", "Shape", nullptr, false, nullptr,
       [](const Comparison& c, SceneNodeId i) { return std::string(ShapeOf(c.TypeOf(i))); },
       From::kType},
      {"dtype", "Data type", nullptr, false, nullptr,
       [](const Comparison& c, SceneNodeId i) { return std::string(DtypeOf(c.TypeOf(i))); },
       From::kType},
      {"placement", "Placement", nullptr, false, nullptr, PlacementAt, From::kType},
      {"phase", "Phase", nullptr, false, nullptr,
       [](const Comparison& c, SceneNodeId i) {
         return c.PhaseOf(i) == Phase::kUnknown ? std::string()
                                                : std::string(ToString(c.PhaseOf(i)));
       }},
      {"stream", "Stream", nullptr, false, nullptr,
       [](const Comparison& c, SceneNodeId i) {
         return c.ir_node(i).stream == 0 ? std::string()
                                         : fmt::format("stream {}", c.ir_node(i).stream);
       }},
      {"stage", "Pipeline stage", nullptr, false, nullptr, StageAt, From::kAttribute, kStage},
      {"recompute", "Recompute, offload", nullptr, false, nullptr, MemoryTagAt},
      {"tags", "Tags", nullptr, false, nullptr, FirstTagAt},
  }};
  return kProperties;
}

/// The type of a node with the module that numbers its types.
std::pair<const Module*, TypeId> TypeAt(const Comparison& c, SceneNodeId node) {
  const ValueId value = c.listing_of(node).value(c.entity_of(node));
  const Graph& graph = c.graph_of(node);
  return {&graph.module(), value.valid() ? graph.value(value).type : TypeId()};
}

/// A property that no node can have, which takes no look at all nodes to see.
bool IsAbsent(const Comparison& c, const Property& property) {
  if (property.from == From::kRun) return !c.has_measures();
  const auto knows = [&](const Module& module) {
    return module.strings().Find(property.attribute).valid();
  };
  return property.from == From::kAttribute && !knows(*c.input().before) && !knows(*c.input().after);
}

bool HasAny(const Comparison& c, const Property& property) {
  // Costs of both graphs take long, so that only what is chosen is computed.
  if (property.from == From::kCosts)
    return c.counts().differences() > 0 || c.input().costs != nullptr;
  if (IsAbsent(c, property)) return false;
  std::optional<std::string> first;
  // Types are few, and their texts take long.
  std::set<std::pair<const Module*, int32_t>> seen;
  for (SceneNodeId i : c.nodes()) {
    if (property.from == From::kType) {
      const auto [module, type] = TypeAt(c, i);
      if (!seen.insert({module, type.index}).second) continue;
    }
    if (property.number != nullptr) {
      if (!std::isnan(property.number(c, i))) return true;
    } else if (!first) {
      first = property.kind(c, i);
    } else if (property.kind(c, i) != *first) {
      return true;
    }
  }
  return false;
}

/// Sizes span many powers of ten, so their shares are square roots; values of both signs are linear
/// near zero and logarithmic beyond.
class Scale {
 public:
  Scale(std::vector<double> sorted, bool is_signed) : signed_(is_signed) {
    if (sorted.empty()) return;
    std::vector<double> sizes;
    for (const double value : sorted)
      sizes.push_back(std::abs(value));
    std::ranges::nth_element(sizes, sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2));
    if (sizes[sizes.size() / 2] > 0) half_ = sizes[sizes.size() / 2];
    from_ = signed_ ? Bend(sorted.front()) : 0;
    span_ = Bend(sorted.back()) - from_;
    if (span_ == 0) span_ = 1;
  }
  float ShareOf(double value) const { return static_cast<float>((Bend(value) - from_) / span_); }
  double ValueAt(double share) const {
    const double bent = from_ + share * span_;
    return signed_ ? half_ * std::sinh(bent) : bent * bent;
  }

 private:
  double Bend(double value) const {
    return signed_ ? std::asinh(value / half_) : std::sqrt(std::max(0.0, value));
  }

  const bool signed_;
  double half_ = 1, from_ = 0, span_ = 1;
};

}  // namespace

std::string PropertyOf(const Comparison& comparison, std::string_view key, SceneNodeId node) {
  for (const Property& property : Properties()) {
    if (key != property.key) continue;
    if (property.kind != nullptr) return property.kind(comparison, node);
    const double number = property.number(comparison, node);
    return std::isnan(number) ? std::string() : property.unit(number);
  }
  return "";
}

std::vector<std::pair<std::string, std::string>> AvailableOverlays(const Comparison& comparison) {
  std::vector<std::pair<std::string, std::string>> list;
  for (const Property& property : Properties()) {
    if (HasAny(comparison, property)) list.emplace_back(property.key, property.label);
  }
  return list;
}

Overlay Overlay::Make(const Comparison& comparison, const std::string& key) {
  Overlay overlay;
  overlay.key_ = key;
  overlay.shares_.assign(comparison.nodes().size(), -1);
  for (const Property& property : Properties()) {
    if (key != property.key) continue;
    overlay.label_ = property.label;
    overlay.unit_ = property.unit;
    std::map<std::string, int32_t> counts;
    std::vector<std::string> words;
    for (SceneNodeId i : comparison.nodes()) {
      if (property.number != nullptr) {
        overlay.values_.Add(property.number(comparison, i));
      } else {
        words.push_back(property.kind(comparison, i));
        if (!words.back().empty()) ++counts[words.back()];
      }
    }
    if (property.number != nullptr) {
      overlay.TakeNumbers(comparison, property.sums,
                          !property.sums || property.from == From::kCosts);
      return overlay;
    }
    for (const auto& [word, count] : counts)
      overlay.kinds_.push_back(word);
    std::ranges::stable_sort(overlay.kinds_, [&](const std::string& a, const std::string& b) {
      return counts[a] > counts[b];
    });
    std::map<std::string, int32_t> index;
    for (size_t k = 0; k < overlay.kinds_.size(); ++k)
      index[overlay.kinds_[k]] = static_cast<int32_t>(k);
    for (const std::string& word : words)
      overlay.kind_.Add(word.empty() ? -1 : index[word]);
    overlay.TakeKinds();
  }
  return overlay;
}

void Overlay::TakeNumbers(const Comparison& comparison, bool sums, bool is_signed) {
  std::vector<double> sorted;
  for (const double value : values_) {
    if (!std::isnan(value)) sorted.push_back(value);
  }
  std::ranges::sort(sorted);
  const Scale scale(sorted, is_signed);
  for (SceneNodeId i : IdsOf(values_)) {
    if (!std::isnan(values_[i])) shares_[i] = scale.ShareOf(values_[i]);
  }
  for (const double share : {0.0, 0.5, 1.0}) {
    if (sorted.empty()) break;
    const double value = scale.ValueAt(share);
    legend_.emplace_back(value == 0 ? "0" : unit_(value), static_cast<float>(share));
  }
  if (sorted.size() < values_.size()) legend_.emplace_back("no value", -1.0F);
  if (!sums) return;
  const Scene& scene = comparison.scene();
  for (const SceneCluster& cluster : scene.clusters) {
    double total = 0;
    for (SceneNodeId node : scene.NodesBelow(cluster)) {
      if (!std::isnan(values_[node])) total += values_[node];
    }
    totals_.Add(total);
  }
}

void Overlay::TakeKinds() {
  // The most frequent kind stays plain, so that the others stand out.
  const size_t shown = std::min(kinds_.size(), kMostKinds);
  const auto share_of = [&](size_t kind) {
    if (kind == 0 || kind >= shown) return -1.0F;
    return 1 -
           static_cast<float>(kind - 1) / static_cast<float>(std::max<size_t>(1, shown - 1)) * 0.9F;
  };
  for (SceneNodeId i : IdsOf(kind_)) {
    if (kind_[i] >= 0) shares_[i] = share_of(static_cast<size_t>(kind_[i]));
  }
  for (size_t k = 0; k < shown; ++k)
    legend_.emplace_back(kinds_[k], share_of(k));
}

std::string Overlay::TextOf(SceneNodeId node) const {
  if (!values_.empty()) return std::isnan(values_[node]) ? std::string() : unit_(values_[node]);
  if (kind_.empty() || kind_[node] < 0) return "";
  return kinds_[static_cast<size_t>(kind_[node])];
}

std::string Overlay::TextOfCluster(ClusterId cluster) const {
  if (totals_.empty() || totals_[cluster] == 0) return "";
  return unit_(totals_[cluster]);
}

}  // namespace strata::viewer
