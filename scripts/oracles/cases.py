"""Logits, loss and every weight gradient of each tiny model, and the same loss in fp64 and in bf16."""

import contextlib
import copy
import json
import pathlib
from unittest import mock

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.models.qwen3_5 import modeling_qwen3_5
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe
from transformers.models.qwen3_next import modeling_qwen3_next

import golden_io
import tiny_models

ROWS, LENGTH = 2, 33
UNTRAINED_PREFIX = 5  # the first labels of row 0 carry no loss, as a prompt's do
# transformers computes norms and eager softmax in fp32 even on a model in fp64, so in_fp64 replaces both; the angles of
# the rotary embedding stay rounded to fp32, which both sides share. What is left between them is fp32 rounding.
DOUBLE_NOISE = 1e-5


def batch(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """ids and labels, (ROWS, LENGTH); labels as transformers takes them, not shifted."""
    spec = tiny_models.MODELS[name]
    ids = golden_io.random_ids((ROWS, LENGTH), spec.fields["vocab_size"], spec.seed + 1000)
    labels = ids.clone()
    labels[0, :UNTRAINED_PREFIX] = golden_io.IGNORED
    return ids, labels


def norm_in_fp64(self, hidden):
    scale = torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
    return self.weight * (hidden * scale)


def gemma_norm_in_fp64(self, hidden):
    return (1.0 + self.weight) * hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.eps)


def gemma4_norm_in_fp64(self, hidden):
    normed = hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.eps)
    return normed * self.weight if self.with_scale else normed


def layer_norm_in_fp64(self, hidden):
    centred = hidden - hidden.mean(-1, keepdim=True)
    return self.weight * centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


def gated_norm_in_fp64(self, hidden, gate):
    return norm_in_fp64(self, hidden) * torch.nn.functional.silu(gate)


def delta_rule_in_fp64(query, key, value, g, beta, **_):
    """The gated delta rule token by token, of whole rows that begin without a state; transformers computes it in fp32."""
    shared = value.shape[2] // key.shape[2]
    query, key = (x.repeat_interleave(shared, dim=2) for x in (query, key))
    query, key = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6) for x in (query, key))
    state = torch.zeros(*value.shape[:1], value.shape[2], key.shape[-1], value.shape[-1], dtype=value.dtype)
    given = []
    for at in range(value.shape[1]):
        state = state * g[:, at, :, None, None].exp()
        change = (value[:, at] - torch.einsum("bhkv,bhk->bhv", state, key[:, at])) * beta[:, at, :, None]
        state = state + torch.einsum("bhk,bhv->bhkv", key[:, at], change)
        given.append(torch.einsum("bhkv,bhk->bhv", state, query[:, at]) * key.shape[-1] ** -0.5)
    return torch.stack(given, dim=1), None


def rules_in_fp64() -> contextlib.ExitStack:
    """The gated delta rule in fp64 in all families that have it, while the result is entered."""
    stack = contextlib.ExitStack()
    for family in (modeling_qwen3_5, modeling_qwen3_5_moe, modeling_qwen3_next):
        stack.enter_context(mock.patch.object(family, "torch_chunk_gated_delta_rule", delta_rule_in_fp64))
    return stack


def softmax_in_its_type(scores, dim, dtype=None):
    """functional.softmax without the rounding to fp32 that eager attention asks for."""
    return torch.softmax(scores, dim)


def in_fp64(model: PreTrainedModel) -> PreTrainedModel:
    """A copy in fp64 whose norms and softmax are in fp64 too."""
    double = copy.deepcopy(model).double()
    if model._supports_sdpa:
        double.set_attn_implementation("sdpa")
    for module in double.modules():
        if type(module).__name__.startswith("Gemma4") and type(module).__name__.endswith("RMSNorm"):
            module.forward = gemma4_norm_in_fp64.__get__(module)
        elif type(module).__name__.endswith("RMSNorm"):
            adds_one = type(module).__name__.startswith(("Gemma", "Qwen3_5", "Qwen3Next"))
            in_double = gemma_norm_in_fp64 if adds_one else norm_in_fp64
            module.forward = in_double.__get__(module)
        elif type(module).__name__.endswith("RMSNormGated"):
            module.forward = gated_norm_in_fp64.__get__(module)
        elif type(module).__name__.startswith("Cohere2LayerNorm"):
            module.forward = layer_norm_in_fp64.__get__(module)
    double.zero_grad()
    return double


def mean_loss(model, ids, targets) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and the mean cross entropy over the trained tokens."""
    logits = model(input_ids=ids, use_cache=False).logits
    return logits, golden_io.summed_loss(logits, targets) / golden_io.trained_tokens(targets)


def check_version_4(model, folder: pathlib.Path, ids, logits) -> None:
    """transformers reads config_v4.json as the same model."""
    fields = json.loads((folder / "config_v4.json").read_text())
    config = tiny_models.config_of(fields.pop("model_type"), fields)
    chosen = tiny_models.implementation_of(config)
    twin = AutoModelForCausalLM.from_config(config, **chosen, dtype=torch.float32).eval()
    twin.load_state_dict(model.state_dict())
    assert torch.equal(twin(input_ids=ids).logits, logits)


def make(name: str, root: pathlib.Path) -> str:
    """Writes root/name; returns a line on how far fp32 and bf16 are from fp64."""
    model = tiny_models.build(name)
    ids, labels = batch(name)
    targets = golden_io.shifted(labels)

    logits, loss = mean_loss(model, ids, targets)
    loss.backward()
    assert torch.allclose(loss, model(input_ids=ids, labels=labels).loss, rtol=1e-6)
    grads = golden_io.gradients(model)

    double = in_fp64(model)
    with mock.patch.object(torch.nn.functional, "softmax", softmax_in_its_type), rules_in_fp64():
        logits_fp64, loss_fp64 = mean_loss(double, ids, targets)
    loss_fp64.backward()
    exact = golden_io.gradients(double)
    noise = max(golden_io.relative_error(grads[key], exact[key]) for key in grads)
    assert noise < DOUBLE_NOISE, noise

    folder = root / name
    tiny_models.save(model, folder / "model")
    with torch.no_grad():
        logits_bf16, _ = mean_loss(tiny_models.load(folder / "model", torch.bfloat16), ids, targets)
        loss_bf16 = golden_io.summed_loss(logits_bf16.float(), targets) / golden_io.trained_tokens(targets)
    check_version_4(model, folder / "model", ids, logits)
    golden_io.write(folder / "golden.safetensors", {
        "ids": ids, "labels": labels, "targets": targets, "logits": logits, "loss": loss.reshape(1),
        "loss_fp64": loss_fp64.reshape(1), "loss_bf16": loss_bf16.reshape(1), **grads,
    })
    return (f"{name}: {model.num_parameters()} parameters, loss {float(loss.detach()):.6f}, from fp64: logits "
            f"{golden_io.relative_error(logits, logits_fp64):.1e}, worst gradient {noise:.1e}; bf16 loss off by "
            f"{abs(float(loss_bf16) / float(loss_fp64.detach()) - 1):.1e}")
