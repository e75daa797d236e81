"""Logits, loss and every weight gradient of tiny encoder-decoders, and of rows that hold several of their documents."""

import copy
import json
import pathlib

import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, PreTrainedModel

import golden_io
import tiny_models

ROWS, LENGTH, ENCODER_LENGTH = 2, 33, 37
UNTRAINED_PREFIX = 3  # the first labels of row 0 carry no loss
# transformers computes T5's norms and softmax in fp32 even on a model in fp64.
DOUBLE_NOISE = 1e-5
COMMON = dict(d_model=10, d_kv=3, num_heads=3, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)

MODELS = {
    "t5": tiny_models.Spec(
        "an encoder of one layer, a decoder of two, relu without a gate, the head tied and scaled, 8 buckets (T5 1.0)",
        801,
        dict(vocab_size=29, d_ff=14, num_layers=1, num_decoder_layers=2, relative_attention_num_buckets=8,
             relative_attention_max_distance=20, **COMMON),
        "t5",
    ),
    "t5_gated": tiny_models.Spec(
        "an encoder of two layers, a decoder of one, gated gelu_tanh, a head of its own, 12 buckets (T5 1.1, FLAN-T5, T0)",
        802,
        dict(vocab_size=31, d_ff=12, num_layers=2, num_decoder_layers=1, feed_forward_proj="gated-gelu",
             relative_attention_num_buckets=12, relative_attention_max_distance=17, tie_word_embeddings=False, **COMMON),
        "t5",
    ),
    "mt5": tiny_models.Spec(
        "one layer each, gated, a head of its own, 32 buckets as published (mT5, mT0)",
        803,
        dict(vocab_size=37, d_ff=11, num_layers=1, num_decoder_layers=1, **COMMON),
        "mt5",
    ),
}

PACKED_MODEL = "t5"
# Of each row's documents the tokens of the encoder's and of the decoder's part; both rows leave tails.
PACKED_ROWS = (((9, 5), (20, 17), (3, 8)), ((1, 12), (30, 1)))


def has_own_head(name: str) -> bool:
    return name != "t5"


def build(name: str) -> PreTrainedModel:
    """The fp32 model with random weights in evaluation mode. transformers ties every head; here some are not."""
    spec = MODELS[name]
    config = AutoConfig.for_model(spec.model_type, **spec.fields)
    model = AutoModelForSeq2SeqLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    if has_own_head(name):
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    generator = torch.Generator().manual_seed(spec.seed)
    with torch.no_grad():
        for key, weight in sorted(model.named_parameters()):
            noise = torch.randn(weight.shape, generator=generator)
            if "layer_norm" in key:
                weight.copy_(1.0 + 0.25 * noise)
            elif "relative_attention_bias" in key or key.startswith(("shared", "lm_head")):
                weight.copy_(0.6 * noise)
            else:
                weight.copy_(0.2 * noise)
    return model.eval()


def as_version_4(name: str, config: dict) -> dict:
    """The same config as most published folders have it."""
    old = {key: value for key, value in config.items() if key not in ("scale_decoder_outputs", "dtype")}
    old |= {"torch_dtype": config["dtype"], "transformers_version": "4.46.0"}
    old["tie_word_embeddings"] = not has_own_head(name)
    return dict(sorted(old.items()))


def save(name: str, model: PreTrainedModel, folder: pathlib.Path) -> None:
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config_v4.json").write_text(json.dumps(as_version_4(name, config), indent=2) + "\n")


def decoder_input(model: PreTrainedModel, labels: torch.Tensor) -> torch.Tensor:
    return model._shift_right(labels)


def summed_loss(model, encoder_ids, labels):
    """Logits, and the sum of cross entropies: the loss of a label is at its own index."""
    logits = model(input_ids=encoder_ids, labels=labels, use_cache=False).logits
    return logits, golden_io.summed_loss(logits, labels)


