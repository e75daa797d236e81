"""CodeT5+ in the form of its 2B model, written in PyTorch from the description of the network (transformers has no class of it):
a tiny one with logits, loss, every gradient, what it generates and scores after a prompt that its decoder repeats, and LoRA."""

import copy
import json
import math
import pathlib

import torch
import torch.nn.functional as functional
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from torch import nn

import golden_io

NAME, ADAPTER = "codet5p", "lora_codet5p"
SEED = 811
ROWS, LENGTH, ENCODER_LENGTH = 2, 33, 37
NEW_TOKENS = 12
UNTRAINED_PREFIX = 3  # the first labels of row 0 carry no loss
BLOCKS = 4  # in which fused projections hold their rows
EOS = 18
COMMON = dict(activation_function="gelu_new", layer_norm_epsilon=1e-5, vocab_size=19, n_positions=96, eos_token_id=EOS,
              bos_token_id=1, pad_token_id=EOS, model_type="codet5p_module", tie_word_embeddings=False)
ENCODER = dict(n_embd=16, n_layer=1, n_head=8, n_inner=10, rotary_dim=2, **COMMON)
DECODER = dict(n_embd=24, n_layer=2, n_head=4, n_inner=14, rotary_dim=4, is_decoder=True, add_cross_attention=True, **COMMON)


def rotated(x: torch.Tensor, width: int) -> torch.Tensor:
    """x (rows, heads, tokens, head width): elements 2i and 2i + 1 of the first `width` turn by position / 10000^(2i / width)."""
    angles = torch.outer(torch.arange(x.shape[2]), 10000.0 ** (-torch.arange(0, width, 2) / width)).to(x.dtype)
    even, odd, rest = x[..., :width:2], x[..., 1:width:2], x[..., width:]
    turned = torch.stack([even * angles.cos() - odd * angles.sin(), odd * angles.cos() + even * angles.sin()], dim=-1)
    return torch.cat([turned.flatten(-2), rest], dim=-1)


