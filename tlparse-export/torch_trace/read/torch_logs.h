#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace strata {

/// True when a text begins as the output of a program with `TORCH_LOGS=graph_code,aot_graphs,…`: a
/// line `TRACED GRAPH`, with the prefix of PyTorch's log lines or without, before any record of
/// TORCH_TRACE.
/// Looks at the first MiB.
bool LooksLikeTorchLogs(std::string_view head);

/// The graphs of such a text as a log of TORCH_TRACE, named as there: `dynamo_output_graph`,
/// `aot_forward_graph`, `before_post_grad_graph`, … with their compile ids. Understands prefixes
/// (`[rank0]:`, `V1122 … [0/0] [__graph_code]`), colours, CRLF, quotes (`> `) and Markdown fences.
/// Other text is left out. None when there are no graphs.
std::optional<std::string> TraceOfTorchLogs(std::string_view text);

/// Whether a record with this envelope is one that TraceOfTorchLogs made.
bool IsOfTorchLogs(std::string_view envelope);

/// `text`, or the log that TraceOfTorchLogs makes of it where it LooksLikeTorchLogs.
std::string WithTorchLogsRead(std::string text);

}  // namespace strata
