#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "viewer/model/link.h"

// Any text is a link, which is printed and read back as it was, also behind the name of a file.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using strata::viewer::Link;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Link link = strata::viewer::ParseLink(text);
  const std::string printed = strata::viewer::PrintLink(link);
  STRATA_CHECK(printed.find('#') == std::string::npos);
  STRATA_CHECK(strata::viewer::ParseLink(printed) == link);
  STRATA_CHECK(strata::viewer::ParseLink("#" + printed) == link);
  const auto [file, rest] = strata::viewer::SplitLink("a#b.strata#" + printed);
  STRATA_CHECK(file == "a#b.strata" && rest == link);
  return 0;
}
