#include "passes/placement/costs/topology.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/suggest.h"
#include "base/toml.h"
#include "embedded/strata_topologies.h"
#include "passes/placement/costs/function_cost.h"

namespace strata {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

/// Reads one table, and remembers the first error.
class TopologyTable {
 public:
  TopologyTable(const TomlFile& toml, std::string name) : toml_(toml), name_(std::move(name)) {
    for (const TomlValue::Member& member : std::get<TomlValue::Table>(toml.root.value))
      if (member.key == name_) members_ = std::get_if<TomlValue::Table>(&member.value.value);
    if (members_ == nullptr) error_ = Error("no table [{}]: {}: add it", name_, toml.file);
  }

  double Number(std::string_view key, double otherwise) {
    const TomlValue* value = Take(key);
    if (value == nullptr) return otherwise;
    if (const auto number = AsNumber(*value)) return *number;
    Refuse(*value, "expected a number that is not negative");
    return otherwise;
  }
  bool Flag(std::string_view key) {
    const TomlValue* value = Take(key);
    if (value == nullptr) return false;
    if (const bool* flag = std::get_if<bool>(&value->value)) return *flag;
    Refuse(*value, "expected true or false");
    return false;
  }
  /// The index of a text among `choices`.
  size_t Choice(std::string_view key, const std::vector<std::string>& choices) {
    const TomlValue* value = Take(key);
    if (value == nullptr) return 0;
    const auto* text = std::get_if<std::string>(&value->value);
    const auto found = text == nullptr ? choices.end() : std::ranges::find(choices, *text);
    if (found != choices.end()) return static_cast<size_t>(found - choices.begin());
    Refuse(*value, fmt::format("expected one of {}", fmt::join(choices, ", ")));
    return 0;
  }
  std::map<DType, double> Rates(std::string_view key) {
    std::map<DType, double> rates;
    const TomlValue* value = Take(key);
    if (value == nullptr) return rates;
    const auto* members = std::get_if<TomlValue::Table>(&value->value);
    if (members == nullptr) Refuse(*value, "expected a table of types");
    for (const TomlValue::Member& member : members == nullptr ? TomlValue::Table{} : *members) {
      const auto dtype = DTypeFromShortName(member.key);
      const auto number = AsNumber(member.value);
      if (!dtype || !number)
        Refuse(member.value, "expected a type and a number: bf16 = 989");
      else
        rates[*dtype] = *number;
    }
    return rates;
  }
  /// Of functions by name.
  std::map<std::string, double, std::less<>> Functions(std::string_view key) {
    std::map<std::string, double, std::less<>> rates;
    const TomlValue* value = Take(key);
    if (value == nullptr) return rates;
    const auto* members = std::get_if<TomlValue::Table>(&value->value);
    if (members == nullptr) Refuse(*value, "expected a table of functions");
    for (const TomlValue::Member& member : members == nullptr ? TomlValue::Table{} : *members) {
      const auto number = AsNumber(member.value);
      if (!number || *number <= 0 || !IsPricedFunction(member.key)) {
        Refuse(member.value, fmt::format("expected a number above 0 of one of {}",
                                         fmt::join(PricedFunctions(), ", ")));
      } else {
        rates[member.key] = *number;
      }
    }
    return rates;
  }
  Status Finish() {
    if (error_) return *error_;
    for (const TomlValue::Member& member : *members_) {
      if (std::ranges::count(known_, member.key) != 0) continue;
      return toml_.At(member.at, fmt::format("[{}] has {} only", name_, fmt::join(known_, ", ")));
    }
    return Ok();
  }

 private:
  static std::optional<double> AsNumber(const TomlValue& value) {
    std::optional<double> number;
    if (const auto* whole = std::get_if<int64_t>(&value.value))
      number = static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value.value)) number = *real;
    return number && *number >= 0 ? number : std::nullopt;
  }
  const TomlValue* Take(std::string_view key) {
    known_.emplace_back(key);
    if (members_ == nullptr) return nullptr;
    const auto found = std::ranges::find(*members_, key, &TomlValue::Member::key);
    return found == members_->end() ? nullptr : &found->value;
  }
  void Refuse(const TomlValue& value, std::string_view what) {
    if (!error_) error_ = toml_.At(value.at, what);
  }

  const TomlFile& toml_;
  const std::string name_;
  const TomlValue::Table* members_ = nullptr;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

}  // namespace

