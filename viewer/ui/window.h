#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "viewer/ui/input_queue.h"

struct GLFWwindow;

namespace strata::viewer {

/// The window of the viewer, with OpenGL and Dear ImGui set up in it. One per process.
class Window {
 public:
  /// Errors: no display, no OpenGL 3.
  static Result<std::unique_ptr<Window>> Open(const std::string& title, int width, int height);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// Keys, characters and pointers since the last frame.
  InputQueue& input() { return input_; }
  /// Files that were dropped on the window since the last call.
  void Drop(std::string path) { dropped_.push_back(std::move(path)); }
  std::vector<std::string> TakeDropped() { return std::exchange(dropped_, {}); }
  /// Of the screen: 2 on one of high resolution.
  float scale() const;
  bool should_close() const;

  /// Waits for an event, at most `seconds`; 0: only looks.
  void WaitEvents(double seconds);
  /// Wakes `WaitEvents`, from any thread.
  static void Wake();

  void SetTitle(const std::string& title);
  void Resize(int width, int height);
  /// Uploads the fonts anew.
  void RebuildFonts();

  /// Begins a frame: `ImGui::GetIO()` has the size and the time; false while the window is too
  /// small to draw in.
  bool BeginFrame();
  /// Draws the frame of Dear ImGui and shows it.
  void EndFrame(unsigned background);
  /// EndFrame of this frame keeps the picture for Screenshot.
  void KeepPixels() { keep_pixels_ = true; }
  /// From now on frames are drawn only when their picture is kept.
  void DrawOnlyKeptPixels() { draws_only_kept_ = true; }
  /// Writes the picture that was kept last as a PNG file. Errors: the file cannot be written.
  Status Screenshot(const std::string& path) const;

 private:
  Window() = default;

  GLFWwindow* window_ = nullptr;
  InputQueue input_;
  std::vector<std::string> dropped_;
  double last_time_ = 0;
  std::vector<unsigned char> pixels_;  // of the last frame, bottom row first
  int pixels_width_ = 0, pixels_height_ = 0;
  bool keep_pixels_ = false;
  bool draws_only_kept_ = false;
};

}  // namespace strata::viewer
