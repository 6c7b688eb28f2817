#include "store/proofs.h"

#include <array>
#include <memory>
#include <simdjson.h>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/unicode.h"
#include "store/artifact_parts.h"
#include "store/database.h"
#include "store/pack.h"

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

/// The number of rows of a table, as its counter says.
Result<int64_t> CountRows(Database& database, TableId table) {
  STRATA_TRY(Cursor row, database.Scan(TableId::kCounter, CounterOf(table)));
  STRATA_TRY(const bool found, row.Next());
  if (!found || row.id() != CounterOf(table))
    return database.Damaged(TableId::kCounter, CounterOf(table), "it is missing");
  return row.Integer(1);
}

/// Adds rows to tables of a finished trace.
class Appender {
 public:
  explicit Appender(Database& database) : database_(database) {}

  Status Append(std::span<const RunProof> proofs) {
    STRATA_TRY(artifacts_, CountRows(database_, TableId::kArtifact));
    STRATA_TRY(parts_, CountRows(database_, TableId::kArtifactData));
    for (const RunProof& proof : proofs)
      STRATA_RETURN_IF_ERROR(Add(proof));
    STRATA_RETURN_IF_ERROR(PutCounter(TableId::kArtifact, artifacts_));
    return PutCounter(TableId::kArtifactData, parts_);
  }

 private:
  Status Add(const RunProof& added) {
    const std::string json = JsonOf(added.proof), content = json + "\n";
    const auto bytes = static_cast<int64_t>(content.size());
    STRATA_RETURN_IF_ERROR(
        database_.Put(TableId::kArtifactData, ++parts_, {bytes, packer_.Pack(content)}));
    return database_.Put(TableId::kArtifact, ++artifacts_,
                         {static_cast<int64_t>(added.run), kName, kProofKind, json, bytes,
                          EncodeParts({&parts_, 1})});
  }
  Status PutCounter(TableId table, int64_t rows) {
    return database_.Put(TableId::kCounter, CounterOf(table),
                         {std::string_view(TableOf(table).name), rows});
  }

  Database& database_;
  Packer packer_;
  int64_t artifacts_ = 0, parts_ = 0;
};

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
  Status added = Appender(*database).Append(proofs);
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
