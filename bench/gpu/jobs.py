"""What is measured on a card: 16,384 tokens per step, weights made from built-in shapes, random tokens.

A job stands twice where both matter: as quick as the card's memory allows, and lean, with checkpoints of layers. The order
is that of worth, so that what is cut off is worth least.
"""

import dataclasses
import json
import pathlib


@dataclasses.dataclass(frozen=True)
class Job:
    """A training job. Of `recomputes` the first that the plan says fits is run."""

    model: str
    method: str
    rows: int
    row_tokens: int
    recomputes: tuple[str, ...]
    more: str = ""  # of its name: what sets it apart
    words: tuple[str, ...] = ()  # more of its recipe
    is_long: bool = False  # its steps take so long that fewer are timed
    own_attention: bool = False  # by own kernels, where cuDNN would do it

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.model, self.method, self.more)))

    @property
    def tokens(self) -> int:
        return self.rows * self.row_tokens

    @property
    def environment(self) -> dict[str, str]:
        return {"SNUG_CUDNN": "off"} if self.own_attention else {}

    @property
    def is_lean(self) -> bool:
        return self.recomputes in (LEAN, BUT_ATTENTION)


@dataclasses.dataclass(frozen=True)
class Decoding:
    """A prompt that is continued by so many sequences side by side."""

    model: str
    stored: str  # bf16 or nf4
    sequences: int = 1

    @property
    def name(self) -> str:
        return f"{self.model} decoding {self.stored}" + (f" of {self.sequences}" if self.sequences > 1 else "")


@dataclasses.dataclass(frozen=True)
class Rewarded:
    """A step of learning from rewards: so many answers to each prompt, all of them made side by side and then learned from."""

    model: str
    method: str
    prompts: int
    answers: int  # to each
    prompt_words: int
    completion_tokens: int  # the most of an answer; random weights end hardly any before

    @property
    def name(self) -> str:
        return f"{self.model} {self.method} rewarded"


QUICK = ("none", "gate_up")
LEAN = ("layer",)
BUT_ATTENTION = ("all_but_attention",)
# bf16 weights and gradients, moments in 8 bits: 6.03 bytes per weight.
SIX_BYTES = ("optim=adamw_8bit",)
OFFLOADED = ("activation_offloading=true",)
# Weights, their state and gradients lie in host memory; where they are updated is the plan's choice.
STREAMED = ("offload_params=true", "offload_optimizer=auto")
NOT_CLIPPED = "max_grad_norm=0"


def quick(model: str, method: str, rows: int = 2, row_tokens: int = 8192, more: str = "") -> Job:
    return Job(model, method, rows, row_tokens, QUICK, more, SIX_BYTES if method == "full" else ())


def lean(model: str, method: str, rows: int = 2, row_tokens: int = 8192) -> Job:
    return dataclasses.replace(quick(model, method, rows, row_tokens, "checkpoints"), recomputes=LEAN)


def offloaded(model: str, method: str) -> Job:
    """Inputs of layers and outputs of attention wait on the host, all else is made again."""
    return dataclasses.replace(lean(model, method), recomputes=BUT_ATTENTION, more="checkpoints offloaded", words=OFFLOADED)


def streamed(model: str, more: str, *words: str) -> Job:
    """Full fine-tuning of which the device holds copies of what it is working on. 48 GiB of host memory at 8B."""
    return dataclasses.replace(lean(model, "full"), more=more, words=(*SIX_BYTES, *OFFLOADED, *STREAMED, *words), is_long=True)


