#include "runtime/ranks/processes/gloo_links.h"

#include <algorithm>
#include <csignal>
#include <exception>
#include <utility>
#include <vector>

#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <fmt/format.h>

namespace strata {
namespace {

using c10d::ProcessGroupGloo;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How long a value may take: who asks is about to report a failure.
constexpr milliseconds kStoreTimeout = std::chrono::seconds(5);

/// The first line of what LibTorch reports, without its place in LibTorch.
std::string MessageOf(const std::exception& failure) {
  const auto* const error = dynamic_cast<const c10::Error*>(&failure);
  const std::string text = error != nullptr ? error->what_without_backtrace() : failure.what();
  return text.substr(0, text.find('\n'));
}

/// A tensor over bytes, as Gloo takes messages.
std::vector<at::Tensor> Message(const std::byte* bytes, size_t size) {
  return {at::from_blob(const_cast<std::byte*>(bytes), {static_cast<int64_t>(size)}, at::kByte)};
}

/// The network interface to listen at.
auto DeviceFor(const ProcessPlace& place) {
  const std::string interface = ProcessPlace::Environment("GLOO_SOCKET_IFNAME");
  if (!interface.empty())
    return ProcessGroupGloo::createDeviceForInterface(interface.substr(0, interface.find(',')));
  const bool is_local = place.address == "localhost" || place.address.starts_with("127.");
  return is_local ? ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                  : ProcessGroupGloo::createDefaultDevice();
}

class WorkTransfer final : public GlooLinks::Transfer {
 public:
  explicit WorkTransfer(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}

  GlooLinks::Outcome Wait(milliseconds timeout) override {
    using Outcome = GlooLinks::Outcome;
    const auto start = steady_clock::now();
    const milliseconds least(1);  // 0 means no timeout
    try {
      return work_->wait(std::max(timeout, least)) ? Outcome::kDone : Outcome::kGone;
    } catch (const std::exception&) {
      return steady_clock::now() - start >= timeout ? Outcome::kLate : Outcome::kGone;
    }
  }

  void Abort() override { work_->abort(); }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

/// A message that could not be started.
class FailedTransfer final : public GlooLinks::Transfer {
 public:
  GlooLinks::Outcome Wait(milliseconds /*timeout*/) override { return GlooLinks::Outcome::kGone; }
  void Abort() override {}
};

}  // namespace

// --- The launcher's store ------------------------------------------------------------------------

struct ProcessStore::State {
  c10::intrusive_ptr<c10d::TCPStore> store;
};

ProcessStore::ProcessStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProcessStore::ProcessStore(ProcessStore&&) noexcept = default;
ProcessStore::~ProcessStore() = default;

Result<ProcessStore> ProcessStore::Open() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  try {
    return ProcessStore(
        std::make_unique<State>(State{c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options)}));
  } catch (const std::exception& failure) {
    return Error(ErrorCode::kIo, "cannot listen at 127.0.0.1: {}", MessageOf(failure));
  }
}

uint16_t ProcessStore::port() const {
  return state_->store->getPort();
}

// --- Links ---------------------------------------------------------------------------------------

struct GlooLinks::State {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<ProcessGroupGloo> gloo;
};

GlooLinks::GlooLinks(std::unique_ptr<State> state) : state_(std::move(state)) {}
GlooLinks::~GlooLinks() = default;

Result<std::unique_ptr<GlooLinks>> GlooLinks::Connect(const ProcessPlace& place,
                                                      milliseconds timeout) {
  // Gloo writes to sockets without MSG_NOSIGNAL: what is sent to a rank that ended is an error that
  // names it, as in Python, which ignores this signal too.
  std::signal(SIGPIPE, SIG_IGN);
  auto state = std::make_unique<State>();
  try {
    c10d::TCPStoreOptions options;
    options.port = place.port;
    options.isServer = place.rank == 0 && !place.launcher_has_store;
    options.waitWorkers = false;
    options.timeout = timeout;
    state->store = c10::make_intrusive<c10d::PrefixStore>(
        "strata/" + place.attempt, c10::make_intrusive<c10d::TCPStore>(place.address, options));
    auto gloo = ProcessGroupGloo::Options::create(timeout);
    gloo->devices.push_back(DeviceFor(place));
    gloo->threads = 1;  // messages need none: the device's thread moves them
    state->gloo = c10::make_intrusive<ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>("gloo", state->store), static_cast<int>(place.rank),
        static_cast<int>(place.world), gloo);
    state->store->setTimeout(kStoreTimeout);
  } catch (const std::exception& failure) {
    return Error(ErrorCode::kIo,
                 "the ranks do not meet: rank {} of {} at {}:{}: {}; start all of them within "
                 "comm.init_timeout_seconds, with the same MASTER_ADDR and a free MASTER_PORT",
                 place.rank, place.world, place.address, place.port, MessageOf(failure));
  }
  return std::unique_ptr<GlooLinks>(new GlooLinks(std::move(state)));
}

std::unique_ptr<GlooLinks::Transfer> GlooLinks::Send(int64_t rank, uint32_t tag, ByteSpan bytes) {
  auto message = Message(bytes.data(), bytes.size());
  try {
    return std::make_unique<WorkTransfer>(
        state_->gloo->send(message, static_cast<int>(rank), static_cast<int>(tag)));
  } catch (const std::exception&) {
    return std::make_unique<FailedTransfer>();
  }
}

std::unique_ptr<GlooLinks::Transfer> GlooLinks::Receive(int64_t rank, uint32_t tag,
                                                        std::span<std::byte> bytes) {
  auto message = Message(bytes.data(), bytes.size());
  try {
    return std::make_unique<WorkTransfer>(
        state_->gloo->recv(message, static_cast<int>(rank), static_cast<int>(tag)));
  } catch (const std::exception&) {
    return std::make_unique<FailedTransfer>();
  }
}

bool GlooLinks::Put(const std::string& key, std::string_view value) {
  try {
    state_->store->set(key, std::vector<uint8_t>(value.begin(), value.end()));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::optional<std::string> GlooLinks::Find(const std::string& key) {
  try {
    if (!state_->store->check({key})) return std::nullopt;
    const std::vector<uint8_t> value = state_->store->get(key);
    return std::string(value.begin(), value.end());
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace strata
