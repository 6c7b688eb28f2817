"""Models of the three families as functions over a dictionary of parameters with torchtitan's names.

Written from torchtitan's formulas with plain PyTorch, apart from Strata's code.
"""

import math

import torch
import torch.nn.functional as F


def derived(config):
    """The configuration with every size filled in."""
    c = {"n_kv_heads": None, "head_dim": None, "n_dense_layers": 0, **config}
    c["n_kv_heads"] = c["n_kv_heads"] or c["n_heads"]
    c["rope_dim"] = c["head_dim"] = c["head_dim"] or c["dim"] // c["n_heads"]
    if c["mla"]:
        c["rope_dim"] = c["mla"]["qk_rope_head_dim"]
        c["head_dim"] = c["mla"]["qk_nope_head_dim"] + c["rope_dim"]
    if c["model"] == "llama3" and not c.get("hidden_dim"):
        hidden = int(2 * 4 * c["dim"] / 3)
        if c["ffn_dim_multiplier"] is not None:
            hidden = int(c["ffn_dim_multiplier"] * hidden)
        multiple = c["multiple_of"]
        c["hidden_dim"] = multiple * ((hidden + multiple - 1) // multiple)
    return c


def has_experts(c, layer):
    return bool(c["moe"]) and layer >= c["n_dense_layers"]


def bias_names(c):
    balanced = c["moe"] and c["moe"]["load_balance_coeff"] is not None
    return [f"layers.{i}.moe.expert_bias" for i in range(c["n_layers"]) if balanced and has_experts(c, i)]


def initial_parameters(c):
    """Torchtitan's initialisers, in the order of its named_parameters(); expert biases last."""
    torch.manual_seed(c["seed"])
    dim = c["dim"]
    p = {}

    def trunc(*shape, std=0.02, cut=2.0):
        return torch.nn.init.trunc_normal_(torch.empty(*shape), mean=0.0, std=std, a=-cut, b=cut)

    def grouped_query_attention(at, depth):
        q, kv = c["n_heads"] * c["head_dim"], c["n_kv_heads"] * c["head_dim"]
        p[f"{at}.qkv_linear.wq.weight"] = trunc(q, dim)
        p[f"{at}.qkv_linear.wk.weight"] = trunc(kv, dim)
        p[f"{at}.qkv_linear.wv.weight"] = trunc(kv, dim)
        p[f"{at}.wo.weight"] = trunc(dim, q, std=depth)
        if c["qk_norm"]:
            p[f"{at}.q_norm.weight"] = torch.ones(c["head_dim"])
            p[f"{at}.k_norm.weight"] = torch.ones(c["head_dim"])

    def latent_attention(at, depth):
        m, heads = c["mla"], c["n_heads"]
        if m["q_lora_rank"]:
            p[f"{at}.wq_a.weight"] = trunc(m["q_lora_rank"], dim)
            p[f"{at}.q_norm.weight"] = torch.ones(m["q_lora_rank"])
            p[f"{at}.wq_b.weight"] = trunc(heads * c["head_dim"], m["q_lora_rank"])
        else:
            p[f"{at}.wq.weight"] = trunc(heads * c["head_dim"], dim)
        p[f"{at}.wkv_a.weight"] = trunc(m["kv_lora_rank"] + m["qk_rope_head_dim"], dim)
        p[f"{at}.kv_norm.weight"] = torch.ones(m["kv_lora_rank"])
        p[f"{at}.wkv_b.weight"] = trunc(heads * (m["qk_nope_head_dim"] + m["v_head_dim"]), m["kv_lora_rank"])
        p[f"{at}.wo.weight"] = trunc(dim, heads * m["v_head_dim"], std=depth)

    def feed_forward(at, hidden, depth):
        p[f"{at}.w1.weight"] = trunc(hidden, dim)
        p[f"{at}.w2.weight"] = trunc(dim, hidden, std=depth)
        p[f"{at}.w3.weight"] = trunc(hidden, dim, std=depth)

    def experts(at, depth):
        m = c["moe"]
        count, hidden = m["num_experts"], m["moe_hidden_dim"]
        p[f"{at}.router.gate.weight"] = trunc(count, dim, std=depth)
        p[f"{at}.experts.w1"] = trunc(count, hidden, dim)
        p[f"{at}.experts.w2"] = trunc(count, dim, hidden, std=depth)
        p[f"{at}.experts.w3"] = trunc(count, hidden, dim, std=depth)
        if m["num_shared_experts"]:
            feed_forward(f"{at}.shared_experts", m["num_shared_experts"] * hidden, depth)

    if not c["enable_weight_tying"]:
        p["tok_embeddings.weight"] = torch.randn(c["vocab_size"], dim)
    for i in range(c["n_layers"]):
        depth = 0.02 / math.sqrt(2 * (i + 1))
        (latent_attention if c["mla"] else grouped_query_attention)(f"layers.{i}.attention", depth)
        if has_experts(c, i):
            experts(f"layers.{i}.moe", depth)
        else:
            feed_forward(f"layers.{i}.feed_forward", c["hidden_dim"], depth)
        p[f"layers.{i}.attention_norm.weight"] = torch.ones(dim)
        p[f"layers.{i}.ffn_norm.weight"] = torch.ones(dim)
    p["norm.weight"] = torch.ones(dim)
    p["lm_head.weight"] = trunc(c["vocab_size"], dim, std=dim**-0.5, cut=3 * dim**-0.5)
    for name in bias_names(c):
        p[name] = torch.zeros(c["moe"]["num_experts"])
    if c["init"] == "torchtitan_sharpened":
        for name, tensor in p.items():
            if "norm" in name:
                tensor += 0.1 * torch.randn_like(tensor)
            elif name.endswith("expert_bias"):
                tensor += 0.05 * torch.randn_like(tensor)
            elif name not in ("tok_embeddings.weight", "lm_head.weight"):
                tensor *= 4
    return p


def yarn_applies(c):
    rope = c["rope"]
    return rope["scaling"] == "yarn" and rope["max_seq_len"] > rope["original_seq_len"]


def yarn_frequencies(inv, rope, dim):
    def correction(rotations):
        return dim * math.log(rope["original_seq_len"] / (rotations * 2 * math.pi)) / (2 * math.log(rope["theta"]))

    low = max(math.floor(correction(rope["beta_fast"])), 0)
    high = min(math.ceil(correction(rope["beta_slow"])), dim - 1)
    if low == high:
        high += 0.001
    ramp = torch.clamp((torch.arange(dim // 2, dtype=torch.float32) - low) / (high - low), 0, 1)
    return inv / rope["rope_factor"] * ramp + inv * (1 - ramp)


def inverse_frequencies(c):
    rope = c["rope"]
    inv = 1.0 / (rope["theta"] ** (torch.arange(0, c["rope_dim"], 2).float() / c["rope_dim"]))
    if rope["scaling"] == "yarn":
        return yarn_frequencies(inv, rope, c["rope_dim"]) if yarn_applies(c) else inv
    if rope["scaling"] == "none":
        return inv
    factor, low, high = rope["scaling_factor"], rope["low_freq_factor"], rope["high_freq_factor"]
    original = rope["original_max_position_embeddings"]
    wavelength = 2 * math.pi / inv
    smooth = (original / wavelength - low) / (high - low)
    blended = (1 - smooth) * inv / factor + smooth * inv
    scaled = torch.where(wavelength > original / low, inv / factor, blended)
    return torch.where(wavelength < original / high, inv, scaled)


def rope_table(c):
    angle = torch.outer(torch.arange(c["rope"]["max_seq_len"]).float(), inverse_frequencies(c))
    if c["rope"]["backend"] == "complex":
        return torch.polar(torch.ones_like(angle), angle)
    angle = torch.cat([angle, angle], dim=-1)
    return torch.cat([angle.cos(), angle.sin()], dim=-1)


def rotate(c, table, x):
    """x [batch, seq, heads, head_dim]"""
    table = table[: x.shape[1]].unsqueeze(1)
    if c["rope"]["backend"] == "complex":
        pairs = torch.view_as_complex(x.float().contiguous().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * table).flatten(-2).type_as(x)
    cos, sin = table.type_as(x).chunk(2, dim=-1)
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Model:
    def __init__(self, c, p):
        self.c, self.p, self.table = c, p, rope_table(c)
        self.counts = {}  # of the last step: module of a layer's experts -> rows per expert
        self.margin = math.inf  # smallest gap between the last expert chosen and the first that was not

    def norm(self, name, x):
        weight = self.p[f"{name}.weight"]
        return F.rms_norm(x, weight.shape, weight, self.c["norm_eps"])

    def linear(self, name, x):
        return F.linear(x, self.p[f"{name}.weight"])

    def grouped_query_attention(self, at, x):
        c = self.c
        q, k, v = (self.linear(f"{at}.qkv_linear.{w}", x).view(*x.shape[:2], -1, c["head_dim"])
                   for w in ("wq", "wk", "wv"))
        if c["qk_norm"]:
            q, k = self.norm(f"{at}.q_norm", q), self.norm(f"{at}.k_norm", k)
        q, k = rotate(c, self.table, q), rotate(c, self.table, k)
        out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                             enable_gqa=c["n_kv_heads"] < c["n_heads"])
        return self.linear(f"{at}.wo", out.transpose(1, 2).reshape(*x.shape[:2], -1))

    def latent_attention(self, at, x):
        c, m = self.c, self.c["mla"]
        if m["q_lora_rank"]:
            q = self.linear(f"{at}.wq_b", self.norm(f"{at}.q_norm", self.linear(f"{at}.wq_a", x)))
        else:
            q = self.linear(f"{at}.wq", x)
        q = q.view(*x.shape[:2], c["n_heads"], -1)
        q_nope, q_pe = q.split([m["qk_nope_head_dim"], m["qk_rope_head_dim"]], dim=-1)
        q = torch.cat([q_nope, rotate(c, self.table, q_pe)], dim=-1)
        latent, k_pe = self.linear(f"{at}.wkv_a", x).split([m["kv_lora_rank"], m["qk_rope_head_dim"]], dim=-1)
        k_pe = rotate(c, self.table, k_pe.unsqueeze(2))
        kv = self.linear(f"{at}.wkv_b", self.norm(f"{at}.kv_norm", latent)).view(*x.shape[:2], c["n_heads"], -1)
        k_nope, v = kv.split([m["qk_nope_head_dim"], m["v_head_dim"]], dim=-1)
        k = torch.cat([k_nope, k_pe.expand(-1, -1, c["n_heads"], -1)], dim=-1)
        scale = c["head_dim"] ** -0.5
        if yarn_applies(c):
            scale *= (0.1 * m["mscale"] * math.log(c["rope"]["rope_factor"]) + 1) ** 2
        width = v.shape[-1]
        if c.get("padded_attention"):  # kernels other than the plain one want heads of one width
            widest = max(width, q.shape[-1])
            q, k, v = (F.pad(t, (0, widest - t.shape[-1])) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                             scale=scale)
        return self.linear(f"{at}.wo", out[..., :width].transpose(1, 2).reshape(*x.shape[:2], -1))

    def feed_forward(self, at, x):
        return self.linear(f"{at}.w2", F.silu(self.linear(f"{at}.w1", x)) * self.linear(f"{at}.w3", x))

    def route(self, at, x):
        m = self.c["moe"]
        logit = F.linear(x.float(), self.p[f"{at}.router.gate.weight"].float())
        scores = logit.softmax(dim=-1) if m["score_func"] == "softmax" else logit.sigmoid()
        choice = scores.detach() + self.p.get(f"{at}.expert_bias", 0.0)
        if m["num_expert_groups"]:
            groups = choice.view(len(x), m["num_expert_groups"], -1)
            group_scores = groups.topk(2, dim=-1).values.sum(dim=-1)
            self.note_margin(group_scores, m["num_limited_groups"])
            best = group_scores.topk(m["num_limited_groups"], dim=-1).indices
            allowed = torch.zeros_like(group_scores, dtype=torch.bool).scatter(1, best, True)
            choice = torch.where(allowed.unsqueeze(-1), groups, -math.inf).flatten(1)
        self.note_margin(choice, m["top_k"])
        chosen = choice.topk(m["top_k"], dim=-1).indices
        weights = scores.gather(1, chosen)
        if m["route_norm"]:
            weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-20)
        return weights * m["route_scale"], chosen

    def note_margin(self, scores, k):
        if k < scores.shape[1]:
            best = scores.topk(k + 1, dim=-1).values
            self.margin = min(self.margin, float((best[:, k - 1] - best[:, k]).min()))

    def experts(self, at, x):
        """One expert after the other, each on its tokens."""
        m, shape = self.c["moe"], x.shape
        x = x.flatten(0, 1)
        weights, chosen = self.route(at, x)
        out = self.feed_forward(f"{at}.shared_experts", x) if m["num_shared_experts"] else torch.zeros_like(x)
        counts = []
        for e in range(m["num_experts"]):
            token, slot = (chosen == e).nonzero(as_tuple=True)
            counts.append(len(token))
            w1, w2, w3 = (self.p[f"{at}.experts.{w}"][e] for w in ("w1", "w2", "w3"))
            weight, rows = weights[token, slot].unsqueeze(1), x[token]
            if m["score_before_experts"]:
                rows = (rows * weight).type_as(x)
            rows = F.linear(F.silu(F.linear(rows, w1)) * F.linear(rows, w3), w2)
            if not m["score_before_experts"]:
                rows = (rows * weight).type_as(x)
            out = out.index_add(0, token, rows)
        self.counts[at] = torch.tensor(counts, dtype=torch.float32)
        return out.view(shape)

    def logits(self, tokens):
        c = self.c
        h = F.embedding(tokens, self.p.get("tok_embeddings.weight", self.p["lm_head.weight"]))
        for i in range(c["n_layers"]):
            layer = f"layers.{i}"
            attention = self.latent_attention if c["mla"] else self.grouped_query_attention
            h = h + attention(f"{layer}.attention", self.norm(f"{layer}.attention_norm", h))
            x = self.norm(f"{layer}.ffn_norm", h)
            h = h + (self.experts(f"{layer}.moe", x) if has_experts(c, i) else
                     self.feed_forward(f"{layer}.feed_forward", x))
        return self.linear("lm_head", self.norm("norm", h))

    def balance(self):
        for name in bias_names(self.c):
            counts = self.counts[name.removesuffix(".expert_bias")]
            delta = self.c["moe"]["load_balance_coeff"] * torch.sign(counts.mean() - counts)
            self.p[name] += delta - delta.mean()
