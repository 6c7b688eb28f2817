#include <string>
#include <zlib.h>

#include <fmt/format.h>

#include "embedded/strata_report_assets.h"
#include "ir/base64.h"
#include "ir/json.h"
#include "tlparse-export/report/report_model.h"

namespace strata {
namespace {

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // Control characters and broken bytes have no place in a page.
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return out;
}

/// Bytes that are UTF-8, whatever the names of a log hold.
std::string PlainText(std::string_view text) {
  std::string json;
  AppendJsonString(text.substr(0, 400), json);  // replaces what is not UTF-8
  std::string out;
  for (size_t i = 1; i + 1 < json.size(); ++i) {
    if (json[i] == '\\' && i + 2 < json.size()) {
      ++i;
      if (json[i] == 'u') i += 4;  // a control character
      if (json[i] == '"' || json[i] == '\\') out += json[i];
    } else {
      out += json[i];
    }
  }
  return EscapeHtml(out);
}

Result<std::string> Gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return Error(ErrorCode::kInternal, "zlib: cannot start: out of memory?");
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return Error(ErrorCode::kInternal, "zlib: cannot compress");
  return out;
}

void AppendMoment(std::string_view key, const ReportMoment& moment, JsonWriter& json) {
  json.Key(key).BeginObject().Field("nodes", moment.nodes);
  json.Field("fingerprint", moment.fingerprint).EndObject();
}

void AppendPass(const ReportPass& pass, JsonWriter& json) {
  json.BeginObject().Field("index", pass.index).Field("name", pass.name);
  json.Field("options", pass.options).Field("graph", pass.graph).Field("status", pass.status);
  json.Field("ms", static_cast<double>(pass.wall_ns) / 1e6);
  AppendMoment("before", pass.before, json);
  AppendMoment("after", pass.after, json);
  json.Key("counts").BeginArray().Int(pass.counts.inserted).Int(pass.counts.deleted);
  json.Int(pass.counts.changed).Int(pass.counts.moved).Int(pass.derived).EndArray();
  json.Field("error", pass.error).Field("reproduce", pass.reproduce);
  json.Field("ref", pass.selector).Field("detail", pass.detail).EndObject();
}

void AppendRun(const ReportRun& run, JsonWriter& json) {
  json.BeginObject().Field("id", run.id).Field("kind", run.kind).Field("status", run.status);
  json.Field("source", run.source).Field("command", run.command);
  json.Field("pipeline", run.pipeline).Field("rank", run.rank).Field("world", run.world);
  json.Key("graphs").BeginArray();
  for (const ReportGraph& graph : run.graphs) {
    json.BeginObject().Field("name", graph.name).Field("ref", graph.selector);
    AppendMoment("last", graph.last, json);
    json.Field("detail", graph.detail).EndObject();
  }
  json.EndArray().Key("passes").BeginArray();
  for (const ReportPass& pass : run.passes)
    AppendPass(pass, json);
  json.EndArray().Key("executed").BeginArray();
  for (size_t i = 0; i < run.executed.size(); ++i) {
    const ExecutedRange& range = run.executed[i];
    json.BeginObject().Field("graph", range.graph).Field("first", range.first_step);
    json.Field("last", range.last_step).Field("fingerprint", ToString(range.fingerprint));
    json.Field("ref", run.executed_selectors[i]).EndObject();
  }
  json.EndArray().Key("steps").BeginArray();
  for (const StepRecord& step : run.steps) {
    json.BeginArray().Int(step.step).Double(step.loss).Double(step.grad_norm);
    json.Double(static_cast<double>(step.wall_ns) / 1e6).EndArray();
  }
  json.EndArray().Key("artifacts").BeginArray();
  for (const ArtifactInfo& artifact : run.artifacts) {
    json.BeginArray().String(artifact.name).String(artifact.kind).Int(artifact.bytes).EndArray();
  }
  json.EndArray().EndObject();
}

std::string MainJson(const ReportModel& model) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Field("title", model.title).Key("runs").BeginArray();
  for (const ReportRun& run : model.runs)
    AppendRun(run, json);
  json.EndArray().Key("left_out").BeginArray();
  for (const ReportDetail& detail : model.details) {
    if (detail.json.empty()) json.String(detail.title);
  }
  json.EndArray().EndObject();
  return out;
}

/// What a reader without JavaScript sees, and a printer of the plain page.
void AppendSummary(const ReportModel& model, std::string& html) {
  html += "<noscript><h1>" + PlainText(model.title) + "</h1>\n";
  for (const ReportRun& run : model.runs) {
    html += fmt::format(
        "<h2>Run {}, rank {}</h2><table><caption>{}</caption>"
        "<thead><tr><th>#</th><th>Pass</th><th>Graph</th><th>Status</th><th>Nodes</th><th>Added</"
        "th>"
        "<th>Removed</th><th>Changed</th><th>Moved</th></tr></thead><tbody>\n",
        run.id, run.rank, PlainText(run.source));
    for (const ReportPass& pass : run.passes) {
      html += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} → {}</td><td>{}</td><td>{}</td>"
          "<td>{}</td><td>{}</td></tr>\n",
          pass.index, PlainText(pass.name), PlainText(pass.graph), pass.status, pass.before.nodes,
          pass.after.nodes, pass.counts.inserted, pass.counts.deleted, pass.counts.changed,
          pass.counts.moved);
    }
    html += "</tbody></table>\n";
  }
  html += "<p>The graphs and node tables of this page need JavaScript.</p></noscript>\n";
}

Status AppendData(std::string_view id, std::string_view json, std::string& html) {
  STRATA_TRY(const std::string packed, Gzip(json));
  html += fmt::format("<script type=\"application/octet-stream\" id=\"{}\">", id);
  html += ToBase64(packed);
  html += "</script>\n";
  return Ok();
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
  html += "</style>\n</head>\n<body>\n<div id=\"app\"></div>\n";
  AppendSummary(model, html);
  STRATA_RETURN_IF_ERROR(AppendData("data-main", MainJson(model), html));
  for (size_t i = 0; i < model.details.size(); ++i) {
    if (model.details[i].json.empty()) continue;
    STRATA_RETURN_IF_ERROR(AppendData(fmt::format("data-{}", i), model.details[i].json, html));
  }
  html += "<script>";
  html += assets::kReportJs;
  html += "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace strata
