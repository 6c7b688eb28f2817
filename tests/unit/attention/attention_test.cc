// Attention against its definition in doubles, within bounds that follow from the roundings of
// floats; whether its bits are ATen's is another matter (tests/unit/runtime/own_attention_test.cc).

#include "runtime/attention/attention.h"

#include <cmath>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace strata {
namespace {

constexpr double kEps = 0x1p-24;  // of one rounding to a float
constexpr double kExpError = 40;  // roundings that an exponential is wrong by: 20 ulp

/// Rows of one head after the other, `[heads, rows, width]`.
struct Heads {
  Heads(int64_t heads, int64_t n, int64_t w)
      : rows(n), width(w), numbers(static_cast<size_t>(heads * n * w)) {}

  double At(int64_t head, int64_t row, int64_t i) const {
    return numbers[static_cast<size_t>((head * rows + row) * width + i)];
  }
  HeadRows View() {
    return {.data = numbers.data(), .head_stride = rows * width, .row_stride = width};
  }

  int64_t rows, width;
  std::vector<float> numbers;
};

/// A number and how far from it floats may end up.
struct Bounded {
  double value = 0, error = 0;

  void Add(double term, double term_error) {
    value += term;
    error += term_error;
    magnitude += std::abs(term);
  }
  /// After `count` additions of what was added.
  Bounded Sum(int64_t count) const {
    return {.value = value, .error = error + static_cast<double>(count) * kEps * magnitude};
  }
  double magnitude = 0;
};

struct Case {
  int64_t heads, kv_heads, queries, keys, width;
  bool is_causal = true;
};

class Checker {
 public:
  explicit Checker(const Case& c)
      : c_(c),
        q_(c.heads, c.queries, c.width),
        k_(c.kv_heads, c.keys, c.width),
        v_(c.kv_heads, c.keys, c.width),
        out_(c.heads, c.queries, c.width),
        log_sum_(c.heads, c.queries, 1),
        grad_out_(c.heads, c.queries, c.width),
        grad_q_(c.heads, c.queries, c.width),
        grad_k_(c.kv_heads, c.keys, c.width),
        grad_v_(c.kv_heads, c.keys, c.width) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> number(-1.5F, 1.5F);
    for (Heads* heads : {&q_, &k_, &v_, &grad_out_}) {
      for (float& x : heads->numbers)
        x = number(random);
    }
    attention_ = {.batches = 1,
                  .heads = c.heads,
                  .kv_heads = c.kv_heads,
                  .queries = c.queries,
                  .keys = c.keys,
                  .width = c.width,
                  .is_causal = c.is_causal,
                  .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.width))),
                  .query_block = 32,
                  .q = q_.View(),
                  .k = k_.View(),
                  .v = v_.View(),
                  .out = out_.View(),
                  .log_sum = log_sum_.View(),
                  .grad_out = grad_out_.View(),
                  .grad_q = grad_q_.View(),
                  .grad_k = grad_k_.View(),
                  .grad_v = grad_v_.View()};
  }

  bool can_run() const { return CanRunAttention(attention_); }

  void Run() {
    for (int64_t head = 0; head < c_.heads; ++head)
      RunAttention(attention_, 0, head);
    for (int64_t kv_head = 0; kv_head < c_.kv_heads; ++kv_head)
      RunAttentionBackward(attention_, 0, kv_head);
    const auto sums = [](const Heads& heads) { return std::vector<Bounded>(heads.numbers.size()); };
    std::vector<Bounded> grad_k = sums(grad_k_), grad_v = sums(grad_v_);
    for (int64_t head = 0; head < c_.heads; ++head) {
      for (int64_t query = 0; query < c_.queries; ++query)
        CheckQuery(head, query, grad_k, grad_v);
    }
    const int64_t added = c_.queries * c_.heads / c_.kv_heads + 4;
    for (size_t i = 0; i < grad_k.size(); ++i) {
      Check("grad_k", grad_k_.numbers[i], grad_k[i].Sum(added));
      Check("grad_v", grad_v_.numbers[i], grad_v[i].Sum(added));
    }
  }

 private:
  static void Check(const char* what, double actual, const Bounded& expected) {
    if (std::abs(actual - expected.value) <= 2 * expected.error + 1e-30) return;
    FAIL_CHECK(what, " is ", actual, ", not ", expected.value, " +- ", expected.error);
  }

  Bounded Dot(const Heads& a, int64_t a_head, int64_t a_row, const Heads& b, int64_t b_head,
              int64_t b_row) const {
    Bounded sum;
    for (int64_t i = 0; i < c_.width; ++i)
      sum.Add(a.At(a_head, a_row, i) * b.At(b_head, b_row, i), 0);
    return sum.Sum(c_.width + 1);
  }

  /// One row of scores, forward and backward.
  void CheckQuery(int64_t head, int64_t query, std::vector<Bounded>& grad_k,
                  std::vector<Bounded>& grad_v) const {
    const int64_t kv_head = head / (c_.heads / c_.kv_heads);
    const int64_t seen = c_.is_causal ? query + 1 : c_.keys;
    std::vector<Bounded> scores;
    double most = -1e300, error = 0;
    for (int64_t key = 0; key < seen; ++key) {
      Bounded score = Dot(q_, head, query, k_, kv_head, key);
      score.value *= attention_.scale;
      score.error = score.error * attention_.scale + 3 * kEps * std::abs(score.value);
      most = std::max(most, score.value);
      error = std::max(error, score.error);
      scores.push_back(score);
    }
    double sum = 0;
    for (const Bounded& score : scores)
      sum += std::exp(score.value - most);
    const double log_sum = most + std::log(sum);
    // Of a probability, relative: of its score, of the maximum that is subtracted and divided out,
    // of two exponentials, and of a sum of as many terms.
    const double roundings =
        2 * kExpError + static_cast<double>(seen) + 8 + 4 * std::abs(most) + 4 * std::abs(log_sum);
    const double relative = 2 * error + roundings * kEps;
    Check("log_sum", log_sum_.At(head, query, 0), {.value = log_sum, .error = relative});

    Bounded mean;  // of the gradient of the scores
    std::vector<Bounded> gradients;
    for (int64_t key = 0; key < seen; ++key)
      gradients.push_back(Dot(grad_out_, head, query, v_, kv_head, key));
    for (int64_t i = 0; i < c_.width; ++i) {
      Bounded out;
      for (int64_t key = 0; key < seen; ++key) {
        const double term =
            std::exp(scores[static_cast<size_t>(key)].value - log_sum) * v_.At(kv_head, key, i);
        out.Add(term, relative * std::abs(term));
      }
      out = out.Sum(seen + 2);
      Check("out", out_.At(head, query, i), out);
      const double gradient = grad_out_.At(head, query, i);
      mean.Add(gradient * out.value, std::abs(gradient) * out.error);
    }
    mean = mean.Sum(c_.width + 1);

    std::vector<Bounded> grad_q(static_cast<size_t>(c_.width));
    for (int64_t key = 0; key < seen; ++key) {
      const auto& [gradient, gradient_error, unused] = gradients[static_cast<size_t>(key)];
      const double p = std::exp(scores[static_cast<size_t>(key)].value - log_sum);
      const double inner = gradient - mean.value;
      const double ds = p * inner * attention_.scale;
      const double ds_error =
          p * attention_.scale *
          (gradient_error + mean.error + (relative + 4 * kEps) * std::abs(inner));
      for (int64_t i = 0; i < c_.width; ++i) {
        const auto at = static_cast<size_t>((kv_head * c_.keys + key) * c_.width + i);
        const double k = k_.At(kv_head, key, i), q = q_.At(head, query, i);
        grad_q[static_cast<size_t>(i)].Add(ds * k, ds_error * std::abs(k));
        grad_k[at].Add(ds * q, ds_error * std::abs(q));
        const double term = p * grad_out_.At(head, query, i);
        grad_v[at].Add(term, relative * std::abs(term));
      }
    }
    for (int64_t i = 0; i < c_.width; ++i)
      Check("grad_q", grad_q_.At(head, query, i), grad_q[static_cast<size_t>(i)].Sum(seen + 4));
  }

  Case c_;
  Heads q_, k_, v_, out_, log_sum_, grad_out_, grad_q_, grad_k_, grad_v_;
  FlashAttention attention_;
};

TEST_CASE("attention and its gradients are within the roundings of floats") {
  // One and several blocks of queries and of keys, whole and not; shared keys; queries that see
  // all.
  for (const Case& c : {Case{1, 1, 16, 16, 16}, Case{2, 1, 80, 80, 32}, Case{1, 1, 528, 528, 16},
                        Case{2, 2, 32, 560, 48, false}}) {
    INFO(c.heads, " heads, ", c.kv_heads, " of keys, ", c.queries, " x ", c.keys, " x ", c.width);
    Checker checker(c);
    if (!checker.can_run()) {
      MESSAGE("skipped: attention is ATen's on this processor, which has no AVX-512");
      return;
    }
    checker.Run();
  }
}

}  // namespace
}  // namespace strata
