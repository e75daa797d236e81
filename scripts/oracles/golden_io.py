"""Token batches, losses and safetensors files shared by the makers of goldens."""

import pathlib
import re

import torch
import torch.nn.functional as functional
from safetensors.torch import save_file

IGNORED = -100  # a label or target that carries no loss


def random_ids(shape: tuple, vocab: int, seed: int) -> torch.Tensor:
    """int64 token ids, uniform in [0, vocab)."""
    return torch.randint(0, vocab, shape, generator=torch.Generator().manual_seed(seed))


def shifted(labels: torch.Tensor) -> torch.Tensor:
    """Targets (rows, length): what position t must predict is the label of t + 1; the last position has none."""
    return torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], IGNORED)], dim=1)


def summed_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Sum of the token cross entropies over the targets that are not IGNORED, in the precision of the logits."""
    return functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED, reduction="sum")


def trained_tokens(targets: torch.Tensor) -> int:
    return int((targets != IGNORED).sum())


# Of models whose modules have other names than their files.
FILE_NAMES = {"gpt_neox": {"lm_head.weight": "embed_out.weight"}}


# Of experts, whose matrices transformers stacks; snug's names of the same stacks (docs/experts.md).
STACKED_NAMES = {
    "mixtral": {"mlp.gate.weight": "block_sparse_moe.gate.weight",
                "mlp.experts.gate_up_proj": "block_sparse_moe.experts.*.w1+w3.weight",
                "mlp.experts.down_proj": "block_sparse_moe.experts.*.w2.weight"},
    "granitemoe": {"block_sparse_moe.router.weight": "block_sparse_moe.router.layer.weight",
                   "block_sparse_moe.experts.gate_up_proj": "block_sparse_moe.input_linear.weight",
                   "block_sparse_moe.experts.down_proj": "block_sparse_moe.output_linear.weight"},
} | {family: {"mlp.experts.gate_up_proj": "mlp.experts.*.gate_proj+up_proj.weight",
              "mlp.experts.down_proj": "mlp.experts.*.down_proj.weight"}
     for family in ("qwen3_moe", "qwen2_moe", "olmoe", "glm4_moe", "qwen3_next")}


def stacked_name(name: str, model_type: str) -> str:
    for own, stacked in STACKED_NAMES.get(model_type, {}).items():
        if name.endswith("." + own):
            return name.removesuffix(own) + stacked
    return name


def gradients(model: torch.nn.Module) -> dict:
    """Name to gradient of everything that trains; names as in the saved weight or adapter file."""
    found = {}
    file_names = FILE_NAMES.get(model.config.model_type, {})
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            assert weight.grad is not None, name
            name = name.replace(".modules_to_save.default.", ".")
            name = name.replace("lora_magnitude_vector.default.weight", "lora_magnitude_vector")
            name = name.replace("lora_embedding_A.default", "lora_embedding_A").replace("lora_embedding_B.default", "lora_embedding_B")
            name = name.replace(".default.weight", ".weight")
            in_model = name.removeprefix("base_model.model.")
            name = name.removesuffix(in_model) + file_names.get(in_model, in_model)
            found["grad." + stacked_name(name, model.config.model_type)] = weight.grad
    return with_vectors_of_heads(found)


def with_vectors_of_heads(found: dict) -> dict:
    """Norms that each head has for itself are one vector of the model: norms.0.weight and norms.1.weight become norms.0..1.weight."""
    vectors = {}
    for name, gradient in found.items():
        if parts := re.fullmatch(r"(.*\.norms)\.\d+\.weight", name):
            vectors.setdefault(parts[1], []).append(gradient)
    rest = {name: gradient for name, gradient in found.items() if not re.search(r"\.norms\.\d+\.weight$", name)}
    return rest | {f"{module}.0..{len(heads) - 1}.weight": torch.cat(heads) for module, heads in vectors.items()}


def write(path: pathlib.Path, tensors: dict) -> None:
    """Saves tensors: integers as int32, numbers as one-element tensors, floats as they are."""
    ready = {}
    for name, value in tensors.items():
        tensor = value.detach() if torch.is_tensor(value) else torch.tensor([value], dtype=torch.float64)
        ready[name] = (tensor if tensor.is_floating_point() else tensor.to(torch.int32)).contiguous().clone()
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(ready, path)


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """||found - expected|| / ||expected|| in fp64."""
    expected = expected.detach().double()
    return float((found.detach().double() - expected).norm() / expected.norm())
