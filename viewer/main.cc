#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <malloc.h>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "base/unicode.h"
#include "viewer/app.h"

namespace strata::viewer {
namespace {

constexpr const char* kHelp =
    "usage: strata-view [OPTION…] [FILE[#LINK] [REF]]\n"
    "\n"
    "Shows every pass of a trace, node by node. FILE is a trace, a PyTorch log, a folder of logs "
    "of\n"
    "several ranks, or an FX text. LINK is a selector as in a REF, or a link of the report. With "
    "a\n"
    "second REF, shows the differences of two graphs.\n"
    "\n"
    "  --script FILE    run the commands of FILE (-: standard input), then quit; docs/viewer.md\n"
    "  --screenshot FILE.png\n"
    "                   write a picture of the window, after the script if there is one, then "
    "quit\n"
    "  --attach PATH    control the training that was started with --control PATH\n"
    "  --demo           make a demo trace, ~/.local/state/strata/demo.strata, and open it\n"
    "  --bench          print what each command of the script took\n"
    "  --theme NAME     light or dark; default: as last time\n"
    "  --size WxH       size of the window\n"
    "  --scale N        size of fonts and distances; default: as the screen says\n"
    "  --keys FILE      key bindings: lines COMMAND = KEY KEY…\n"
    "  --config FILE    where layout, bookmarks and recent files are kept; default:\n"
    "                   ~/.config/strata/viewer.conf, and nothing with --script or --screenshot\n"
    "  --help           show this text\n"
    "  --version        show the version\n"
    "\n"
    "  strata-view out/demo.strata\n"
    "  strata-view 'out/demo.strata#pass=1&node=mm_12'\n"
    "  strata-view 'run.strata#pass=3:before' 'run.strata#pass=9:after'\n";

/// The word after an option.
Result<std::string> WordAfter(const std::vector<std::string>& words, size_t& i) {
  if (i + 1 == words.size())
    return Error("no value: {}: strata-view: see strata-view --help", words[i]);
  return words[++i];
}

Status ParseSize(const std::string& text, AppOptions& options) {
  char end = 0;
  if (std::sscanf(text.c_str(), "%dx%d%c", &options.width, &options.height, &end) != 2 ||
      options.width < 100 || options.height < 100 || options.width > 16384 ||
      options.height > 16384)
    return Error("'{}' is not a size: --size: write WIDTHxHEIGHT, such as 1600x1000",
                 OneLine(text));
  return Ok();
}

Result<AppOptions> ParseOptions(const std::vector<std::string>& words) {
  AppOptions options;
  std::vector<std::string> files;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--script") {
      STRATA_TRY(options.script, WordAfter(words, i));
    } else if (word == "--screenshot") {
      STRATA_TRY(options.screenshot, WordAfter(words, i));
      if (!options.screenshot.ends_with(".png"))
        return Error("'{}' is not a PNG file: --screenshot: end its name with .png",
                     OneLine(options.screenshot));
    } else if (word == "--keys") {
      STRATA_TRY(options.keys, WordAfter(words, i));
    } else if (word == "--attach") {
      STRATA_TRY(options.attach, WordAfter(words, i));
    } else if (word == "--theme") {
      STRATA_TRY(const std::string theme, WordAfter(words, i));
      if (theme != "light" && theme != "dark")
        return Error("'{}' is not a theme: --theme: write light or dark", OneLine(theme));
      options.theme = theme;
    } else if (word == "--demo") {
      options.demo = true;
    } else if (word == "--bench") {
      options.bench = true;
    } else if (word == "--config") {
      STRATA_TRY(options.config, WordAfter(words, i));
    } else if (word == "--size") {
      STRATA_TRY(const std::string size, WordAfter(words, i));
      STRATA_RETURN_IF_ERROR(ParseSize(size, options));
    } else if (word == "--scale") {
      STRATA_TRY(const std::string scale, WordAfter(words, i));
      options.scale = std::strtof(scale.c_str(), nullptr);
      if (!(options.scale >= 0.5F && options.scale <= 4))
        return Error("'{}' is not a scale: --scale: write a number from 0.5 to 4", OneLine(scale));
    } else if (word.starts_with("--")) {
      return Error("unknown option '{}': strata-view: see strata-view --help", OneLine(word));
    } else {
      files.push_back(word);
    }
  }
  if (options.demo && !files.empty())
    return Error("two things to show: {}: --demo: leave one of them out", OneLine(files[0]));
  if (files.size() > 2)
    return Error("too many files: {}: name one file, or two REFs to compare", OneLine(files[2]));
  if (!files.empty()) options.open = files[0];
  if (files.size() == 2) options.compare = files[1];
  return options;
}

Status Main(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") return WriteFile("-", kHelp);
    if (word == "--version") return WriteFile("-", "strata-view " STRATA_VERSION "\n");
  }
  STRATA_TRY(const AppOptions options, ParseOptions(words));
  STRATA_TRY(const std::unique_ptr<App> app, App::Make(options));
  return app->Run();
}

/// Nothing of Strata throws; the machine and the libraries below may.
Status MainOrError(const std::vector<std::string>& words) {
  try {
    return Main(words);
  } catch (const std::bad_alloc&) {
    return Error("out of memory: strata-view: open a smaller file");
  } catch (const std::exception& failure) {
    return Error(ErrorCode::kInternal, "{}: strata-view: report it with the command",
                 OneLine(failure.what(), 400));
  }
}

}  // namespace
}  // namespace strata::viewer

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  strata::CleanUpOnInterrupt();
  // What one thread of the workers frees, another one takes, and large blocks go back at once.
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  const std::vector<std::string> words(argv + 1, argv + argc);
  const strata::Status status = strata::viewer::MainOrError(words);
  if (status) return 0;
  const std::string line =
      fmt::format("strata: error: {}\n", strata::VisibleLines(status.error().message()));
  std::fwrite(line.data(), 1, line.size(), stderr);
  return 2;
}
