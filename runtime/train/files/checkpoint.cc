#include "runtime/train/files/checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <future>
#include <optional>
#include <simdjson.h>
#include <unistd.h>
#include <utility>
#include <xxhash.h>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
// Of folders that are being written, or removed.
constexpr std::string_view kUnfinished = ".partial";
constexpr std::string_view kRemoved = ".removed";
constexpr std::string_view kManifest = "checkpoint.json";
constexpr std::string_view kSchema = "strata.checkpoint/1";

std::string HashOf(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::optional<int64_t> StepOf(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t step = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), step);
  if (read.ec != std::errc() || read.ptr != name.data() + name.size() || step < 0)
    return std::nullopt;
  return step;
}

/// A folder's new or removed names survive a loss of power.
Status SyncFolder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (synced) return Ok();
  return Error(ErrorCode::kIo, "cannot make durable: {}: {}", folder, std::strerror(error));
}

Status Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return Ok();
  return Error(ErrorCode::kIo, "cannot rename: {} to {}: {}", from, to, error.message());
}

/// Makes a folder and those above it; their names survive a loss of power.
Status MakeFolder(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> missing;
  for (fs::path path = folder; !path.empty() && !fs::is_directory(path, error);
       path = path.parent_path()) {
    missing.push_back(path);
  }
  error.clear();
  fs::create_directories(folder, error);
  if (std::error_code ignored; !fs::is_directory(folder, ignored)) {
    return Error(ErrorCode::kIo, "cannot make a folder: {}: {}; choose another dump_folder", folder,
                 error ? error.message() : "a file has this name");
  }
  for (const fs::path& path : missing) {
    const fs::path above = path.parent_path();
    STRATA_RETURN_IF_ERROR(SyncFolder(above.empty() ? "." : above.string()));
  }
  return Ok();
}

/// Removes a checkpoint: first its name, so that no half of it is ever found.
Status Remove(const std::string& path) {
  const std::string aside = path + std::string(kRemoved);
  std::error_code error;
  fs::remove_all(aside, error);
  STRATA_RETURN_IF_ERROR(Rename(path, aside));
  fs::remove_all(aside, error);
  if (!error) return Ok();
  return Error(ErrorCode::kIo, "cannot remove: {}: {}", aside, error.message());
}

/// Gives a complete folder its name. An older folder of that name is replaced atomically, so that
/// one of the two exists whenever the program stops.
Status Name(const std::string& aside, const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return Rename(aside, path);
  if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0) {
    STRATA_RETURN_IF_ERROR(Remove(path));  // a file system that cannot exchange names
    return Rename(aside, path);
  }
  fs::remove_all(aside, error);
  if (!error) return Ok();
  return Error(ErrorCode::kIo, "cannot remove: {}: {}", aside, error.message());
}

/// One checkpoint's files, as they are written.
class FolderWriter {
 public:
  FolderWriter(std::string folder, int64_t shard_bytes)
      : folder_(std::move(folder)), shard_bytes_(shard_bytes) {}