Result<Topology> Topology::Load(const std::string& name) {
  const std::array<std::pair<std::string_view, std::string_view>, 5> known = {{
      {"a100", assets::kA100Toml},
      {"b200", assets::kB200Toml},
      {"cpu", assets::kCpuToml},
      {"h100", assets::kH100Toml},
      {"h200", assets::kH200Toml},
  }};
  std::vector<std::string> names;
  for (const auto& [topology, text] : known) {
    if (name == topology) return Parse(text, name, name);
    names.emplace_back(topology);
  }
  if (!name.ends_with(".toml")) {
    return Error("no topology '{}': name one of {}, or a TOML file{}", name, fmt::join(names, ", "),
                 DidYouMean(name, names));
  }
  STRATA_TRY(const std::string text, ReadFile(name));
  return Parse(text, name, name);
}

Result<Topology> Topology::Parse(std::string_view text, std::string_view file, std::string name) {
  STRATA_TRY(const TomlFile toml, ParseToml(text, file));
  Topology topology;
  topology.name = std::move(name);
  TopologyTable device(toml, "device");
  topology.device.memory_bytes = device.Number("memory_gib", 0) * kGiB;
  topology.device.bytes_per_us = device.Number("memory_tib_per_s", 0) * kGiB * 1024 / 1e6;
  topology.device.state_bytes_per_us = device.Number("state_tib_per_s", 0) * kGiB * 1024 / 1e6;
  topology.device.efficiency = device.Number("efficiency", 1);
  topology.device.launch_us = device.Number("launch_us", 0);
  topology.device.cores = static_cast<int64_t>(device.Number("cores", 0));
  topology.device.flops_per_us = device.Rates("tflops");
  topology.device.attention_flops_per_us = device.Rates("attention_tflops");
  topology.device.attention_backward_flops_per_us = device.Rates("attention_backward_tflops");
  for (auto* rates : {&topology.device.flops_per_us, &topology.device.attention_flops_per_us,
                      &topology.device.attention_backward_flops_per_us})
    for (auto& [dtype, rate] : *rates)
      rate *= 1e6;
  topology.device.functions_per_us = device.Functions("functions_g_per_s");
  for (auto& [function, rate] : topology.device.functions_per_us)
    rate *= 1e3;
  STRATA_RETURN_IF_ERROR(device.Finish());
  NetworkSpec& spec = topology.network;
  TopologyTable network(toml, "network");
  spec.model = static_cast<NetworkModel>(network.Choice("model", {"nccl", "simple", "memory"}));
  spec.architecture =
      static_cast<Architecture>(network.Choice("architecture", {"ampere", "hopper", "blackwell"}));
  spec.ranks_per_node =
      std::max<int64_t>(1, static_cast<int64_t>(network.Number("ranks_per_node", 8)));
  spec.intra = network.Number("intra_gb_per_s", 0);
  spec.inter = network.Number("inter_gb_per_s", spec.intra);
  spec.channels = static_cast<int>(std::max(1.0, network.Number("channels", 16)));
  spec.nvswitch = network.Flag("nvswitch");
  spec.extra_latency_us = network.Number("extra_latency_us", 0);
  spec.base_us = network.Number("base_us", spec.base_us);
  spec.hop_us = network.Number("hop_us", spec.hop_us);
  spec.sum = network.Number("sum_gb_per_s", spec.intra);
  STRATA_RETURN_IF_ERROR(network.Finish());
  if (topology.device.bytes_per_us <= 0 || topology.device.efficiency <= 0 || spec.intra <= 0) {
    return Error(
        "a rate is missing or zero: {}: give device.memory_tib_per_s, device.efficiency "
        "and network.intra_gb_per_s",
        file);
  }
  return topology;
}

namespace {

std::string RatesText(const std::map<DType, double>& rates) {
  std::string text;
  for (const auto& [dtype, rate] : rates)
    text += fmt::format("{}{} = {:.4g}", text.empty() ? "" : ", ", ShortName(dtype), rate / 1e6);
  return text;
}

}  // namespace

