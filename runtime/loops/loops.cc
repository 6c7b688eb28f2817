#include "runtime/loops/loops.h"

namespace strata {

#ifdef STRATA_LOOPS_X86
const Loops& LoopsAvx2();
const Loops& LoopsAvx512();

const Loops* BestLoops() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return &LoopsAvx512();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &LoopsAvx2();
  return nullptr;
}
#else
const Loops* BestLoops() {
  return nullptr;
}
#endif

}  // namespace strata
