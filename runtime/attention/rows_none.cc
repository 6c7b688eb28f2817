#include "ir/result.h"
#include "runtime/attention/rows.h"

// For processors without AVX-512, on which CanRunAttention is false.

namespace strata::attention_rows {

float ScaleAndMax(float*, int64_t, float) {
  STRATA_CHECK(false);
  return 0;
}
float ExpAndSum(float*, int64_t, int64_t, float) {
  STRATA_CHECK(false);
  return 0;
}
void Multiply(const float*, int64_t, float, float*) {
  STRATA_CHECK(false);
}
float Dot(const float*, const float*, int64_t) {
  STRATA_CHECK(false);
  return 0;
}
void SoftmaxGradient(float*, float*, int64_t, int64_t, float, float) {
  STRATA_CHECK(false);
}

}  // namespace strata::attention_rows
