#include "runtime/control/control_socket.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <doctest/doctest.h>

#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::TempDir;

class TestClient {
 public:
  explicit TestClient(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~TestClient() { ::close(fd_); }
  void Send(std::string_view bytes) {
    REQUIRE(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  /// The next line; "" at the end of the connection.
  std::string Line() {
    std::string line;
    char c = 0;
    while (::recv(fd_, &c, 1, 0) == 1 && c != '\n')
      line += c;
    return line;
  }

 private:
  int fd_;
};

ControlSocket::Handler Echo() {
  return {
      .execute = [](std::string_view command,
                    const ControlSocket::Answer& answer) { answer(true, command, R"({"n":1})"); },
      .last_client_left = [] {}};
}

TEST_CASE("requests are answered by their ids") {
  const TempDir folder;
  const std::string path = folder / "control";
  const auto socket = OrDie(ControlSocket::Open(path, Echo()));
  TestClient client(path);
  client.Send("{\"id\": 7, \"command\": \"a \\\"b\\\"\"}\n{\"id\": \"x\", \"command\": \"c\"}\n");
  CHECK(client.Line() == R"({"id":7,"ok":true,"text":"a \"b\"","data":{"n":1}})");
  CHECK(client.Line() == R"({"id":"x","ok":true,"text":"c","data":{"n":1}})");
}

TEST_CASE("lines that are no requests are answered with what to write") {
  const TempDir folder;
  const std::string path = folder / "control";
  const auto socket = OrDie(ControlSocket::Open(path, Echo()));
  TestClient client(path);
  for (const char* line : {"\n", "{\n", "[]\n", "{\"id\": 1}\n", "{\"command\": \"a\"}\n",
                           "{\"id\": [], \"command\": \"a\"}\n", "\xff\xfe\n"}) {
    CAPTURE(line);
    client.Send(line);
    CHECK(client.Line().find("\"ok\":false") != std::string::npos);
  }
  client.Send(std::string(70'000, 'a'));
  CHECK(client.Line().find("64 KiB") != std::string::npos);
  CHECK(client.Line().empty());
}

TEST_CASE("only the user reads and writes the socket, and it goes with the program") {
  const TempDir folder;
  const std::string path = folder / "control";
  {
    const auto socket = OrDie(ControlSocket::Open(path, Echo()));
    struct stat found{};
    REQUIRE(::stat(path.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0600);
  }
  CHECK(::access(path.c_str(), F_OK) != 0);
}

TEST_CASE("a socket that no program listens on is replaced, others and files are not") {
  const TempDir folder;
  const std::string path = folder / "control";
  const int stale = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(::bind(stale, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(stale);
  const auto socket = OrDie(ControlSocket::Open(path, Echo()));
  CHECK(MessageOf(ControlSocket::Open(path, Echo())).find("running program") != std::string::npos);
  const std::string file = folder / "file";
  std::ofstream(file) << "x";
  CHECK(MessageOf(ControlSocket::Open(file, Echo())).find("a file has this name") !=
        std::string::npos);
  CHECK_FALSE(ControlSocket::Open(std::string(200, 'a'), Echo()).has_value());
  CHECK_FALSE(ControlSocket::Open(folder / "none/control", Echo()).has_value());
}

TEST_CASE("the last client that leaves is noticed, and late answers to it are dropped") {
  const TempDir folder;
  const std::string path = folder / "control";
  std::atomic<int> left = 0, asked = 0;
  ControlSocket::Answer late;
  const auto socket =
      OrDie(ControlSocket::Open(path, {.execute =
                                           [&](std::string_view, ControlSocket::Answer answer) {
                                             late = std::move(answer);
                                             ++asked;
                                           },
                                       .last_client_left = [&] { ++left; }}));
  const auto wait_for = [](const std::atomic<int>& count) {
    for (int i = 0; i < 1000 && count == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return count.load();
  };
  {
    TestClient client(path);
    client.Send("{\"id\": 1, \"command\": \"continue\"}\n");
    CHECK(wait_for(asked) == 1);
  }
  CHECK(wait_for(left) == 1);
  late(true, "stopped", "{}");
}

}  // namespace
}  // namespace strata