std::string Topology::ToToml() const {
  constexpr std::string_view kModels[] = {"nccl", "simple", "memory"};
  constexpr std::string_view kArchitectures[] = {"ampere", "hopper", "blackwell"};
  std::string measured, functions;
  if (device.state_bytes_per_us > 0) {
    measured +=
        fmt::format("state_tib_per_s = {:.4g}\n", device.state_bytes_per_us / (kGiB * 1024 / 1e6));
  }
  for (const auto& [name, rate] : device.functions_per_us)
    functions += fmt::format("{}{} = {:.4g}", functions.empty() ? "" : ", ", name, rate / 1e3);
  for (const auto& [key, text] :
       {std::pair("attention_tflops", RatesText(device.attention_flops_per_us)),
        std::pair("attention_backward_tflops", RatesText(device.attention_backward_flops_per_us)),
        std::pair("functions_g_per_s", functions)})
    if (!text.empty()) measured += fmt::format("{} = {{ {} }}\n", key, text);
  return fmt::format(
      "[device]\nmemory_gib = {:.4g}\nmemory_tib_per_s = {:.4g}\nefficiency = {}\n"
      "launch_us = {:.4g}\ncores = {}\ntflops = {{ {} }}\n{}\n"
      "[network]\nmodel = \"{}\"\narchitecture = \"{}\"\nranks_per_node = {}\n"
      "intra_gb_per_s = {:.4g}\ninter_gb_per_s = {:.4g}\nchannels = {}\nnvswitch = {}\n"
      "extra_latency_us = {:.4g}\nbase_us = {:.4g}\nhop_us = {:.4g}\nsum_gb_per_s = {:.4g}\n",
      device.memory_bytes / kGiB, device.bytes_per_us / (kGiB * 1024 / 1e6), device.efficiency,
      device.launch_us, device.cores, RatesText(device.flops_per_us), measured,
      kModels[static_cast<size_t>(network.model)],
      kArchitectures[static_cast<size_t>(network.architecture)], network.ranks_per_node,
      network.intra, network.inter, network.channels, network.nvswitch, network.extra_latency_us,
      network.base_us, network.hop_us, network.sum);
}

double Topology::Crowding(int64_t ranks) const {
  if (device.cores == 0) return 1.0;
  const int64_t on_node = std::min(ranks, network.ranks_per_node);
  return std::max(1.0, static_cast<double>(on_node) / static_cast<double>(device.cores));
}

double Topology::ExchangeCrowding(int64_t ranks) const {
  return network.model == NetworkModel::kMemory ? Crowding(ranks) : 1.0;
}

Result<std::vector<AxisTopology>> AxisTopologies(const Topology& topology, const Mesh& mesh) {
  std::vector<AxisTopology> axes;
  for (const MeshAxis& axis : mesh.axes()) {
    const int64_t fitting = topology.network.ranks_per_node / axis.stride;
    const int64_t per_node = std::max<int64_t>(1, std::min(fitting, axis.size));
    if (axis.size % per_node != 0) {
      return Error(
          "nodes of {} ranks are filled unevenly: mesh {} on topology {}: choose sizes "
          "that divide the nodes, or are multiples of them",
          topology.network.ranks_per_node, mesh.Text(), topology.name);
    }
    axes.push_back({.ranks = axis.size, .nodes = axis.size / per_node, .ranks_per_node = per_node});
  }
  return axes;
}

Result<AxisTopology> GroupTopology(const Topology& topology, const Mesh& mesh,
                                   std::string_view group) {
  STRATA_TRY(const std::vector<MeshAxis> axes, mesh.GroupAxes(group));
  int64_t ranks = 1, stride = std::numeric_limits<int64_t>::max();
  for (const MeshAxis& axis : axes) {
    ranks *= axis.size;
    stride = std::min(stride, axis.stride);
  }
  return GroupTopology(topology, ranks, stride, group);
}

Result<AxisTopology> GroupTopology(const Topology& topology, int64_t ranks, int64_t stride,
                                   std::string_view group) {
  const int64_t fitting = topology.network.ranks_per_node / stride;
  const int64_t per_node = std::max<int64_t>(1, std::min(fitting, ranks));
  if (ranks % per_node != 0) {
    return Error(
        "nodes of {} ranks are filled unevenly: group {} of {} ranks on topology {}: "
        "choose sizes that divide the nodes, or are multiples of them",
        topology.network.ranks_per_node, group, ranks, topology.name);
  }
  return AxisTopology{.ranks = ranks, .nodes = ranks / per_node, .ranks_per_node = per_node};
}

}  // namespace strata
