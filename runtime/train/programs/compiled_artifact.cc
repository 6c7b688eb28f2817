#include "runtime/train/programs/compiled_artifact.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <link.h>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <sys/file.h>
#include <system_error>
#include <thread>

#include <ATen/Version.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <torch/version.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/text.h"
#include "ir/text/native_text.h"
#include "runtime/codegen/kernel_cache.h"
#include "runtime/files/tensor_io.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using at::Tensor;

constexpr std::string_view kFormat = "1";
constexpr std::string_view kFieldsTensor = "strata.fields", kGraphsTensor = "strata.graphs";
constexpr std::string_view kConstantPrefix = "constant.";
constexpr std::string_view kHashField = "hash of graphs and constants";

Result<std::string> HashOfFile(const std::string& path) {
  STRATA_TRY(const MappedFile file, MappedFile::Open(path));
  const std::span<const std::byte> bytes = file.bytes();
  return ContentKey({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

/// The identity that the linker computed of the program's contents; a hash of its file where it has
/// none.
Result<std::string> ProgramIdentity() {
  std::string identity;
  const auto read = [](dl_phdr_info* object, size_t, void* out) {
    for (size_t i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = object->dlpi_phdr[i];
      if (part.p_type != PT_NOTE) continue;
      const auto* note = reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr);
      const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
      for (const char* const end = note + part.p_memsz; note + sizeof(ElfW(Nhdr)) <= end;) {
        ElfW(Nhdr) head{};
        std::memcpy(&head, note, sizeof(head));
        note += sizeof(head);
        const std::string_view name(note, head.n_namesz);
        note += padded(head.n_namesz);
        if (head.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU", 4))
          *static_cast<std::string*>(out) = std::string(note, head.n_descsz);
        note += padded(head.n_descsz);
      }
    }
    return 1;  // the program comes first, then its libraries
  };
  ::dl_iterate_phdr(read, &identity);
  if (identity.empty()) return HashOfFile("/proc/self/exe");
  return fmt::format(
      "{:02x}",
      fmt::join(std::span(reinterpret_cast<const uint8_t*>(identity.data()), identity.size()), ""));
}

/// Keys of what happens around the graphs.
bool IsOfTheLoop(std::string_view key) {
  constexpr std::string_view kTables[] = {"checkpoint.",
                                          "comm.",
                                          "metrics.",
                                          "profiler.",
                                          "lr_scheduler.",
                                          "debug.print_config",
                                          "debug.save_config_file"};
  constexpr std::string_view kKeys[] = {"steps", "dump_folder", "compile.precompile_artifact_dir"};
  return std::ranges::find(kKeys, key) != std::end(kKeys) ||
         std::ranges::any_of(kTables,
                             [&](std::string_view table) { return key.starts_with(table); });
}

/// Files among the words of a text: plans and topologies that passes read.
void AddFilesNamedIn(std::string_view text, ArtifactFields& fields) {
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = text.find_first_of("\"'{}=,", begin);
    if (end == std::string_view::npos) end = text.size();
    const std::string word(text.substr(begin, end - begin));
    begin = end + 1;
    std::error_code ignored;
    if (word.empty() || !fs::is_regular_file(word, ignored)) continue;
    const auto hash = HashOfFile(word);
    fields.emplace_back("file " + word, hash ? *hash : "unreadable");
  }
}

std::string OptionsText(const PlanOptions& plan) {
  return fmt::format("{}{}{}{}{}{}{}{}{}{}", int{plan.keep_values}, int{plan.fold_views},
                     int{plan.static_memory}, int{plan.in_place}, int{plan.hoist_constants},
                     int{plan.arena_results}, int{plan.dynamic_arena}, int{plan.separate_outputs},
                     int{plan.donate_gradients}, int{plan.unfuse});
}

std::string DeviceText(const DeviceTraits& device) {
  if (!device.is_gpu) return device.name;
  return fmt::format("{}, capability {}, cuDNN {}{}", device.name, device.capability, device.cudnn,
                     device.deterministic ? ", deterministic" : "");
}

std::string ParametersText(const ModelSpecs& model) {
  std::string text;
  for (const auto* specs : {&model.parameters, &model.buffers}) {
    for (const ParameterSpec& spec : *specs)
      text += fmt::format("{} {};", spec.name, fmt::join(spec.shape, ","));
  }
  return fmt::format("{} tensors, {}", model.parameters.size() + model.buffers.size(),
                     ContentKey(text));
}

/// A line per field. Names and values keep their line: what is compared is the written form.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out;
}

std::string PrintFields(const ArtifactFields& fields) {
  std::string text;
  for (const auto& [name, value] : fields)
    text += fmt::format("{}\t{}\n", Escaped(name), Escaped(value));
  return text;
}

std::map<std::string, std::string> ParseFields(std::string_view text) {
  std::map<std::string, std::string> fields;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (const size_t tab = line.find('\t'); tab != std::string_view::npos)
      fields.emplace(line.substr(0, tab), line.substr(tab + 1));
  }
  return fields;
}

