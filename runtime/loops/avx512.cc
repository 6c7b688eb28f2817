#include "runtime/loops/loops_body.h"

namespace strata {

const Loops& LoopsAvx512() {
  return kLoops;
}

}  // namespace strata