LLAMA, PHI, LLAMA_13B, QWEN = "llama-3.1-8b", "phi-3-mini-128k", "llama-2-13b", "qwen2.5-7b"
GEMMA, GEMMA_2 = "gemma-7b", "gemma-2-9b"
FIRST = (quick(LLAMA, "lora"), quick(LLAMA, "qlora"), lean(LLAMA, "full"), lean(LLAMA, "lora"), lean(LLAMA, "qlora"), quick(LLAMA, "full"))
THEN = (
    quick(PHI, "lora"), quick(PHI, "qlora"), quick(PHI, "full"), lean(PHI, "lora"), lean(PHI, "qlora"), lean(PHI, "full"),
    # A model with 4096 positions: the same tokens in twice the rows.
    quick(LLAMA_13B, "lora", 4, 4096), lean(LLAMA_13B, "lora", 4, 4096),
    # The lengths of the best results published for one H100.
    quick(LLAMA, "lora", 4, 4096, "rows of 4096"), quick(QWEN, "full", 16, 1024, "rows of 1024"),
    quick(LLAMA, "lora", 8, 2048, "rows of 2048"), offloaded(LLAMA, "lora"), offloaded(LLAMA, "qlora"),
    # Clipped, the next step waits for the whole update; else updates follow gradients next to the backward pass.
    streamed(LLAMA, "offloaded"), streamed(LLAMA, "offloaded not clipped", NOT_CLIPPED),
    # Own kernels with heads of 128, and of 256 without and with soft caps and windows.
    dataclasses.replace(quick(LLAMA, "lora", more="own attention"), own_attention=True), quick(GEMMA, "lora"), quick(GEMMA_2, "lora"),
)


def named(*names: str) -> tuple[Job, ...]:
    return tuple(job for job in TRAINING if job.name in names)


TRAINING = FIRST + THEN
PROFILED = (f"{LLAMA} lora", f"{LLAMA} qlora", f"{LLAMA} full checkpoints", f"{LLAMA} full offloaded", f"{LLAMA} lora own attention", f"{GEMMA} lora",
            f"{GEMMA_2} lora")
DECODING = (Decoding(LLAMA, "bf16"), Decoding(LLAMA, "nf4"))
SIDE_BY_SIDE = tuple(Decoding(LLAMA, stored, sequences) for sequences in (8, 64) for stored in ("bf16", "nf4"))
REWARDED = (Rewarded(LLAMA, "qlora", 8, 8, 128, 512),)
# As the published one: r 32, and no more of a card than one of 80 GB has.
LONGEST = dataclasses.replace(lean(LLAMA, "qlora"), more="longest row", words=("lora_r=32", "device_memory=78GiB", *OFFLOADED))
LONGEST_GRAIN = 1024  # tokens
PROMPT_TOKENS = 128
NEW_TOKENS = 256
WARMUP = 5
STEPS = 10
LONG_WARMUP = 2
LONG_STEPS = 4
REWARDED_WARMUP = 1
REWARDED_STEPS = 3
PEER_WARMUP = 2  # the first compiles
PEER_STEPS = 3

# The same stages on a shape that a processor runs in seconds.
DRY_MODEL = "smollm2-135m"
DRY_TRAINING = (quick(DRY_MODEL, "lora", 1, 16), Job(DRY_MODEL, "qlora", 1, 16, LEAN, "checkpoints"))
DRY_PROFILED = DRY_TRAINING[1:]
DRY_DECODING = (Decoding(DRY_MODEL, "bf16"), Decoding(DRY_MODEL, "nf4"))
DRY_LONGEST = Job(DRY_MODEL, "qlora", 1, 16, LEAN, "longest row", OFFLOADED)  # longest.dry_job sets its budget

# As transformers' configurations, for the peer and for counting; what is not said is their default.
CONFIGS = {
    LLAMA: dict(model_type="llama", hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                num_attention_heads=32, num_key_value_heads=8, vocab_size=128256,
                max_position_embeddings=131072, rms_norm_eps=1e-5, rope_theta=500000.0),
    # Without the factors of its rope, which change angles and no cost.
    PHI: dict(model_type="phi3", hidden_size=3072, intermediate_size=8192, num_hidden_layers=32,
              num_attention_heads=32, num_key_value_heads=32, vocab_size=32064,
              max_position_embeddings=131072, rms_norm_eps=1e-5, pad_token_id=0),
    LLAMA_13B: dict(model_type="llama", hidden_size=5120, intermediate_size=13824, num_hidden_layers=40,
                    num_attention_heads=40, num_key_value_heads=40, vocab_size=32000,
                    max_position_embeddings=4096, rms_norm_eps=1e-5),
    QWEN: dict(model_type="qwen2", hidden_size=3584, intermediate_size=18944, num_hidden_layers=28,
               num_attention_heads=28, num_key_value_heads=4, vocab_size=152064,
               max_position_embeddings=131072, rms_norm_eps=1e-6, rope_theta=1000000.0),
    GEMMA: dict(model_type="gemma", hidden_size=3072, intermediate_size=24576, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=16,
                head_dim=256, vocab_size=256000, max_position_embeddings=8192, rms_norm_eps=1e-6, rope_theta=10000.0, tie_word_embeddings=True,
                hidden_activation="gelu_pytorch_tanh"),
    GEMMA_2: dict(model_type="gemma2", hidden_size=3584, intermediate_size=14336, num_hidden_layers=42, num_attention_heads=16, num_key_value_heads=8,
                  head_dim=256, vocab_size=256000, max_position_embeddings=8192, rms_norm_eps=1e-6, rope_theta=10000.0, tie_word_embeddings=True,
                  hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=256, sliding_window=4096, attn_logit_softcapping=50.0,
                  final_logit_softcapping=30.0),
    DRY_MODEL: dict(model_type="llama", hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
                    num_attention_heads=9, num_key_value_heads=3, vocab_size=49152, max_position_embeddings=8192,
                    rms_norm_eps=1e-5, rope_theta=100000.0, tie_word_embeddings=True),
}


