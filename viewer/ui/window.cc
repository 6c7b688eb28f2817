#include "viewer/ui/window.h"

#include <GLFW/glfw3.h>
#include <algorithm>
#include <backends/imgui_impl_opengl3.h>
#include <cstring>
#include <stb/stb_image_write.h>
#include <string_view>

#include <imgui.h>

#include "base/file.h"
#include "base/text.h"

namespace strata::viewer {
namespace {

std::string last_message;  // of GLFW, which reports through a callback without context

void OnMessage(int, const char* text) {
  last_message = text;
}

uint8_t ModsOf(int mods) {
  return static_cast<uint8_t>(((mods & GLFW_MOD_SHIFT) != 0 ? kShift : 0) |
                              ((mods & GLFW_MOD_CONTROL) != 0 ? kCtrl : 0) |
                              ((mods & GLFW_MOD_ALT) != 0 ? kAlt : 0));
}

InputQueue& QueueOf(GLFWwindow* window) {
  return static_cast<Window*>(glfwGetWindowUserPointer(window))->input();
}

void OnKey(GLFWwindow* window, int key, int, int action, int mods) {
  InputQueue& queue = QueueOf(window);
  const InputEvent event{.kind = InputEvent::Kind::kKey,
                         .key = key,
                         .down = action != GLFW_RELEASE,
                         .mods = ModsOf(mods)};
  // A key that repeats is pressed again.
  if (action == GLFW_REPEAT) {
    InputEvent up = event;
    up.down = false;
    queue.Push(up);
  }
  queue.Push(event);
}

void OnText(GLFWwindow* window, unsigned character) {
  QueueOf(window).Push({.kind = InputEvent::Kind::kText, .character = character});
}

/// Positions of pointers are in pixels of the screen, as the frame buffer is.
void OnMove(GLFWwindow* window, double x, double y) {
  int width = 1, height = 1, pixels = 1, rows = 1;
  glfwGetWindowSize(window, &width, &height);
  glfwGetFramebufferSize(window, &pixels, &rows);
  QueueOf(window).Push({.kind = InputEvent::Kind::kMove,
                        .x = static_cast<float>(x * pixels / std::max(1, width)),
                        .y = static_cast<float>(y * rows / std::max(1, height))});
}

void OnButton(GLFWwindow* window, int button, int action, int mods) {
  QueueOf(window).Push({.kind = InputEvent::Kind::kButton,
                        .key = button,
                        .down = action == GLFW_PRESS,
                        .mods = ModsOf(mods)});
}

void OnWheel(GLFWwindow* window, double x, double y) {
  uint8_t mods = 0;
  for (const int key : {GLFW_KEY_LEFT_CONTROL, GLFW_KEY_RIGHT_CONTROL})
    mods |= glfwGetKey(window, key) == GLFW_PRESS ? kCtrl : kNoMods;
  for (const int key : {GLFW_KEY_LEFT_SHIFT, GLFW_KEY_RIGHT_SHIFT})
    mods |= glfwGetKey(window, key) == GLFW_PRESS ? kShift : kNoMods;
  QueueOf(window).Push({.kind = InputEvent::Kind::kWheel,
                        .mods = mods,
                        .x = static_cast<float>(x),
                        .y = static_cast<float>(y)});
}

void SetUpImGui(GLFWwindow* window) {
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  io.ConfigInputTextCursorBlink = false;  // pictures of tests are the same
  const std::pair<ImGuiKey, int> keys[] = {{ImGuiKey_Tab, GLFW_KEY_TAB},
                                           {ImGuiKey_LeftArrow, GLFW_KEY_LEFT},
                                           {ImGuiKey_RightArrow, GLFW_KEY_RIGHT},
                                           {ImGuiKey_UpArrow, GLFW_KEY_UP},
                                           {ImGuiKey_DownArrow, GLFW_KEY_DOWN},
                                           {ImGuiKey_PageUp, GLFW_KEY_PAGE_UP},
                                           {ImGuiKey_PageDown, GLFW_KEY_PAGE_DOWN},
                                           {ImGuiKey_Home, GLFW_KEY_HOME},
                                           {ImGuiKey_End, GLFW_KEY_END},
                                           {ImGuiKey_Delete, GLFW_KEY_DELETE},
                                           {ImGuiKey_Backspace, GLFW_KEY_BACKSPACE},
                                           {ImGuiKey_Enter, GLFW_KEY_ENTER},
                                           {ImGuiKey_Escape, GLFW_KEY_ESCAPE},
                                           {ImGuiKey_A, GLFW_KEY_A},
                                           {ImGuiKey_C, GLFW_KEY_C},
                                           {ImGuiKey_V, GLFW_KEY_V},
                                           {ImGuiKey_X, GLFW_KEY_X},
                                           {ImGuiKey_Y, GLFW_KEY_Y},
                                           {ImGuiKey_Z, GLFW_KEY_Z}};
  for (const auto& [slot, key] : keys)
    io.KeyMap[slot] = key;
  io.ClipboardUserData = window;
  io.SetClipboardTextFn = [](void* user, const char* text) {
    glfwSetClipboardString(static_cast<GLFWwindow*>(user), text);
  };
  io.GetClipboardTextFn = [](void* user) {
    return glfwGetClipboardString(static_cast<GLFWwindow*>(user));
  };
}

}  // namespace

Result<std::unique_ptr<Window>> Window::Open(const std::string& title, int width, int height) {
  glfwSetErrorCallback(OnMessage);
  if (glfwInit() != GLFW_TRUE)
    return Error(ErrorCode::kUnsupported,
                 "no display: {}: start it in a graphical session, or with xvfb-run",
                 OneLine(last_message));
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 2);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  std::unique_ptr<Window> made(new Window());
  made->window_ = glfwCreateWindow(width, height, title.c_str(), nullptr, nullptr);
  if (made->window_ == nullptr) {
    glfwTerminate();
    return Error(ErrorCode::kUnsupported,
                 "no OpenGL 3: {}: install a driver, such as libgl1-mesa-dri",
                 OneLine(last_message));
  }
  GLFWwindow* window = made->window_;
  glfwSetWindowSizeLimits(window, 640, 400, GLFW_DONT_CARE, GLFW_DONT_CARE);
  glfwMakeContextCurrent(window);
  glfwSwapInterval(1);
  glfwSetWindowUserPointer(window, made.get());
  glfwSetKeyCallback(window, OnKey);
  glfwSetCharCallback(window, OnText);
  glfwSetCursorPosCallback(window, OnMove);
  glfwSetMouseButtonCallback(window, OnButton);
  glfwSetScrollCallback(window, OnWheel);
  glfwSetDropCallback(window, [](GLFWwindow* of, int count, const char** paths) {
    auto* self = static_cast<Window*>(glfwGetWindowUserPointer(of));
    self->dropped_.insert(self->dropped_.end(), paths, paths + count);
  });
  SetUpImGui(window);
  ImGui_ImplOpenGL3_Init("#version 150");
  return made;
}