  /// `<kind>-00001-of-00002.safetensors` …; returns the file of each tensor.
  Result<std::vector<std::pair<std::string, std::string>>> WriteShards(
      std::string_view kind, std::vector<TensorView> tensors) {
    std::ranges::sort(tensors, {}, &TensorView::name);
    std::vector<std::vector<TensorView>> shards(1);
    int64_t bytes = 0;
    for (TensorView& tensor : tensors) {
      const int64_t size = std::ssize(tensor.bytes);
      if (bytes > 0 && bytes + size > shard_bytes_) {
        shards.emplace_back();
        bytes = 0;
      }
      bytes += size;
      shards.back().push_back(std::move(tensor));
    }
    std::vector<std::pair<std::string, std::string>> places;
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::string name =
          fmt::format("{}-{:05}-of-{:05}.safetensors", kind, i + 1, shards.size());
      for (const TensorView& tensor : shards[i])
        places.emplace_back(tensor.name, name);
      STRATA_RETURN_IF_ERROR(
          WriteSafetensors(Path(name), std::move(shards[i]), {{"format", "pt"}}));
      STRATA_RETURN_IF_ERROR(Note(name));
    }
    std::ranges::sort(places);
    return places;
  }

  Status WriteIndex(const std::vector<std::pair<std::string, std::string>>& places,
                    int64_t total_bytes) {
    std::string text;
    JsonWriter json(text);
    json.BeginObject().Key("metadata").BeginObject().Field("total_size", total_bytes).EndObject();
    json.Key("weight_map").BeginObject();
    for (const auto& [tensor, file] : places)
      json.Break(2).Field(tensor, file);
    json.EndObject().EndObject();
    text += '\n';
    STRATA_RETURN_IF_ERROR(WriteFile(Path("model.safetensors.index.json"), text));
    return Note("model.safetensors.index.json");
  }

  Status WriteManifest(const CheckpointInfo& info) {
    std::string text;
    JsonWriter json(text);
    json.BeginObject().Field("schema", kSchema).Field("step", info.step);
    json.Field("tokens_seen", info.tokens_seen).Field("data_position", info.data_position);
    json.Field("has_optimizer", info.has_optimizer).Field("hugging_face", info.is_hugging_face);
    if (info.first_scheduled_step > 0) {
      json.Field("first_scheduled_step", info.first_scheduled_step);
    }
    if (info.threads > 0) json.Field("threads", info.threads);
    WriteFields("data", info.data_traits, json);
    WriteFields("config", info.config, json);
    json.Key("files").BeginArray();
    for (const File& file : files_) {
      json.Break(2).BeginObject().Field("file", file.name).Field("bytes", file.bytes);
      json.Field("xxh3_128", file.hash).EndObject();
    }
    json.EndArray().EndObject();
    text += '\n';
    return WriteFile(Path(kManifest), text);
  }

 private:
  struct File {
    std::string name, hash;
    int64_t bytes = 0;
  };

  static void WriteFields(std::string_view key, const std::map<std::string, std::string>& fields,
                          JsonWriter& json) {
    if (fields.empty()) return;
    json.Key(key).BeginObject();
    for (const auto& [name, value] : fields)
      json.Field(name, value);
    json.EndObject();
  }

  std::string Path(std::string_view name) const { return fmt::format("{}/{}", folder_, name); }

  Status Note(const std::string& name) {
    STRATA_TRY(const MappedFile file, MappedFile::Open(Path(name)));
    files_.push_back(
        {.name = name, .hash = HashOf(file.bytes()), .bytes = std::ssize(file.bytes())});
    return Ok();
  }

  std::string folder_;
  int64_t shard_bytes_;
  std::vector<File> files_;
};

/// Tensors with bytes of their own.
struct Staged {
  explicit Staged(const CheckpointTensors& from) : tensors(from) {
    for (std::vector<TensorView>* group : {&tensors.model, &tensors.optimizer}) {
      for (TensorView& tensor : *group) {
        bytes.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
        tensor.bytes = bytes.back();
      }
    }
  }
  CheckpointTensors tensors;
  std::vector<std::vector<std::byte>> bytes;
};

int64_t TotalBytes(const std::vector<TensorView>& tensors) {
  int64_t total = 0;
  for (const TensorView& tensor : tensors)
    total += std::ssize(tensor.bytes);
  return total;
}

/// The files of a checkpoint, in a folder that is there.
Status WriteFiles(const std::string& folder, int64_t shard_bytes, const CheckpointInfo& info,
                  CheckpointTensors tensors) {
  FolderWriter writer(folder, shard_bytes);
  const int64_t model_bytes = TotalBytes(tensors.model);
  STRATA_TRY(const auto places, writer.WriteShards("model", std::move(tensors.model)));
  STRATA_RETURN_IF_ERROR(writer.WriteIndex(places, model_bytes));
  if (info.has_optimizer) {
    STRATA_TRY(const auto ignored, writer.WriteShards("optimizer", std::move(tensors.optimizer)));
  }
  STRATA_RETURN_IF_ERROR(writer.WriteManifest(info));
  return SyncFolder(folder);
}

Status WriteCheckpoint(const std::string& folder, const CheckpointWriter::Options& options,
                       const CheckpointInfo& info, CheckpointTensors tensors) {
  const std::string path = CheckpointPath(folder, info.step);
  const std::string aside = path + std::string(kUnfinished);
  std::error_code error;
  fs::remove_all(aside, error);
  if (!fs::create_directory(aside, error)) {
    return Error(ErrorCode::kIo, "cannot make a folder: {}: {}", aside, error.message());
  }
  if (const Status written = WriteFiles(aside, options.shard_bytes, info, std::move(tensors));
      !written) {
    fs::remove_all(aside, error);  // A full disk has use for the room.
    return written;
  }
  STRATA_RETURN_IF_ERROR(Name(aside, path));
  STRATA_RETURN_IF_ERROR(SyncFolder(folder));

  if (options.replace_after) {
    for (const int64_t step : ListCheckpoints(folder)) {
      if (step > *options.replace_after && step != info.step)
        STRATA_RETURN_IF_ERROR(Remove(CheckpointPath(folder, step)));
    }
  }
  if (options.keep_latest_k == 0) return Ok();
  std::vector<int64_t> steps = ListCheckpoints(folder);
  // Those of later steps are of a course that was left: older than all of this one.
  std::ranges::stable_partition(steps, [&](int64_t step) { return step > info.step; });
  const int64_t surplus = std::ssize(steps) - options.keep_latest_k;
  for (int64_t i = 0; i < surplus; ++i)
    STRATA_RETURN_IF_ERROR(Remove(CheckpointPath(folder, steps[static_cast<size_t>(i)])));
  return Ok();
}

