#include "scene/dot_worker.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <span>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene/dot.h"

namespace strata {
namespace {

constexpr int32_t kMostFailures = 3;

/// Both directions are lists of numbers of known lengths.
template <class T>
bool Send(int socket, std::span<const T> values) {
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  size_t left = values.size_bytes();
  while (left > 0) {
    const ssize_t sent = send(socket, bytes, left, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    left -= static_cast<size_t>(sent);
  }
  return true;
}

/// `limit_ms`: of each wait for more; -1: none.
template <class T>
bool Receive(int socket, std::span<T> values, int limit_ms) {
  auto* bytes = reinterpret_cast<char*>(values.data());
  size_t left = values.size_bytes();
  while (left > 0) {
    pollfd wait{.fd = socket, .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, limit_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = recv(socket, bytes, left, 0);
    if (got <= 0) return false;
    bytes += got;
    left -= static_cast<size_t>(got);
  }
  return true;
}

/// The worker: answers until the other end is closed.
[[noreturn]] void Serve(int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Its searches recurse as deep as a lane is long; its messages are discarded.
  const rlimit stack{.rlim_cur = 64 << 20, .rlim_max = 64 << 20};
  setrlimit(RLIMIT_STACK, &stack);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2; ++fd)
    dup2(nowhere, fd);
  // Nor may it keep what its parent closes: locks, and connections whose end others wait for.
  constexpr int kSocket = 3;
  if (socket != kSocket) socket = dup2(socket, kSocket);
  close_range(kSocket + 1, ~0U, 0);
  while (true) {
    int32_t head[2];
    if (!Receive(socket, std::span<int32_t>(head), -1)) _exit(0);
    LaneShape shape{.nodes = head[0], .edges = {}};
    shape.edges.resize(static_cast<size_t>(head[1]));
    if (!Receive(socket, std::span(shape.edges), -1)) _exit(0);
    const DotPlaces places = PlaceWithDot(shape);
    if (!Send(socket, std::span(places.rank.values())) ||
        !Send(socket, std::span(places.x.values())))
      _exit(0);
  }
}

}  // namespace

DotWorker::~DotWorker() {
  Stop();
}

bool DotWorker::Start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  process_ = fork();
  if (process_ == 0) {
    close(ends[0]);
    Serve(ends[1]);
  }
  close(ends[1]);
  socket_ = ends[0];
  if (process_ > 0) return true;
  Stop();
  return false;
}

void DotWorker::Stop() {
  if (socket_ >= 0) close(socket_);
  if (process_ > 0) {
    kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  socket_ = process_ = -1;
}

std::optional<DotPlaces> DotWorker::Place(const LaneShape& shape) {
  if (failures_ >= kMostFailures) return std::nullopt;
  const auto nodes = static_cast<size_t>(shape.nodes);
  DotPlaces places{.rank = IdVector<LaneNodeId, int32_t>(nodes),
                   .x = IdVector<LaneNodeId, double>(nodes)};
  const int32_t head[2] = {shape.nodes, static_cast<int32_t>(shape.edges.size())};
  if ((process_ > 0 || Start()) && Send(socket_, std::span<const int32_t>(head)) &&
      Send(socket_, std::span(std::as_const(shape.edges))) &&
      Receive(socket_, std::span(places.rank.values()), time_limit_ms_) &&
      Receive(socket_, std::span(places.x.values()), time_limit_ms_)) {
    return places;
  }
  ++failures_;
  Stop();
  return std::nullopt;
}

}  // namespace strata
