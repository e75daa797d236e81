"""Makes tests/goldens/nf4: what bitsandbytes stores for given weights, on a CPU with one thread.

Not needed to build or test. From the repository root, in a virtual environment with requirements.txt:
    python scripts/oracles/make_nf4_goldens.py
blocks.safetensors holds single tensors with every edge, absmax.safetensors double quantisation; double/ and plain/
are folders that transformers quantised, in bf16, while loading tests/goldens/MODEL/model, and saved, and
tests/goldens/stored_double and stored_plain what it computes from those folders.
"""

import pathlib
import shutil
import sys

import bitsandbytes.functional as bnb
import torch
import transformers
from bitsandbytes.nn import Linear4bit
from safetensors.torch import save_file

import cases
import golden_io

ROOT = pathlib.Path("tests/goldens/nf4")
BLOCK = 64
FOLDERS = {"double": ("grouped_tied", True), "plain": ("rope_linear", False)}  # name: model, double quantisation
MEAN_SIZES = (1, 2, 7, 8, 9, 31, 32, 33, 64, 100, 257, 1000, 2303, 5184, 32767, 32768, 65536, 100003, 262144)


def noise(count: int, seed: int) -> torch.Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(seed))


def ties() -> torch.Tensor:
    """fp32 blocks whose scaled elements are the thresholds, and the numbers just below and above them."""
    code = bnb.get_4bit_type("nf4", device="cpu")
    middle = (code[:-1] + code[1:]) / 2
    around = torch.cat([middle, torch.nextafter(middle, torch.tensor(-2.0)), torch.nextafter(middle, torch.tensor(2.0))])
    block = torch.cat([around, torch.tensor([1.0]), torch.zeros(BLOCK - len(around) - 1)])
    return torch.cat([block, 0.5 * block, block * 3.0, block * -1.7])


def edges(dtype: torch.dtype) -> torch.Tensor:
    """Blocks of zeros, of one value, of the smallest and the largest numbers of the type, and ordinary ones."""
    finite = torch.finfo(dtype)
    blocks = [noise(BLOCK * 8, 7) * 0.02, torch.zeros(BLOCK), torch.full((BLOCK,), -0.75)]
    blocks.append(noise(BLOCK, 8).sign() * finite.smallest_normal * torch.arange(BLOCK) / 4)
    blocks.append(noise(BLOCK, 9).clamp(-1, 1) * finite.max)
    blocks.append(torch.cat([torch.tensor([-0.0, 1e-4]), torch.zeros(BLOCK - 2)]))
    blocks.append(noise(BLOCK * 3, 10))
    return torch.cat([block.double() for block in blocks]).to(dtype)


def sources() -> dict:
    found = {"ties": ties(), "float32": edges(torch.float32), "bfloat16": edges(torch.bfloat16), "float16": edges(torch.float16)}
    for count in (1, 2, 17, 63, 65, 230):
        found[f"partial_{count}"] = noise(count, 20 + count)
        found[f"partial_bf16_{count}"] = noise(count, 40 + count).bfloat16()
    found["partial_zeros"] = torch.zeros(BLOCK + 11)
    found["partial_ties"] = torch.cat([ties(), ties()[: BLOCK - 1] * 1.3])
    found["not_finite"] = torch.cat([noise(BLOCK * 2, 11), torch.tensor([1.0, float("nan")]), noise(BLOCK, 12)])
    found["not_finite"][5] = float("inf")
    found["not_finite"][BLOCK + 5] = float("nan")
    return found


def make_blocks() -> dict:
    made = {}
    for name, source in sources().items():
        codes, state = bnb.quantize_4bit(source, blocksize=BLOCK, quant_type="nf4")
        made |= {f"{name}.source": source, f"{name}.codes": codes.flatten(), f"{name}.absmax": state.absmax}
        if name in ("float32", "bfloat16", "partial_17"):
            for dtype in (torch.float32, torch.bfloat16, torch.float16):
                state.dtype = dtype
                values = bnb.dequantize_4bit(codes, state).flatten()
                made[f"{name}.values.{str(dtype).removeprefix('torch.')}"] = values
    return made


def spread(count: int) -> torch.Tensor:
    """Numbers that a test can make again exactly: multiples of 2^-24 in [0.0625, 0.125)."""
    mixed = (torch.arange(count, dtype=torch.int64) * 2654435761) & 0xFFFFFFFF
    return (1 + (mixed >> 8).float() * 2.0**-24) * 0.0625


def make_absmax() -> dict:
    """absmax arrays, their mean as torch computes it, and both 8-bit forms."""
    made = {"mean.sizes": torch.tensor(MEAN_SIZES, dtype=torch.int32)}
    made["mean.values"] = torch.stack([spread(count).mean() for count in MEAN_SIZES])
    arrays = {"few": spread(5), "one": torch.tensor([0.03]), "equal": torch.full((300,), 0.25), "many": noise(1000, 3).abs() + 0.01}
    arrays["wide"] = noise(700, 4).abs() * 10.0 ** (noise(700, 5) * 2)
    for name, absmax in arrays.items():
        offset = absmax.mean()
        codes, state = bnb.quantize_blockwise(absmax - offset, blocksize=256)
        made |= {f"{name}.absmax": absmax, f"{name}.offset": offset.reshape(1), f"{name}.codes": codes}
        made |= {f"{name}.nested_absmax": state.absmax, f"{name}.values": bnb.dequantize_blockwise(codes, state) + offset}
    made["map"] = state.code
    return made


def make_folder(name: str) -> None:
    model, double_quant = FOLDERS[name]
    config = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4",
                                             bnb_4bit_use_double_quant=double_quant, bnb_4bit_compute_dtype=torch.bfloat16)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(
        ROOT.parent / model / "model", dtype=torch.bfloat16, quantization_config=config, device_map="cpu")
    loaded.save_pretrained(ROOT / name)


def make_logits(name: str) -> None:
    """Logits and loss of the saved folder, all arithmetic and the decoded weights in fp32."""
    loaded = transformers.AutoModelForCausalLM.from_pretrained(ROOT / name, dtype=torch.float32, device_map="cpu",
                                                               attn_implementation="eager")
    linears = [module for module in loaded.train().modules() if isinstance(module, Linear4bit)]
    assert linears, f"{name} has no quantised linears"
    for parameter in loaded.parameters():
        if parameter.dtype == torch.bfloat16:
            parameter.data = parameter.data.float()
    for linear in linears:
        linear.compute_dtype = linear.weight.quant_state.dtype = torch.float32
    ids, labels = cases.batch(FOLDERS[name][0])
    targets = golden_io.shifted(labels)
    logits, loss = cases.mean_loss(loaded, ids, targets)
    golden_io.write(ROOT.parent / f"stored_{name}" / "golden.safetensors", {
        "ids": ids, "labels": labels, "targets": targets, "logits": logits, "loss": loss.reshape(1)})


def main() -> None:
    if not pathlib.Path("tests/goldens").is_dir():
        sys.exit("run this from the repository root")
    torch.set_num_threads(1)
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir()
    save_file({name: tensor.contiguous() for name, tensor in make_blocks().items()}, ROOT / "blocks.safetensors")
    save_file({name: tensor.contiguous() for name, tensor in make_absmax().items()}, ROOT / "absmax.safetensors")
    transformers.utils.logging.disable_progress_bar()
    for name in FOLDERS:
        make_folder(name)
        make_logits(name)
    print(sum(path.stat().st_size for path in ROOT.rglob("*") if path.is_file()), "bytes")


if __name__ == "__main__":
    main()
