#include "passes/placement/solver/linear_program.h"

#ifdef STRATA_HAVE_CLP
#include <algorithm>
#include <cmath>
#include <coin/Clp_C_Interface.h>
#include <dlfcn.h>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "passes/placement/solver/multipliers.h"
#endif

namespace strata {

#ifdef STRATA_HAVE_CLP
namespace {

using Choices = PairwiseProblem::Choices;
constexpr double kIntegral = 1e-6;

/// The functions of Clp that are used here, of the library that the header belongs to.
struct Clp {
  decltype(&Clp_newModel) new_model = nullptr;
  decltype(&Clp_deleteModel) delete_model = nullptr;
  decltype(&Clp_loadProblem) load_problem = nullptr;
  decltype(&Clp_setLogLevel) set_log_level = nullptr;
  decltype(&Clp_setMaximumIterations) set_maximum_iterations = nullptr;
  decltype(&Clp_dual) dual = nullptr;
  decltype(&Clp_status) status = nullptr;
  decltype(&Clp_numberIterations) number_iterations = nullptr;
  decltype(&Clp_objectiveValue) objective_value = nullptr;
  decltype(&Clp_primalColumnSolution) primal_column_solution = nullptr;
  decltype(&Clp_columnLower) column_lower = nullptr;
  decltype(&Clp_columnUpper) column_upper = nullptr;

  /// Null: this machine does not have the library.
  static const Clp* Get() {
    static const Clp clp;
    return clp.is_complete_ ? &clp : nullptr;
  }

 private:
  Clp() {
    // Its own BLAS must not meet that of LibTorch.
    void* library = ::dlopen("libClp.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    is_complete_ = true;
    const auto find = [&]<class F>(F& function, const char* name) {
      function = reinterpret_cast<F>(::dlsym(library, name));
      is_complete_ = is_complete_ && function != nullptr;
    };
    find(new_model, "Clp_newModel");
    find(delete_model, "Clp_deleteModel");
    find(load_problem, "Clp_loadProblem");
    find(set_log_level, "Clp_setLogLevel");
    find(set_maximum_iterations, "Clp_setMaximumIterations");
    find(dual, "Clp_dual");
    find(status, "Clp_status");
    find(number_iterations, "Clp_numberIterations");
    find(objective_value, "Clp_objectiveValue");
    find(primal_column_solution, "Clp_primalColumnSolution");
    find(column_lower, "Clp_columnLower");
    find(column_upper, "Clp_columnUpper");
  }

  bool is_complete_ = false;
};

/// The program in columns, as Clp reads it.
class Program {
 public:
  explicit Program(const PairwiseProblem& problem) : problem_(problem) {
    for (const auto& costs : problem.variables) {
      first_column_.push_back(num_columns());
      const int row = AddRow(1, 1);
      for (const double cost : costs) {
        AddColumn(cost);
        AddEntry(row, 1);
      }
    }
    // A row for each class of each end: the pairs of a class are chosen as often as its choices.
    first_edge_row_.reserve(problem.edges.size());
    for (const auto& edge : problem.edges) {
      first_edge_row_.push_back(num_rows());
      for (int i = 0; i < edge.num_a + edge.num_b; ++i)
        AddRow(0, 0);
    }
    for (size_t i = 0; i < problem.rows.size(); ++i)
      AddRow(-std::numeric_limits<double>::max(), 1);
    AddChoicesToRows();
    AddPairs();
  }

  int num_columns() const { return static_cast<int>(costs_.size()); }
  int num_rows() const { return static_cast<int>(row_lower_.size()); }
  int column(size_t variable, int choice) const { return first_column_[variable] + choice; }

  void Load(const Clp& clp, Clp_Simplex* model) const {
    std::vector<CoinBigIndex> starts{0};
    std::vector<int> indices;
    std::vector<double> values;
    for (const auto& entries : entries_) {
      for (const auto& [row, value] : entries) {
        indices.push_back(row);
        values.push_back(value);
      }
      starts.push_back(static_cast<CoinBigIndex>(indices.size()));
    }
    const std::vector<double> lower(costs_.size(), 0.0), upper(costs_.size(), 1.0);
    clp.load_problem(model, num_columns(), num_rows(), starts.data(), indices.data(), values.data(),
                     lower.data(), upper.data(), costs_.data(), row_lower_.data(),
                     row_upper_.data());
  }

