#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/control/breakpoint.h"
#include "runtime/control/control_socket.h"

// Any line is a request or an error of one line; what it asks to break at is a breakpoint or an
// error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  strata::ControlRequest request;
  const strata::Status read = strata::ReadControlRequest(line, request);
  STRATA_CHECK(!request.id.empty());
  if (!read) {
    STRATA_CHECK(read.error().message().find('\n') == std::string_view::npos);
    return 0;
  }
  const std::string& command = request.command;
  const size_t blank = command.find(' ');
  if (blank == std::string::npos) return 0;
  const auto breakpoint = strata::ParseBreakpoint(std::string_view(command).substr(blank + 1));
  if (!breakpoint) return 0;
  const strata::NodeSite site{
      .graph = "step", .name = "mm", .op = "aten.mm.default", .module = "a.b"};
  static_cast<void>(breakpoint->Matches(site, "a"));
  return 0;
}
