"""What is measured on a card: 16,384 tokens a step, weights made from built-in shapes, random tokens."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Job:
    """A training job. Of `recomputes` the first that the plan says fits is run."""

    model: str
    method: str
    rows: int
    row_tokens: int
    recomputes: tuple[str, ...]
    words: tuple[str, ...] = ()  # more of its recipe

    @property
    def name(self) -> str:
        return f"{self.model} {self.method}"

    @property
    def tokens(self) -> int:
        return self.rows * self.row_tokens


ALL = ("none", "gate_up", "layer")
# bf16 weights and gradients, moments in 8 bits: 6.03 bytes a weight.
SIX_BYTES = ("optim=adamw_8bit",)

TRAINING = (
    Job("llama-3.1-8b", "lora", 2, 8192, ALL),
    Job("llama-3.1-8b", "qlora", 2, 8192, ALL),
    Job("llama-3.1-8b", "full", 2, 8192, ("layer",), SIX_BYTES),
    Job("phi-3-mini-128k", "lora", 2, 8192, ALL),
    Job("phi-3-mini-128k", "qlora", 2, 8192, ALL),
    Job("phi-3-mini-128k", "full", 2, 8192, ("layer",), SIX_BYTES),
    # A model with 4096 positions: the same tokens in twice the rows.
    Job("llama-2-13b", "lora", 4, 4096, ALL),
)
DECODING = (("llama-3.1-8b", "bf16"), ("llama-3.1-8b", "nf4"))
PROMPT_TOKENS = 128
NEW_TOKENS = 256
WARMUP = 5
STEPS = 10

# The same stages on a shape that a processor runs in seconds.
DRY_MODEL = "smollm2-135m"
DRY_TRAINING = (Job(DRY_MODEL, "lora", 1, 16, ALL), Job(DRY_MODEL, "qlora", 1, 16, ("layer",)))
DRY_DECODING = ((DRY_MODEL, "bf16"), (DRY_MODEL, "nf4"))

VOCABULARY = {"llama-3.1-8b": 128256, "phi-3-mini-128k": 32064, "llama-2-13b": 32000, DRY_MODEL: 49152}

# The peer's models, as transformers' configurations; what is not said is their default.
PEER_CONFIGS = {
    "llama-3.1-8b": dict(model_type="llama", hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                         num_attention_heads=32, num_key_value_heads=8, vocab_size=128256,
                         max_position_embeddings=131072, rms_norm_eps=1e-5, rope_theta=500000.0),
    # Without the factors of its rope, which change angles and no cost.
    "phi-3-mini-128k": dict(model_type="phi3", hidden_size=3072, intermediate_size=8192, num_hidden_layers=32,
                            num_attention_heads=32, num_key_value_heads=32, vocab_size=32064,
                            max_position_embeddings=131072, rms_norm_eps=1e-5, pad_token_id=0),
    "llama-2-13b": dict(model_type="llama", hidden_size=5120, intermediate_size=13824, num_hidden_layers=40,
                        num_attention_heads=40, num_key_value_heads=40, vocab_size=32000,
                        max_position_embeddings=4096, rms_norm_eps=1e-5),
}
