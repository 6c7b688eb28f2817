#include "tlparse-export/torch_trace/export/tlparse_rules.h"

#include <algorithm>
#include <array>
#include <set>
#include <simdjson.h>
#include <string>

#include "base/text.h"
#include "base/unicode.h"

namespace strata {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

/// An event and its fields, as `name:type` with `!` when it must be there. Types: s string, b bool,
/// i and u integers of 32 bits, U of 64, W a list of those, f number, L list of strings, D list of
/// sizes, N a size (integer or symbol), K stack, M object of integers, T object of strings, Q of
/// strings and nulls, V locals. Fields that are not here may be anything.
struct Event {
  std::string_view kind, fields;
};

constexpr std::string_view kMetricFields =
    "start_time:f elapsed_time:f inductor_compile_time_s:f code_gen_time_s:f fail_type:s "
    "fail_reason:s";
constexpr std::string_view kSymbolicFields =
    "expr:s result:s user_stack:K stack:K expr_node_id:U symbol_to_sources:T frame_locals:V "
    "prefix:s";
constexpr Event kEvents[] = {
    {"aot_autograd_backward_compilation_metrics", kMetricFields},
    {"aot_backward_graph", ""},
    {"aot_forward_graph", ""},
    {"aot_inference_graph", ""},
    {"aot_joint_graph", ""},
    {"artifact", "name:s! encoding:s!"},
    {"bwd_compilation_metrics", kMetricFields},
    {"chromium_event", ""},
    {"compilation_metrics",
     "co_name:s co_filename:s co_firstlineno:i cache_size:U accumulated_cache_size:U guard_count:U "
     "shape_env_guard_count:U graph_op_count:U graph_node_count:U graph_input_count:U start_time:f "
     "entire_frame_compile_time_s:f backend_compile_time_s:f inductor_compile_time_s:f "
     "code_gen_time_s:f fail_type:s fail_reason:s fail_user_frame_filename:s "
     "fail_user_frame_lineno:u non_compliant_ops:L compliant_custom_ops:L restart_reasons:L "
     "dynamo_time_before_restart_s:f"},
    {"compiled_autograd_graph", ""},
    {"create_unbacked_symbol", "symbol:s node_id:U user_stack:K stack:K vr:s"},
    {"describe_source", "describer_id:U! id:U! source:s!"},
    {"describe_storage", "id:U! describer_id:U! size:U!"},
    {"describe_tensor",
     "id:U! describer_id:U! ndim:U! dtype:s! device:s! size:D! dynamo_dynamic_indices:W stride:D "
     "storage:U sparse_dim:U dense_dim:U is_coalesced:B crow_indices:U col_indices:U "
     "ccol_indices:U row_indices:U values:U unwrapped:U bdim:U base:U attrs:M creation_meta:s "
     "grad:U layout:S storage_offset:N is_inference:b is_leaf:b requires_grad:b is_sparse:b "
     "is_mkldnn:b is_functorch_wrapped:b is_batchedtensor:b is_legacy_batchedtensor:b "
     "is_gradtrackingtensor:b is_view:b is_nested:b is_traceable_wrapper_subclass:b "
     "is_functional:b is_conj:b is_neg:b is_parameter:b"},
    {"dump_file", "name:s!"},
    {"dynamo_cpp_guards_str", ""},
    {"dynamo_guards", ""},
    {"dynamo_output_graph", ""},
    {"dynamo_start", "stack:K"},
    {"exported_program", ""},
    {"expression_created",
     "method:s result:s result_id:U arguments:L argument_ids:W user_stack:K stack:K"},
    {"graph_dump", "name:s!"},
    {"guard_added", kSymbolicFields},
    {"guard_added_fast", "expr:s stack:K user_stack:K"},
    {"inductor_output_code", "filename:s"},
    {"inductor_post_grad_graph", ""},
    {"inductor_pre_grad_graph", ""},
    {"link", "name:s! url:s!"},
    {"mismatched_fake_kernel", "op:s reason:s"},
    {"missing_fake_kernel", "op:s reason:s"},
    {"optimize_ddp_split_child", "name:s!"},
    {"optimize_ddp_split_graph", ""},
    {"propagate_real_tensors_provenance", kSymbolicFields},
    {"symbolic_shape_specialization", "symbol:s sources:L value:s reason:s stack:K user_stack:K"},
};

bool IsInteger(const element& value, int64_t min, uint64_t max) {
  int64_t number = 0;
  if (value.get(number) == simdjson::SUCCESS) {
    return number >= min && (number < 0 || static_cast<uint64_t>(number) <= max);
  }
  uint64_t large = 0;
  return value.get(large) == simdjson::SUCCESS && large <= max;
}

template <class Predicate>
bool AllElements(const element& value, Predicate is_good) {
  simdjson::dom::array array;
  return value.get(array) == simdjson::SUCCESS && std::all_of(array.begin(), array.end(), is_good);
}

template <class Predicate>
bool AllValues(const element& value, Predicate is_good) {
  object fields;
  return value.get(fields) == simdjson::SUCCESS &&
         std::all_of(fields.begin(), fields.end(),
                     [&](const auto& field) { return is_good(field.value); });
}

bool HasType(const element& value, char type);

bool IsSize(const element& value) {
  return value.is_string() || IsInteger(value, INT64_MIN, INT64_MAX);
}

bool IsText(const element& value) {
  return value.is_string();
}

bool IsU64(const element& value) {
  return IsInteger(value, 0, UINT64_MAX);
}

bool HasFields(const element& metadata, std::string_view fields);

bool IsFrame(const element& value) {
  return HasFields(value, "filename:u! line:i! name:s! loc:s uninterned_filename:s");
}

/// REQUIRES: `value` is not null, unless the type is one of those that refuse it.
bool HasType(const element& value, char type) {
  switch (type) {
    case 's':
    case 'S':
      return value.is_string();
    case 'b':
    case 'B':
      return value.is_bool();
    case 'i':
      return IsInteger(value, INT32_MIN, INT32_MAX);
    case 'u':
      return IsInteger(value, 0, UINT32_MAX);
    case 'U':
      return IsU64(value);
    case 'f':
      return value.is_number();
    case 'L':
      return AllElements(value, IsText);
    case 'W':
      return AllElements(value, IsU64);
    case 'D':
      return AllElements(value, IsSize);
    case 'N':
      return IsSize(value);
    case 'K':
      return AllElements(value, IsFrame);
    case 'M':
      return AllValues(value, IsU64);
    case 'T':
      return AllValues(value, IsText);
    case 'V':
      return HasFields(value, "locals:Q symbols:Q");
    case 'Q':
      return AllValues(value, [](const element& v) { return v.is_null() || v.is_string(); });
    default:
      return false;
  }
}

/// Types of fields that have a default but take no null.
bool RefusesNull(char type) {
  return type == 'b' || type == 'S' || type == 'N';
}

bool HasUniqueKeys(const object& fields) {
  std::set<std::string_view> seen;
  return std::all_of(fields.begin(), fields.end(),
                     [&](const auto& field) { return seen.insert(field.key).second; });
}

bool HasFields(const element& metadata, std::string_view fields) {
  object found;
  if (metadata.get(found) != simdjson::SUCCESS || !HasUniqueKeys(found)) return false;
  while (!fields.empty()) {
    const std::string_view field = fields.substr(0, fields.find(' '));
    fields.remove_prefix(std::min(field.size() + 1, fields.size()));
    const size_t colon = field.find(':');
    const char type = field[colon + 1];
    const bool is_required = field.ends_with('!');
    element value;
    if (found.at_key(field.substr(0, colon)).get(value) != simdjson::SUCCESS) {
      if (is_required) return false;
      continue;
    }
    if (value.is_null() && !is_required && !RefusesNull(type)) continue;
    if (!HasType(value, type)) return false;
  }
  return true;
}

std::string_view StringField(const element& metadata, std::string_view key) {
  std::string_view text;
  if (metadata.at_key(key).get(text) != simdjson::SUCCESS) return {};
  return text;
}

bool IsContext(std::string_view key) {
  constexpr std::array<std::string_view, 8> kKeys = {
      "rank",    "compiled_autograd_id", "frame_id",      "frame_compile_id",
      "attempt", "has_payload",          "subgraph_name", "stack"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

/// What tlparse's own parsers demand beyond types.
bool SuitsParser(std::string_view kind, const element& metadata, std::string_view payload) {
  if (kind == "artifact") {
    const std::string_view encoding = StringField(metadata, "encoding");
    return (encoding == "string" || encoding == "json") &&
           IsFileName(StringField(metadata, "name"));
  }
  if (kind == "graph_dump" || kind == "optimize_ddp_split_child") {
    return IsFileName(StringField(metadata, "name"));
  }
  if (kind == "dump_file") {
    std::string_view name = StringField(metadata, "name");
    constexpr std::string_view kEval = "<eval_with_key>.";
    if (name.starts_with(kEval)) name.remove_prefix(kEval.size());
    return IsFileName(name);
  }
  if (kind == "inductor_output_code") {
    const std::string_view name = StringField(metadata, "filename");
    return name.empty() || IsFileName(name.substr(name.rfind('/') + 1));  // npos + 1 is 0
  }
  if (kind == "compilation_metrics") {
    return StringField(metadata, "fail_type").empty() ||
           metadata.at_key("fail_reason").error() == simdjson::SUCCESS;
  }
  if (kind == "dynamo_guards") {
    simdjson::dom::parser parser;
    element guards;
    return parser.parse(payload.data(), payload.size()).get(guards) == simdjson::SUCCESS &&
           AllElements(guards, [](const element& guard) {
             return HasFields(guard, "code:s! stack:K user_stack:K");
           });
  }
  return true;
}

}  // namespace

bool IsPlainPrefix(std::string_view prefix) {
  constexpr std::string_view kForm = "V0000 00:00:00.000000 0";
  if (prefix.size() < kForm.size() || !IsUtf8(prefix)) return false;
  if (std::string_view("VIWEC").find(prefix[0]) == std::string_view::npos) return false;
  for (size_t i = 1; i < kForm.size(); ++i) {
    if (kForm[i] == '0' ? !IsDigit(prefix[i]) : prefix[i] != kForm[i]) return false;
  }
  constexpr size_t kMaxDigits = 18;  // of 64 bits
  const size_t thread = kForm.size() - 1;
  const size_t path = std::min(prefix.find_first_not_of("0123456789", thread), prefix.size());
  const size_t colon = prefix.find(':', path);
  if (path - thread > kMaxDigits || colon == std::string_view::npos || colon == path) return false;
  const size_t end = std::min(prefix.find_first_not_of("0123456789", colon + 1), prefix.size());
  return end > colon + 1 && end - colon - 1 <= kMaxDigits && prefix.substr(end) == "] ";
}

bool IsPlainPayload(std::string_view payload) {
  return IsUtf8(payload) && !payload.ends_with('\r') &&
         payload.find("\r\n") == std::string_view::npos;
}

bool IsFileName(std::string_view name) {
  constexpr size_t kMaxBytes = 200;
  return !name.empty() && name.size() <= kMaxBytes && IsUtf8(name) &&
         name.find("..") == std::string_view::npos && name.find('/') == std::string_view::npos &&
         std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

bool TlparseTakes(std::string_view prefix, std::string_view envelope, std::string_view payload) {
  if (!IsPlainPrefix(prefix) || !IsPlainPayload(payload) ||
      envelope.find('\r') != std::string_view::npos) {
    return false;
  }
  // serde_json refuses deeper nesting than 128.
  simdjson::dom::parser parser;
  if (parser.allocate(envelope.size(), 120) != simdjson::SUCCESS) return false;
  element root;
  object fields;
  if (parser.parse(envelope.data(), envelope.size()).get(root) != simdjson::SUCCESS ||
      root.get(fields) != simdjson::SUCCESS || !HasUniqueKeys(fields) ||
      !HasFields(root, "stack:K")) {
    return false;
  }
  bool has_event = false;
  for (const auto& field : fields) {
    if (IsContext(field.key)) continue;
    has_event = true;
    const auto* const event = std::ranges::find(kEvents, field.key, &Event::kind);
    if (event == std::end(kEvents) || !HasFields(field.value, event->fields) ||
        !SuitsParser(field.key, field.value, payload)) {
      return false;
    }
  }
  return has_event;
}

}  // namespace strata
