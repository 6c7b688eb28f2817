#include <cstddef>
#include <cstdint>
#include <string_view>

#include "refs/control_client.h"
#include "viewer/model/control_session.h"

// Any line is an answer of a training, or an error. Every answer to every command is taken.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto answer = strata::ParseControlAnswer(line);
  if (!answer) {
    STRATA_CHECK(answer.error().message().find('\n') == std::string_view::npos);
    return 0;
  }
  strata::viewer::ControlState state;
  for (const char* command : {"status", "continue", "breaks", "print mm histogram", "print"})
    strata::viewer::TakeAnswer(command, answer->ok, answer->text, answer->data, state);
  STRATA_CHECK(!answer->ok || !state.value || state.value->name == "mm");
  return 0;
}
