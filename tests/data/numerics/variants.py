"""The configurations of the fixtures that `make_reference.py` makes."""

STEPS = 20

ADAMW = {"name": "AdamW", "lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1,
         "max_grad_norm": 1.0}

BF16 = {"mixed_precision_param": "bfloat16", "mixed_precision_reduce": "float32"}

VARIANTS = {
    # Four query heads on one key/value head, unscaled RoPE, a derived feed-forward width, clipping in every step.
    "llama3_mqa": {
        "model": "llama3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-5, "qk_norm": False,
        "head_dim": 8, "moe": None, "mla": None, "dim": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": 1,
        "vocab_size": 40, "multiple_of": 8, "ffn_dim_multiplier": 0.5, "enable_weight_tying": False,
        "rope": {"theta": 10000.0, "backend": "complex", "scaling": "none", "max_seq_len": 21},
        "seq_len": 21, "batch_size": 3, "seed": 101,
        "optimizer": {**ADAMW, "lr": 3e-3, "max_grad_norm": 0.25},
    },
    # Every head with keys of its own, wider than dim / n_heads; tied weights, halves layout, strong Llama 3.1 scaling,
    # no clipping, other AdamW constants, a table longer than the sequence.
    "llama3_tied": {
        "model": "llama3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-6, "qk_norm": False,
        "head_dim": 12, "moe": None, "mla": None, "dim": 24, "n_layers": 3, "n_heads": 3, "n_kv_heads": None,
        "vocab_size": 50, "multiple_of": 4, "ffn_dim_multiplier": None, "enable_weight_tying": True,
        "rope": {"theta": 50000.0, "backend": "cos_sin", "scaling": "llama", "max_seq_len": 64,
                 "scaling_factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
                 "original_max_position_embeddings": 40},
        "seq_len": 33, "batch_size": 2, "seed": 202,
        "optimizer": {**ADAMW, "beta1": 0.8, "beta2": 0.99, "eps": 1e-7, "weight_decay": 0.01, "max_grad_norm": None},
    },
    # Odd sizes throughout, one layer, a single row per step, torchtitan's plain initialisation.
    "llama3_small": {
        "model": "llama3", "steps": STEPS, "init": "torchtitan", "norm_eps": 1e-5, "qk_norm": False,
        "head_dim": None, "moe": None, "mla": None, "dim": 18, "n_layers": 1, "n_heads": 3, "n_kv_heads": 3,
        "vocab_size": 31, "multiple_of": 1, "ffn_dim_multiplier": 1.3, "enable_weight_tying": False,
        "rope": {"theta": 500000.0, "backend": "complex", "scaling": "llama", "max_seq_len": 7,
                 "scaling_factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                 "original_max_position_embeddings": 16},
        "seq_len": 7, "batch_size": 1, "seed": 303,
        "optimizer": {**ADAMW, "lr": 1e-2},
    },
    # Three query heads on each key/value head, heads wider than dim / n_heads, odd widths, embedding and head apart.
    "qwen3_gqa": {
        "model": "qwen3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-6, "qk_norm": True,
        "dim": 20, "n_layers": 2, "n_heads": 6, "n_kv_heads": 2, "head_dim": 10, "hidden_dim": 27, "vocab_size": 45,
        "enable_weight_tying": False, "moe": None, "mla": None,
        "rope": {"theta": 5000000.0, "backend": "cos_sin", "scaling": "none", "max_seq_len": 40},
        "seq_len": 17, "batch_size": 2, "seed": 404, "optimizer": {**ADAMW, "max_grad_norm": 0.5},
    },
    # Experts in every layer and none shared, softmax scores made to sum to 1; tied.
    "qwen3_moe": {
        "model": "qwen3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-6, "qk_norm": True,
        "dim": 24, "n_layers": 2, "n_heads": 4, "n_kv_heads": 1, "head_dim": 8, "vocab_size": 40,
        "enable_weight_tying": True, "mla": None,
        "moe": {"num_experts": 6, "top_k": 2, "moe_hidden_dim": 12, "num_shared_experts": 0, "score_func": "softmax",
                "route_norm": True, "route_scale": 1.0, "num_expert_groups": None, "num_limited_groups": None,
                "score_before_experts": False, "load_balance_coeff": 1e-3},
        "rope": {"theta": 1000000.0, "backend": "cos_sin", "scaling": "none", "max_seq_len": 12},
        "seq_len": 12, "batch_size": 2, "seed": 505, "optimizer": ADAMW,
    },
    # The router of the 671B: sigmoid, groups, normed and scaled scores; compressed queries; values wider than keys.
    "deepseek_v3_groups": {
        "model": "deepseek_v3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-5, "dim": 24,
        "n_layers": 3, "n_dense_layers": 1, "n_heads": 3, "hidden_dim": 32, "vocab_size": 40,
        "enable_weight_tying": False,
        "mla": {"q_lora_rank": 14, "kv_lora_rank": 10, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 12,
                "mscale": 1.0},
        "moe": {"num_experts": 8, "top_k": 3, "moe_hidden_dim": 8, "num_shared_experts": 1, "score_func": "sigmoid",
                "route_norm": True, "route_scale": 2.5, "num_expert_groups": 4, "num_limited_groups": 2,
                "score_before_experts": False, "load_balance_coeff": 1e-2},
        "rope": {"theta": 10000.0, "backend": "complex", "scaling": "yarn", "max_seq_len": 13, "rope_factor": 40.0,
                 "beta_fast": 32.0, "beta_slow": 1.0, "original_seq_len": 8},
        "seq_len": 13, "batch_size": 2, "seed": 606, "optimizer": {**ADAMW, "lr": 2e-3},
    },
    # Scores applied before the experts, no biases, nothing shared, nothing dense, more experts than some steps use;
    # no width is a multiple of four.
    "deepseek_v3_before": {
        "model": "deepseek_v3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-5, "dim": 18,
        "n_layers": 2, "n_dense_layers": 0, "n_heads": 2, "hidden_dim": None, "vocab_size": 30,
        "enable_weight_tying": False,
        "mla": {"q_lora_rank": 0, "kv_lora_rank": 7, "qk_nope_head_dim": 10, "qk_rope_head_dim": 6, "v_head_dim": 9,
                "mscale": 1.0},
        "moe": {"num_experts": 16, "top_k": 2, "moe_hidden_dim": 5, "num_shared_experts": 0, "score_func": "softmax",
                "route_norm": False, "route_scale": 4.0, "num_expert_groups": None, "num_limited_groups": None,
                "score_before_experts": True, "load_balance_coeff": None},
        "rope": {"theta": 10000.0, "backend": "complex", "scaling": "none", "max_seq_len": 9},
        "seq_len": 9, "batch_size": 1, "seed": 707, "optimizer": {**ADAMW, "max_grad_norm": 0.1},
    },
    # Mixed precision, one of each family.
    "llama3_bf16": {
        "model": "llama3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-5, "qk_norm": False,
        "head_dim": 8, "moe": None, "mla": None, "dim": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2,
        "vocab_size": 40, "multiple_of": 8, "ffn_dim_multiplier": None, "enable_weight_tying": False,
        "rope": {"theta": 500000.0, "backend": "complex", "scaling": "llama", "max_seq_len": 16,
                 "scaling_factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                 "original_max_position_embeddings": 64},
        "seq_len": 16, "batch_size": 3, "seed": 808, "optimizer": ADAMW, "training": BF16,
    },
    "qwen3_bf16": {
        "model": "qwen3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-6, "qk_norm": True,
        "dim": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 8, "hidden_dim": 40, "vocab_size": 40,
        "enable_weight_tying": True, "moe": None, "mla": None,
        "rope": {"theta": 1000000.0, "backend": "cos_sin", "scaling": "none", "max_seq_len": 16},
        "seq_len": 16, "batch_size": 2, "seed": 909, "optimizer": ADAMW, "training": BF16,
    },
    "deepseek_v3_bf16": {
        "model": "deepseek_v3", "steps": STEPS, "init": "torchtitan_sharpened", "norm_eps": 1e-5, "dim": 32,
        "n_layers": 2, "n_dense_layers": 1, "n_heads": 2, "hidden_dim": 40, "vocab_size": 40,
        "enable_weight_tying": False,
        "mla": {"q_lora_rank": 0, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 16,
                "mscale": 0.7},
        "moe": {"num_experts": 4, "top_k": 2, "moe_hidden_dim": 16, "num_shared_experts": 1, "score_func": "sigmoid",
                "route_norm": True, "route_scale": 1.0, "num_expert_groups": None, "num_limited_groups": None,
                "score_before_experts": False, "load_balance_coeff": 1e-3},
        "rope": {"theta": 10000.0, "backend": "complex", "scaling": "yarn", "max_seq_len": 8, "rope_factor": 4.0,
                 "beta_fast": 32.0, "beta_slow": 1.0, "original_seq_len": 4},
        "seq_len": 8, "batch_size": 1, "seed": 1010, "optimizer": {**ADAMW, "lr": 1e-4}, "training": BF16,
    },
}
