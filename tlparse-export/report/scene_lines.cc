#include "tlparse-export/report/scene_lines.h"

#include <deque>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "ir/fx/fx.h"
#include "ir/text/native_text.h"

namespace strata {
namespace {

/// Printed lines longer than this are cut: the 290th value of a return is of no use.
constexpr size_t kMaxLine = 600;

/// The lines of one side, of the program and its bodies.
class Side {
 public:
  explicit Side(const Listing& listing) : listing_(listing) {
    for (ScopeId scope : IdsOf(listing.scopes()))
      CollectNative(scope);
    fx_ = PrintFx(listing.root(), {.comments = false, .frees = false});
    CollectFx();
  }

  /// "" for what has no line of its own.
  std::string_view Native(EntityId id) const {
    if (!id.valid() || listing_[id].element.valid()) return {};
    const auto& lines = native_of_[listing_.scope_of(id)];
    const auto line = lines.find(listing_[id].node.index);
    return line == lines.end() ? std::string_view() : line->second;
  }

  std::string Type(EntityId id) const {
    const ValueId value = listing_.value(id);
    const Graph& graph = listing_.graph(id);
    if (!value.valid() || !graph.value(value).type.valid()) return "";
    return graph.module().types().ToString(graph.value(value).type);
  }

  /// The FX line, when it is not the one that the page makes of the native line and the type.
  std::string_view OddFx(EntityId id) const {
    if (!id.valid() || listing_[id].kind == EntityKind::kInput) return {};
    const auto line = fx_of_.find(listing_.name(id));
    if (line == fx_of_.end()) return {};
    return line->second == Expected(id) ? std::string_view() : line->second;
  }

 private:
  void CollectNative(ScopeId scope) {
    const Graph& graph = *listing_.scopes()[scope].graph;
    std::string& text = native_.emplace_back();
    PrintText(graph, {.types = false, .metadata = false}, text);
    std::string_view rest = text;
    TakeLine(rest);  // graph NAME
    auto& lines = native_of_[native_of_.Add({})];
    for (NodeId id : graph.nodes()) {
      std::string_view line = TakeLine(rest);
      line.remove_prefix(std::min<size_t>(2, line.size()));
      lines.emplace(id.index, line.substr(0, kMaxLine));
    }
  }

  /// Statements of a class stand eight blanks behind it: `name: "type" = …`; those of bodies are
  /// kept under the path of their classes.
  void CollectFx() {
    constexpr size_t kIndent = 8;
    struct Class {
      size_t indent;
      std::string prefix;
    };
    std::vector<Class> classes;
    std::string_view rest = fx_;
    while (!rest.empty()) {
      std::string_view line = TakeLine(rest);
      const size_t indent = line.find_first_not_of(' ');
      if (indent == std::string_view::npos) continue;
      line.remove_prefix(indent);
      while (!classes.empty() && classes.back().indent >= indent)
        classes.pop_back();
      if (line.starts_with("class ")) {
        const std::string_view name = line.substr(6, line.find('(') - 6);
        classes.push_back(
            {indent, classes.empty() ? "" : fmt::format("{}{}/", classes.back().prefix, name)});
        continue;
      }
      if (classes.empty() || indent != classes.back().indent + kIndent) continue;
      const std::string_view name = line.starts_with("return ")
                                        ? std::string_view("output")
                                        : line.substr(0, line.find_first_of(": ="));
      fx_of_.emplace(classes.back().prefix + std::string(name), line.substr(0, kMaxLine));
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
  std::string fx_;
  std::deque<std::string> native_;                                              // by scope
  IdVector<ScopeId, std::unordered_map<int32_t, std::string_view>> native_of_;  // by node
  std::unordered_map<std::string, std::string_view> fx_of_;                     // by name
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
  for (SceneNodeId id : IdsOf(scene.nodes)) {
    const SceneNode& node = scene.nodes[id];
    if (!node.before.valid() || !node.after.valid()) continue;
    const std::string_view line = before.Native(node.before);
    const std::string type = before.Type(node.before);
    if (line == after.Native(node.after) && type == after.Type(node.after)) continue;
    json.BeginArray().Int(id.index).Int(lines.Add(line));
    json.Int(lines.Add(type)).EndArray();
  }
  json.EndArray().Key("fx").BeginArray();
  for (SceneNodeId id : IdsOf(scene.nodes)) {
    const SceneNode& node = scene.nodes[id];
    const auto add = [&](int side, std::string_view line) {
      if (line.empty()) return;
      json.BeginArray().Int(id.index).Int(side).Int(lines.Add(line)).EndArray();
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
