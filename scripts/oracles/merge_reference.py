"""What PyTorch makes of a case of merge_cases.py: logits of the base with its adapter, and the weights of PEFT's merge."""

import json
import pathlib
import warnings

import bitsandbytes.functional
import torch
from peft import PeftModel

import check_quantised
import merge_cases


def adapter_for_peft(case: merge_cases.Case, folder: pathlib.Path) -> pathlib.Path:
    """The adapter under the names that PEFT wrote: it does not load what wrappers have renamed."""
    if case.form in merge_cases.adapter_forms.RENAMED:
        of = merge_cases.adapter_forms.RENAMED[case.form][0]
        return merge_cases.GOLDENS / merge_cases.adapter_forms.NAME / of
    plain = folder / "adapter_of_peft"
    return plain if plain.exists() else folder / "adapter"


def trained_base(case: merge_cases.Case, folder: pathlib.Path, is_untied: bool = False):
    """The fp32 model on which the adapter was trained, its values in 4 bits decoded."""
    is_nf4 = (folder / "base_nf4").exists()
    model = merge_cases.load(folder / "base")
    if is_nf4:
        set_nf4_values(model, folder / "base_nf4")
    if is_untied:
        untie(model)
    return merge_cases.resized(model, case.added)


def set_nf4_values(model, folder: pathlib.Path) -> None:
    """The values of the folder's linears in 4 bits by their formula: bitsandbytes 0.50 on a CPU decodes rows wrongly that end within a block."""
    stored = check_quantised.tensors_of(folder)
    for name, module in model.named_modules():
        parts = {key.removeprefix(f"{name}.weight."): value for key, value in stored.items() if key.startswith(f"{name}.weight.")}
        if not parts:
            continue
        state = bitsandbytes.functional.QuantState.from_dict(parts, torch.device("cpu"))
        state.dtype = torch.float32
        module.weight.data = check_quantised.by_formula(stored, f"{name}.weight", state)


def untie(model) -> None:
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    if head is not None and head.weight is embedding.weight:
        head.weight = torch.nn.Parameter(embedding.weight.detach().clone())
    model.config.get_text_config().tie_word_embeddings = False
    model.config.tie_word_embeddings = False


def with_adapter(base, adapter: pathlib.Path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        adapted = PeftModel.from_pretrained(base, str(adapter), local_files_only=True).eval()
    missing = [str(one.message) for one in caught if "missing adapter keys" in str(one.message)]
    assert not missing, missing
    return adapted


def texts(folder: pathlib.Path) -> list:
    return [json.loads(line) for line in (folder / "data.jsonl").read_text().splitlines()]


def logits(model, documents: list) -> torch.Tensor:
    """(predictions, vocabulary) in the model's type: all that is predicted from a token before it, of decoders with an encoder the first token too."""
    rows = []
    with torch.no_grad():
        for document in documents:
            ids = torch.tensor([document["input_ids"]])
            if "labels" in document:
                rows.append(model(input_ids=ids, labels=torch.tensor([document["labels"]])).logits[0])
            else:
                rows.append(model(input_ids=ids, use_cache=False).logits[0, :-1])
    return torch.cat(rows)


def followers(documents: list) -> torch.Tensor:
    return torch.tensor([token for document in documents for token in (document["labels"] if "labels" in document else document["input_ids"][1:])])


def drift(trained: torch.Tensor, merged: torch.Tensor, following: torch.Tensor) -> dict:
    """The figures that `snug merge` prints, in fp64."""
    p, q = torch.log_softmax(trained.double(), -1), torch.log_softmax(merged.double(), -1)
    kl = (p.exp() * (p - q)).sum(-1)
    difference = (p - q).gather(1, following[:, None])[:, 0].abs()
    return {"mean_kl": float(kl.mean()), "most_kl": float(kl.max()), "mean_difference": float(difference.mean()), "most_difference": float(difference.max()),
            "equal_greedy": float((p.argmax(-1) == q.argmax(-1)).double().mean()), "tokens": len(kl)}


def merge_base(case: merge_cases.Case, folder: pathlib.Path, is_untied: bool):
    """What the adapter is merged into: the values of NF4, or the model in 16 bits."""
    if "merge_into=nf4" in case.merge:
        return trained_base(case, folder, is_untied)
    model = merge_cases.load(folder / "base")
    if is_untied:
        untie(model)
    return merge_cases.resized(model, case.added)


def in_double(model: torch.nn.Module) -> torch.nn.Module:
    """Also of a model that was in 4 bits, whose own method refuses."""
    return torch.nn.Module.double(model)


def merged_by_peft(case: merge_cases.Case, folder: pathlib.Path, documents: list) -> torch.nn.Module:
    """PEFT's merge in fp64, or None where it says something else than its own adapter: where a head is the embedding PEFT merges into both."""
    adapter = adapter_for_peft(case, folder)
    expected = logits(in_double(with_adapter(in_double(merge_base(case, folder, False)), adapter)), documents)
    for is_untied in (False, True):
        try:
            merged = in_double(with_adapter(in_double(merge_base(case, folder, is_untied)), adapter)).merge_and_unload()
        except (AssertionError, RuntimeError, ValueError):
            continue
        found = logits(merged, documents)
        if float((found - expected).norm() / expected.norm()) < 1e-6:
            return merged
    return None
