#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "refs/recording/run_passes.h"
#include "viewer/compare/async_value.h"
#include "viewer/compare/comparison.h"
#include "viewer/compare/comparison_cache.h"
#include "viewer/compare/document.h"
#include "viewer/compare/node_histories.h"
#include "viewer/compare/overlay.h"
#include "viewer/compare/search.h"
#include "viewer/compare/workers.h"
#include "viewer/model/control_session.h"
#include "viewer/model/graph_model.h"
#include "viewer/model/link.h"

namespace strata::viewer {

/// Where the viewer shows the two graphs of a subject.
enum class Mode : uint8_t { kUnified, kSideBySide, kBlink };
/// The tabs below the graph.
enum class Tab : uint8_t {
  kNone,
  kTable,
  kText,
  kPatterns,
  kOperators,
  kCosts,
  kMemory,
  kLanes,
  kRanks,
  kLive,
  kLog
};
std::string_view ToString(Tab tab);  ///< "none", "table", …

/// Everything that the viewer knows, without how it looks: the open document, what of it is shown,
/// what is selected. Panes read it and call its actions. Use from the thread that polls the
/// workers.
class Model {
 public:
  explicit Model(std::function<void()> wake);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  Workers& workers() { return workers_; }
  /// Delivers what workers have finished. True when something changed.
  bool Poll();
  /// Polls while a file is being opened, for at most `patience`: before there is a window that
  /// would wait. A trace opens in a few milliseconds, whatever its size.
  void PollUntilOpened(std::chrono::milliseconds patience);
  /// What the user waits for is not there yet.
  bool busy() const { return workers_.busy() || awaited_.has_value(); }

  // --- Documents ---

  /// Opens `FILE[#LINK]` in the background.
  void Open(const std::string& text);
  /// Compares the graphs that two REFs name, in the background.
  void OpenPair(const std::string& before, const std::string& after);
  /// Compares the graph that is shown with the one that a REF names.
  void CompareWith(const std::string& ref);
  /// Sees what a live run added to the document.
  void Refresh();
  bool opening() const { return workers_.busy("open"); }
  const std::string& opening_name() const { return opening_name_; }
  /// The share of what is opened that is imported, 0 to 1; 0: a trace, or not known.
  double opening_share() const { return opening() ? opening_share_->load() : 0; }
  /// What is being opened is given up; what was shown stays.
  void CancelOpening();
  const Document* document() const { return document_.get(); }
  /// What the document held when it was read last. REQUIRES: document().
  const Contents& contents() const { return *contents_; }
  /// Of a pass; derived changes count as changed until the pass was compared, as in the trace.
  const SceneCounts& CountsOf(SubjectId subject) const;
  bool has_contents() const { return contents_ != nullptr; }
  /// Changes whenever contents() does.
  uint64_t version() const { return version_; }
  /// A run of the document has not ended, and `following` is set.
  bool follows() const;
  bool following = true;  ///< what a live run adds is read, and its newest pass shown

  // --- Passes ---

  /// Runs a pipeline on the graph that is shown, in the background, records it in a trace of the
  /// state folder, and opens that.
  void RunPasses(const std::string& pipeline);
  /// Writes a trace of a small model, on which passes run, and opens it.
  void MakeDemo(const std::string& trace);
  /// Passes of RunPasses or MakeDemo run.
  bool running_passes() const { return workers_.busy("passes"); }
  /// How many of passes_count() have begun before the one that runs.
  int passes_done() const { return passes_done_ ? passes_done_->load() : 0; }
  int passes_count() const { return passes_count_; }
  /// Ends them before the next pass.
  void CancelPasses();

  // --- Subjects ---

