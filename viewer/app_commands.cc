#include <cmath>

#include <fmt/format.h>
#include <imgui.h>

#include "base/text.h"
#include "viewer/app.h"

namespace strata::viewer {
namespace {

/// A name as a part of a file name.
std::string FileWord(std::string_view name) {
  std::string word;
  for (const char c : name.substr(0, 60))
    word += IsWordChar(c) || c == '-' || c == '.' ? c : '_';
  return word;
}

}  // namespace

void App::AddCommands() {
  AddPassCommands();
  AddTabCommands();
  AddLookCommands();
  AddPaneCommands();
  AddSearchCommands();
  AddFileCommands();
  AddWalkCommands();
  AddGraphCommands();
  AddControlCommands();
}

/// Those that go from pass to pass and choose how graphs are shown. Keys are those of the report's
/// page.
void App::AddPassCommands() {
  Model& m = model_;
  const auto add = [&](std::string id, std::string words, std::vector<std::string> keys,
                       std::function<void(int)> run) {
    commands_.Add(std::move(id), std::move(words), std::move(keys), std::move(run));
  };
  add("next-pass", "Next pass", {"j"}, [&m](int n) { m.StepPass(n, false); });
  add("previous-pass", "Pass before", {"k"}, [&m](int n) { m.StepPass(-n, false); });
  add("next-changed-pass", "Next pass with changes", {"J"}, [&m](int n) { m.StepPass(n, true); });
  add("previous-changed-pass", "Pass with changes before", {"K"},
      [&m](int n) { m.StepPass(-n, true); });
  add("next-change", "Next change in this pass", {"n"}, [&m](int n) { m.StepChange(n); });
  add("previous-change", "Change before", {"N"}, [&m](int n) { m.StepChange(-n); });
  add("next-hunk", "Next place that was rewritten", {"]"}, [&m](int n) { m.StepHunk(n); });
  add("previous-hunk", "Place before", {"["}, [&m](int n) { m.StepHunk(-n); });
  add("next-run", "Next rank or run", {"r"}, [&m](int n) { m.StepRun(n); });
  add("previous-run", "Rank or run before", {"R"}, [&m](int n) { m.StepRun(-n); });
  add("unified", "Unified graph", {"1"}, [&m](int) { m.SetMode(Mode::kUnified); });
  add("side-by-side", "Graphs side by side", {"2"}, [&m](int) { m.SetMode(Mode::kSideBySide); });
  add("blink", "Blink between both graphs", {"3"}, [&m](int) { m.SetMode(Mode::kBlink); });
  add("show-before", "Hold: the graph before", {"b"}, [&m](int) { m.show_before = true; });
  add("changed-only", "Changed nodes only, or everything", {"c"},
      [&m](int) { m.SetHops(m.hops() == SceneView::kAllHops ? 1 : SceneView::kAllHops); });
  add("light-theme", "Light theme", {}, [this](int) { SetTheme(false); });
  add("dark-theme", "Dark theme", {}, [this](int) { SetTheme(true); });
}

/// Those that open a tab below the graph.
void App::AddTabCommands() {
  Model& m = model_;
  const auto add = [&](std::string id, std::string words, std::vector<std::string> keys,
                       std::function<void(int)> run) {
    commands_.Add(std::move(id), std::move(words), std::move(keys), std::move(run));
  };
  add("text", "Text of both graphs", {"4"}, [&m](int) { m.tab = Tab::kText; });
  add("table", "Table of nodes", {}, [&m](int) { m.tab = Tab::kTable; });
  add("patterns", "Patterns", {}, [&m](int) { m.tab = Tab::kPatterns; });
  add("operators", "Operators", {}, [&m](int) { m.tab = Tab::kOperators; });
  add("costs", "Changes of time, bytes and peak", {}, [&m](int) { m.tab = Tab::kCosts; });
  add("memory", "Memory over the program", {}, [&m](int) { m.tab = Tab::kMemory; });
  add("lanes", "Lanes of streams and collectives", {}, [&m](int) { m.tab = Tab::kLanes; });
  add("ranks", "Matrix of ranks", {}, [&m](int) { m.tab = Tab::kRanks; });
  add("live", "Training run", {}, [&m](int) { m.tab = Tab::kLive; });
  add("log", "Log of messages", {}, [&m](int) { m.tab = Tab::kLog; });
}

/// Those that choose what is drawn of a graph, and pin graphs and matches.
void App::AddLookCommands() {
  Model& m = model_;
  const auto add = [&](std::string id, std::string words, std::vector<std::string> keys,
                       std::function<void(int)> run) {
    commands_.Add(std::move(id), std::move(words), std::move(keys), std::move(run));
  };
  add("follow", "Follow a live run, or pause", {"F6"}, [&m](int) {
    m.following = !m.following;
    m.Say(m.following ? "Following" : "Following paused; F6 goes on");
  });
  add("overlay", "Colour nodes by the next property", {"o"}, [&m](int n) { m.StepOverlay(n); });
  add("previous-overlay", "Colour nodes by the property before", {"O"},
      [&m](int n) { m.StepOverlay(-n); });
  add("labels", "Shapes, data types or bytes on the lines", {"t"}, [&m](int) { m.StepLabels(); });
  add("pin-graph", "Keep this graph beside the next one", {"v"}, [&m](int) { m.Pin(); });
  add("unpin-graphs", "One graph again", {"V"}, [&m](int) { m.UnpinAll(); });
  add("sync", "Move all graphs together, or each by itself", {"s"}, [&m](int) {
    m.synced = !m.synced;
    m.Say(m.synced ? "Graphs move together" : "Each graph moves by itself");
  });
  add("pin-match", "The node selected before and this one are the same", {"e"},
      [&m](int) { m.PinMatch(); });
  add("break-match", "This node is not the same in both graphs", {"E"},
      [&m](int) { m.BreakMatch(); });
  add("forget-match", "Forget what was pinned of this node", {}, [&m](int) { m.ForgetMatch(); });
}

/// Those that show, hide and change panes.
void App::AddPaneCommands() {
  Model& m = model_;
  const auto add = [&](std::string id, std::string words, std::vector<std::string> keys,
                       std::function<void(int)> run) {
    commands_.Add(std::move(id), std::move(words), std::move(keys), std::move(run));
  };
  add("left-pane", "Show or hide the lists", {"F7"},
      [this](int) { settings_.hide_left = !settings_.hide_left; });
  add("right-pane", "Show or hide the node", {"F8"},
      [this](int) { settings_.hide_right = !settings_.hide_right; });
  add("bottom-pane", "Show or hide the tabs below the graph", {"F9"},
      [this](int) { settings_.hide_bottom = !settings_.hide_bottom; });
  add("reset-layout", "Reset the layout", {"Ctrl+Shift+R"}, [this](int) {
    settings_.left = settings_.right = settings_.bottom = settings_.modules = 0;
    settings_.hide_left = settings_.hide_right = settings_.hide_bottom = false;
  });
  const auto step_tab = [&m](int n) {
    const int count = static_cast<int>(Tab::kLog) + 1;
    m.tab = static_cast<Tab>(((static_cast<int>(m.tab) + n) % count + count) % count);
  };
  add("next-tab", "Next tab below the graph", {"Tab"}, step_tab);
  add("previous-tab", "Tab before", {"Shift+Tab"}, [step_tab](int n) { step_tab(-n); });
  add("close-tab", "Close the tab below the graph", {}, [&m](int) { m.tab = Tab::kNone; });
}

/// Those that find, go back and copy.
void App::AddSearchCommands() {
  Model& m = model_;
  const auto add = [&](std::string id, std::string words, std::vector<std::string> keys,
                       std::function<void(int)> run) {
    commands_.Add(std::move(id), std::move(words), std::move(keys), std::move(run));
  };
  add("search", "Search", {"/", "Ctrl+F"}, [this](int) {
    left_tab_ = LeftTab::kSearch;
    settings_.hide_left = false;
    search_pane_.Focus();
  });
  add("next-hit", "Next hit", {"F3"}, [&m](int n) { m.StepHit(n); });
  add("previous-hit", "Hit before", {"Shift+F3"}, [&m](int n) { m.StepHit(-n); });
  add("filter-passes", "Filter the passes", {"Ctrl+L"}, [this](int) {
    left_tab_ = LeftTab::kPasses;
    passes_pane_.FocusFilter();
  });
  add("back", "Back", {"Alt+Left"}, [&m](int) { m.Back(); });
  add("forward", "Forward", {"Alt+Right"}, [&m](int) { m.Forward(); });
  add("copy-link", "Copy a link to what is shown", {"y"}, [&m](int) {
    ImGui::SetClipboardText(m.FullLink().c_str());
    m.Say("Link copied");
  });
  add("copy-name", "Copy the name of the node", {"Y"}, [&m](int) {
    if (!m.selected().valid()) return m.Say("Select a node first");
    ImGui::SetClipboardText(m.comparison()->NameOf(m.selected()).c_str());
    m.Say("Name copied");
  });
}

/// Those that open, export, compare and make files.
void App::AddFileCommands() {
  Model& m = model_;
  const auto add = [&](std::string id, std::string words, std::vector<std::string> keys,
                       std::function<void(int)> run) {
    commands_.Add(std::move(id), std::move(words), std::move(keys), std::move(run));
  };
  add("palette", "Commands", {"Ctrl+P", "g"},
      [this](int) { palette_.Open(Palette::Kind::kCommands); });
  add("open", "Open a file", {"Ctrl+O"}, [this](int) { palette_.Open(Palette::Kind::kOpen); });
  add("export", "Export the picture or the graph", {"Ctrl+E"}, [this](int) {
    const Subject* s = model_.subject();
    palette_.Open(Palette::Kind::kExport, s == nullptr ? "graph"
                                          : s->index < 0
                                              ? FileWord(s->name)
                                              : fmt::format("{}_{}", s->index, FileWord(s->name)));
  });
  add("compare", "Compare this graph with another one", {"C"}, [this](int) {
    if (model_.comparison() == nullptr) return model_.Say("Open a graph first");
    const bool has_file = model_.document() != nullptr;
    palette_.Open(Palette::Kind::kCompare, has_file ? model_.document()->file() + "#" : "");
  });
  add("run-passes", "Run passes on this graph", {"P"}, [this](int) {
    if (model_.running_passes()) return model_.CancelPasses();
    if (model_.subject() == nullptr && model_.comparison() == nullptr)
      return model_.Say("Open a graph first");
    palette_.Open(Palette::Kind::kPasses);
  });
  add("demo", "Make a demo trace and open it", {"D"}, [this](int) { model_.MakeDemo(DemoPath()); });
  add("demo-elsewhere", "Make a demo trace in a place of your choice", {},
      [this](int) { palette_.Open(Palette::Kind::kDemo, DemoPath()); });
  for (size_t i = 0; i < Settings::kMostRecent; ++i) {
    add(fmt::format("recent-{}", i + 1), fmt::format("Open recent file {}", i + 1),
        {fmt::format("Ctrl+{}", i + 1)}, [this, i](int) {
          if (i < settings_.recent.size()) {
            model_.Open(settings_.recent[i]);
          } else {
            model_.Say(fmt::format("No recent file {}", i + 1));
          }
        });
  }
  add("set-bookmark", "Set a bookmark: a key follows", {"m"},
      [this](int) { waiting_ = Waiting::kSetBookmark; });
  add("go-to-bookmark", "Go to a bookmark: its key follows", {"'"},
      [this](int) { waiting_ = Waiting::kGoToBookmark; });
  add("keys", "Keys", {"?", "F1"}, [this](int) { palette_.Open(Palette::Kind::kKeys); });
  add("refresh", "Read the file again", {"F5"}, [&m](int) { m.Refresh(); });
  add("quit", "Quit", {"Ctrl+Q"}, [this](int) { quit_ = true; });
}

/// Those that act on a training under control.
void App::AddControlCommands() {
  Model& m = model_;
  const auto add = [&](std::string id, std::string words, std::vector<std::string> keys,
                       std::function<void(int)> run) {
    commands_.Add(std::move(id), std::move(words), std::move(keys), std::move(run));
  };
  add("continue", "Continue the training, or pause it", {"F10"}, [&m](int) {
    const bool runs = m.control() != nullptr && m.control()->phase == ControlState::Phase::kRunning;
    m.Control(runs ? "pause" : "continue");
  });
  add("step-node", "Run the training one node on", {"F11"},
      [&m](int n) { m.Control(fmt::format("step node {}", n)); });
  add("step", "Run the training one step on", {"F12"},
      [&m](int n) { m.Control(fmt::format("step step {}", n)); });
  add("step-back", "Take the training one node back", {"Shift+F11"},
      [&m](int n) { m.Control(fmt::format("back {}", n)); });
  add("break", "Break after this node, or no longer", {"Ctrl+B"},
      [&m](int) { m.ToggleBreakpoint(); });
  add("go-to-stop", "To the node at which the training stopped", {"Ctrl+G"},
      [&m](int) { m.GoToStop(); });
  add("save-checkpoint", "Write a checkpoint of the training", {},
      [&m](int) { m.Control("save"); });
  add("stop-training", "End the training, with a checkpoint", {}, [&m](int) { m.Control("stop"); });
  add("detach", "Let the training run on", {}, [&m](int) { m.Detach(); });
}

/// A command that needs a graph on the screen.
void App::AddOfGraph(std::string id, std::string words, std::vector<std::string> keys,
                     std::function<void(GraphModel&, int)> run) {
  Model& m = model_;
  commands_.Add(std::move(id), std::move(words), std::move(keys),
                [&m, run = std::move(run)](int n) {
                  if (m.graph() != nullptr && m.graph()->geometry() != nullptr) {
                    run(*m.graph(), n);
                  } else {
                    m.Say("Open a graph first");
                  }
                });
}

/// Those that walk from node to node.
void App::AddWalkCommands() {
  const auto walk = [&](std::string id, std::string words, std::string key, int dx, int dy) {
    AddOfGraph(std::move(id), std::move(words), {std::move(key)}, [dx, dy](GraphModel& g, int) {
      const SceneNodeId next = g.Nearest(dx, dy);
      if (!next.valid()) return;
      g.Select(next);
      g.Center(next);
    });
  };
  walk("left", "To the nearest node on the left", "Left", -1, 0);
  walk("right", "To the nearest node on the right", "Right", 1, 0);
  walk("up", "To the nearest node above", "Up", 0, -1);
  walk("down", "To the nearest node below", "Down", 0, 1);
}

/// Those that act on the graph.
void App::AddGraphCommands() {
  Model& m = model_;
  const auto add = [&](std::string id, std::string words, std::vector<std::string> keys,
                       std::function<void(GraphModel&, int)> run) {
    AddOfGraph(std::move(id), std::move(words), std::move(keys), std::move(run));
  };
  const auto say = [&](std::string id, std::string words, std::vector<std::string> keys,
                       std::function<std::string(GraphModel&)> run) {
    add(std::move(id), std::move(words), std::move(keys),
        [&m, run = std::move(run)](GraphModel& g, int n) {
          std::string words_said;
          for (int i = 0; i < n; ++i)
            words_said = run(g);
          m.Say(words_said);
        });
  };
  add("toggle", "Open or close the slab around the node", {"Enter"},
      [](GraphModel& g, int) { g.ToggleHere(false); });
  add("toggle-below", "Open or close it with all below", {"Shift+Enter"},
      [](GraphModel& g, int) { g.ToggleHere(true); });
  say("outward", "Close the slab, then the one around it", {"h"},
      [](GraphModel& g) { return g.Step(false); });
  say("inward", "Open the slab, then go to the first inside", {"l"},
      [](GraphModel& g) { return g.Step(true); });
  add("open-all", "Open every slab", {}, [](GraphModel& g, int) { g.OpenAll(true); });
  add("close-all", "Close every slab", {}, [](GraphModel& g, int) { g.OpenAll(false); });
  add("fit-selection", "Fit the selection", {"f"}, [](GraphModel& g, int) { g.FitSelection(); });
  add("fit-all", "Fit everything", {"Space"}, [](GraphModel& g, int) { g.FitAll(); });
  add("zoom-in", "Zoom in", {"+", "="}, [](GraphModel& g, int n) { g.Zoom(std::pow(1.25, n)); });
  add("zoom-out", "Zoom out", {"-"}, [](GraphModel& g, int n) { g.Zoom(std::pow(0.8, n)); });
  add("zoom-reset", "Zoom to 100 %", {"0"}, [](GraphModel& g, int) { g.Zoom(1 / g.camera.scale); });
  say("upstream", "Highlight what flows in, a step further each time", {"u"},
      [](GraphModel& g) { return g.Light(true); });
  say("downstream", "Highlight what flows out", {"d"},
      [](GraphModel& g) { return g.Light(false); });
  say("path", "Highlight a way between the last two nodes", {"p"},
      [](GraphModel& g) { return g.Path(); });
  say("isolate", "Nothing but the neighbourhood, a step more each time", {"i"},
      [](GraphModel& g) { return g.Isolate(); });
  say("hide", "Hide the node", {"x"}, [](GraphModel& g) { return g.Hide(); });
  say("show-all", "Show all that is hidden", {"X"}, [](GraphModel& g) { return g.ShowAll(); });
  say("undo", "Undo what was opened, folded or hidden", {"Ctrl+Z"},
      [](GraphModel& g) { return g.Undo(); });
  say("redo", "Redo", {"Ctrl+Shift+Z"}, [](GraphModel& g) { return g.Redo(); });
  add("clear", "Clear", {"Escape"}, [](GraphModel& g, int) {
    if (!g.Clear()) g.Select({});
  });
}

}  // namespace strata::viewer
