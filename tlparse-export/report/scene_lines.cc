#include "tlparse-export/report/scene_lines.h"

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/fx/fx.h"
#include "ir/json.h"
#include "ir/native_text.h"

namespace strata {
namespace {

/// Printed lines longer than this are cut: a return of 300 values tells nothing by its 290th.
constexpr size_t kMaxLine = 600;

/// The lines of one side, of the program itself; nodes of bodies are shown by their fields.
class Side {
 public:
  explicit Side(const Listing& listing) : listing_(listing) {
    PrintText(listing.root(), {.types = false, .metadata = false}, native_);
    std::string_view rest = native_;
    rest.remove_prefix(rest.find('\n') + 1);  // graph NAME
    for (NodeId id : listing.root().nodes()) {
      const size_t end = rest.find('\n');
      std::string_view line = rest.substr(0, end);
      line.remove_prefix(std::min<size_t>(2, line.size()));
      native_of_.emplace(id.index, line.substr(0, kMaxLine));
      rest.remove_prefix(std::min(end, rest.size() - 1) + 1);
    }
    fx_ = PrintFx(listing.root(), {.comments = false, .frees = false});
    CollectFx();
  }

  /// "" for what has no line of its own.
  std::string_view Native(EntityId id) const {
    if (!IsOwn(id) || listing_[id].element.valid()) return {};
    const auto line = native_of_.find(listing_[id].node.index);
    return line == native_of_.end() ? std::string_view() : line->second;
  }

  std::string Type(EntityId id) const {
    const ValueId value = listing_.value(id);
    const Graph& graph = listing_.graph(id);
    if (!value.valid() || !graph.value(value).type.valid()) return "";
    return graph.module().types().ToString(graph.value(value).type);
  }

  /// The FX line, when it is not the one that the page makes of the native line and the type.
  std::string_view OddFx(EntityId id) const {
    if (!IsOwn(id) || listing_[id].kind == EntityKind::kInput) return {};
    const auto line = fx_of_.find(std::string_view(listing_.name(id)));
    if (line == fx_of_.end()) return {};
    return line->second == Expected(id) ? std::string_view() : line->second;
  }

 private:
  bool IsOwn(EntityId id) const { return id.valid() && listing_[id].graph == listing_.root().id(); }

  /// Statements of the outermost `forward` stand behind eight blanks: `name: "type" = …`.
  void CollectFx() {
    constexpr std::string_view kIndent = "        ";
    std::string_view rest = fx_;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size() - 1);
      std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end + 1);
      if (!line.starts_with(kIndent) || line.size() == kIndent.size()) continue;
      line.remove_prefix(kIndent.size());
      if (line[0] == ' ') continue;
      const std::string_view name = line.starts_with("return ")
                                        ? std::string_view("output")
                                        : line.substr(0, line.find_first_of(": ="));
      fx_of_.emplace(name, line.substr(0, kMaxLine));
    }
  }

  /// As `fxLine` of assets/report/base.js has it.
  std::string Expected(EntityId id) const {
    const std::string_view native = Native(id);
    const size_t equals = native.find(" = ");
    if (equals == std::string_view::npos) return {};
    const std::string type = Type(id);
    const std::string annotation = type.empty() ? "" : fmt::format(": \"{}\"", type);
    const std::string line = fmt::format("{}{} = torch.ops.{}", native.substr(0, equals),
                                         annotation, native.substr(equals + 3));
    return line.substr(0, kMaxLine);
  }

  const Listing& listing_;
  std::string native_, fx_;
  std::unordered_map<int32_t, std::string_view> native_of_;       // by node
  std::unordered_map<std::string_view, std::string_view> fx_of_;  // by name
};

}  // namespace

std::string LinesJson(const GraphDiff& diff, const Scene& scene, Texts& lines) {
  const Side before(diff.before), after(diff.after);
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("after").BeginArray();
  int64_t last = 0;
  for (const SceneNode& node : scene.nodes) {
    const int64_t line =
        lines.Add(node.after.valid() ? after.Native(node.after) : before.Native(node.before));
    json.Int(line - std::exchange(last, line));
  }
  json.EndArray().Key("before").BeginArray();
  for (size_t i = 0; i < scene.nodes.size(); ++i) {
    const SceneNode& node = scene.nodes[i];
    if (!node.before.valid() || !node.after.valid()) continue;
    const std::string_view line = before.Native(node.before);
    const std::string type = before.Type(node.before);
    if (line == after.Native(node.after) && type == after.Type(node.after)) continue;
    json.BeginArray().Int(static_cast<int64_t>(i)).Int(lines.Add(line));
    json.Int(lines.Add(type)).EndArray();
  }
  json.EndArray().Key("fx").BeginArray();
  for (size_t i = 0; i < scene.nodes.size(); ++i) {
    const SceneNode& node = scene.nodes[i];
    const auto add = [&](int side, std::string_view line) {
      if (line.empty()) return;
      json.BeginArray().Int(static_cast<int64_t>(i)).Int(side).Int(lines.Add(line)).EndArray();
    };
    const bool both = node.before.valid() && node.after.valid();
    if (node.after.valid()) add(1, after.OddFx(node.after));
    if (node.before.valid() && (!both || before.Native(node.before) != after.Native(node.after))) {
      add(0, before.OddFx(node.before));
    }
  }
  json.EndArray().EndObject();
  return out;
}

}  // namespace strata
