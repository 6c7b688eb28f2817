#include "viewer/ui/ui_state.h"

#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "base/json.h"

namespace strata::viewer {
namespace {

std::string_view NameOf(Mode mode) {
  return mode == Mode::kSideBySide ? "side" : mode == Mode::kBlink ? "blink" : "unified";
}

std::string Number(int64_t value) {
  return fmt::format("{}", value);
}

/// The comparison and the graph that are shown. `add(name, value)` takes a line of the state.
void AddShown(const Model& model, const std::function<void(std::string, std::string)>& add) {
  const Comparison* comparison = model.comparison();
  const GraphModel* graph = model.graph();
  const SceneCounts counts = comparison != nullptr ? comparison->counts() : SceneCounts{};
  add("nodes", Number(counts.nodes));
  add("added", Number(counts.added));
  add("removed", Number(counts.removed));
  add("changed", Number(counts.changed));
  add("moved", Number(counts.moved));
  add("derived", Number(counts.derived));
  const bool drawn = graph != nullptr && graph->geometry() != nullptr;
  add("drawn", Number(drawn ? graph->geometry()->drawn : 0));
  add("zoom", Number(graph != nullptr ? std::lround(graph->camera.scale * 100) : 0));
  add("node", model.selected().valid() ? comparison->NameOf(model.selected()) : "");
  add("status", model.selected().valid()
                    ? std::string(ToString(comparison->StatusOf(model.selected())))
                    : "");
  add("module", model.selected().valid() ? comparison->ModuleOf(model.selected()) : "");
  add("lit",
      Number(graph != nullptr && graph->lit() ? static_cast<int64_t>(graph->lit()->size()) : 0));
  add("overlay", model.overlay_key);
  add("labels", model.labels);
  add("canvases", Number(static_cast<int64_t>(model.pinned().size()) + (graph != nullptr ? 1 : 0)));
  add("synced", model.synced ? "yes" : "no");
  const std::optional<Pins> pins = comparison != nullptr ? comparison->input().pins : std::nullopt;
  add("pins", Number(pins ? static_cast<int64_t>(pins->same.size()) : 0));
  add("vetoes", Number(pins ? static_cast<int64_t>(pins->never.size()) : 0));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> StateOf(const Model& model, bool dark,
                                                         std::string_view key) {
  std::vector<std::pair<std::string, std::string>> state;
  const auto add = [&](std::string name, std::string value) {
    state.emplace_back(std::move(name), std::move(value));
  };
  const Subject* subject = model.subject();
  add("file", model.document() != nullptr ? model.document()->file() : "");
  add("title", model.Title());
  add("run", subject != nullptr ? Number(static_cast<int64_t>(subject->run)) : "");
  add("graph", subject != nullptr ? subject->graph : "");
  add("pass", subject != nullptr && subject->index >= 0 ? subject->name : "");
  add("pass_index", subject != nullptr ? Number(subject->index) : "-1");
  if (key.empty() || key == "link") add("link", PrintLink(model.CurrentLink()));
  const RunEntry* run = subject != nullptr ? model.contents().RunOf(*subject)
                        : model.has_contents() && !model.contents().runs.empty()
                            ? &model.contents().runs.back()
                            : nullptr;
  add("run_status", run != nullptr ? run->status : "");
  add("step", Number(run != nullptr ? run->last_step : 0));
  add("following", model.follows() ? "yes" : "no");
  add("mode", std::string(NameOf(model.mode())));
  add("tab", std::string(ToString(model.tab)));
  add("hops", model.hops() == SceneView::kAllHops ? "all" : Number(model.hops()));
  add("theme", dark ? "dark" : "light");
  add("opening", model.opening() ? model.opening_name() : "");
  add("progress", Number(std::lround(model.opening_share() * 100)));
  add("error", model.error());
  add("message", model.message());
  add("runs",
      Number(model.has_contents() ? static_cast<int64_t>(model.contents().runs.size()) : 0));
  int64_t passes = 0;
  if (model.has_contents()) {
    for (const Subject& s : model.contents().subjects)
      passes += s.kind == Subject::Kind::kPass ? 1 : 0;
  }
  add("passes", Number(passes));
  AddShown(model, add);
  const ControlState* control = model.control();
  add("control", control != nullptr ? std::string(ToString(control->phase)) : "");
  add("control_node", control != nullptr ? control->node : "");
  add("control_steps", Number(control != nullptr ? control->steps_done : 0));
  add("breakpoints",
      Number(control != nullptr ? static_cast<int64_t>(control->breakpoints.size()) : 0));
  add("kept", Number(static_cast<int64_t>(model.kept_comparisons())));
  add("laid_out", Number(static_cast<int64_t>(model.laid_out_ahead())));
  add("hits", Number(static_cast<int64_t>(model.hits().nodes.size())));
  return state;
}

std::string TreeJson(const std::vector<std::pair<std::string, std::string>>& state,
                     const UiTree& tree) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject().Field("schema", "strata.ui/1");
  json.Break(1).Key("state").BeginObject();
  for (const auto& [key, value] : state)
    json.Break(2).Field(key, value);
  json.EndObject();
  json.Break(1).Key("elements").BeginArray();
  for (const UiElement& element : tree.elements()) {
    json.Break(2).BeginObject().Field("name", element.name).Field("role", element.role);
    json.Field("text", element.text);
    for (const char* key : {"box", "rect"}) {
      json.Key(key).BeginArray();
      for (const float value : {element.x, element.y, element.width, element.height})
        json.Int(std::lround(value));
      json.EndArray();
    }
    json.Key("state").BeginArray();
    if (element.selected) json.String("selected");
    if (!element.enabled) json.String("disabled");
    json.EndArray().Field("selected", element.selected).Field("enabled", element.enabled);
    json.EndObject();
  }
  json.EndArray().EndObject();
  return text + "\n";
}

}  // namespace strata::viewer
