#include "runtime/loops/loops_body.h"

namespace strata {

const Loops& LoopsAvx2() {
  return kLoops;
}

}  // namespace strata
