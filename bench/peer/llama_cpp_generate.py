"""Greedy generation with llama.cpp's Python package in a process of its own: tokens per second after the prompt.

Turns a Llama folder of materials.py into a GGUF file without a vocabulary first: linears and head in bf16, or in Q4_0,
whose 4.5 bits per weight are the nearest to NF4's that its package can write. Rows of q and k are put into the order that
its rope takes.
"""

import json
import pathlib
import struct
import sys
import time

import gguf
import llama_cpp
import numpy
from processes import high_water_mark

NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
LAYER_NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
               "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
               "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}


def tensors_of(path: pathlib.Path):
    """Yields a name and a (rows, columns) or (columns) array of bf16's bits."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            file.seek(8 + size + begin)
            yield name, numpy.frombuffer(file.read(end - begin), numpy.uint16).reshape(entry["shape"])


def gguf_name(name: str) -> str:
    stem = name.removesuffix(".weight")
    if stem in NAMES:
        return NAMES[stem] + ".weight"
    layer, part = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{LAYER_NAMES[part]}.weight"


def rope_order(bits: numpy.ndarray, head_dim: int) -> numpy.ndarray:
    """Halves of a head side by side become pairs."""
    rows, columns = bits.shape
    return bits.reshape(rows // head_dim, 2, head_dim // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_gguf(model: pathlib.Path, file: pathlib.Path, shape: dict, kind: str) -> None:
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_context_length(shape["max_position_embeddings"])
    writer.add_embedding_length(shape["hidden_size"])
    writer.add_block_count(shape["num_hidden_layers"])
    writer.add_feed_forward_length(shape["intermediate_size"])
    writer.add_head_count(shape["num_attention_heads"])
    writer.add_head_count_kv(shape["num_key_value_heads"])
    writer.add_rope_dimension_count(shape["head_dim"])
    writer.add_rope_freq_base(shape["rope_theta"])
    writer.add_layer_norm_rms_eps(shape["rms_norm_eps"])
    writer.add_vocab_size(shape["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    for name, bits in tensors_of(model / "model.safetensors"):
        values = (bits.astype(numpy.uint32) << 16).view(numpy.float32)
        if bits.ndim == 1:
            writer.add_tensor(gguf_name(name), values)
            continue
        if "q_proj" in name or "k_proj" in name:
            bits = rope_order(bits, shape["head_dim"])
            values = (bits.astype(numpy.uint32) << 16).view(numpy.float32)
        if kind == "bf16":
            writer.add_tensor(gguf_name(name), numpy.ascontiguousarray(bits).view(numpy.uint8),
                              raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q4_0),
                              raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def decode(context, batch, ids: list[int], position: int) -> None:
    """Runs `ids` at `position`, with logits of the last."""
    batch.n_tokens = len(ids)
    for i, token in enumerate(ids):
        batch.token[i] = token
        batch.pos[i] = position + i
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = 0
        batch.logits[i] = i + 1 == len(ids)
    if llama_cpp.llama_decode(context, batch) != 0:
        raise RuntimeError("llama_decode failed")


def generate(job: dict) -> dict:
    llama_cpp.llama_backend_init()
    parameters = llama_cpp.llama_model_default_params()
    parameters.use_extra_bufts = job["repack"]
    model = llama_cpp.llama_model_load_from_file(job["file"].encode(), parameters)
    if not model:
        raise RuntimeError("llama.cpp does not load the file")
    options = llama_cpp.llama_context_default_params()
    options.n_ctx = len(job["ids"]) + job["new_tokens"]
    options.n_threads = options.n_threads_batch = job["threads"]
    context = llama_cpp.llama_init_from_model(model, options)
    batch = llama_cpp.llama_batch_init(len(job["ids"]), 0, 1)
    vocabulary = job["shape"]["vocab_size"]

    def best() -> int:
        logits = numpy.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), shape=(vocabulary,))
        return int(logits.argmax())

    start = time.perf_counter()
    decode(context, batch, job["ids"], 0)
    new = [best()]
    middle = time.perf_counter()
    while len(new) < job["new_tokens"]:
        decode(context, batch, new[-1:], len(job["ids"]) + len(new) - 1)
        new.append(best())
    return {"tokens_per_second": (len(new) - 1) / (time.perf_counter() - middle), "prefill_seconds": middle - start,
            "ids": new}


def main(job: dict) -> dict:
    file = pathlib.Path(job["file"])
    if not file.exists():
        # The peak is that of generating: the file is made in another process.
        import subprocess
        subprocess.run([sys.executable, __file__, json.dumps(job | {"write": True})], check=True,
                       stdout=subprocess.DEVNULL)
    return generate(job) | {"peak_bytes": high_water_mark()}


if __name__ == "__main__":
    task = json.loads(sys.argv[1])
    if task.get("write"):
        write_gguf(pathlib.Path(task["model"]), pathlib.Path(task["file"]), task["shape"], task["kind"])
    else:
        print(json.dumps(main(task)))
