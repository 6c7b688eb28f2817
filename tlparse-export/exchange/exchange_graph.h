#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "tlparse-export/exchange/exchange_record.h"

namespace strata {

/// The texts that records name by number.
using ExchangeTexts = std::unordered_map<int64_t, std::string>;

/// Stable ids of a trace for the ids of one exchange file, in order of first use.
class ExchangeIds {
 public:
  /// `next` is shared by all files that go into one trace, and outlives this.
  explicit ExchangeIds(uint64_t& next) : next_(next) {}

  StableId Of(int64_t id) {
    const auto [place, is_new] = ids_.try_emplace(id, 0);
    if (is_new) place->second = next_++;
    return StableId{place->second};
  }
  /// Ids below `next` are taken.
  void ReserveBelow(uint64_t next) { next_ = std::max(next_, next); }
  uint64_t next() const { return next_; }

 private:
  uint64_t& next_;
  std::unordered_map<int64_t, uint64_t> ids_;
};

/// A graph of an exchange file: its nodes as the last snapshot left them.
class ExchangeGraph {
 public:
  explicit ExchangeGraph(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  /// Takes what a kSnap record says. Nodes that are in no order any more are forgotten.
  void Apply(ExchangeRecord record);
  /// Continues `other`, which another graph began as.
  void StartFrom(const ExchangeGraph& other) {
    nodes_ = other.nodes_;
    bodies_ = other.bodies_;
    class_name_ = other.class_name_;
  }

  struct Built {
    std::unique_ptr<Module> module;     ///< the program is graph 0
    std::vector<std::string> warnings;  ///< statements that could not be read, the first 100
  };
  /// The graph as it stands, with its stable ids. Errors: it has no program.
  Result<Built> Build(const ExchangeTexts& texts, ExchangeIds& ids) const;

  /// The FX text of the graph; `lines` gets the id of each line's node, 0 for other lines.
  std::string Text(const ExchangeTexts& texts, std::vector<int64_t>& lines) const;

 private:
  std::string name_, class_name_ = "GraphModule";
  std::unordered_map<int64_t, ExchangeNode> nodes_;
  std::map<std::string, std::vector<int64_t>> bodies_;  // by path, parents before children
};

}  // namespace strata
