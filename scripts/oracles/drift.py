"""How far one model is from another on the same tokens, in fp64 of the logits that transformers and PEFT compute in fp32."""

import json
import pathlib

import torch
import torch.nn.functional as functional
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

import golden_io
import tiny_models

GOLDENS = pathlib.Path("tests/goldens")
NAME = "drift"
LENGTHS = (17, 2, 29)
ENCODER_LENGTH = 11
# Name: the model that was trained, its adapter, and the folder that is compared with it.
PAIRS = {
    "merged": ("gpt2", "lora_gpt2", None),  # by PEFT, and rounded to bf16 then
    "rounded": ("rope_linear", None, "sharded_bf16"),
    "base alone": ("grouped_tied", "lora_all_linear", "grouped_tied"),
    "t5": ("t5", None, None),
}
VOCABULARY = 88  # sharded_bf16 has other values for the one beyond it


def load(folder: pathlib.Path, is_encoder_decoder: bool):
    kind = AutoModelForSeq2SeqLM if is_encoder_decoder else AutoModelForCausalLM
    return kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def trained_model(model: str, adapter: str | None, is_encoder_decoder: bool):
    found = load(GOLDENS / model / "model", is_encoder_decoder)
    return PeftModel.from_pretrained(found, GOLDENS / adapter / "adapter").eval() if adapter else found


def save_rounded(pair: str, root: pathlib.Path) -> pathlib.Path:
    """What was trained, merged and rounded to bf16."""
    model, adapter, _ = PAIRS[pair]
    merged = trained_model(model, adapter, pair == "t5")
    if adapter:
        merged = merged.merge_and_unload()
    folder = root / NAME / pair / "model"
    merged.to(torch.bfloat16).save_pretrained(folder)
    return folder


def documents(pair: str, vocab: int) -> list[dict]:
    found = []
    for number, length in enumerate(LENGTHS):
        ids = golden_io.random_ids((length,), vocab, 9100 + number).tolist()
        encoder_ids = golden_io.random_ids((ENCODER_LENGTH + number,), vocab, 9200 + number).tolist()
        found.append({"ids": ids, "encoder_ids": encoder_ids if pair == "t5" else []})
    return found


def logits_of(model, document: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """(predictions, vocab), and what follows each."""
    ids = torch.tensor(document["ids"])
    with torch.no_grad():
        if document["encoder_ids"]:
            read = torch.cat([torch.tensor([model.config.decoder_start_token_id]), ids[:-1]])
            out = model(input_ids=torch.tensor([document["encoder_ids"]]), decoder_input_ids=read[None])
            return out.logits[0], ids
        return model(input_ids=ids[None]).logits[0, :-1], ids[1:]


def figures(trained, other, texts: list[dict]) -> dict:
    kls, differences, equal = [], [], []
    for document in texts:
        one, after = logits_of(trained, document)
        two, _ = logits_of(other, document)
        p, q = one.double().log_softmax(-1), two.double().log_softmax(-1)
        kls.append(functional.kl_div(q, p, log_target=True, reduction="none").sum(-1))
        differences.append((p - q).gather(1, after[:, None])[:, 0].abs())
        equal.append((one.argmax(-1) == two.argmax(-1)).double())
    kl, difference = torch.cat(kls), torch.cat(differences)
    return {"tokens": len(kl), "mean_kl": kl.mean().item(), "most_kl": kl.max().item(),
            "mean_difference": difference.mean().item(), "most_difference": difference.max().item(),
            "equal_greedy": torch.cat(equal).mean().item()}


def make(root: pathlib.Path) -> str:
    (root / NAME).mkdir()
    cases = []
    for pair, (model, adapter, folder) in PAIRS.items():
        other = root / folder / "model" if folder else save_rounded(pair, root)
        trained = trained_model(model, adapter, pair == "t5")
        texts = documents(pair, min(VOCABULARY, trained.config.vocab_size))
        cases.append({"pair": pair, "model": f"{model}/model", "adapter": f"{adapter}/adapter" if adapter else "",
                      "other": str(other.relative_to(root)), "documents": texts,
                      **figures(trained, load(other, pair == "t5"), texts)})
    (root / NAME / "drift.json").write_text(json.dumps(cases, indent=1) + "\n")
    return f"{NAME}: " + ", ".join(f"{case['pair']} {case['mean_kl']:.2e}" for case in cases)