  /// None: nothing is shown, or two REFs are compared.
  SubjectId subject_id() const { return subject_; }
  const Subject* subject() const;
  void Show(SubjectId subject);
  /// Compares the graph after `from` with the graph after `subject`.
  void ShowAgainst(SubjectId subject, SubjectId from);
  /// The subject that the one shown is compared with; none: the graph before the pass.
  SubjectId from_id() const { return from_; }
  /// The n-th next subject; `changed`: only those with changes count.
  void StepPass(int n, bool changed);
  void StepRun(int n);
  /// A title for what is shown; "" without a document.
  std::string Title() const;

  // --- The comparison ---

  const Comparison* comparison() const { return graph_ ? &graph_->comparison() : nullptr; }
  /// Names the comparison that is shown; changes when another one is. "": none is.
  std::string ComparisonKey() const;
  GraphModel* graph() { return graph_.get(); }
  const GraphModel* graph() const { return graph_.get(); }
  /// The next comparison is being made.
  bool comparing() const { return workers_.busy("compare") || awaited_.has_value(); }
  /// Comparisons that are kept, the one shown among them: neighbours of the pass shown are made
  /// ahead, so that going there takes no time.
  size_t kept_comparisons() const { return kept_.size(); }
  /// How many neighbours are laid out as they would be shown.
  size_t laid_out_ahead() const { return laid_out_.size(); }
  SceneNodeId selected() const { return graph_ ? graph_->selected() : SceneNodeId(); }
  void Select(SceneNodeId node);
  void Reveal(SceneNodeId node);
  /// Selects the n-th next difference, root causes first.
  void StepChange(int n);
  /// Goes to the n-th next hunk.
  void StepHunk(int n);
  /// Says that the node selected before and the selected one are one node of both graphs. This,
  /// and the next two, are kept beside the file, and the graphs are compared again.
  void PinMatch();
  /// Says that the selected node of both graphs is not the same one.
  void BreakMatch();
  /// Takes back what was said of the selected node.
  void ForgetMatch();
  bool writes_files = true;  ///< false: pins are forgotten at the end, passes do not run
  /// What happened to nodes over the passes; null without a document.
  const std::shared_ptr<NodeHistories>& histories() const { return histories_; }

  // --- A training under control ---

  /// Connects to the socket of `strata train --control`.
  void Attach(const std::string& socket);
  /// The training runs on without breakpoints.
  void Detach();
  /// Null: not attached.
  const ControlState* control() const { return control_ ? &control_state_ : nullptr; }
  const std::string& control_path() const { return control_path_; }
  /// Sends a command of docs/control.md; `typed`: shows it with its answer.
  void Control(const std::string& command, bool typed = false);
  /// Words that may come after `text` in such a command: those of docs/control.md, and nodes,
  /// operators and modules of what is shown.
  std::vector<std::string> ControlWords(std::string_view text) const;
  /// Breaks after the selected node, or no longer.
  void ToggleBreakpoint();
  /// Asks for the elements of a slice of the value at the stop: "0:4, 3, :"; "": for its image.
  void AskForSlice(const std::string& slice);
  /// Selects the node at which the training stopped.
  void GoToStop();
  /// Nodes of what is shown that have breakpoints, and the one at which the training stopped; none:
  /// none of them.
  const std::set<SceneNodeId>& breakpoint_nodes() const { return breakpoint_nodes_; }
  SceneNodeId stopped_node() const { return stopped_node_; }

  // --- Search ---

  const std::string& filter() const { return filter_; }
  /// Searches in the background; "": ends the search.
  void SetFilter(std::string filter);
  const SearchHits& hits() const { return hits_; }
  const std::set<SceneNodeId>& hit_nodes() const { return hit_nodes_; }
  bool searching() const { return workers_.busy("search"); }
  /// Goes to the n-th next hit.
  void StepHit(int n);

  // --- Choices ---

  Mode mode() const { return mode_; }
  void SetMode(Mode mode);
  Tab tab = Tab::kNone;
  std::string labels;       ///< on lines: "", "shape", "dtype", "bytes"
  std::string overlay_key;  ///< what nodes are coloured by; "": their status
  void StepOverlay(int n);
  void StepLabels();
  /// (key, label) of what the graph can be coloured by; null until a worker knows.
  const std::vector<std::pair<std::string, std::string>>* overlays();
  /// Null: none was chosen, or it is not made yet.
  const Overlay* overlay();
  bool show_before = false;  ///< while the key is held: the graph before
  int32_t hops() const { return hops_; }
  void SetHops(int32_t hops);