class Attention(nn.Module):
    def __init__(self, shape: dict, is_cross: bool):
        super().__init__()
        self.heads, self.width, self.is_causal = shape["n_head"], shape["rotary_dim"], shape.get("is_decoder", False)
        self.is_cross = is_cross
        hidden = shape["n_embd"]
        if is_cross:
            self.q_attn = nn.Linear(hidden, hidden, bias=False)
        self.qkv_proj = nn.Linear(hidden, (2 if is_cross else 3) * hidden, bias=False)
        self.out_proj = nn.Linear(hidden, hidden, bias=False)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, tokens, BLOCKS, hidden / BLOCKS) as heads: (rows, heads, tokens, head width)."""
        return x.flatten(2).unflatten(2, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: torch.Tensor, encoded: torch.Tensor | None = None) -> torch.Tensor:
        blocks = self.qkv_proj(encoded if self.is_cross else x).unflatten(-1, (BLOCKS, -1))
        if self.is_cross:
            query = self.q_attn(x).unflatten(-1, (BLOCKS, -1))
            value, key = blocks.chunk(2, dim=-1)
        else:
            query, value, key = blocks.chunk(3, dim=-1)
        query, key, value = rotated(self.split(query), self.width), rotated(self.split(key), self.width), self.split(value)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        if self.is_causal and not self.is_cross:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
        return self.out_proj((scores.softmax(-1) @ value).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, shape: dict):
        super().__init__()
        self.fc_in = nn.Linear(shape["n_embd"], shape["n_inner"])
        self.fc_out = nn.Linear(shape["n_inner"], shape["n_embd"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc_out(functional.gelu(self.fc_in(x), approximate="tanh"))


class Block(nn.Module):
    """Attention, cross attention where there is one, and an MLP side by side after one norm."""

    def __init__(self, shape: dict, has_cross: bool):
        super().__init__()
        self.ln_1 = nn.LayerNorm(shape["n_embd"], eps=shape["layer_norm_epsilon"])
        self.attn = Attention(shape, is_cross=False)
        if has_cross:
            self.crossattention = Attention(shape, is_cross=True)
        self.mlp = Mlp(shape)

    def forward(self, x: torch.Tensor, encoded: torch.Tensor | None) -> torch.Tensor:
        normed = self.ln_1(x)
        result = x + self.attn(normed) + self.mlp(normed)
        return result + self.crossattention(normed, encoded) if hasattr(self, "crossattention") else result


class Stack(nn.Module):
    def __init__(self, shape: dict):
        super().__init__()
        self.wte = nn.Embedding(shape["vocab_size"], shape["n_embd"])
        last = shape["n_layer"] - 1
        is_decoder = shape.get("is_decoder", False)
        self.h = nn.ModuleList(Block(shape, is_decoder and index == last) for index in range(shape["n_layer"]))
        self.ln_f = nn.LayerNorm(shape["n_embd"], eps=shape["layer_norm_epsilon"])

    def forward(self, ids: torch.Tensor, encoded: torch.Tensor | None = None) -> torch.Tensor:
        x = self.wte(ids)
        for block in self.h:
            x = block(x, encoded)
        return self.ln_f(x)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = Stack(DECODER)
        self.lm_head = nn.Linear(DECODER["n_embd"], DECODER["vocab_size"])

    def forward(self, ids: torch.Tensor, encoded: torch.Tensor) -> torch.Tensor:
        return self.lm_head(self.transformer(ids, encoded))


class Config(dict):
    """What PEFT and golden_io ask of a config."""

    model_type = NAME

    def to_dict(self) -> dict:
        return dict(self)


class CodeT5p(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = Config(model_type=NAME)
        self.encoder = Stack(ENCODER)
        self.decoder = Decoder()
        self.enc_to_dec_proj = nn.Linear(ENCODER["n_embd"], DECODER["n_embd"])

    def forward(self, encoder_ids: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return self.decoder(ids, self.enc_to_dec_proj(self.encoder(encoder_ids)))

    def prepare_inputs_for_generation(self):
        """PEFT's model of this task asks for it."""

    def _prepare_encoder_decoder_kwargs_for_generation(self):
        """The same."""


def build() -> CodeT5p:
    model = CodeT5p()
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for key, weight in sorted(model.named_parameters()):
            noise = torch.randn(weight.shape, generator=generator)
            if ".ln_" in key and key.endswith("weight"):
                weight.copy_(1.0 + 0.25 * noise)
            elif "wte" in key:
                weight.copy_(0.6 * noise)
            else:
                weight.copy_(0.2 * noise)
    return model.eval()


def save(model: CodeT5p, folder: pathlib.Path) -> None:
    """As published: the parts have configs of their own, and buffers of masks lie next to the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"architectures": ["CodeT5pEncoderDecoderModel"], "decoder": DECODER, "encoder": ENCODER, "is_encoder_decoder": True,
              "model_type": NAME, "torch_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    mask = torch.ones(4, 4, dtype=torch.bool).tril().reshape(1, 1, 4, 4)
    buffers = {"encoder.h.0.attn.causal_mask": mask, "decoder.transformer.h.1.attn.causal_mask": mask.clone(),
               "decoder.transformer.h.1.crossattention.causal_mask": mask.clone()}
    save_file({**model.state_dict(), **buffers}, folder / "model.safetensors", metadata={"format": "pt"})


def started(ids: torch.Tensor) -> torch.Tensor:
    """What a decoder reads to predict `ids`."""
    return torch.cat([torch.full_like(ids[:, :1], EOS), ids[:, :-1]], dim=1)


def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What the encoder reads, what the decoder reads, and targets: where there is no loss the decoder reads the prompt again."""
    encoder_ids = golden_io.random_ids((ROWS, ENCODER_LENGTH), EOS, SEED + 1000)
    targets = golden_io.random_ids((ROWS, LENGTH), EOS, SEED + 2000)
    targets[0, :UNTRAINED_PREFIX] = encoder_ids[0, :UNTRAINED_PREFIX]
    ids = started(targets)
    targets[0, :UNTRAINED_PREFIX] = golden_io.IGNORED
    return encoder_ids, ids, targets