/// What a folder has instead.
std::string DescribeThose(const std::string& folder) {
  std::vector<std::string> names;
  for (const int64_t step : ListCheckpoints(folder))
    names.push_back(std::to_string(step));
  return names.empty() ? "there are none" : fmt::format("there are those of {}", Enumerate(names));
}

/// Reads `checkpoint.json`. Errors hold only what is wrong.
class ManifestReader {
 public:
  struct File {
    std::string name, hash;
    int64_t bytes = 0;
  };

  Status Read(const std::string& text) {
    simdjson::dom::parser parser;
    const simdjson::padded_string padded(text);
    simdjson::dom::element root;
    if (parser.parse(padded).get(root) != simdjson::SUCCESS) return Bad("it is not valid JSON");
    std::string_view schema, position;
    if (root["schema"].get(schema) != simdjson::SUCCESS || schema != kSchema) {
      return Bad("its schema is not strata.checkpoint/1");
    }
    const bool complete = root["step"].get(info.step) == simdjson::SUCCESS &&
                          root["tokens_seen"].get(info.tokens_seen) == simdjson::SUCCESS &&
                          root["data_position"].get(position) == simdjson::SUCCESS &&
                          root["has_optimizer"].get(info.has_optimizer) == simdjson::SUCCESS &&
                          root["hugging_face"].get(info.is_hugging_face) == simdjson::SUCCESS;
    if (!complete || info.step < 0) return Bad("a field is missing");
    // Only runs that began their schedule anew have it.
    if (root["first_scheduled_step"].get(info.first_scheduled_step) != simdjson::SUCCESS) {
      info.first_scheduled_step = 0;
    }
    if (root["threads"].get(info.threads) != simdjson::SUCCESS) info.threads = 0;
    info.data_position = position;
    STRATA_RETURN_IF_ERROR(ReadFields(root, "data", info.data_traits));
    STRATA_RETURN_IF_ERROR(ReadFields(root, "config", info.config));
    return ReadFiles(root);
  }

  CheckpointInfo info;
  std::vector<File> files;

 private:
  static Status ReadFields(simdjson::dom::element root, std::string_view key,
                           std::map<std::string, std::string>& fields) {
    simdjson::dom::object object;
    if (root[key].get(object) != simdjson::SUCCESS) return Ok();
    for (const auto& [name, value] : object) {
      std::string_view word;
      if (value.get(word) != simdjson::SUCCESS) {
        return Bad(fmt::format("a value of '{}' is not a text", key));
      }
      fields.emplace(name, word);
    }
    return Ok();
  }
  Status ReadFiles(simdjson::dom::element root) {
    simdjson::dom::array array;
    if (root["files"].get(array) != simdjson::SUCCESS) return Bad("it has no list of files");
    for (const simdjson::dom::element item : array) {
      File file;
      std::string_view name, hash;
      const bool complete = item["file"].get(name) == simdjson::SUCCESS &&
                            item["bytes"].get(file.bytes) == simdjson::SUCCESS &&
                            item["xxh3_128"].get(hash) == simdjson::SUCCESS;
      if (!complete || name.find('/') != std::string_view::npos) return Bad("a file has no name");
      file.name = name;
      file.hash = hash;
      files.push_back(std::move(file));
    }
    return Ok();
  }
  static Error Bad(std::string_view why) { return Error(ErrorCode::kCorrupt, "{}", why); }
};