Window::~Window() {
  if (window_ == nullptr) return;
  ImGui_ImplOpenGL3_Shutdown();
  ImGui::DestroyContext();
  glfwDestroyWindow(window_);
  glfwTerminate();
}

float Window::scale() const {
  float x = 1, y = 1;
  glfwGetWindowContentScale(window_, &x, &y);
  return std::clamp(x, 1.0F, 4.0F);
}

bool Window::should_close() const {
  return glfwWindowShouldClose(window_) == GLFW_TRUE;
}

void Window::WaitEvents(double seconds) {
  if (seconds > 0) {
    glfwWaitEventsTimeout(seconds);
  } else {
    glfwPollEvents();
  }
}

void Window::Wake() {
  glfwPostEmptyEvent();
}

void Window::SetTitle(const std::string& title) {
  glfwSetWindowTitle(window_, title.c_str());
}

void Window::Resize(int width, int height) {
  glfwSetWindowSize(window_, width, height);
}

void Window::RebuildFonts() {
  ImGui_ImplOpenGL3_DestroyFontsTexture();
  ImGui_ImplOpenGL3_CreateFontsTexture();
}

bool Window::BeginFrame() {
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  if (width < 16 || height < 16) return false;
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {static_cast<float>(width), static_cast<float>(height)};
  const double now = glfwGetTime();
  io.DeltaTime = static_cast<float>(std::clamp(now - last_time_, 1e-4, 0.1));
  last_time_ = now;
  ImGui_ImplOpenGL3_NewFrame();
  return true;
}

void Window::EndFrame(unsigned background) {
  if (draws_only_kept_ && !keep_pixels_) return;
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const int width = static_cast<int>(size.x), height = static_cast<int>(size.y);
  glViewport(0, 0, width, height);
  const ImVec4 color = ImGui::ColorConvertU32ToFloat4(background);
  glClearColor(color.x, color.y, color.z, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  if (keep_pixels_) {
    pixels_width_ = width;
    pixels_height_ = height;
    pixels_.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    glReadPixels(0, 0, width, height, GL_RGB, GL_UNSIGNED_BYTE, pixels_.data());
    keep_pixels_ = false;
  }
  glfwSwapBuffers(window_);
}

Status Window::Screenshot(const std::string& path) const {
  const int stride = pixels_width_ * 3;
  std::vector<unsigned char> rows(pixels_.size());
  for (int y = 0; y < pixels_height_; ++y) {
    std::memcpy(
        rows.data() + static_cast<size_t>(y) * static_cast<size_t>(stride),
        pixels_.data() + static_cast<size_t>(pixels_height_ - 1 - y) * static_cast<size_t>(stride),
        static_cast<size_t>(stride));
  }
  std::string png;
  const auto append = [](void* to, void* bytes, int size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes),
                                          static_cast<size_t>(size));
  };
  if (stbi_write_png_to_func(append, &png, pixels_width_, pixels_height_, 3, rows.data(), stride) ==
      0)
    return Error(ErrorCode::kInternal, "cannot encode a picture: {}: report it", path);
  return WriteFile(path, png);
}

}  // namespace strata::viewer
