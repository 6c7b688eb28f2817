"""Llama3, Qwen3 and DeepSeek-V3 in plain PyTorch, for train_peers.py: what runtime/models computes, named as there
(torchtitan's names), written as one writes it in Python.

A model is made of a configuration (the `config` of train_peers.py) and called with token ids and labels, int64
`[batch, seq]`; it returns the mean cross-entropy.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import flex_attention as flex


class Attention(nn.Module):
    """Of Llama3 and Qwen3: queries share keys and values in groups; Qwen3 norms both."""

    def __init__(self, c):
        super().__init__()
        self.c, self.mask = c, mask_of(c)
        self.head_dim, self.rope = c["head_dim"], c["rope"]["backend"]
        self.qkv_linear = nn.ModuleDict({
            "wq": linear(c["dim"], c["n_heads"] * c["head_dim"]),
            "wk": linear(c["dim"], c["n_kv_heads"] * c["head_dim"]),
            "wv": linear(c["dim"], c["n_kv_heads"] * c["head_dim"]),
        })
        self.wo = linear(c["n_heads"] * c["head_dim"], c["dim"])
        self.q_norm = norm(c, c["head_dim"]) if c["qk_norm"] else nn.Identity()
        self.k_norm = norm(c, c["head_dim"]) if c["qk_norm"] else nn.Identity()

    def forward(self, x, table):
        q, k, v = (self.qkv_linear[name](x).unflatten(-1, (-1, self.head_dim)) for name in ("wq", "wk", "wv"))
        q, k = (rotate(self.rope, t, table) for t in (self.q_norm(q), self.k_norm(k)))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        out = attend(self.c, self.mask, q, k, v)
        return self.wo(out.transpose(1, 2).flatten(2))


class LatentAttention(nn.Module):
    """Of DeepSeek-V3: keys and values come from a narrow latent vector, and so may queries."""

    def __init__(self, c):
        super().__init__()
        m = self.mla = c["mla"]
        self.heads, self.rope = c["n_heads"], c["rope"]["backend"]
        self.head_dim = m["qk_nope_head_dim"] + m["qk_rope_head_dim"]
        self.scale = self.head_dim**-0.5
        if c["rope"]["scaling"] == "yarn":
            self.scale *= (0.1 * m["mscale"] * math.log(c["rope"]["rope_factor"]) + 1.0)**2
        if m["q_lora_rank"] == 0:
            self.wq = linear(c["dim"], self.heads * self.head_dim)
        else:
            self.wq_a = linear(c["dim"], m["q_lora_rank"])
            self.q_norm = norm(c, m["q_lora_rank"])
            self.wq_b = linear(m["q_lora_rank"], self.heads * self.head_dim)
        self.wkv_a = linear(c["dim"], m["kv_lora_rank"] + m["qk_rope_head_dim"])
        self.kv_norm = norm(c, m["kv_lora_rank"])
        self.wkv_b = linear(m["kv_lora_rank"], self.heads * (m["qk_nope_head_dim"] + m["v_head_dim"]))
        self.wo = linear(self.heads * m["v_head_dim"], c["dim"])

    def queries(self, x):
        return self.wq(x) if self.mla["q_lora_rank"] == 0 else self.wq_b(self.q_norm(self.wq_a(x)))

    def forward(self, x, table):
        m = self.mla
        q_nope, q_pe = (self.queries(x).unflatten(-1, (self.heads, -1)).split(
            [m["qk_nope_head_dim"], m["qk_rope_head_dim"]], -1))
        latent, k_pe = self.wkv_a(x).split([m["kv_lora_rank"], m["qk_rope_head_dim"]], -1)
        k_nope, v = (self.wkv_b(self.kv_norm(latent)).unflatten(-1, (self.heads, -1)).split(
            [m["qk_nope_head_dim"], m["v_head_dim"]], -1))
        q = torch.cat([q_nope, rotate(self.rope, q_pe, table)], -1)
        k_pe = rotate(self.rope, k_pe.unsqueeze(2), table).expand(-1, -1, self.heads, -1)
        k = torch.cat([k_nope, k_pe], -1)
        # The fast kernels want one head size; with another one of v PyTorch multiplies whole matrices of scores.
        v = F.pad(v, (0, self.head_dim - m["v_head_dim"]))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.scale)
        return self.wo(out[..., :m["v_head_dim"]].transpose(1, 2).flatten(2))


class FeedForward(nn.Module):

    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.w1 = linear(dim, hidden_dim)
        self.w2 = linear(hidden_dim, dim)
        self.w3 = linear(dim, hidden_dim)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Router(nn.Module):
    """Scores of the experts that each token chose, and which they are: `[tokens, top_k]` both."""

    def __init__(self, c):
        super().__init__()
        self.moe = c["moe"]
        self.gate = linear(c["dim"], self.moe["num_experts"])

    def forward(self, x, bias):
        logits = F.linear(x.float(), self.gate.weight.float())
        scores = logits.softmax(1) if self.moe["score_func"] == "softmax" else logits.sigmoid()
        with torch.no_grad():
            appeal = scores if bias is None else scores + bias
            if self.moe["num_expert_groups"] > 0:
                appeal = self.forbid_weak_groups(appeal)
            experts = torch.topk(appeal, self.moe["top_k"], sorted=False).indices
        chosen = scores.gather(1, experts)
        if self.moe["route_norm"]:
            chosen = chosen / (chosen.sum(1, keepdim=True) + 1e-20)
        return chosen * self.moe["route_scale"], experts

    def forbid_weak_groups(self, scores):
        grouped = scores.unflatten(1, (self.moe["num_expert_groups"], -1))
        group_scores = torch.topk(grouped, 2).values.sum(-1)
        best = torch.topk(group_scores, self.moe["num_limited_groups"], sorted=False).indices
        is_weak = torch.ones_like(group_scores, dtype=torch.bool).scatter(1, best, False)
        return grouped.masked_fill(is_weak.unsqueeze(-1), -math.inf).flatten(1)


class Experts(nn.Module):
    """Feed-forward layers of one shape. Rows come sorted by expert, `counts` of each."""

    def __init__(self, c):
        super().__init__()
        count, hidden, dim = c["moe"]["num_experts"], c["moe"]["moe_hidden_dim"], c["dim"]
        self.use_grouped_mm = c["moe"]["use_grouped_mm"]
        self.w1 = nn.Parameter(torch.empty(count, hidden, dim))
        self.w2 = nn.Parameter(torch.empty(count, dim, hidden))
        self.w3 = nn.Parameter(torch.empty(count, hidden, dim))

    def forward(self, x, counts):
        if not self.use_grouped_mm:
            parts = zip(x.split(counts.tolist()), self.w1, self.w2, self.w3)
            return torch.cat([(F.silu(rows @ w1.T) * (rows @ w3.T)) @ w2.T for rows, w1, w2, w3 in parts])
        ends = counts.cumsum(0).int()
        hidden = F.silu(torch._grouped_mm(x, self.w1.mT, ends)) * torch._grouped_mm(x, self.w3.mT, ends)
        return torch._grouped_mm(hidden, self.w2.mT, ends)


class MixtureOfExperts(nn.Module):

    def __init__(self, c):
        super().__init__()
        m = self.moe = c["moe"]
        self.experts = Experts(c)
        self.router = Router(c)
        self.shared_experts = None
        if m["num_shared_experts"] > 0:
            self.shared_experts = FeedForward(c["dim"], m["num_shared_experts"] * m["moe_hidden_dim"])
        has_bias = m["load_balance_coeff"] is not None
        self.register_buffer("expert_bias", torch.zeros(m["num_experts"]) if has_bias else None)
        self.register_buffer("tokens_per_expert", torch.zeros(m["num_experts"]), persistent=False)

    def forward(self, x):
        tokens = x.flatten(0, 1)
        scores, chosen = self.router(tokens, self.expert_bias)
        with torch.no_grad():
            counts = torch.zeros(len(chosen), self.moe["num_experts"], dtype=torch.bool,
                                 device=x.device).scatter(1, chosen, True).sum(0)
            self.tokens_per_expert.add_(counts)
        order = chosen.flatten().sort(stable=True).indices
        source = order // self.moe["top_k"]
        weight = scores.flatten()[order].unsqueeze(1)
        rows = tokens[source]
        if self.moe["score_before_experts"]:
            given = self.experts((rows * weight).type_as(rows), counts)
        else:
            given = (self.experts(rows, counts) * weight).type_as(rows)
        shared = torch.zeros_like(tokens) if self.shared_experts is None else self.shared_experts(tokens)
        return shared.index_add(0, source, given).view_as(x)

    @torch.no_grad()
    def balance(self):
        """Experts that got many tokens since the last call become less likely to be chosen."""
        if self.expert_bias is not None:
            step = self.moe["load_balance_coeff"] * torch.sign(self.tokens_per_expert.mean() - self.tokens_per_expert)
            self.expert_bias.add_(step - step.mean())
        self.tokens_per_expert.zero_()


class Block(nn.Module):

    def __init__(self, c, layer):
        super().__init__()
        self.attention = LatentAttention(c) if c["model"] == "deepseek_v3" else Attention(c)
        self.attention_norm = norm(c, c["dim"])
        self.ffn_norm = norm(c, c["dim"])
        if c["moe"] is not None and layer >= c["n_dense_layers"]:
            self.moe = MixtureOfExperts(c)
        else:
            self.feed_forward = FeedForward(c["dim"], c["hidden_dim"])

    def forward(self, x, table):
        h = x + self.attention(self.attention_norm(x), table)
        return h + (self.moe if hasattr(self, "moe") else self.feed_forward)(self.ffn_norm(h))


class Decoder(nn.Module):

    def __init__(self, c):
        super().__init__()
        # Tied: the head's weight is the embedding, too.
        self.tok_embeddings = None if c["enable_weight_tying"] else nn.Embedding(c["vocab_size"], c["dim"])
        self.layers = nn.ModuleDict({str(i): Block(c, i) for i in range(c["n_layers"])})
        self.norm = norm(c, c["dim"])
        self.lm_head = linear(c["dim"], c["vocab_size"])
        self.register_buffer("table", rope_table(c), persistent=False)

    def forward(self, tokens, labels):
        x = F.embedding(tokens, self.lm_head.weight) if self.tok_embeddings is None else self.tok_embeddings(tokens)
        for layer in self.layers.values():
            x = layer(x, self.table)
        logits = self.lm_head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(0, 1))

    def balance(self):
        """After each step."""
        for layer in self.layers.values():
            if hasattr(layer, "moe"):
                layer.moe.balance()


def attend(c, mask, q, k, v):
    """Causal attention, perhaps to a window of the last positions."""
    grouped = q.shape[1] != k.shape[1]
    if c.get("attn_type") == "flex":
        return flex.flex_attention(q, k, v, block_mask=mask, enable_gqa=grouped)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=grouped)


def mask_of(c):
    """What `attend` needs beside operands: a block mask, or a dense one where it is not just causal."""
    window = c.get("window", 0)

    def sees(b, h, q, k):
        return (q >= k) & (q - k < window) if window > 0 else q >= k

    if c.get("attn_type") == "flex":
        flex._validate_device = lambda *_: None  # its eager backward works on CPUs, too
        return flex.create_block_mask(sees, None, None, c["seq"], c["seq"], device=c["device"])
    at = torch.arange(c["seq"], device=c["device"]) if window > 0 else None
    return sees(0, 0, at[:, None], at[None, :]) if window > 0 else None


def linear(width_in, width_out):
    return nn.Linear(width_in, width_out, bias=False)


def norm(c, width):
    return nn.RMSNorm(width, eps=c["norm_eps"])


def rotate(backend, x, table):
    """Turns pairs of `x` `[batch, seq, heads, width]` by position: adjacent ones, or one of each half."""
    rows = table[None, :x.shape[1], None, :]
    if backend == "complex":
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * rows).flatten(3).type_as(x)
    cos, sin = rows.type_as(x).chunk(2, -1)
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def rope_table(c):
    r = c["rope"]
    dim = c["mla"]["qk_rope_head_dim"] if c["model"] == "deepseek_v3" else c["head_dim"]
    inv = 1.0 / (r["theta"]**(torch.arange(0, dim, 2).float() / dim))
    if r["scaling"] == "llama":
        inv = scale_as_llama(inv, r)
    if r["scaling"] == "yarn" and r["rope_factor"] > 1.0:
        inv = scale_as_yarn(inv, r, dim)
    angle = torch.outer(torch.arange(r["max_seq_len"]).float(), inv)
    if r["backend"] == "complex":
        return torch.polar(torch.ones_like(angle), angle)
    angle = torch.cat([angle, angle], -1)
    return torch.cat([angle.cos(), angle.sin()], -1)


def scale_as_llama(inv, r):
    """Llama 3.1's: long wavelengths stretched."""
    wave = 2 * math.pi / inv
    low, high = r["low_freq_factor"], r["high_freq_factor"]
    context = r["original_max_position_embeddings"]
    stretched = torch.where(wave > context / low, inv / r["scaling_factor"], inv)
    smooth = (context / wave - low) / (high - low)
    between = (1 - smooth) * stretched / r["scaling_factor"] + smooth * stretched
    return torch.where((wave >= context / high) & (wave <= context / low), between, stretched)


def scale_as_yarn(inv, r, dim):
    """YaRN's: pairs that turn seldom within the original context stretched."""

    def pair_that_turns(times):
        return dim * math.log(r["original_seq_len"] / (times * 2 * math.pi)) / (2 * math.log(r["theta"]))

    low = max(math.floor(pair_that_turns(r["beta_fast"])), 0)
    high = min(math.ceil(pair_that_turns(r["beta_slow"])), dim - 1)
    ramp = ((torch.arange(dim // 2).float() - low) / max(high - low, 0.001)).clamp(0, 1)
    return inv / r["rope_factor"] * ramp + inv * (1 - ramp)


class InHalf(nn.Module):
    """Computes with copies of the fp32 parameters in bf16."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, labels):
        half = {name: p.bfloat16() for name, p in self.model.named_parameters()}
        return torch.func.functional_call(self.model, half, (tokens, labels))