/// Opens the folder `path`, whose manifest is `text`, and compares its files with it. `advice` says
/// what to do instead of using a damaged one.
Result<Checkpoint> Verify(const std::string& path, const std::string& text,
                          std::string_view advice) {
  const auto damaged = [&](std::string_view why) {
    return Error(ErrorCode::kCorrupt, "damaged checkpoint: {}: {}; {}", path, why, advice);
  };
  ManifestReader manifest;
  if (const Status read = manifest.Read(text); !read) {
    return damaged(fmt::format("{}: {}", kManifest, read.error().message()));
  }
  std::vector<std::string> model, optimizer;
  for (const ManifestReader::File& file : manifest.files) {
    const std::string file_path = fmt::format("{}/{}", path, file.name);
    const auto mapped = MappedFile::Open(file_path);
    if (!mapped) return damaged(fmt::format("{} is missing", OneLine(file.name)));
    if (std::ssize(mapped->bytes()) != file.bytes || HashOf(mapped->bytes()) != file.hash) {
      return damaged(fmt::format("{} is not what was written", OneLine(file.name)));
    }
    if (file.name.starts_with("model-")) model.push_back(file_path);
    if (file.name.starts_with("optimizer-")) optimizer.push_back(file_path);
  }
  STRATA_TRY(TensorFiles model_files, TensorFiles::OpenAll(path, model));
  Checkpoint checkpoint{.info = manifest.info, .model = std::move(model_files), .optimizer = {}};
  if (manifest.info.has_optimizer) {
    STRATA_TRY(checkpoint.optimizer, TensorFiles::OpenAll(path, optimizer));
  }
  return checkpoint;
}

}  // namespace

std::string CheckpointPath(const std::string& folder, int64_t step) {
  return fmt::format("{}/{}{}", folder, kPrefix, step);
}

std::vector<int64_t> ListCheckpoints(const std::string& folder) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::optional<int64_t> step = StepOf(entry.path().filename().string());
    if (step && fs::exists(entry.path() / kManifest, error)) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

Result<Checkpoint> LoadCheckpoint(const std::string& folder, int64_t step) {
  const std::string path = CheckpointPath(folder, step);
  const auto text = ReadFile(fmt::format("{}/{}", path, kManifest));
  if (!text) {
    return Error(ErrorCode::kNotFound, "no checkpoint of step {}: {}: {}", step, folder,
                 DescribeThose(folder));
  }
  return Verify(path, *text, "remove the folder and resume from the one before");
}

Result<Checkpoint> OpenCheckpoint(const std::string& path) {
  const auto text = ReadFile(fmt::format("{}/{}", path, kManifest));
  if (!text) {
    return Error(ErrorCode::kNotFound, "not a checkpoint: {}: it has no {}; name a folder step-N",
                 path, kManifest);
  }
  return Verify(path, *text, "take another one");
}

Result<TensorFiles> OpenInitialTensors(const std::string& path) {
  const auto text = ReadFile(fmt::format("{}/{}", path, kManifest));
  if (!text) return TensorFiles::Open(path);
  STRATA_TRY(Checkpoint checkpoint, Verify(path, *text, "start from another one"));
  return std::move(checkpoint.model);
}

struct CheckpointWriter::State {
  std::string folder;
  Options options;
  std::future<Status> writing;

  Status Wait() { return writing.valid() ? writing.get() : Ok(); }
};

CheckpointWriter::CheckpointWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
CheckpointWriter::CheckpointWriter(CheckpointWriter&&) noexcept = default;
CheckpointWriter& CheckpointWriter::operator=(CheckpointWriter&&) noexcept = default;
CheckpointWriter::~CheckpointWriter() = default;

Result<CheckpointWriter> CheckpointWriter::Open(const std::string& folder, const Options& options) {
  STRATA_RETURN_IF_ERROR(MakeFolder(folder));
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path name = entry.path().filename();
    const std::string suffix = name.extension().string();
    const bool is_ours = StepOf(name.stem().string()).has_value();
    if (is_ours && (suffix == kUnfinished || suffix == kRemoved)) leftovers.push_back(entry.path());
  }
  for (const fs::path& leftover : leftovers)
    fs::remove_all(leftover, error);
  auto state = std::make_unique<State>();
  state->folder = folder;
  state->options = options;
  return CheckpointWriter(std::move(state));
}

Status CheckpointWriter::Save(const CheckpointInfo& info, const CheckpointTensors& tensors) {
  STRATA_RETURN_IF_ERROR(state_->Wait());
  Options options = state_->options;
  state_->options.replace_after.reset();
  if (options.mode == AsyncMode::kDisabled) {
    return WriteCheckpoint(state_->folder, options, info, tensors);
  }
  state_->writing =
      std::async(std::launch::async,
                 [folder = state_->folder, options, info,
                  staged = std::make_unique<Staged>(tensors)]() -> Status {
                   return WriteCheckpoint(folder, options, info, std::move(staged->tensors));
                 });
  return Ok();
}

Status CheckpointWriter::Wait() {
  return state_->Wait();
}

}  // namespace strata
