#include "viewer/model/control_session.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/interrupt.h"

namespace strata::viewer {
namespace {

using Phase = ControlState::Phase;

TEST_CASE("answers that move the training say where it is") {
  ControlState state;
  TakeAnswer("continue", true, "stopped",
             R"({"state":"stopped","reason":"breakpoint 1: op mm","steps_done":3,"steps":6,)"
             R"("loss":2.5,"graph":"step","node":"mm","op":"aten.mm.default","nodes_done":7})",
             state);
  CHECK(state.phase == Phase::kStopped);
  CHECK(state.reason == "breakpoint 1: op mm");
  CHECK(state.steps_done == 3);
  CHECK(state.loss == 2.5);
  CHECK(state.node == "mm");
  CHECK(state.stops == 1);
  TakeAnswer("continue", true, "", R"({"state":"finished","steps_done":6,"steps":6})", state);
  CHECK(state.phase == Phase::kFinished);
  CHECK(state.node.empty());
  CHECK(state.stops == 1);
}

TEST_CASE("a printed value has type, statistics and histogram") {
  ControlState state;
  TakeAnswer("print mm histogram", true, "…",
             R"({"dtype":"f32","sizes":[2,3],"statistics":{"elements":6,"min":-1.5,"max":2,)"
             R"("mean":0.25,"nan":0,"inf":null},"histogram":{"min":-1.5,"max":2,"counts":[1,5]}})",
             state);
  REQUIRE(state.value);
  CHECK(state.value->name == "mm");
  CHECK(state.value->sizes == "[2, 3]");
  CHECK(state.value->counts == std::vector<int64_t>{1, 5});
  CHECK(state.value->statistics.front() == std::pair<std::string, std::string>("least", "−1.5"));
  TakeAnswer("print add histogram", false, "not executed yet", "{}", state);
  CHECK(state.value->name == "add");
  CHECK(state.value->error == "not executed yet");
  CHECK(state.error.empty());
}

TEST_CASE("an image or a slice is added to the value that is known") {
  ControlState state;
  TakeAnswer("print mm histogram", true, "…",
             R"({"dtype":"f32","sizes":[2,3],"histogram":{"counts":[1,5]}})", state);
  TakeAnswer("print mm image", true, "…",
             R"({"dtype":"f32","image":{"rows":2,"columns":3,"values":[1,2,3,4,null,6]}})", state);
  REQUIRE(state.value->matrix);
  CHECK(state.value->counts == std::vector<int64_t>{1, 5});
  CHECK(state.value->matrix->columns == 3);
  REQUIRE(state.value->matrix->elements.size() == 6);
  CHECK(state.value->matrix->elements[3] == 4);
  CHECK(std::isnan(state.value->matrix->elements[4]));
  TakeAnswer("print mm [0, :]", true, "…", R"({"slice":{"sizes":[3],"values":[1,2,3]}})", state);
  CHECK(state.value->matrix->slice == "[0, :]");
  CHECK(state.value->matrix->elements == std::vector<double>{1, 2, 3});
  CHECK(state.value->matrix->columns == 3);
  TakeAnswer("print mm [7]", false, "no such row", "{}", state);
  CHECK(state.value->matrix->error == "no such row");
  CHECK(state.value->error.empty());
}

TEST_CASE("a vector has no image") {
  ControlState state;
  TakeAnswer("print norm histogram", true, "…", R"({"dtype":"f32","sizes":[3]})", state);
  TakeAnswer("print norm image", false, "not a matrix", "{}", state);
  CHECK(state.value->error.empty());
  CHECK_FALSE(state.value->matrix);
}

TEST_CASE("breakpoints are listed; what a command said against itself stays until the next") {
  ControlState state;
  TakeAnswer("breaks", true, "", R"({"breakpoints":[{"id":2,"at":"node mm"},{"id":3,"at":"nan"}]})",
             state);
  REQUIRE(state.breakpoints.size() == 2);
  CHECK(state.breakpoints[0].id == 2);
  CHECK(state.breakpoints[0].at == "node mm");
  TakeAnswer("brake", false, "no such command", "{}", state);
  CHECK(state.error == "no such command");
  CHECK(state.breakpoints.size() == 2);
  TakeAnswer("status", true, "", "no JSON", state);
  CHECK(state.error.empty());
}

/// A training that answers each line with `answer`, an object without its id.
class Training {
 public:
  explicit Training(const std::string& answer) {
    Result<TemporaryPath> folder = TemporaryPath::MakeFolder();
    REQUIRE(folder);
    folder_ = std::move(*folder);
    path_ = folder_.path() + "/control";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path_.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path_.data(), path_.size());
    listener_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_, 1) == 0);
    thread_ = std::thread([this, answer] { Serve(answer); });
  }
  ~Training() {
    thread_.join();
    ::close(listener_);
  }
  const std::string& path() const { return path_; }

 private:
  void Serve(const std::string& answer) {
    const int client = ::accept(listener_, nullptr, nullptr);
    int64_t id = 0;
    char byte = 0;
    while (::recv(client, &byte, 1, 0) == 1) {
      if (byte != '\n') continue;
      const std::string line = fmt::format("{{\"id\":{},{}}}\n", ++id, answer);
      if (::send(client, line.data(), line.size(), MSG_NOSIGNAL) < 0) break;
    }
    ::close(client);
  }

  TemporaryPath folder_;
  std::string path_;
  int listener_ = -1;
  std::thread thread_;
};

/// Waits until the session has the phase.
void Await(const ControlSession& session, Phase phase) {
  while (session.state().phase != phase)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_CASE("a session asks for the state, and tells it from a thread of its own") {
  std::atomic<int> wakes = 0;
  Training training(R"("ok":true,"text":"here","data":{"state":"stopped","reason":"paused"})");
  ControlSession session(training.path(), [&] { ++wakes; });
  Await(session, Phase::kStopped);
  CHECK(session.state().reason == "paused");
  CHECK(wakes > 0);
  session.Send("where", true);
  while (session.state().transcript.size() < 2)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(session.state().transcript == std::vector<std::string>{"> where", "here"});
}

TEST_CASE("what is no answer of a training ends the session") {
  Training training("\"ok\":3");
  ControlSession session(training.path(), [] {});
  Await(session, Phase::kFailed);
  CHECK(session.state().error.starts_with("not an answer of a training"));
}

TEST_CASE("a session ends at once while its socket is awaited") {
  const ControlSession session("/no/such/socket", [] {});
  CHECK(session.state().phase == Phase::kConnecting);
}

}  // namespace
}  // namespace strata::viewer