def mean_loss(model, encoder_ids, ids, targets) -> tuple[torch.Tensor, torch.Tensor]:
    logits = model(encoder_ids, ids)
    return logits, golden_io.summed_loss(logits, targets) / golden_io.trained_tokens(targets)


def check_against_fp64(model, tensors, grads) -> float:
    double = copy.deepcopy(model).double()
    double.zero_grad()
    mean_loss(double, *tensors)[1].backward()
    exact = golden_io.gradients(double)
    return max(golden_io.relative_error(grads[key], exact[key]) for key in grads)


def generated(model, encoder_ids: torch.Tensor) -> torch.Tensor:
    """Greedily, after the prompt that the decoder has read."""
    ids = torch.cat([torch.full_like(encoder_ids[:, :1], EOS), encoder_ids], dim=1)
    for _ in range(NEW_TOKENS):
        ids = torch.cat([ids, model(encoder_ids, ids)[:, -1:].argmax(-1)], dim=1)
    return ids[:, -NEW_TOKENS:]


def make(root: pathlib.Path) -> str:
    model = build()
    tensors = encoder_ids, ids, targets = batch()
    logits, loss = mean_loss(model, *tensors)
    loss.backward()
    grads = golden_io.gradients(model)
    noise = check_against_fp64(model, tensors, grads)
    assert noise < 1e-5, noise
    with torch.no_grad():
        greedy = generated(model, encoder_ids)
        answer = targets[1:]
        whole = started(torch.cat([encoder_ids[1:], answer], dim=1))
        answer_logits = model(encoder_ids[1:], whole)[:, ENCODER_LENGTH:]
    save(model, root / NAME / "model")
    golden_io.write(root / NAME / "golden.safetensors", {
        "encoder_ids": encoder_ids, "ids": ids, "targets": targets, "logits": logits, "loss": loss.reshape(1), "greedy": greedy,
        "answer_logits": answer_logits, **grads})
    count = sum(weight.numel() for weight in model.parameters())
    return f"{NAME}: {count} parameters, loss {float(loss.detach()):.6f}, worst gradient {noise:.1e} from fp64"


def make_adapter(root: pathlib.Path) -> str:
    """LoRA on every linear but the head."""
    model = build()
    tensors = encoder_ids, ids, targets = batch()
    model.name_or_path = f"tests/goldens/{NAME}/model"
    torch.manual_seed(SEED + 1)
    modules = ["qkv_proj", "q_attn", "out_proj", "fc_in", "fc_out", "enc_to_dec_proj"]
    peft_model = get_peft_model(model, LoraConfig(task_type="SEQ_2_SEQ_LM", r=1, lora_alpha=4, lora_dropout=0.0, bias="none",
                                                  target_modules=modules))
    generator = torch.Generator().manual_seed(SEED + 2)
    with torch.no_grad():
        for key, weight in sorted(peft_model.named_parameters()):
            if "lora_B" in key:
                weight.copy_(0.1 * torch.randn(weight.shape, generator=generator))
    peft_model.config = model.config
    logits, loss = mean_loss(lambda *inputs: peft_model.base_model.model(*inputs), *tensors)
    loss.backward()
    folder = root / ADAPTER / "adapter"
    peft_model.save_pretrained(folder, save_embedding_layers=False)
    (folder / "README.md").unlink()
    golden_io.write(root / ADAPTER / "golden.safetensors", {
        "encoder_ids": encoder_ids, "ids": ids, "targets": targets, "loss": loss.reshape(1), **golden_io.gradients(peft_model)})
    return f"{ADAPTER}: loss {float(loss.detach()):.6f}"