def batch(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """What the encoder reads, (ROWS, ENCODER_LENGTH), and labels, (ROWS, LENGTH)."""
    spec = MODELS[name]
    vocab = spec.fields["vocab_size"]
    encoder_ids = golden_io.random_ids((ROWS, ENCODER_LENGTH), vocab, spec.seed + 1000)
    labels = golden_io.random_ids((ROWS, LENGTH), vocab, spec.seed + 2000)
    labels[0, :UNTRAINED_PREFIX] = golden_io.IGNORED
    return encoder_ids, labels


def check_against_fp64(model, encoder_ids, labels, grads) -> float:
    double = copy.deepcopy(model).double()
    double.zero_grad()
    _, loss = summed_loss(double, encoder_ids, labels)
    (loss / golden_io.trained_tokens(labels)).backward()
    exact = golden_io.gradients(double)
    return max(golden_io.relative_error(grads[key], exact[key]) for key in grads)


def check_folder(model, folder: pathlib.Path, encoder_ids, labels, logits) -> None:
    """transformers reads the folder, and config_v4.json, as the same model."""
    twin = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager").eval()
    assert torch.equal(twin(input_ids=encoder_ids, labels=labels).logits, logits)
    fields = json.loads((folder / "config_v4.json").read_text())
    old = AutoConfig.for_model(fields.pop("model_type"), **fields)
    assert getattr(old, "scale_decoder_outputs", False) == getattr(model.config, "scale_decoder_outputs", False)


def make(name: str, root: pathlib.Path) -> str:
    model = build(name)
    encoder_ids, labels = batch(name)
    logits, loss = summed_loss(model, encoder_ids, labels)
    loss = loss / golden_io.trained_tokens(labels)
    loss.backward()
    assert torch.allclose(loss, model(input_ids=encoder_ids, labels=labels).loss, rtol=1e-6)
    grads = golden_io.gradients(model)
    noise = check_against_fp64(model, encoder_ids, labels, grads)
    assert noise < DOUBLE_NOISE, noise

    folder = root / name
    save(name, model, folder / "model")
    with torch.no_grad():
        check_folder(model, folder / "model", encoder_ids, labels, logits)
    golden_io.write(folder / "golden.safetensors", {
        "encoder_ids": encoder_ids, "ids": decoder_input(model, labels), "targets": labels, "logits": logits,
        "loss": loss.reshape(1), **grads,
    })
    return (f"{name}: {model.num_parameters()} parameters, loss {float(loss.detach()):.6f}, worst gradient {noise:.1e} "
            "from fp64")


def make_packing(root: pathlib.Path) -> str:
    """Documents of both streams, each computed alone; document i of a row is segment i of either stream."""
    model = build(PACKED_MODEL)
    vocab = model.config.vocab_size
    rows = len(PACKED_ROWS)
    encoder_ids = golden_io.random_ids((rows, ENCODER_LENGTH), vocab, 8001)
    labels = torch.full((rows, LENGTH), golden_io.IGNORED)
    ids = torch.zeros((rows, LENGTH), dtype=torch.int64)
    logits = torch.zeros((rows, LENGTH, vocab))
    answers = golden_io.random_ids((rows, LENGTH), vocab, 8002)
    documents = []  # (row, begin and length in the encoder's stream, begin and length in the decoder's)
    for row, parts in enumerate(PACKED_ROWS):
        encoder_begin = begin = 0
        for encoder_length, length in parts:
            documents.append((row, encoder_begin, encoder_length, begin, length))
            encoder_begin += encoder_length
            begin += length
    total = sum(document[-1] for document in documents)
    loss = torch.zeros(1)
    for row, encoder_begin, encoder_length, begin, length in documents:
        span = slice(begin, begin + length)
        labels[row, span] = answers[row, span]
        ids[row, span] = decoder_input(model, answers[row : row + 1, span])[0]
        source = encoder_ids[row : row + 1, encoder_begin : encoder_begin + encoder_length]
        alone, part = summed_loss(model, source, answers[row : row + 1, span])
        (part / total).backward()
        logits[row, span] = alone[0].detach()
        loss += part.detach() / total
    golden_io.write(root / "t5_packing" / "golden.safetensors", {
        "encoder_ids": encoder_ids, "ids": ids, "targets": labels, "logits": logits, "loss": loss,
        "documents": torch.tensor(documents), **golden_io.gradients(model),
    })
    return f"t5_packing: {len(documents)} documents, {total} trained tokens, loss {float(loss):.6f}"
