#include "runtime/control/control_socket.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <list>
#include <mutex>
#include <poll.h>
#include <simdjson.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/interrupt.h"
#include "base/json.h"

namespace strata {
namespace {

constexpr size_t kMaxLine = 64 * 1024;
constexpr int kPollMs = 100;

/// One connection. Answers may come after it has ended: they are dropped.
class Client {
 public:
  explicit Client(int fd) : fd_(fd) {
    // A client that does not read its answers is not waited for.
    const timeval patience{.tv_sec = 1, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  ~Client() { ::close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int fd() const { return fd_; }

  void Send(std::string_view line) {
    const std::lock_guard lock(mutex_);
    while (!line.empty()) {
      const ssize_t sent = ::send(fd_, line.data(), line.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) {
        ::shutdown(fd_, SHUT_RDWR);
        return;
      }
      line.remove_prefix(static_cast<size_t>(sent));
    }
  }

 private:
  int fd_;
  std::mutex mutex_;
};

std::string AnswerLine(std::string_view id, bool ok, std::string_view text, std::string_view json) {
  std::string line = fmt::format(R"({{"id":{},"ok":{},"text":)", id, ok);
  AppendJsonString(text, line);
  line += fmt::format(",\"data\":{}}}\n", json);
  return line;
}

}  // namespace

Status ReadControlRequest(std::string_view line, ControlRequest& request) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(line.data(), line.size()).get(object) != simdjson::SUCCESS)
    return Error("not a JSON object: write {{\"id\": 1, \"command\": \"status\"}}");
  if (int64_t number = 0; object["id"].get(number) == simdjson::SUCCESS) {
    request.id = fmt::format("{}", number);
  } else if (std::string_view text; object["id"].get(text) == simdjson::SUCCESS) {
    request.id.clear();
    AppendJsonString(text, request.id);
  } else {
    return Error("no id: write {{\"id\": 1, \"command\": \"status\"}}");
  }
  std::string_view command;
  if (object["command"].get(command) != simdjson::SUCCESS)
    return Error("no command: write {{\"id\": 1, \"command\": \"status\"}}");
  request.command = command;
  return Ok();
}

namespace {

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error("not a path of a socket: {}: it has {} characters, take 1 to {}", path,
                 path.size(), sizeof address.sun_path - 1);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Error SocketError(const std::string& path, const char* what) {
  return Error(ErrorCode::kIo, "{}: {}: {}", what, path, std::strerror(errno));
}

/// Removes the socket of a program that has ended.
Status MakeRoom(const std::string& path, const sockaddr_un& address) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return Ok();  // binding reports other errors
  if (!S_ISSOCK(found.st_mode)) return Error("a file has this name: {}: take another path", path);
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_live =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  if (is_live) return Error("a running program has this socket: {}: take another path", path);
  ::unlink(path.c_str());
  return Ok();
}

}  // namespace

struct ControlSocket::State {
  Handler handler;
  int listener = -1;
  TemporaryPath path;
  std::atomic<bool> ends = false;
  std::mutex mutex;
  int num_clients = 0;
  std::list<std::thread> threads;
  std::thread acceptor;

  ~State() {
    ends = true;
    if (acceptor.joinable()) acceptor.join();
    for (std::thread& thread : threads)
      thread.join();
    if (listener >= 0) ::close(listener);
  }

  bool WaitFor(int fd) const {
    while (!ends) {
      pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
      if (::poll(&readable, 1, kPollMs) > 0) return true;
    }
    return false;
  }

  void Accept() {
    while (WaitFor(listener)) {
      const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      const std::lock_guard lock(mutex);
      ++num_clients;
      threads.emplace_back([this, client = std::make_shared<Client>(fd)] { Serve(client); });
    }
  }

  void Serve(const std::shared_ptr<Client>& client) {
    std::string pending;
    char bytes[4096];
    while (WaitFor(client->fd())) {
      const ssize_t count = ::recv(client->fd(), bytes, sizeof bytes, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      pending.append(bytes, static_cast<size_t>(count));
      size_t begin = 0;
      for (size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1)
        Handle(client, std::string_view(pending).substr(begin, end - begin));
      pending.erase(0, begin);
      if (pending.size() > kMaxLine) {
        client->Send(AnswerLine("null", false, "a line is longer than 64 KiB", "{}"));
        break;
      }
    }
    ::shutdown(client->fd(), SHUT_RDWR);
    const std::lock_guard lock(mutex);
    if (--num_clients == 0 && !ends) handler.last_client_left();
  }

  void Handle(const std::shared_ptr<Client>& client, std::string_view line) {
    ControlRequest request;
    if (const Status read = ReadControlRequest(line, request); !read) {
      client->Send(AnswerLine(request.id, false, read.error().message(), "{}"));
      return;
    }
    handler.execute(request.command, [id = request.id, weak = std::weak_ptr(client)](
                                         bool ok, std::string_view text, std::string_view json) {
      if (const auto open = weak.lock()) open->Send(AnswerLine(id, ok, text, json));
    });
  }
};

ControlSocket::ControlSocket(std::unique_ptr<State> state) : state_(std::move(state)) {}
ControlSocket::~ControlSocket() = default;

Result<std::unique_ptr<ControlSocket>> ControlSocket::Open(const std::string& path,
                                                           Handler handler) {
  STRATA_TRY(const sockaddr_un address, AddressOf(path));
  STRATA_RETURN_IF_ERROR(MakeRoom(path, address));
  auto state = std::make_unique<State>();
  state->handler = std::move(handler);
  state->listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (state->listener < 0) return SocketError(path, "no socket");
  {
    const InterruptsHeld held;
    const mode_t others = ::umask(0177);  // mode 0600 from the start
    const int bound =
        ::bind(state->listener, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::umask(others);
    if (bound != 0) return SocketError(path, "cannot create the socket");
    state->path = TemporaryPath(path);
  }
  if (::listen(state->listener, 8) != 0) return SocketError(path, "cannot listen");
  State& started = *state;
  started.acceptor = std::thread([&started] { started.Accept(); });
  return std::unique_ptr<ControlSocket>(new ControlSocket(std::move(state)));
}

}  // namespace strata
