#include "runtime/matmul/matmul.h"

#include <cmath>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace strata {
namespace {

using Floats = std::vector<float>;

constexpr float kBefore = 7.0F;  // what c holds

/// What the header promises, element by element.
Floats Expected(const Matmul& m) {
  Floats c;
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.columns; ++j) {
      float sum = kBefore;
      for (int64_t begin = 0; begin < m.inner; begin += m.block) {
        float chain = 0;
        for (int64_t k = begin; k < std::min(begin + m.block, m.inner); ++k)
          chain =
              std::fma(m.a[i * m.a_row + k * m.a_column], m.b[k * m.b_row + j * m.b_column], chain);
        sum = begin == 0 && !m.adds ? chain : sum + chain;
      }
      c.push_back(sum);
    }
  }
  return c;
}

struct Product {
  Floats a, b, c;
  Matmul matmul;

  Product(std::mt19937& random, int64_t rows, int64_t columns, int64_t inner, int64_t block,
          bool is_a_transposed, bool is_b_transposed, int64_t gap) {
    const int64_t a_row = is_a_transposed ? 1 : inner + gap;
    const int64_t a_column = is_a_transposed ? rows + gap : 1;
    const int64_t b_row = is_b_transposed ? 1 : columns + gap;
    const int64_t b_column = is_b_transposed ? inner + gap : 1;
    std::uniform_real_distribution<float> number(-1, 1);
    a.resize(static_cast<size_t>((rows + gap) * (inner + gap)));
    b.resize(static_cast<size_t>((columns + gap) * (inner + gap)));
    c.resize(static_cast<size_t>(rows * (columns + gap)), kBefore);
    for (Floats* values : {&a, &b}) {
      for (float& value : *values)
        value = number(random);
    }
    matmul = {.rows = rows,
              .columns = columns,
              .inner = inner,
              .block = block,
              .a = a.data(),
              .a_row = a_row,
              .a_column = a_column,
              .b = b.data(),
              .b_row = b_row,
              .b_column = b_column,
              .c = c.data(),
              .c_row = columns + gap};
  }

  /// The result; what lies between its rows must be untouched.
  Floats Result() const {
    Floats result;
    for (int64_t i = 0; i < matmul.rows; ++i) {
      for (int64_t j = 0; j < matmul.c_row; ++j) {
        const float value = c[static_cast<size_t>(i * matmul.c_row + j)];
        if (j < matmul.columns) result.push_back(value);
        if (j >= matmul.columns) CHECK_EQ(value, kBefore);
      }
    }
    return result;
  }
};

std::vector<MatmulIsa> Isas() {
  std::vector<MatmulIsa> isas;
  if (BestMatmulIsa() == MatmulIsa::kAvx512) isas = {MatmulIsa::kAvx2, MatmulIsa::kAvx512};
  if (BestMatmulIsa() == MatmulIsa::kAvx2) isas = {MatmulIsa::kAvx2};
  return isas;
}

TEST_CASE("random products have the bits of their chains, whatever the layout") {
  std::mt19937 random(5);
  const auto draw = [&](int64_t most) { return static_cast<int64_t>(random() % most) + 1; };
  for (int run = 0; run < 150; ++run) {
    const int64_t most = run % 3 == 0 ? 220 : 40;
    const int64_t rows = draw(most), columns = draw(most), inner = draw(most);
    for (const MatmulIsa isa : Isas()) {
      Product product(random, rows, columns, inner, draw(inner), run % 2 == 0, run % 4 < 2,
                      run % 5 == 0 ? 3 : 0);
      product.matmul.adds = run % 7 < 3;
      RunMatmul(product.matmul, isa);
      CHECK(product.Result() == Expected(product.matmul));
    }
  }
}

TEST_CASE("products beyond every block of the tiling") {
  struct Case {
    int64_t rows, columns, inner, block;
  };
  std::mt19937 random(6);
  for (const MatmulIsa isa : Isas()) {
    for (const auto& [rows, columns, inner, block] :
         {Case{211, 1601, 70, 33}, Case{150, 40, 1100, 500}, Case{13, 1100, 1010, 500}}) {
      for (const bool is_transposed : {false, true}) {
        Product product(random, rows, columns, inner, block, !is_transposed, is_transposed, 0);
        product.matmul.adds = is_transposed;
        RunMatmul(product.matmul, isa);
        CHECK(product.Result() == Expected(product.matmul));
      }
    }
  }
}

TEST_CASE("parts of a product are the product") {
  std::mt19937 random(7);
  for (const MatmulIsa isa : Isas()) {
    for (const auto& [rows, columns] : {std::pair{100, 33}, {33, 100}, {1, 1}, {64, 64}}) {
      for (const int64_t parts : {1, 2, 3, 7}) {
        Product product(random, rows, columns, 9, 9, true, true, 2);
        for (int64_t part = 0; part < parts; ++part)
          RunMatmul(PartOf(product.matmul, part, parts), isa);
        CHECK(product.Result() == Expected(product.matmul));
      }
    }
  }
}

TEST_CASE("a product over nothing is zero") {
  std::mt19937 random(8);
  for (const MatmulIsa isa : Isas()) {
    Product product(random, 3, 5, 0, 1, false, false, 1);
    RunMatmul(product.matmul, isa);
    CHECK(product.Result() == Floats(15, 0.0F));
    product.c.assign(product.c.size(), kBefore);
    product.matmul.adds = true;
    RunMatmul(product.matmul, isa);
    CHECK(product.Result() == Floats(15, kBefore));
  }
}

}  // namespace
}  // namespace strata