  // --- Graphs beside the one that is shown ---

  static constexpr size_t kMostCanvases = 4;
  /// What a canvas showed when canvases were synchronized last.
  struct Seen {
    const GraphModel* graph = nullptr;
    Camera camera;
    SceneNodeId selected;
    const SceneGeometry* geometry = nullptr;
  };
  struct Canvas {
    std::string title;
    std::unique_ptr<GraphModel> graph;
    Seen seen;
  };
  const std::vector<Canvas>& pinned() const { return pinned_; }
  /// Keeps the graph that is shown beside the next one.
  void Pin();
  void Unpin(size_t index);
  void UnpinAll();
  bool synced = true;  ///< cameras and selections of all canvases follow each other
  /// Once a frame: moves all canvases as the one that the user moved.
  void SyncCanvases();

  // --- Navigation ---

  /// Of what is shown, as the page writes links.
  Link CurrentLink() const;
  /// `FILE#LINK`: what strata-view opens.
  std::string FullLink() const;
  /// Keeps what is shown for Back.
  void Remember();
  /// Shows what a link of this document names.
  void Follow(const Link& link);
  void Back();
  void Forward();
  // --- Messages ---

  const std::string& message() const { return message_; }
  void Say(std::string message) {
    message_ = std::move(message);
    is_about_subject_ = false;
  }
  /// Says what another subject takes back: which of its changes is selected.
  void SayOfSubject(std::string message) {
    Say(std::move(message));
    is_about_subject_ = true;
  }
  /// Says and logs what does not keep the user from going on.
  void Warn(const Error& error);
  /// What went wrong last; "": nothing. Shown until the next action succeeds.
  const std::string& error() const { return error_; }
  /// All messages and warnings, oldest first.
  const std::vector<std::string>& log() const { return log_; }

 private:
  struct Opened {
    std::shared_ptr<Document> document;
    std::vector<std::string> warnings;
  };
  /// The graph that is shown, that after a pass: as a file to read and as the user names it.
  struct GraphSource {
    std::string ref, named;
  };
  Result<GraphSource> ShownGraph() const;
  void RecordPasses(PassesToRun run, std::function<Result<std::unique_ptr<Module>>()> load);
  void OnOpened(Opened opened, const Link& link);
  void OnGrown(std::shared_ptr<const Contents> contents);
  void ShowPair(SubjectId subject, SubjectId from);
  void Fail(const Error& error);
  void ShowComparison(std::shared_ptr<const Comparison> comparison, const std::string& key);
  void CompareRefs(const std::string& before, const std::string& after);
  /// What has to be loaded and compared to show a subject.
  struct Wanted {
    std::string key;        ///< names the comparison
    std::string graph_key;  ///< graphs of equal key share open slabs and camera
    std::function<Result<Comparison::Input>()> load;
  };
  /// Names the comparison of a subject's own graphs.
  std::string KeyOf(SubjectId subject) const;
  Wanted WantedOf(SubjectId subject, SubjectId from) const;
  void Compare(Wanted wanted);
  using Compared = Result<std::shared_ptr<const Comparison>>;
  /// `pins`: taken instead of those that are kept, and kept when the graphs compare with them.
  Workers::Job ComparisonJob(const Wanted& wanted, std::function<void(const Compared&)> done,
                             std::optional<Pins> pins = {}) const;
  void ChangePins(const std::function<void(Pins&)>& change, const std::string& said);
  void KeepComparison(const std::string& key, std::shared_ptr<const Comparison> comparison);
  void ForgetComparisons();
  /// Starts to compare a neighbour of what is shown, if one is missing and there is room for it, or
  /// to lay it out as it will be shown.
  void WorkAhead();
  /// Starts to compare the next pass whose derived changes are not counted yet, if that is cheap.
  void CountAhead();
  void ForgetCounts();
  /// The room of every canvas changes.
  void PlaceCanvasesAgain();
  /// Starts to lay a neighbour out, unless it is; true: a layout runs. `keeps_open`: with the slabs
  /// open that are open now.
  bool LayOutAhead(const std::shared_ptr<const Comparison>& comparison, bool keeps_open);
  /// What was laid out ahead of a comparison; that of all others is dropped.
  std::optional<GraphModel::LaidOut> TakeLaidOut(const Comparison& comparison);
  void DropLaidOut();
  /// Keeps how the graph that was shown before was laid out, for LayOutAhead: going back takes no
  /// time.
  void KeepGeometry(const GraphModel& before);
  void CancelAhead();
  void OnComparedAhead(const Compared& compared);
  void Search();
  /// Sees what the training under control said, and asks for the selected node's value.
  bool PollControl();
  void FindControlNodes();
  /// Sets mode, tab and hops.
  void TakeChoices(const Link& link);

