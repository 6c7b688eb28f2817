#pragma once
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "viewer/model/script_text.h"
#include "viewer/ui/elements.h"
#include "viewer/ui/input_queue.h"

namespace strata::viewer {

/// What a script needs of the window. The viewer implements it; tests have a double.
class ScriptHost {
 public:
  virtual ~ScriptHost() = default;
  virtual InputQueue& input() = 0;
  /// The picture of the frame that is being drawn is kept.
  virtual void KeepPixels() = 0;
  virtual Status Screenshot(const std::string& path) = 0;
  virtual void Resize(int width, int height) = 0;
  virtual void Quit() = 0;
  /// A file was dropped onto the window.
  virtual void Drop(const std::string& path) = 0;
  /// Writes the picture of the next frame, or the graph, as the file's ending says.
  virtual Status Export(const std::string& path) = 0;
};

/// Runs a script line by line in the frames of the viewer. A line runs when the line before has had
/// its effect: no input is waiting, no worker is busy, and two frames were drawn since.
class ScriptRunner {
 public:
  ScriptRunner(std::vector<ScriptLine> lines, std::string file)
      : lines_(std::move(lines)), file_(std::move(file)) {}

  /// All lines ran, and the last one has had its effect.
  bool done() const { return done_; }
  /// The next line does not wait until the viewer is idle.
  bool acts_now() const { return next_ < lines_.size() && lines_[next_].now; }
  /// Before a frame is drawn. True: the frame must record the UI tree.
  bool BeforeFrame(Ui& ui, ScriptHost& host);
  /// After it was drawn. Errors: an assertion does not hold, an element is missing, a file cannot
  /// be written, a line takes longer than a minute.
  Status AfterFrame(Ui& ui, ScriptHost& host);
  /// Adds the processor time that the last frame took to build.
  void OnBuilt(double ms);
  /// A line per command: its time until everything was shown, and the processor time of building
  /// its frames.
  std::string Measures() const;

 private:
  using Clock = std::chrono::steady_clock;

  /// Lines that look at the UI tree or the picture run after the frame; all others before.
  static bool NeedsTree(const ScriptLine& line);
  void Next();
  /// The viewer was busy for longer than a minute.
  bool Overdue() const;
  Status At(const ScriptLine& line, const Status& status) const;
  Status Act(Ui& ui, ScriptHost& host, const ScriptLine& line);
  /// One random event of `random EVENTS SEED`.
  Status ActAtRandom(Ui& ui, ScriptHost& host, const ScriptLine& line);
  Status ActOnElement(Ui& ui, ScriptHost& host, const ScriptLine& line);
  Status Assert(const Ui& ui, const ScriptLine& line) const;
  Status AssertState(const Ui& ui, const ScriptLine& line) const;
  /// Repeats an assertion until it holds.
  Status Await(const Ui& ui, const ScriptLine& line);
  /// A key, a click, a drag, a wheel or a letter; never one that writes a file or quits.
  void PushRandom(const Ui& ui, InputQueue& input);
  void BeginMeasure(const ScriptLine& line);
  /// What the last command took so far.
  void EndMeasure();
  /// Moves or zooms the graph for the next frame of `frames`; false: that was the last one.
  bool Move(Ui& ui, const ScriptLine& line);

  /// What a line took.
  struct Measured {
    int32_t line = 0;
    std::string words;
    double ms = 0;      ///< until the last frame in which something was loaded or laid out
    double cpu_ms = 0;  ///< processor time of all threads until then
    int32_t frames = 0;
    double mean_build_ms = 0, most_build_ms = 0;
  };

  std::vector<ScriptLine> lines_;
  std::string file_;
  size_t next_ = 0;
  bool done_ = false;
  int32_t quiet_frames_ = 0;  // since something happened
  Clock::time_point began_ = Clock::now(), resume_ = Clock::now();
  bool runs_after_ = false;  // the line runs after this frame
  int32_t moved_ = 0;        // frames of the line that moved the graph
  std::mt19937 random_;
  std::vector<Measured> measured_ = {{.line = 0, .words = "(first picture)"}};
  Clock::time_point acted_ = Clock::now();  // the last command
  double acted_cpu_ms_ = 0;                 // processor time used by then
  Status failed_;
};

}  // namespace strata::viewer