 private:
  int AddRow(double lower, double upper) {
    row_lower_.push_back(lower);
    row_upper_.push_back(upper);
    return num_rows() - 1;
  }
  void AddColumn(double cost) {
    costs_.push_back(cost);
    entries_.emplace_back();
  }
  void AddEntry(int row, double value) { entries_.back().emplace_back(row, value); }

  void AddChoicesToRows() {
    for (size_t e = 0; e < problem_.edges.size(); ++e) {
      const auto& edge = problem_.edges[e];
      const auto add = [&](int variable, const std::vector<int>& classes, int first_row) {
        for (size_t choice = 0; choice < classes.size(); ++choice)
          entries_[static_cast<size_t>(
                       column(static_cast<size_t>(variable), static_cast<int>(choice)))]
              .emplace_back(first_row + classes[choice], -1.0);
      };
      add(edge.a, edge.class_a, first_edge_row_[e]);
      add(edge.b, edge.class_b, first_edge_row_[e] + edge.num_a);
    }
    const int first = num_rows() - static_cast<int>(problem_.rows.size());
    for (size_t r = 0; r < problem_.rows.size(); ++r) {
      const auto& row = problem_.rows[r];
      // In parts of the limit, so that bytes and µs have like sizes.
      const double scale = row.limit > 0 ? row.limit : 1;
      row_upper_[static_cast<size_t>(first) + r] = row.limit / scale;
      for (const auto& term : row.terms)
        for (size_t choice = 0; choice < term.weights.size(); ++choice)
          if (term.weights[choice] != 0)
            entries_[static_cast<size_t>(
                         column(static_cast<size_t>(term.variable), static_cast<int>(choice)))]
                .emplace_back(first + static_cast<int>(r), term.weights[choice] / scale);
    }
  }

  void AddPairs() {
    for (size_t e = 0; e < problem_.edges.size(); ++e) {
      const auto& edge = problem_.edges[e];
      for (int i = 0; i < edge.num_a; ++i) {
        for (int j = 0; j < edge.num_b; ++j) {
          const double cost = edge.costs[static_cast<size_t>(i * edge.num_b + j)];
          if (std::isinf(cost)) continue;
          AddColumn(cost);
          AddEntry(first_edge_row_[e] + i, 1);
          AddEntry(first_edge_row_[e] + edge.num_a + j, 1);
        }
      }
    }
  }

  const PairwiseProblem& problem_;
  std::vector<double> costs_, row_lower_, row_upper_;
  std::vector<std::vector<std::pair<int, double>>> entries_;  // of each column: (row, value)
  std::vector<int> first_column_, first_edge_row_;
};

class BranchAndBound {
 public:
  BranchAndBound(const PairwiseProblem& problem, const SolverOptions& options)
      : problem_(problem),
        options_(options),
        program_(problem),
        watch_(options.clock),
        model_(clp_.new_model(), clp_.delete_model) {
    clp_.set_log_level(model_.get(), 0);
    program_.Load(clp_, model_.get());
    result_.method = "Clp";
    result_.cost = options.known_cost;
    result_.core_variables = static_cast<int64_t>(problem.variables.size());
    result_.columns = program_.num_columns();
    result_.rows = program_.num_rows();
  }

  SolverResult Run() {
    SolveAgain();
    result_.bound = std::min(Visit(/*depth=*/0), result_.cost);
    using Status = SolverResult::Status;
    const bool has_choices = !result_.choices.empty();
    if (is_late_) {
      result_.status = has_choices ? Status::kFeasible : Status::kUnknown;
    } else {
      result_.status = has_choices ? Status::kOptimal : Status::kInfeasible;
    }
    return std::move(result_);
  }

