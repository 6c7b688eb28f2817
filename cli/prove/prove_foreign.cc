#include "cli/prove/prove_foreign.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/unicode.h"
#include "prove/foreign/foreign_proof.h"
#include "prove/foreign/joined_pieces.h"
#include "refs/compilations.h"
#include "refs/ref.h"

namespace strata::cli {
namespace {

prove::CompiledProgram ProgramOf(const LoggedCompilation& compilation) {
  return {.name = compilation.id,
          .forward = &compilation.forward.graph(),
          .backward = compilation.backward ? &compilation.backward->graph() : nullptr,
          .inputs = compilation.inputs,
          .metadata = compilation.metadata,
          .gradient_metadata = compilation.subclass_metadata};
}

/// `dp=averages` or `dp=sums`.
Status Read(const std::string& text, prove::ForeignOptions& options) {
  const size_t equals = text.find('=');
  const std::string does = equals == text.npos ? "" : text.substr(equals + 1);
  if (equals == 0 || (does != "averages" && does != "sums")) {
    return Error(
        "not an assumption: '{}': write an axis and what code outside of the graphs does "
        "over it: dp=averages or dp=sums",
        Visible(text));
  }
  options.reduced_outside[text.substr(0, equals)] =
      does == "sums" ? prove::Term::Kind::kSum : prove::Term::Kind::kMean;
  return Ok();
}

/// Makes one forward and one backward graph of those of the parts of a compilation.
Status JoinCuts(LoggedCompilations& logged) {
  for (LoggedCompilation& compilation : logged.compilations) {
    if (!compilation.cut) continue;
    Module& module = *compilation.cut->module;
    std::vector<prove::GraphPiece> pieces;
    for (const CutGraph::Piece& piece : compilation.cut->pieces)
      pieces.push_back({piece.forward, piece.backward});
    auto joined = prove::JoinPieces(module, compilation.cut->split, pieces);
    if (!joined) return std::move(joined).error().In(fmt::format("compilation {}", compilation.id));
    compilation.forward = {compilation.cut->module, joined->forward};
    compilation.backward.reset();
    if (joined->backward.valid())
      compilation.backward = {compilation.cut->module, joined->backward};
    // Of the last part only.
    compilation.metadata.clear();
    compilation.subclass_metadata.clear();
  }
  return Ok();
}

/// The logs of all ranks, in order.
Result<std::vector<LoggedCompilations>> LoadRanks(const std::vector<std::string>& words) {
  std::vector<LoggedCompilations> ranks;
  for (const std::string& word : words) {
    STRATA_TRY(std::vector<LoggedCompilations> some, LoadCompilations(word));
    std::ranges::move(some, std::back_inserter(ranks));
  }
  std::ranges::stable_sort(ranks, {}, &LoggedCompilations::rank);
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].rank != static_cast<int32_t>(i)) {
      return Error("no log of rank {}: {}: give one log for each rank", i, Visible(words.front()));
    }
  }
  for (LoggedCompilations& rank : ranks)
    STRATA_RETURN_IF_ERROR(JoinCuts(rank));
  if (ranks.empty())
    return Error("no compiled graphs: {}: give logs of ranks that compiled a model",
                 Visible(words.front()));
  return ranks;
}

const LoggedCompilation* Find(const LoggedCompilations& logged, const std::string& id) {
  const auto found = std::ranges::find(logged.compilations, id, &LoggedCompilation::id);
  return found == logged.compilations.end() ? nullptr : &*found;
}

/// The compilation of one device that is compilation `index` of the ranks: of the same id, or,
/// where ids are others and there are as many, of the same place.
const LoggedCompilation* CounterpartOf(const LoggedCompilations& single,
                                       const LoggedCompilations& rank, size_t index) {
  const bool has_all = std::ranges::all_of(rank.compilations, [&](const auto& compilation) {
    return Find(single, compilation.id) != nullptr;
  });
  if (!has_all && single.compilations.size() == rank.compilations.size())
    return &single.compilations[index];
  return Find(single, rank.compilations[index].id);
}

std::vector<std::string> IdsOf(const LoggedCompilations& logged) {
  std::vector<std::string> ids;
  for (const LoggedCompilation& compilation : logged.compilations)
    ids.push_back(compilation.id);
  return ids;
}

