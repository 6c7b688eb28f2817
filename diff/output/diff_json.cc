#include "diff/output/diff_json.h"

#include <cmath>

#include "base/json.h"
#include "ir/fingerprint.h"

namespace strata {
namespace {

void WriteSide(JsonWriter& json, std::string_view key, std::string_view ref,
               const Listing& listing) {
  json.Break(2).Key(key).BeginObject();
  json.Field("ref", ref).Field("nodes", listing.size());
  json.Field("fingerprint", ToString(FingerprintOf(listing.root())));
  json.EndObject();
}

void WriteSummary(JsonWriter& json, const DiffSummary& summary) {
  json.Break(2).Key("summary").BeginObject();
  json.Field("same", summary.same).Field("renamed", summary.renamed);
  json.Field("moved", summary.moved).Field("changed", summary.changed);
  json.Field("derived", summary.derived).Field("inserted", summary.inserted);
  json.Field("deleted", summary.deleted).Field("replaced", summary.replaced);
  json.Field("cloned", summary.cloned).Field("merged", summary.merged);
  json.Field("became_input", summary.became_input);
  json.Field("became_compute", summary.became_compute);
  json.EndObject();
}

void WriteText(JsonWriter& json, std::string_view key,
               const std::optional<std::string_view>& text) {
  json.Key(key);
  if (text) {
    json.String(*text);
  } else {
    json.Null();
  }
}

/// Three digits: a confidence is not a measurement.
double Rounded(double confidence) {
  return std::round(confidence * 1000) / 1000;
}

void WritePair(JsonWriter& json, const GraphDiff& diff, const Pair& pair) {
  json.Break(4).BeginObject();
  json.Field("before", diff.before.name(pair.before));
  json.Field("after", diff.after.name(pair.after));
  json.Field("status", ToString(pair.status));
  json.Field("confidence", Rounded(pair.confidence)).Field("via", ToString(pair.via));
  json.Key("fields").BeginArray();
  for (const FieldDiff& field : pair.fields) {
    json.BeginObject().Field("path", field.path);
    WriteText(json, "before", field.before);
    WriteText(json, "after", field.after);
    json.Field("derived", field.derived).EndObject();
  }
  json.EndArray().EndObject();
}

void WriteNames(JsonWriter& json, std::string_view key, const Listing& listing,
                const std::vector<EntityId>& ids) {
  json.Key(key).BeginArray();
  for (EntityId id : ids)
    json.String(listing.name(id));
  json.EndArray();
}

void WriteRelation(JsonWriter& json, const GraphDiff& diff, const Relation& relation) {
  json.Break(4).BeginObject().Field("kind", ToString(relation.kind));
  WriteNames(json, "before", diff.before, relation.before);
  WriteNames(json, "after", diff.after, relation.after);
  json.Field("confidence", Rounded(relation.confidence)).EndObject();
}

void WritePattern(JsonWriter& json, const Pattern& pattern) {
  json.Break(4).BeginObject();
  json.Field("title", pattern.title).Field("where", pattern.where);
  json.Key("except").BeginArray();
  for (const std::string& place : pattern.except)
    json.String(place);
  json.EndArray();
  json.Field("hunks", static_cast<int64_t>(pattern.hunks.size()));
  json.Field("nodes", pattern.nodes);
  json.Key("deviations").BeginArray();
  for (const Deviation& deviation : pattern.deviations) {
    json.BeginObject().Field("where", deviation.where);
    json.Field("what", deviation.what).EndObject();
  }
  json.EndArray().EndObject();
}

void WriteContradiction(JsonWriter& json, const GraphDiff& diff,
                        const Contradiction& contradiction) {
  const auto name = [](const Listing& listing, EntityId id) {
    return id.valid() ? std::optional(listing.name(id)) : std::nullopt;
  };
  json.Break(4).BeginObject();
  WriteText(json, "before", name(diff.before, contradiction.before));
  WriteText(json, "by_id", name(diff.after, contradiction.by_id));
  WriteText(json, "by_structure", name(diff.after, contradiction.by_structure));
  WriteText(json, "origin", name(diff.before, contradiction.origin));
  json.Field("confidence", Rounded(contradiction.confidence)).EndObject();
}

void WriteVerdict(JsonWriter& json, const GraphDiff& diff, const PolicyVerdict& verdict) {
  json.Break(2).Key("policy").BeginObject().Field("file", verdict.file);
  json.Field("allowed", verdict.allowed()).Key("violations").BeginArray();
  const auto name = [](const Listing& listing, const std::optional<EntityId>& id) {
    return id ? std::optional(listing.name(*id)) : std::nullopt;
  };
  for (const Violation& violation : verdict.violations) {
    json.Break(4).BeginObject().Field("what", violation.what).Field("rule", violation.rule);
    WriteText(json, "before", name(diff.before, violation.before));
    WriteText(json, "after", name(diff.after, violation.after));
    json.EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace

std::string DiffJson(const GraphDiff& diff, std::string_view before_ref, std::string_view after_ref,
                     const PolicyVerdict* verdict) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Break(2).Field("schema", "strata.diff/1");
  if (verdict != nullptr) WriteVerdict(json, diff, *verdict);
  WriteSide(json, "before", before_ref, diff.before);
  WriteSide(json, "after", after_ref, diff.after);
  WriteSummary(json, diff.summary);
  json.Break(2).Key("pairs").BeginArray();
  for (const Pair& pair : diff.pairs)
    WritePair(json, diff, pair);
  json.EndArray();
  json.Break(2);
  WriteNames(json, "inserted", diff.after, diff.inserted);
  json.Break(2);
  WriteNames(json, "deleted", diff.before, diff.deleted);
  json.Break(2).Key("relations").BeginArray();
  for (const Relation& relation : diff.relations)
    WriteRelation(json, diff, relation);
  json.EndArray();
  json.Break(2).Key("patterns").BeginArray();
  for (const Pattern& pattern : diff.patterns)
    WritePattern(json, pattern);
  json.EndArray();
  if (!diff.contradictions.empty()) {
    json.Break(2).Key("contradictions").BeginArray();
    for (const Contradiction& contradiction : diff.contradictions)
      WriteContradiction(json, diff, contradiction);
    json.EndArray();
  }
  json.Break(0).EndObject();
  out += '\n';
  return out;
}

}  // namespace strata