/// A value in a message: the mesh of one rank is empty.
std::string_view OrNone(std::string_view value) {
  return value.empty() ? "none" : value;
}

/// The first field that differs, in words; "": none.
std::string Difference(const std::map<std::string, std::string>& stored,
                       const ArtifactFields& fields) {
  std::map<std::string, std::string> now;
  for (const auto& [name, value] : fields)
    now.emplace(Escaped(name), Escaped(value));
  for (const auto& [name, value] : now) {
    const auto found = stored.find(name);
    if (found == stored.end())
      return fmt::format("made without {}, which is {}", name, OrNone(value));
    if (found->second != value)
      return fmt::format("made with another {}: {}, now {}", name, OrNone(found->second),
                         OrNone(value));
  }
  for (const auto& [name, value] : stored) {
    if (!now.contains(name) && name != kHashField)
      return fmt::format("made with {} = {}, which is not given now", name, OrNone(value));
  }
  return "";
}

Tensor AsBytes(const std::string& text) {
  return at::from_blob(const_cast<char*>(text.data()), {static_cast<int64_t>(text.size())},
                       at::TensorOptions().dtype(at::kByte));
}

std::string_view TextOf(const NamedTensors& tensors, std::string_view name) {
  const auto found = tensors.find(std::string(name));
  if (found == tensors.end() || found->second.scalar_type() != at::kByte) return {};
  return {reinterpret_cast<const char*>(found->second.const_data_ptr()),
          static_cast<size_t>(found->second.numel())};
}

/// Of the graphs' text and of the constants' bytes.
std::string HashOf(std::string_view graphs, const Constants& constants) {
  std::string hashes = ContentKey(graphs);
  for (const auto& [name, tensor] : constants) {
    const Tensor rows = tensor.cpu().contiguous();
    hashes += fmt::format(
        "{} {} {} {}", name, c10::toString(rows.scalar_type()), fmt::join(rows.sizes(), ","),
        ContentKey({static_cast<const char*>(rows.const_data_ptr()), rows.nbytes()}));
  }
  return ContentKey(hashes);
}

/// "": the text makes graphs with the same fingerprints, and the constants are rows.
std::string WhyNotStorable(const TracedTraining& traced, const std::string& text) {
  for (const auto& [name, tensor] : traced.constants) {
    if (!tensor.is_contiguous()) return fmt::format("constant {} is not contiguous", name);
  }
  const auto parsed = ParseText(text);
  if (!parsed) return parsed.error().message();
  for (const GraphId id : traced.module->programs()) {
    const Graph& graph = traced.module->graph(id);
    const Graph* again = (*parsed)->FindGraph(graph.name_text());
    if (again == nullptr || FingerprintOf(*again, FingerprintScope::kEverything) !=
                                FingerprintOf(graph, FingerprintScope::kEverything))
      return fmt::format("graph {} has no exact text", graph.name_text());
  }
  return "";
}

/// The lock of a folder's makers, waited for.
Result<FileLock> LockFolder(const std::string& folder, std::chrono::seconds patience) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  const std::string path = folder + "/lock";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return Error(ErrorCode::kIo, "cannot write: {}: {}", path, std::strerror(errno));
  FileLock lock(descriptor);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return Error(ErrorCode::kIo, "cannot lock: {}: {}", path, std::strerror(errno));
    if (std::chrono::steady_clock::now() > end)
      return Error(ErrorCode::kIo, "another process holds it for {} s: {}", patience.count(), path);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return lock;
}

}  // namespace