 private:
  /// Entries that an iteration of the simplex is counted as, for each row and column.
  static constexpr double kEntriesOfIteration = 4;

  /// By the dual simplex, from the last solution; for as long as the limit lets it.
  void SolveAgain() {
    const double of_iteration =
        kEntriesOfIteration * static_cast<double>(result_.columns + result_.rows);
    const double left = std::max(0.0, options_.seconds - watch_.seconds());
    const double most = std::clamp(left / WorkClock::kSecondsPerEntry / of_iteration, 1.0, 1e9);
    clp_.set_maximum_iterations(model_.get(), static_cast<int>(most));
    clp_.dual(model_.get(), 0);
    options_.clock->Count(of_iteration * (1 + clp_.number_iterations(model_.get())));
  }

  /// The least cost below this node, or a bound that the incumbent does not exceed. The model is
  /// solved already.
  double Visit(int depth) {
    result_.iterations += clp_.number_iterations(model_.get());
    if (clp_.status(model_.get()) != 0) {
      const bool is_stopped = clp_.status(model_.get()) == 3;
      is_late_ = is_late_ || is_stopped;
      return (is_stopped ? -1 : 1) * std::numeric_limits<double>::infinity();
    }
    const double bound = clp_.objective_value(model_.get());
    if (bound >= result_.cost * (1 - options_.gap)) return bound;
    const double* x = clp_.primal_column_solution(model_.get());
    Choices rounded;
    int branch = -1;
    double most_certain = 0;
    for (size_t variable = 0; variable < problem_.variables.size(); ++variable) {
      const double* y = x + program_.column(variable, 0);
      const auto choice =
          static_cast<int>(std::max_element(y, y + problem_.variables[variable].size()) - y);
      rounded.push_back(choice);
      if (y[choice] >= 1 - kIntegral || y[choice] <= most_certain) continue;
      most_certain = y[choice];
      branch = program_.column(variable, choice);
    }
    const bool is_feasible = !std::isinf(problem_.Cost(rounded)) && problem_.Satisfies(rounded);
    if (is_feasible && (branch >= 0 || problem_.Cost(rounded) < result_.cost)) Offer(rounded);
    if (branch < 0) return bound;
    if (watch_.seconds() >= options_.seconds) {
      is_late_ = true;
      return bound;
    }
    const double with = Fix(branch, 1, depth), without = Fix(branch, 0, depth);
    return std::max(bound, std::min(with, without));
  }

  double Fix(int column, double value, int depth) {
    double& lower = clp_.column_lower(model_.get())[column];
    double& upper = clp_.column_upper(model_.get())[column];
    const double old_lower = std::exchange(lower, value), old_upper = std::exchange(upper, value);
    SolveAgain();
    ++result_.branches;
    const double least = Visit(depth + 1);
    clp_.column_lower(model_.get())[column] = old_lower;
    clp_.column_upper(model_.get())[column] = old_upper;
    return least;
  }

  void Offer(Choices choices) {
    ImproveChoices(problem_, choices);
    const double cost = problem_.Cost(choices);
    if (cost >= result_.cost) return;
    result_.cost = cost;
    result_.choices = std::move(choices);
  }

  const Clp& clp_ = *Clp::Get();
  const PairwiseProblem& problem_;
  const SolverOptions options_;
  const Program program_;
  const WorkWatch watch_;
  const std::unique_ptr<Clp_Simplex, void (*)(Clp_Simplex*)> model_;
  SolverResult result_;
  bool is_late_ = false;
};

}  // namespace

bool HasClp() {
  return Clp::Get() != nullptr;
}

SolverResult SolveByLinearProgram(const PairwiseProblem& problem, const SolverOptions& options) {
  return BranchAndBound(problem, options).Run();
}

#else

bool HasClp() {
  return false;
}

SolverResult SolveByLinearProgram(const PairwiseProblem& problem, const SolverOptions& options) {
  static_cast<void>(problem);
  static_cast<void>(options);
  return {};
}

#endif

}  // namespace strata
