#include "refs/control_client.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <poll.h>
#include <simdjson.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace strata {
namespace {

/// What a training never sends: the program is not one.
constexpr size_t kLongestLine = size_t{64} << 20;

Error Ended() {
  return Error(ErrorCode::kIo, "the training has ended");
}

}  // namespace

Result<std::unique_ptr<ControlClient>> ControlClient::Connect(
    const std::string& path, double seconds, const std::function<bool()>& gives_up) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return Error("not a path of a socket: {}: it is too long", OneLine(path));
  std::memcpy(address.sun_path, path.data(), path.size());
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (true) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return std::unique_ptr<ControlClient>(new ControlClient(fd));
    const int error = errno;
    ::close(fd);
    if (std::chrono::steady_clock::now() >= end || (gives_up && gives_up())) {
      return Error(ErrorCode::kIo,
                   "no training listens here: {}: {}: start one with strata train --control {}",
                   path, std::strerror(error), path);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

ControlClient::~ControlClient() {
  ::close(socket_);
}

Result<int64_t> ControlClient::Send(std::string_view command) {
  std::string line = fmt::format(R"({{"id":{},"command":)", ++last_id_);
  AppendJsonString(command, line);
  line += "}\n";
  if (::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return Ended();
  return last_id_;
}

Result<std::optional<ControlClient::Answer>> ControlClient::Receive(int milliseconds) {
  size_t end = 0;
  while ((end = pending_.find('\n')) == std::string::npos) {
    pollfd readable{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, milliseconds) <= 0) return std::optional<Answer>();
    char bytes[4096];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    if (count < 0 && errno == EINTR) return std::optional<Answer>();
    if (count <= 0) return Ended();
    pending_.append(bytes, static_cast<size_t>(count));
    if (pending_.size() > kLongestLine)
      return Error("not an answer of a training: a line of more than 64 MiB");
  }
  const std::string line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  STRATA_TRY(Answer answer, ParseControlAnswer(line));
  return std::optional<Answer>(std::move(answer));
}

Result<ControlClient::Answer> ParseControlAnswer(std::string_view line) {
  simdjson::dom::parser parser;
  simdjson::dom::object object, data;
  ControlClient::Answer answer;
  std::string_view text;
  if (parser.parse(line.data(), line.size()).get(object) != simdjson::SUCCESS ||
      object["id"].get(answer.id) != simdjson::SUCCESS ||
      object["ok"].get(answer.ok) != simdjson::SUCCESS ||
      object["text"].get(text) != simdjson::SUCCESS ||
      object["data"].get(data) != simdjson::SUCCESS) {
    return Error("not an answer of a training: {}", OneLine(line));
  }
  answer.text = text;
  answer.data = simdjson::minify(data);
  return answer;
}

}  // namespace strata