Result<ArtifactFields> ArtifactFieldsOf(const TrainSpec& spec, std::string_view pipeline,
                                        const PlanOptions& plan, const DeviceTraits& device) {
  STRATA_TRY(std::string program, ProgramIdentity());
  ArtifactFields fields = {{"format", std::string(kFormat)},
                           {"program", std::move(program)},
                           {"LibTorch", TORCH_VERSION},
                           {"processor", at::get_cpu_capability()},
                           {"device", DeviceText(device)},
                           {"mesh", spec.config.parallelism.mesh.Text()},
                           {"parameters", ParametersText(spec.model)},
                           {"passes", std::string(pipeline)},
                           {"plan options", OptionsText(plan)}};
  for (const auto& [key, value] : spec.config.fields) {
    if (!IsOfTheLoop(key)) fields.emplace_back(key, value);
  }
  AddFilesNamedIn(pipeline, fields);
  AddFilesNamedIn(spec.config.model_path, fields);
  return fields;
}

std::string CompiledArtifact::path() const {
  return folder_ + "/graphs.safetensors";
}

/// False: there is no such file, or `unusable_` says what is wrong with it.
bool CompiledArtifact::Load(TracedTraining& traced) {
  unusable_.clear();
  std::error_code ignored;
  if (!fs::exists(path(), ignored)) return false;
  if (!fs::is_regular_file(path(), ignored)) {  // a device may have no end
    unusable_ = "not a regular file";
    return false;
  }
  auto tensors = LoadTensors(path());
  if (!tensors) {
    unusable_ = tensors.error().message();
    return false;
  }
  const std::map<std::string, std::string> stored = ParseFields(TextOf(*tensors, kFieldsTensor));
  const std::string_view graphs = TextOf(*tensors, kGraphsTensor);
  unusable_ = Difference(stored, fields_);
  if (!unusable_.empty()) return false;
  Constants constants;
  for (const auto& [name, tensor] : *tensors) {
    if (name.starts_with(kConstantPrefix))
      constants.emplace_back(name.substr(kConstantPrefix.size()), tensor);
  }
  const auto hash = stored.find(std::string(kHashField));
  if (hash == stored.end() || hash->second != HashOf(graphs, constants)) {
    unusable_ = "damaged: its bytes have another hash";
    return false;
  }
  auto module = ParseText(graphs, path());
  if (!module) {
    unusable_ = module.error().message();
    return false;
  }
  for (auto& [name, tensor] : constants)
    tensor = tensor.to(device_);
  traced.module = *std::move(module);
  traced.constants = std::move(constants);
  return true;
}

void CompiledArtifact::Store(const TracedTraining& traced) {
  const std::string graphs = PrintText(*traced.module, {.stable_ids = true});
  if (const std::string why = WhyNotStorable(traced, graphs); !why.empty()) {
    warnings_.push_back(fmt::format("graphs are not stored: {}: {}", path(), why));
    return;
  }
  std::map<std::string, Tensor> by_name;  // in the order in which they are read again
  for (const auto& [name, tensor] : traced.constants)
    by_name.emplace(std::string(kConstantPrefix) + name, tensor.cpu());
  Constants constants;
  for (const auto& [name, tensor] : by_name)
    constants.emplace_back(name.substr(kConstantPrefix.size()), tensor);
  ArtifactFields fields = fields_;
  fields.emplace_back(kHashField, HashOf(graphs, constants));
  const std::string manifest = PrintFields(fields);
  std::vector<std::pair<std::string, Tensor>> tensors(by_name.begin(), by_name.end());
  tensors.emplace_back(kFieldsTensor, AsBytes(manifest));
  tensors.emplace_back(kGraphsTensor, AsBytes(graphs));
  if (const Status saved = SaveTensors(path(), tensors); !saved)
    warnings_.push_back(fmt::format("graphs are not stored: {}", saved.error().message()));
}

Status CompiledArtifact::Take(TracedTraining& traced, const std::function<Status()>& make) {
  was_loaded_ = Load(traced);
  if (was_loaded_) return Ok();
  const auto lock = LockFolder(folder_, patience_);
  if (lock) {
    was_loaded_ = Load(traced);
    if (was_loaded_) return Ok();
  }
  if (!unusable_.empty())
    warnings_.push_back(fmt::format("graphs are made anew: {}: {}", path(), unusable_));
  STRATA_RETURN_IF_ERROR(make());
  if (lock) {
    Store(traced);
  } else {
    warnings_.push_back(fmt::format("graphs are not stored: {}", lock.error().message()));
  }
  return Ok();
}

}  // namespace strata
