"""Logits, loss and every weight gradient of tiny encoder-decoders, of rows that hold several of their documents, and twenty
steps of all weights and of LoRA."""

import copy
import json
import pathlib

import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, PreTrainedModel, get_cosine_schedule_with_warmup

import golden_io
import lora
import tiny_models

ROWS, LENGTH, ENCODER_LENGTH = 2, 33, 37
NEW_TOKENS = 12  # that are generated
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
        everything = torch.ones_like(encoder_ids)  # generate hides tokens that are padding's otherwise
        greedy = model.generate(input_ids=encoder_ids, attention_mask=everything, max_new_tokens=NEW_TOKENS, do_sample=False,
                                use_cache=False)  # whose cache has as many layers as the encoder
    golden_io.write(folder / "golden.safetensors", {
        "encoder_ids": encoder_ids, "ids": decoder_input(model, labels), "targets": labels, "logits": logits,
        "loss": loss.reshape(1), "greedy": greedy[:, 1:], **grads,
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


STEPS, WARMUP, CURVE_LENGTH, CURVE_ENCODER_LENGTH = 20, 5, 13, 17
WEIGHT_DECAY = 0.1
CURVE_NOISE = 1e-4  # how far fp32 may be from fp64 over the curve
ADAPTER = dict(r=2, lora_alpha=4, target_modules=["q", "v"])  # PEFT's own choice for T5
ADAPTER_FOLDER = "curve_adapter_t5"
# Model, whether an adapter trains, learning rate, and a norm in the middle of those that occur.
CURVES = {
    "curve_t5_full": ("t5", False, 1e-2, 0.9),
    "curve_t5_gated_full": ("t5_gated", False, 5e-3, 2.0),
    "curve_t5_lora": ("t5", True, 5e-2, 0.49),
}


def curve_batches(model_name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """What the encoder reads and labels, (steps, rows, length): counting modulo a small number, the answer after the prompt."""
    vocab = MODELS[model_name].fields["vocab_size"]
    generator = torch.Generator().manual_seed(8100)
    start = torch.randint(0, 11, (STEPS, ROWS, 1), generator=generator)
    stride = torch.randint(1, 3, (STEPS, ROWS, 1), generator=generator)
    counts = (start + stride * torch.arange(CURVE_ENCODER_LENGTH + CURVE_LENGTH)) % 11 + 2
    noisy = torch.rand(counts.shape, generator=generator) < 0.05
    counts = torch.where(noisy, torch.randint(0, vocab, counts.shape, generator=generator), counts)
    prefix = torch.randint(0, CURVE_LENGTH - 4, (STEPS, ROWS, 1), generator=generator)
    labels = counts[..., CURVE_ENCODER_LENGTH:].masked_fill(torch.arange(CURVE_LENGTH) < prefix, golden_io.IGNORED)
    return counts[..., :CURVE_ENCODER_LENGTH], labels


def train(model, name: str) -> dict:
    model_name, _, learning_rate, max_grad_norm = CURVES[name]
    encoder_ids, labels = curve_batches(model_name)
    trained = {key: weight for key, weight in model.named_parameters() if weight.requires_grad}
    plain = [weight for key, weight in trained.items() if "layer_norm" in key]
    decayed = [weight for key, weight in trained.items() if "layer_norm" not in key]
    groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], lr=learning_rate)
    schedule = get_cosine_schedule_with_warmup(optimizer, WARMUP, STEPS)
    found = {"loss": [], "grad_norm": [], "learning_rate": []}
    for step in range(STEPS):
        _, loss = summed_loss(model, encoder_ids[step], labels[step])
        loss = loss / golden_io.trained_tokens(labels[step])
        loss.backward()
        found["loss"].append(float(loss.detach()))
        found["learning_rate"].append(optimizer.param_groups[0]["lr"])
        found["grad_norm"].append(float(torch.nn.utils.clip_grad_norm_(trained.values(), max_grad_norm)))
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return {key: torch.tensor(values, dtype=torch.float64) for key, values in found.items()}


def trainee(name: str):
    model_name, is_adapted, *_ = CURVES[name]
    model = build(model_name)
    return lora.attach(model, model_name, ADAPTER, 8200, random_b=False, task_type="SEQ_2_SEQ_LM") if is_adapted else model


def make_adapter(root: pathlib.Path) -> str:
    lora.save(trainee("curve_t5_lora"), root / ADAPTER_FOLDER)
    return f"{ADAPTER_FOLDER}: saved"


def curve_settings(name: str) -> dict:
    model_name, is_adapted, learning_rate, max_grad_norm = CURVES[name]
    adapter = {"adapter": f"tests/goldens/{ADAPTER_FOLDER}", "lora_r": ADAPTER["r"], "lora_alpha": ADAPTER["lora_alpha"]}
    return {
        "model": f"tests/goldens/{model_name}/model", "method": "lora" if is_adapted else "full", "max_steps": STEPS,
        "warmup_steps": WARMUP, "lr_scheduler_type": "cosine", "max_length": CURVE_ENCODER_LENGTH,
        "max_target_length": CURVE_LENGTH, "per_device_train_batch_size": ROWS, "gradient_accumulation_steps": 1,
        "learning_rate": learning_rate, "weight_decay": WEIGHT_DECAY, "max_grad_norm": max_grad_norm,
        **(adapter if is_adapted else {}),
    }


def make_curve(name: str, root: pathlib.Path) -> str:
    model = trainee(name)
    encoder_ids, labels = curve_batches(CURVES[name][0])
    double = copy.deepcopy(model).double()
    ids = torch.stack([decoder_input(build(CURVES[name][0]), step) for step in labels])
    found, exact = train(model, name), train(double, name)
    noise = max(float((found[key] / exact[key] - 1).abs().nan_to_num().max()) for key in found)
    clipped = int((found["grad_norm"] > CURVES[name][3]).sum())
    line = (f"{name}: loss {found['loss'][0]:.4f} to {found['loss'][-1]:.4f}, clipped {clipped} of {STEPS}, norms "
            f"{found['grad_norm'].median():.2f} in the middle, from fp64 {noise:.1e}")
    assert noise < CURVE_NOISE, line
    assert 0 < clipped < STEPS, line
    golden_io.write(root / name / "golden.safetensors", {
        "encoder_ids": encoder_ids, "ids": ids, "targets": labels, **found})
    (root / name / "settings.json").write_text(json.dumps(curve_settings(name), indent=2) + "\n")
    return line