  std::function<void()> wake_;
  std::string opening_name_;
  std::shared_ptr<std::atomic<double>> opening_share_ = std::make_shared<std::atomic<double>>(0);
  std::shared_ptr<Document> document_;
  std::shared_ptr<const Contents> contents_;
  uint64_t version_ = 0;
  SubjectId subject_, from_;
  std::string pair_after_;  // the second REF of OpenPair
  std::shared_ptr<std::atomic<int>> passes_done_;
  int passes_count_ = 0;
  std::optional<Link> pending_;  // to be applied when the comparison arrives
  std::string graph_key_;        // of which graph open slabs and the camera are kept
  std::optional<Wanted> shown_;  // how graph_ was made
  ComparisonCache kept_;
  int32_t direction_ = 1;                             // of the last step from pass to pass
  std::string ahead_;                                 // key of what is compared ahead; "": nothing
  std::map<uint64_t, GraphModel::LaidOut> laid_out_;  // neighbours, by their ids
  std::pair<uint64_t, uint64_t> laid_out_for_ = {};   // comparison and layout shown then
  struct ShownBefore {
    uint64_t comparison = 0;  // its id
    SceneView view;
    std::shared_ptr<const SceneGeometry> geometry;
  };
  ShownBefore shown_before_;                    // the graph before the one that is shown
  std::string given_up_;                        // key of the last one that failed
  std::map<std::string, SceneCounts> counted_;  // by keys of comparisons
  int64_t counted_nodes_ = 0;                   // by CountAhead
  std::optional<std::string> awaited_ = {};     // graph key, when the user wants what is `ahead_`
  Mode mode_ = Mode::kUnified;
  int32_t hops_ = 1;
  std::string filter_;
  SearchHits hits_;
  std::set<SceneNodeId> hit_nodes_;
  std::vector<Link> past_, future_;
  std::shared_ptr<NodeHistories> histories_;
  std::string message_, error_;
  bool is_about_subject_ = false;  // message_
  std::vector<std::string> log_;
  std::shared_ptr<SharedLanes> lanes_;
  Workers workers_;  // destroyed before what its jobs use
  std::unique_ptr<GraphModel> graph_;
  std::vector<Canvas> pinned_;
  Seen seen_;  // of graph_
  AsyncValue<std::vector<std::pair<std::string, std::string>>> overlays_{"overlays"};
  AsyncValue<Overlay> overlay_{"overlay"};
  std::unique_ptr<ControlSession> control_;  // null: not attached
  ControlState control_state_;
  uint64_t control_version_ = 0;
  std::string control_path_, control_asked_;        // the stop and node whose value was asked for
  const Comparison* control_comparison_ = nullptr;  // of the two below
  std::set<SceneNodeId> breakpoint_nodes_;
  SceneNodeId stopped_node_;
};

}  // namespace strata::viewer
