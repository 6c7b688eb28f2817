#include "store/proofs.h"

#include <array>
#include <memory>
#include <simdjson.h>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/unicode.h"
#include "store/artifact_appender.h"
#include "store/database/database.h"

namespace strata {
namespace {

constexpr std::string_view kName = "proof.json";

std::string JsonOf(const PassProof& proof) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("pass", proof.pass).Field("graph", proof.graph);
  json.Field("verdict", proof.verdict).Field("node", proof.node);
  json.Field("class", proof.bug).Field("what", proof.what).Field("scope", proof.scope).EndObject();
  return out;
}

std::string Text(const simdjson::dom::element& object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

Status AppendProofs(Database& database, std::span<const RunProof> proofs) {
  STRATA_TRY(ArtifactAppender appender, ArtifactAppender::Begin(database));
  for (const RunProof& added : proofs)
    STRATA_RETURN_IF_ERROR(appender.Add(added.run, kName, kProofKind, JsonOf(added.proof)));
  return appender.End();
}

}  // namespace

Status AddProof(TraceWriter& trace, RunId run, const PassProof& proof) {
  const std::string json = JsonOf(proof);
  const auto added = trace.AddArtifact(run, kName, kProofKind, json + "\n", json);
  if (!added) return added.error();
  return Ok();
}

Status RecordProofs(const std::string& path, std::span<const RunProof> proofs) {
  STRATA_TRY(const FileLock lock, FileLock::Take(path));
  STRATA_TRY(const auto database, Database::Open(path, path, Database::Mode::kWrite));
  if (NumTables(database->version()) < kNumTables) {
    return Error(ErrorCode::kUnsupported,
                 "cannot add to: {}: a trace of an older version: record the run again", path);
  }
  STRATA_RETURN_IF_ERROR(database->Begin(Database::Mode::kWrite));
  Status added = AppendProofs(*database, proofs);
  if (added) added = database->Commit();
  if (!added) database->Rollback();
  return added;
}

PassProofs ProofsOf(const StoredRun& run) {
  PassProofs proofs;
  simdjson::dom::parser parser;
  for (const ArtifactInfo& artifact : run.artifacts) {
    if (artifact.kind != kProofKind) continue;
    simdjson::dom::element object;
    int64_t pass = 0;
    if (parser.parse(artifact.attributes).get(object) != simdjson::SUCCESS ||
        object["pass"].get(pass) != simdjson::SUCCESS)
      continue;
    PassProof proof{.pass = static_cast<int32_t>(pass),
                    .graph = Text(object, "graph"),
                    .verdict = Text(object, "verdict"),
                    .node = Text(object, "node"),
                    .bug = Text(object, "class"),
                    .what = Text(object, "what"),
                    .scope = Text(object, "scope")};
    auto key = std::pair(proof.pass, proof.graph);
    proofs.insert_or_assign(std::move(key), std::move(proof));
  }
  return proofs;
}

std::string VerdictText(const PassProof& proof) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kMarks = {
      {{"proven", "✓ "}, {"differs", "✗ "}, {"unproven", "? "}}};
  std::string text;
  for (const auto& [verdict, mark] : kMarks)
    if (proof.verdict == verdict) text = mark;
  text += Visible(proof.verdict);
  if (!proof.node.empty()) text += ": " + Visible(proof.node);
  if (!proof.scope.empty()) text += ", " + Visible(proof.scope);
  return text;
}

}  // namespace strata
