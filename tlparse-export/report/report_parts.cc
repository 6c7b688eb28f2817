#include "tlparse-export/report/report_parts.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "scene/scene.h"
#include "tlparse-export/report/pack.h"

namespace strata {
namespace {

constexpr size_t kTextsPerPart = 20'000;
/// Script, style and summary of the page, generously.
constexpr size_t kPageBytes = size_t{200} << 10;

/// Where in the program which statuses are: a character per slice, '0' plus a bit for each
/// SceneStatus in it.
std::string BarcodeOf(const Scene& scene) {
  constexpr size_t kSlices = 480;
  const size_t slices = std::min(kSlices, scene.nodes.size());
  std::string marks(slices, '0');
  size_t i = 0;
  for (const SceneNode& node : scene.nodes) {
    char& mark = marks[i++ * slices / scene.nodes.size()];
    mark = static_cast<char>('0' + ((mark - '0') | 1 << static_cast<int>(node.status)));
  }
  return marks;
}

}  // namespace

Result<int32_t> ReportParts::AddScene(std::string title, const GraphDiff& diff,
                                      const SceneContext& context) {
  const Scene scene = MakeScene(diff, {.lanes = &lanes_});
  const SceneData data = SceneJson(diff, scene, context, names_, texts_);
  Detail detail{.title = std::move(title), .scene = {}, .lines = {}, .barcode = BarcodeOf(scene)};
  STRATA_TRY(detail.scene, Pack(data.core));
  STRATA_TRY(detail.lines, Pack(data.lines));
  details_.push_back(std::move(detail));
  return static_cast<int32_t>(details_.size()) - 1;
}

int32_t ReportParts::AddFacts(const Graph& graph) {
  facts_.push_back(FactsOf(graph));
  return static_cast<int32_t>(facts_.size()) - 1;
}

void ReportParts::Fill(int32_t facts, ReportSnapshot& snapshot) const {
  snapshot.facts = facts;
  snapshot.peak = facts_[static_cast<size_t>(facts)].peak;
  snapshot.flops = facts_[static_cast<size_t>(facts)].flops;
}

size_t PageBytes(const ReportModel& model) {
  size_t bytes = kPageBytes + MainJson(model).size();
  for (const ReportPart& part : model.parts)
    bytes += part.packed.size();
  return bytes;
}

Status ReportParts::Finish(size_t max_bytes, ReportModel& model) {
  for (const Detail& detail : details_)
    model.barcodes.push_back(detail.barcode);
  std::vector<ReportPart> shared, texts;
  STRATA_RETURN_IF_ERROR(AddTexts("names", names_, shared));
  STRATA_RETURN_IF_ERROR(AddTexts("texts", texts_, texts));
  std::string facts;
  JsonWriter json(facts);
  json.BeginArray();
  for (const GraphFacts& f : facts_)
    AppendJson(f, json);
  json.EndArray();
  STRATA_TRY(std::string packed_facts, Pack(facts));
  shared.push_back({"facts", std::move(packed_facts)});

  size_t bytes = PageBytes(model);
  for (const ReportPart& part : shared)
    bytes += part.packed.size();
  LeaveOut(bytes, max_bytes, texts, model);
  for (size_t i = 0; i < details_.size(); ++i) {
    if (!details_[i].scene.empty())
      model.parts.push_back({fmt::format("data-{}", i), std::move(details_[i].scene)});
    if (!details_[i].lines.empty())
      model.parts.push_back({fmt::format("lines-{}", i), std::move(details_[i].lines)});
  }
  for (std::vector<ReportPart>* parts : {&shared, &texts})
    std::ranges::move(*parts, std::back_inserter(model.parts));
  return Ok();
}

Status ReportParts::AddTexts(std::string_view id, const Texts& texts,
                             std::vector<ReportPart>& parts) {
  for (size_t begin = 0; begin < texts.size(); begin += kTextsPerPart) {
    const size_t end = std::min(texts.size(), begin + kTextsPerPart);
    STRATA_TRY(std::string packed, Pack(texts.Json(begin, end)));
    parts.push_back({fmt::format("{}-{}", id, begin / kTextsPerPart), std::move(packed)});
  }
  return Ok();
}

void ReportParts::LeaveOut(size_t bytes, size_t max_bytes, std::vector<ReportPart>& texts,
                           ReportModel& model) {
  size_t lines = 0;
  for (const ReportPart& part : texts)
    lines += part.packed.size();
  std::vector<size_t> by_size;
  for (size_t i = 0; i < details_.size(); ++i) {
    bytes += details_[i].scene.size();
    lines += details_[i].lines.size();
    by_size.push_back(i);
  }
  if (bytes + lines <= max_bytes) return;
  texts.clear();
  for (Detail& detail : details_) {
    detail.lines.clear();
    model.left_out.push_back(fmt::format("lines of {}", detail.title));
  }
  std::ranges::stable_sort(by_size, std::ranges::greater(),
                           [&](size_t i) { return details_[i].scene.size(); });
  for (size_t i : by_size) {
    if (bytes <= max_bytes) break;
    bytes -= details_[i].scene.size();
    details_[i].scene.clear();
    model.left_out.push_back(details_[i].title);
  }
}

}  // namespace strata
