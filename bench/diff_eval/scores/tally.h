#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "bench/diff_eval/scores/score.h"

namespace strata::bench {

/// What is measured of one kind of mutation.
struct Tally {
  Score identity, touched, fields, relations;
  /// Identity against the lineage as it is, whatever choice structure leaves.
  Score plain_identity, plain_touched;
  int64_t statuses = 0, right_statuses = 0;
  int64_t touched_statuses = 0, right_touched_statuses = 0;
  double rand_sum = 0;
  int64_t rand_cases = 0;
  int64_t pairs = 0, mirrored = 0, cases = 0, broken = 0, patched = 0;
  /// Claims and right ones by confidence in hundredths.
  std::array<std::pair<int64_t, int64_t>, 101> by_confidence{};
  std::map<std::pair<std::string, int>, std::pair<int64_t, int64_t>> by_tier;

  void Add(const Tally& other) {
    identity.Add(other.identity);
    touched.Add(other.touched);
    plain_identity.Add(other.plain_identity);
    plain_touched.Add(other.plain_touched);
    fields.Add(other.fields);
    relations.Add(other.relations);
    statuses += other.statuses;
    right_statuses += other.right_statuses;
    touched_statuses += other.touched_statuses;
    right_touched_statuses += other.right_touched_statuses;
    rand_sum += other.rand_sum;
    rand_cases += other.rand_cases;
    pairs += other.pairs;
    mirrored += other.mirrored;
    cases += other.cases;
    broken += other.broken;
    patched += other.patched;
    for (size_t i = 0; i < by_confidence.size(); ++i) {
      by_confidence[i].first += other.by_confidence[i].first;
      by_confidence[i].second += other.by_confidence[i].second;
    }
    for (const auto& [tier, counts] : other.by_tier) {
      by_tier[tier].first += counts.first;
      by_tier[tier].second += counts.second;
    }
  }

  bool flawed() const {
    return identity.wrong + identity.missed + fields.wrong + fields.missed + relations.wrong +
               relations.missed >
           0;
  }

  /// Expected calibration error: how far confidences are from the shares of right claims.
  double CalibrationError() const {
    double error = 0, total = 0;
    for (size_t i = 0; i < by_confidence.size(); ++i) {
      const auto claims = static_cast<double>(by_confidence[i].first);
      const auto right = static_cast<double>(by_confidence[i].second);
      error += std::abs(right - claims * static_cast<double>(i) / 100);
      total += claims;
    }
    return total == 0 ? 0 : error / total;
  }
};

inline double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace strata::bench
