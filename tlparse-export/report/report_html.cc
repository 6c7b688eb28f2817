#include <string>

#include <fmt/format.h>

#include "base/unicode.h"
#include "embedded/strata_report_assets.h"
#include "tlparse-export/report/pack.h"
#include "tlparse-export/report/report_model.h"

namespace strata {
namespace {

/// Text for the page, whatever bytes the names of a log hold.
std::string PlainText(std::string_view text) {
  constexpr size_t kMaxColumns = 400;
  const std::string shown = Visible(text);
  return EscapeMarkup(shown.substr(0, BytesThatFit(shown, kMaxColumns)));
}

std::string Bytes(int64_t bytes) {
  if (bytes == 0) return "–";
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib < 1 ? fmt::format("{:.1f} KiB", mib * 1024) : fmt::format("{:.1f} MiB", mib);
}

void AppendCell(std::string_view text, std::string& html) {
  html += "<td>";
  html += text;
  html += "</td>";
}

void AppendPassRow(const ReportPass& pass, std::string& html) {
  html += "<tr>";
  for (const std::string& text :
       {fmt::to_string(pass.index), PlainText(pass.name), PlainText(pass.graph), pass.status,
        fmt::format("{} → {}", pass.before.nodes, pass.after.nodes),
        fmt::to_string(pass.counts.inserted), fmt::to_string(pass.counts.deleted),
        fmt::to_string(pass.counts.changed), fmt::to_string(pass.counts.moved),
        fmt::to_string(pass.derived), Bytes(pass.after.peak)}) {
    AppendCell(text, html);
  }
  html += "</tr>\n";
}

/// What a reader without JavaScript sees, and a printer of the plain page.
void AppendSummary(const ReportModel& model, std::string& html) {
  html += "<noscript><h1>" + PlainText(model.title) + "</h1>\n";
  for (const ReportRun& run : model.runs) {
    html += fmt::format("<h2>Run {}, {}, {}, {}</h2><p>{}</p>\n", run.id, run.kind, run.ranks,
                        run.status, PlainText(run.source));
    if (!run.passes.empty()) {
      html += "<table><caption>Passes</caption><thead><tr>";
      for (std::string_view head : {"#", "Pass", "Graph", "Status", "Nodes", "Added", "Removed",
                                    "Changed", "Moved", "Derived", "Peak memory"}) {
        html += fmt::format("<th scope=\"col\">{}</th>", head);
      }
      html += "</tr></thead><tbody>\n";
      for (const ReportPass& pass : run.passes)
        AppendPassRow(pass, html);
      html += "</tbody></table>\n";
    }
    for (const ReportPass& pass : run.passes) {
      if (pass.causes.empty() && pass.error.empty()) continue;
      html += fmt::format("<h3 id=\"p{}\">{} {}</h3><ul>", pass.index, pass.index,
                          PlainText(pass.name));
      if (!pass.error.empty()) html += "<li>failed: " + PlainText(pass.error) + "</li>";
      for (const ReportCause& cause : pass.causes) {
        html += fmt::format("<li>{}: {} places, {} nodes, {}</li>", PlainText(cause.title),
                            cause.places, cause.nodes, PlainText(cause.where));
      }
      html += "</ul>\n";
    }
    html +=
        "<table><caption>Graphs</caption><thead><tr><th scope=\"col\">Graph</th>"
        "<th scope=\"col\">Nodes</th><th scope=\"col\">Peak memory</th>"
        "<th scope=\"col\">Fingerprint</th></tr></thead><tbody>\n";
    for (const ReportGraph& graph : run.graphs) {
      html += "<tr>";
      for (const std::string& text : {PlainText(graph.name), fmt::to_string(graph.last.nodes),
                                      Bytes(graph.last.peak), graph.last.fingerprint}) {
        AppendCell(text, html);
      }
      html += "</tr>\n";
    }
    html += "</tbody></table>\n";
    if (!run.steps.empty()) {
      html += fmt::format("<p>{} steps, loss {} → {}</p>\n", run.steps.size(),
                          run.steps.front().loss, run.steps.back().loss);
    }
  }
  for (const std::string& what : model.left_out)
    html += "<p>Left out: " + PlainText(what) + "</p>\n";
  html += "<p>The graphs and node tables of this page need JavaScript.</p></noscript>\n";
}

void AppendData(std::string_view id, std::string_view packed, std::string& html) {
  html += fmt::format("<script type=\"application/octet-stream\" id=\"{}\">", id);
  html += packed;
  html += "</script>\n";
}

}  // namespace

Result<std::string> ReportHtml(const ReportModel& model) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; "
      "form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"strata.report/1\">\n"
      "<title>{} – Strata</title>\n<style>",
      assets::kReportJsSha256, assets::kReportCssSha256, PlainText(model.title));
  html += assets::kReportCss;
  html += "</style>\n</head>\n<body>\n";
  html += assets::kFrameHtml;
  if (!model.figure.empty()) html += "<template id=\"figure\">" + model.figure + "</template>\n";
  if (!model.memory_markup.empty())
    html += "<template id=\"front\">\n" + model.memory_markup + "</template>\n";
  AppendSummary(model, html);
  STRATA_TRY(const std::string main, Pack(MainJson(model)));
  AppendData("data-main", main, html);
  for (const ReportPart& part : model.parts)
    AppendData(part.id, part.packed, html);
  html += "<script>";
  html += assets::kReportJs;
  html += "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace strata
