#include "cli/command.h"

namespace strata::cli {

Result<Exit> RunTrain(Args /*args*/) {
  return Error(ErrorCode::kUnsupported,
               "this build cannot train: strata train: build with LibTorch, './dev setup' and then "
               "'./dev build'");
}

}  // namespace strata::cli
