#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "diff/model/graph_diff.h"
#include "scene/scene.h"

/// Numbers, names and changes in their readable form, for people; the report's page has the same in
/// assets/report/format.js.
namespace strata {

std::string NumberText(int64_t value);  ///< 1288: "1,288"; a minus is U+2212
/// "1 node", "2 nodes"; `many`: the plural if it is not `one` with an s.
std::string Plural(int64_t count, std::string_view one, std::string_view many = {});
/// As `%.Ng` of `digits`: "−3.2e−05"; "not finite" for NaN and infinities.
std::string RealText(double value, int digits = 4);
std::string TimeText(double ms);      ///< "12 µs", "4.4 ms", "1.5 s"; "–" for what is not above 0
std::string BytesText(double bytes);  ///< "1.50 KiB"
std::string FlopsText(double flops);  ///< "1.50 GFLOP"
/// With its sign: "+1.50 KiB", "−12 µs"; "·" for 0.
std::string ChangeText(double change, std::string (*unit)(double));

/// "aten.mm.default" is drawn as "mm".
std::string ShortOperator(std::string_view op);
/// "bf16[256, 64][64, 1]cpu" is drawn as "bf16 [256, 64]".
std::string ShortType(std::string_view type);
/// Of "bf16[256, 64][64, 1]cpu" the data type, and "[256, 64]"; empty for other texts.
std::string_view DtypeOf(std::string_view type);
std::string_view ShapeOf(std::string_view type);
/// Of "DTensor(f32[64, 64][64, 1]cpu, S(0)R)" how the ranks hold it, "S(0)R"; empty for others.
std::string_view PlacementsOf(std::string_view type);

/// The title of a change in the past tense: "insert aten.mm.default" becomes "Added mm".
std::string PastTense(std::string_view title);

std::string_view SignOf(SceneStatus status);  ///< "+", "−", "~", "↷"; "" for kSame
std::string_view WordOf(SceneStatus status);  ///< "added", …; "unchanged" for kSame
/// "+3 −1 ~2"; derived changes last, with their word; "" when nothing changed.
std::string CountsText(const SceneCounts& counts);

/// The fields in which a pair differs: "args[1]: 2 → 3; dtype: bf16 → f32"; root causes where there
/// are any, three at most.
std::string WhatChanged(const Pair& pair);

/// How a differ found that two nodes are one, as a sentence without a full stop.
std::string_view SentenceOf(Via via);
/// What a relation did: "replaced", "copied", …
std::string_view PastOf(RelationKind kind);

}  // namespace strata
