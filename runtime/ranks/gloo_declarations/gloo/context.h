#pragma once
#include <chrono>

// LibTorch's package has the code of Gloo and the header of its process group over Gloo, but no
// header of Gloo. These files declare the names that c10d/ProcessGroupGloo.hpp mentions, most of
// them as incomplete types: every object of Gloo is made and used inside LibTorch. No object of a
// class of Gloo may be constructed or destroyed by Strata.
namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {

class Device;

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

}  // namespace transport
}  // namespace gloo
