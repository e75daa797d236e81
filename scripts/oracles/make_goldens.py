"""Makes tests/goldens: what transformers, PEFT and PyTorch compute for tiny random models.

Not needed to build or test. From the repository root, in a virtual environment with requirements.txt:
    python scripts/oracles/make_goldens.py [NAME ...]
makes all of them, or those named.
Files it does not write itself (the README) are left alone.
"""

import functools
import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path("tests/goldens")
LIMIT_BYTES = 7000000

# PEFT saves target modules in the order of a set of strings; the same seed gives the same file.
if os.environ.get("PYTHONHASHSEED") != "0":
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0", "HF_HUB_OFFLINE": "1"})

import torch  # noqa: E402  (after the hash seed is fixed)
import transformers  # noqa: E402

import adapter_forms  # noqa: E402
import balance  # noqa: E402
import best_models  # noqa: E402
import cases  # noqa: E402
import codet5p  # noqa: E402
import curves  # noqa: E402
import drift  # noqa: E402
import encoder_decoder  # noqa: E402
import grpo  # noqa: E402
import kto  # noqa: E402
import lora  # noqa: E402
import mxfp4  # noqa: E402
import orpo  # noqa: E402
import packing  # noqa: E402
import preference  # noqa: E402
import prompts  # noqa: E402
import qlora  # noqa: E402
import reward_prompts  # noqa: E402
import sampling  # noqa: E402
import schedules  # noqa: E402
import shards  # noqa: E402
import simpo  # noqa: E402
import tiny_models  # noqa: E402


def makers() -> dict:
    """Name to the function that makes it, in order."""
    found = {name: functools.partial(cases.make, name) for name in tiny_models.MODELS}
    found |= {f"balanced_{name}": functools.partial(balance.make, name) for name in balance.LENGTHS}
    found["packing"] = packing.make
    found |= {name: functools.partial(encoder_decoder.make, name) for name in encoder_decoder.MODELS}
    found[codet5p.NAME] = codet5p.make
    found[codet5p.ADAPTER] = codet5p.make_adapter
    found["t5_packing"] = encoder_decoder.make_packing
    found[encoder_decoder.ADAPTER_FOLDER] = encoder_decoder.make_adapter
    found |= {name: functools.partial(encoder_decoder.make_curve, name) for name in encoder_decoder.CURVES}
    found |= {name: functools.partial(lora.make, name) for name in lora.ADAPTERS}
    found[adapter_forms.NAME] = adapter_forms.make
    found |= {name: functools.partial(prompts.make, name) for name in prompts.ADAPTERS}
    found |= {folder: functools.partial(curves.make_adapter, folder) for folder in curves.adapters()}
    found |= {name: functools.partial(curves.make, name) for name in curves.CURVES}
    found |= {name: functools.partial(qlora.make, name) for name in qlora.STORED}
    found["curve_qlora"] = qlora.make_curve
    found |= {name: functools.partial(shards.make, name) for name in shards.STORED}
    found["dpo"] = preference.make_loss
    found["dpo_full"] = functools.partial(preference.make_loss, name="dpo_full", full_model="gpt2")
    found["dpo_losses.json"] = preference.make_losses
    found["mxfp4"] = mxfp4.make
    found["orpo"] = orpo.make_loss
    found["orpo_full"] = functools.partial(orpo.make_loss, name="orpo_full", full_model="phi")
    found["simpo"] = simpo.make_loss
    found["preference_data"] = preference.make_data
    found["kto"] = functools.partial(kto.make_loss, "kto", 5003)
    found["kto_clamped"] = functools.partial(kto.make_loss, "kto_clamped", 5006)
    found["label_data"] = kto.make_data
    found["grpo"] = grpo.make_loss
    found["grpo_rewards.json"] = grpo.make_rewards
    found["reward_prompts.json"] = reward_prompts.make_prompts
    found["sampling"] = sampling.make
    found["schedules"] = schedules.make
    found["best_models"] = best_models.make
    found["drift"] = drift.make
    return found


def main() -> None:
    if not ROOT.parent.is_dir():
        sys.exit("run this from the repository root")
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    torch.use_deterministic_algorithms(True)
    ROOT.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or list(makers())
    for name, make in makers().items():
        if name not in wanted:
            continue
        shutil.rmtree(ROOT / name, ignore_errors=True)
        print(make(ROOT), flush=True)
    size = sum(path.stat().st_size for path in ROOT.rglob("*") if path.is_file())
    print(f"{size} bytes in all")
    assert size <= LIMIT_BYTES


if __name__ == "__main__":
    main()
