#include "runtime/train/files/checkpoint_manifest.h"

#include <map>
#include <simdjson.h>
#include <string_view>
#include <utility>
#include <xxhash.h>

#include <fmt/format.h>

#include "base/json.h"

namespace strata {
namespace {

constexpr std::string_view kSchema = "strata.checkpoint/1";

void WriteFields(std::string_view key, const std::map<std::string, std::string>& fields,
                 JsonWriter& json) {
  if (fields.empty()) return;
  json.Key(key).BeginObject();
  for (const auto& [name, value] : fields)
    json.Field(name, value);
  json.EndObject();
}

class ManifestReader {
 public:
  explicit ManifestReader(Manifest& out) : info_(out.info), files_(out.files) {}

  Status Read(const std::string& text) {
    simdjson::dom::parser parser;
    const simdjson::padded_string padded(text);
    simdjson::dom::element root;
    if (parser.parse(padded).get(root) != simdjson::SUCCESS) return Bad("it is not valid JSON");
    std::string_view schema, position;
    if (root["schema"].get(schema) != simdjson::SUCCESS || schema != kSchema) {
      return Bad("its schema is not strata.checkpoint/1");
    }
    const bool complete = root["step"].get(info_.step) == simdjson::SUCCESS &&
                          root["tokens_seen"].get(info_.tokens_seen) == simdjson::SUCCESS &&
                          root["data_position"].get(position) == simdjson::SUCCESS &&
                          root["has_optimizer"].get(info_.has_optimizer) == simdjson::SUCCESS &&
                          root["hugging_face"].get(info_.is_hugging_face) == simdjson::SUCCESS;
    if (!complete || info_.step < 0) return Bad("a field is missing");
    // Only runs that began their schedule anew have it.
    if (root["first_scheduled_step"].get(info_.first_scheduled_step) != simdjson::SUCCESS) {
      info_.first_scheduled_step = 0;
    }
    if (root["threads"].get(info_.threads) != simdjson::SUCCESS) info_.threads = 0;
    info_.data_position = position;
    STRATA_RETURN_IF_ERROR(ReadFields(root, "data", info_.data_traits));
    STRATA_RETURN_IF_ERROR(ReadFields(root, "config", info_.config));
    return ReadFiles(root);
  }

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
      ManifestFile file;
      std::string_view name, hash;
      const bool complete = item["file"].get(name) == simdjson::SUCCESS &&
                            item["bytes"].get(file.bytes) == simdjson::SUCCESS &&
                            item["xxh3_128"].get(hash) == simdjson::SUCCESS;
      if (!complete || name.find('/') != std::string_view::npos) return Bad("a file has no name");
      file.name = name;
      file.hash = hash;
      files_.push_back(std::move(file));
    }
    return Ok();
  }
  static Error Bad(std::string_view why) { return Error(ErrorCode::kCorrupt, "{}", why); }

  CheckpointInfo& info_;
  std::vector<ManifestFile>& files_;
};

}  // namespace

std::string ManifestHash(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string PrintManifest(const CheckpointInfo& info, std::span<const ManifestFile> files) {
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
  for (const ManifestFile& file : files) {
    json.Break(2).BeginObject().Field("file", file.name).Field("bytes", file.bytes);
    json.Field("xxh3_128", file.hash).EndObject();
  }
  json.EndArray().EndObject();
  text += '\n';
  return text;
}

Result<Manifest> ParseManifest(const std::string& text) {
  Manifest manifest;
  STRATA_RETURN_IF_ERROR(ManifestReader(manifest).Read(text));
  return manifest;
}

}  // namespace strata