class ForeignLogs {
 public:
  ForeignLogs(LoggedCompilations single, std::vector<LoggedCompilations> ranks,
              const prove::ForeignOptions& options)
      : single_(std::move(single)), ranks_(std::move(ranks)), options_(options) {}

  std::vector<StepProof> ProveAll() const {
    std::vector<StepProof> proofs;
    std::vector<const LoggedCompilation*> used;
    for (size_t i = 0; i < ranks_[0].compilations.size(); ++i) {
      const LoggedCompilation* counterpart = CounterpartOf(single_, ranks_[0], i);
      used.push_back(counterpart);
      proofs.push_back(ProveOne(i, counterpart));
    }
    for (const LoggedCompilation& compilation : single_.compilations) {
      if (std::ranges::find(used, &compilation) != used.end()) continue;
      proofs.push_back(Unproven(compilation.id, "the ranks have no such compilation"));
    }
    return proofs;
  }

 private:
  StepProof Begin(const std::string& id) const {
    StepProof step;
    step.name = fmt::format("compilation {}", id);
    step.graph = fmt::format("{} rank{}", ranks_.size(), ranks_.size() == 1 ? "" : "s");
    step.ref = ranks_[0].ref;
    step.single = single_.ref;
    return step;
  }
  StepProof Unproven(const std::string& id, std::string reason) const {
    StepProof step = Begin(id);
    step.proof.verdict = prove::Verdict::kUnproven;
    step.proof.reason = std::move(reason);
    return step;
  }

  StepProof ProveOne(size_t index, const LoggedCompilation* counterpart) const {
    const std::string& id = ranks_[0].compilations[index].id;
    if (counterpart == nullptr) {
      return Unproven(id, fmt::format("one device has no such compilation, it has {}: compile the "
                                      "same modules on both",
                                      fmt::join(IdsOf(single_), ", ")));
    }
    std::vector<prove::CompiledProgram> programs;
    for (const LoggedCompilations& rank : ranks_) {
      const LoggedCompilation* compilation = Find(rank, id);
      if (compilation == nullptr)
        return Unproven(id, fmt::format("rank {} has no such compilation", rank.rank));
      programs.push_back(ProgramOf(*compilation));
    }
    StepProof step = Begin(id);
    const auto begin = std::chrono::steady_clock::now();
    step.proof = prove::ProveForeign(ProgramOf(*counterpart), programs, options_);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    step.milliseconds = took.count();
    return step;
  }

  const LoggedCompilations single_;
  const std::vector<LoggedCompilations> ranks_;
  const prove::ForeignOptions& options_;
};

}  // namespace

Result<bool> NamesRanks(const std::vector<std::string>& words) {
  if (words.size() != 1) return words.size() > 1;
  STRATA_TRY(const Ref ref, ParseRef(words[0]));
  if (std::error_code error; std::filesystem::is_directory(ref.file, error)) return true;
  if (ref.has_selector()) return false;
  const auto logged = LoadCompilations(words[0]);
  if (!logged && logged.error().code() == ErrorCode::kUnsupported) return logged.error();
  return logged && logged->size() > 1;
}

bool IsCompiledLog(const std::string& word) {
  const auto ref = ParseRef(word);
  if (!ref || ref->has_selector()) return false;
  const auto logged = LoadCompilations(word);
  return logged && logged->size() == 1;
}

Result<std::vector<StepProof>> ProveForeignLogs(const ForeignRequest& request) {
  prove::ForeignOptions options{.seed = static_cast<uint64_t>(request.seed),
                                .max_findings = static_cast<size_t>(request.max_findings)};
  for (const std::string& assumption : request.assumptions)
    STRATA_RETURN_IF_ERROR(Read(assumption, options));
  STRATA_TRY(std::vector<LoggedCompilations> single, LoadCompilations(request.single));
  if (single.size() != 1) {
    return Error("{}: {}: give the log of a run on one device",
                 single.empty() ? "no compiled graphs" : "logs of several ranks",
                 Visible(request.single));
  }
  STRATA_RETURN_IF_ERROR(JoinCuts(single[0]));
  STRATA_TRY(std::vector<LoggedCompilations> ranks, LoadRanks(request.ranks));
  return ForeignLogs(std::move(single[0]), std::move(ranks), options).ProveAll();
}

}  // namespace strata::cli