def shape_of(model: str) -> dict:
    """As model_flops.py wants it. Fused linears count as their parts: of LoRA's weights that changes under 1 %."""
    config = CONFIGS[model]
    return {"head_dim": config["hidden_size"] // config["num_attention_heads"]} | config


# Those whose attention a tiny shape keeps; the others become Llamas.
KEPT_TYPES = {"gemma": "GemmaForCausalLM", "gemma2": "Gemma2ForCausalLM"}


def write_config(folder: pathlib.Path, config: dict) -> None:
    """A folder without weights that has this shape: a model of KEPT_TYPES as it is, or a Llama."""
    kind = config["model_type"]
    more = {"architectures": [KEPT_TYPES.get(kind, "LlamaForCausalLM")], "hidden_act": "gelu_pytorch_tanh" if kind in KEPT_TYPES else "silu", "torch_dtype": "bfloat16"}
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config | more))


# A shape for an emulated device, under the names of the real ones; rows are as short.
TINY = dict(hidden_size=128, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, vocab_size=256,
            max_position_embeddings=131072)
TINY_ROW_TOKENS = 64
TINY_THRESHOLD = ("offload_threshold=1KiB",)


def tiny_of(config: dict) -> dict:
    """The shape of a tiny model in this one's place. Of the kept types it has two layers, so that one has a window."""
    if config["model_type"] not in KEPT_TYPES:
        return dict(model_type="llama", rms_norm_eps=1e-5, rope_theta=10000.0) | TINY
    return config | TINY | {"num_hidden_layers": 2} | ({"sliding_window": TINY_ROW_TOKENS // 2} if "sliding_window" in config else {})


def make_tiny(work: pathlib.Path) -> dict[str, pathlib.Path]:
    """Folders without weights for every model, which then has that shape; few, short steps of every job. Its tensors are small, and lie in
    host memory all the same where those of a real model would."""
    global FIRST, THEN, TRAINING, LONGEST, LONGEST_GRAIN, PROMPT_TOKENS, NEW_TOKENS, WARMUP, STEPS, LONG_WARMUP, LONG_STEPS, REWARDED, REWARDED_STEPS
    folders = {}
    for model in CONFIGS:
        CONFIGS[model] = tiny_of(CONFIGS[model])
        folders[model] = work / model
        write_config(folders[model], CONFIGS[model])
    FIRST, THEN = (tuple(dataclasses.replace(job, rows=1, row_tokens=job.row_tokens * TINY_ROW_TOKENS // 8192,
                                             words=job.words + (TINY_THRESHOLD if set(STREAMED) <= set(job.words) else ()))
                         for job in each) for each in (FIRST, THEN))
    TRAINING = FIRST + THEN
    REWARDED = tuple(dataclasses.replace(each, prompts=1, answers=2, prompt_words=2, completion_tokens=4) for each in REWARDED)
    LONGEST_GRAIN, PROMPT_TOKENS, NEW_TOKENS = 64, 8, 4
    WARMUP, STEPS, LONG_WARMUP, LONG_STEPS, REWARDED_STEPS = 1, 2, 1, 2, 1
    return folders
