#include "runtime/ranks/rank_team.h"

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include <c10/util/Exception.h>

#include "runtime/aten/threads.h"
#include "runtime/ranks/collectives.h"
#include "runtime/ranks/comm_thread.h"
#include "runtime/ranks/device_collectives.h"

namespace strata {
namespace {

/// What a thread is to ranks.
struct CurrentThread {
  RankTeam* team = nullptr;
  int64_t rank = -1;
  /// By the names that operators gave: a look-up per collective, and no lock.
  std::map<std::string, RankGroup*, std::less<>> groups = {};
  bool is_async = false;
  std::unique_ptr<CommThread> comm = nullptr;  // made by the first launch
};
thread_local CurrentThread current;

}  // namespace

RankTeam::RankTeam(Mesh mesh) : mesh_(std::move(mesh)) {
  RegisterCollectives();
}

void RankTeam::BindThread(int64_t rank) {
  current.team = rank < 0 ? nullptr : this;
  current.rank = rank;
  current.groups.clear();
}

Status RankTeam::Call(const Work& work, int64_t rank) {
  try {
    return work(rank);
  } catch (const c10::Error& failure) {
    return Error(ErrorCode::kInternal, "{}", failure.what_without_backtrace());
  } catch (const std::exception& failure) {
    return Error(ErrorCode::kInternal, "{}", failure.what());
  }
}

int64_t RankTeam::CurrentRank() {
  return current.rank;
}

RankGroup& RankTeam::CurrentGroup(std::string_view group) {
  if (const auto known = current.groups.find(group); known != current.groups.end())
    return *known->second;
  TORCH_CHECK(current.team != nullptr, "group '", group, "' has no ranks: they run in a training");
  auto ranks = current.team->mesh().GroupOf(group, current.rank);
  TORCH_CHECK(ranks.has_value(), ranks ? "" : ranks.error().message());
  const auto mine = std::ranges::find(*ranks, current.rank);
  const auto index = static_cast<size_t>(mine - ranks->begin());
  RankGroup& joined = current.team->JoinGroup(std::string(group), *std::move(ranks), index);
  current.groups.emplace(group, &joined);
  return joined;
}

RankGroup& RankTeam::CurrentWorld() {
  TORCH_CHECK(current.team != nullptr, "no ranks: they run in a training");
  std::string group;
  for (const MeshAxis& axis : current.team->mesh().axes())
    group += (group.empty() ? "" : "+") + axis.name;
  return CurrentGroup(group);
}

void RankTeam::Send(int64_t to, const std::string& key, std::vector<at::Tensor> tensors) {
  TORCH_CHECK(current.team != nullptr, "ranks send to each other in a training");
  current.team->SendFrom(current.rank, to, key, std::move(tensors));
}

std::vector<at::Tensor> RankTeam::Receive(int64_t from, const std::string& key) {
  TORCH_CHECK(current.team != nullptr, "ranks send to each other in a training");
  return current.team->ReceiveAt(current.rank, from, key);
}

std::chrono::duration<double, std::micro> RankTeam::TimeOf(const Traffic& traffic) const {
  using Us = std::chrono::duration<double, std::micro>;
  if (!simulated_) return Us(0);
  const auto group = GroupTopology(*simulated_, mesh_, traffic.group);
  TORCH_CHECK(group.has_value(), group ? "" : group.error().message());
  return Us(
      CollectiveUs(simulated_->network, traffic.op, static_cast<double>(traffic.bytes), *group));
}

void RankTeam::Launch(const at::Tensor& result, const Traffic& traffic,
                      std::function<void()> rest) {
  if (const auto time = current.team->TimeOf(traffic); time.count() > 0) {
    rest = [time, rest = std::move(rest)] {
      rest();
      std::this_thread::sleep_for(time);
    };
  }
  if (!current.is_async) return rest();
  if (!current.comm) current.comm = std::make_unique<CommThread>(NumThreads());
  current.comm->Launch(result.storage().data(), std::move(rest));
}

void RankTeam::Wait(const at::Tensor& result) {
  if (current.is_async && current.comm) current.comm->Wait(result.storage().data());
}

AsyncCollectives::AsyncCollectives(bool enabled) : enabled_(enabled && !current.is_async) {
  if (enabled_) current.is_async = true;
}

AsyncCollectives::~AsyncCollectives() {
  if (!enabled_) return;
  current.is_async = false;
  if (current.comm) current.comm->Drain();
}

c10::Device RankTeam::CurrentPlace() {
  DeviceCollectives* const device = current.team == nullptr ? nullptr : current.team->device();
  return c10::Device(device == nullptr ? "cpu" : device->device().traits().name);
}

DeviceCollectives* RankTeam::DeviceOf(const at::Tensor& tensor) {
  DeviceCollectives* const device = current.team == nullptr ? nullptr : current.team->device();
  return device != nullptr && tensor.device() == CurrentPlace() ? device : nullptr;
}

int64_t RankTeam::CurrentIndex(std::string_view group) {
  return static_cast<int64_t>(CurrentGroup(group).index());
}

}  // namespace strata
