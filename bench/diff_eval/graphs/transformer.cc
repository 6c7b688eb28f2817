#include "bench/diff_eval/graphs/transformer.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/text/native_text.h"

namespace strata::bench {
namespace {

constexpr std::string_view kHidden = "f32[8, 64]", kWide = "f32[8, 256]", kHeads = "f32[8, 4, 16]";
constexpr LayerLine kForward[] = {
    {"n1", "aten.rms_norm.default(h@, [64], 1e-05)", kHidden, "norm1"},
    {"q", "aten.mm.default(n1_%, wq_%)", kHidden, "attn.wq"},
    {"k", "aten.mm.default(n1_%, wk_%)", kHidden, "attn.wk"},
    {"v", "aten.mm.default(n1_%, wv_%)", kHidden, "attn.wv"},
    {"qv", "aten.view.default(q_%, [8, 4, 16])", kHeads, "attn"},
    {"kv", "aten.view.default(k_%, [8, 4, 16])", kHeads, "attn"},
    {"vv", "aten.view.default(v_%, [8, 4, 16])", kHeads, "attn"},
    {"qr", "aten.mul.Tensor(qv_%, rope)", kHeads, "attn.rope"},
    {"kr", "aten.mul.Tensor(kv_%, rope)", kHeads, "attn.rope"},
    {"s", "aten.sdpa.default(qr_%, kr_%, vv_%, 0.25)", kHeads, "attn"},
    {"sv", "aten.view.default(s_%, [8, 64])", kHidden, "attn"},
    {"o", "aten.mm.default(sv_%, wo_%)", kHidden, "attn.wo"},
    {"r", "aten.add.Tensor(h@, o_%)", kHidden, ""},
    {"n2", "aten.rms_norm.default(r_%, [64], 1e-05)", kHidden, "norm2"},
    {"g", "aten.mm.default(n2_%, wg_%)", kWide, "mlp.gate"},
    {"u", "aten.mm.default(n2_%, wu_%)", kWide, "mlp.up"},
    {"a", "aten.silu.default(g_%)", kWide, "mlp"},
    {"m", "aten.mul.Tensor(a_%, u_%)", kWide, "mlp"},
    {"d", "aten.mm.default(m_%, wd_%)", kHidden, "mlp.down"},
    {"h", "aten.add.Tensor(r_%, d_%)", kHidden, ""},
};
constexpr LayerLine kBackward[] = {
    {"gm", "aten.mm.default(gh@, wd_%)", kWide, "mlp.down"},
    {"gwd", "aten.mm.default(m_%, gh@)", "f32[256, 64]", "mlp.down"},
    {"ga", "aten.mul.Tensor(gm_%, u_%)", kWide, "mlp"},
    {"gu", "aten.mul.Tensor(gm_%, a_%)", kWide, "mlp"},
    {"gg", "aten.silu_backward.default(ga_%, g_%)", kWide, "mlp"},
    {"gn", "aten.mm.default(gg_%, wg_%)", kHidden, "mlp.gate"},
    {"gv", "aten.mm.default(gu_%, wu_%)", kHidden, "mlp.up"},
    {"gs", "aten.add.Tensor(gn_%, gv_%)", kHidden, "mlp"},
    {"gr", "aten.rms_norm_backward.default(gs_%, r_%, [64])", kHidden, "norm2"},
    {"gh", "aten.add.Tensor(gr_%, gh@)", kHidden, ""},
};

std::string WithLayer(std::string_view text, int layer, const std::string& neighbour) {
  std::string result;
  for (char c : text) {
    if (c == '%') {
      result += fmt::format("{}", layer);
    } else if (c == '@') {
      result += neighbour;
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

std::span<const LayerLine> ForwardLines() {
  return kForward;
}

std::span<const LayerLine> BackwardLines() {
  return kBackward;
}

Result<std::unique_ptr<Module>> MakeTransformer(int layers, bool paths) {
  std::string text =
      "graph g\n  h_in = placeholder : f32[8, 64]\n  rope = placeholder : f32[4, 16]\n";
  for (int i = 0; i < layers; ++i) {
    for (const char* weight : {"wq", "wk", "wv", "wo"})
      text += fmt::format("  {}_{} = placeholder : f32[64, 64]\n", weight, i);
    for (const char* weight : {"wg", "wu"})
      text += fmt::format("  {}_{} = placeholder : f32[64, 256]\n", weight, i);
    text += fmt::format("  wd_{} = placeholder : f32[256, 64]\n", i);
  }
  const auto add = [&](const LayerLine& line, int layer, const std::string& neighbour) {
    std::string meta;
    if (paths) {
      meta = fmt::format(" {{module=layers.{}{}{}}}", layer, line.module.empty() ? "" : ".",
                         line.module);
    }
    text += fmt::format("  {}_{} = {} : {}{}\n", line.role, layer,
                        WithLayer(line.call, layer, neighbour), line.type, meta);
  };
  for (int i = 0; i < layers; ++i) {
    for (const LayerLine& line : kForward)
      add(line, i, i == 0 ? "_in" : fmt::format("_{}", i - 1));
  }
  text += fmt::format("  gh_in = aten.neg.default(h_{}) : f32[8, 64]\n", layers - 1);
  std::vector<std::string> results;
  for (int i = layers - 1; i >= 0; --i) {
    for (const LayerLine& line : kBackward)
      add(line, i, i == layers - 1 ? "_in" : fmt::format("_{}", i + 1));
    results.push_back(fmt::format("gwd_{}", i));
  }
  results.emplace_back("gh_0");
  text += fmt::format("  output([{}])\n", fmt::join(results, ", "));
  return ParseText(text, "transformer");
}

}  // namespace strata::bench
