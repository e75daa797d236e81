#!/usr/bin/env python3
"""Writes tests/goldens/gguf/*.gguf with PyPI's gguf: every type of value and of array, and tensors of several types. The tests read them, and
hold what Snug writes against the same bytes.

    python scripts/oracles/make_gguf_values.py

It ends with what gguf reads in the files, which must be what was written.
"""

import pathlib

import gguf
import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/goldens/gguf"
T = gguf.GGUFValueType

# Widened by Snug's reader: not written by its writer.
NARROW = [
    ("narrow.u8", 200, T.UINT8, None),
    ("narrow.i8", -100, T.INT8, None),
    ("narrow.u16", 60000, T.UINT16, None),
    ("narrow.i16", -30000, T.INT16, None),
    ("narrow.bytes", b"\x00\x7f\xff", T.ARRAY, None),
    ("narrow.i8s", [-1, 2], T.ARRAY, T.INT8),
    ("narrow.u16s", [1, 65535], T.ARRAY, T.UINT16),
    ("narrow.i16s", [-2, 3], T.ARRAY, T.INT16),
]
WIDE = [
    ("one.u32", 4000000000, T.UINT32, None),
    ("one.i32", -2000000000, T.INT32, None),
    ("one.u64", 2**63 + 5, T.UINT64, None),
    ("one.i64", -(2**62), T.INT64, None),
    ("one.f32", 1e-05, T.FLOAT32, None),
    ("one.f64", 0.1, T.FLOAT64, None),
    ("one.true", True, T.BOOL, None),
    ("one.false", False, T.BOOL, None),
    ("one.text", "grün 🙂", T.STRING, None),
    ("one.empty", "", T.STRING, None),
    ("many.u32", [1, 4000000000], T.ARRAY, T.UINT32),
    ("many.i32", [-1, 2], T.ARRAY, T.INT32),
    ("many.u64", [2**63], T.ARRAY, T.UINT64),
    ("many.i64", [-(2**62)], T.ARRAY, T.INT64),
    ("many.f32", [0.5, -1e30], T.ARRAY, T.FLOAT32),
    ("many.f64", [0.1], T.ARRAY, T.FLOAT64),
    ("many.bool", [True, False, True], T.ARRAY, T.BOOL),
    ("many.text", ["a", "", "Ġthe"], T.ARRAY, T.STRING),
    ("tokens.damaged", [b"\xff\xfe", b"ok"], T.ARRAY, T.STRING),
]


def write(name, pairs, alignment=None):
    path = FOLDER / name
    writer = gguf.GGUFWriter(path, "llama")
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, value, kind, element in pairs:
        writer.add_key_value(key, value, kind, element)
    count = np.arange(6, dtype=np.float32).reshape(2, 3)
    writer.add_tensor("a.matrix", count)
    writer.add_tensor("b.half", (count / 4).astype(np.float16))
    rows = np.linspace(-3, 3, 2 * 64, dtype=np.float32).reshape(2, 64)
    writer.add_tensor("c.blocks", gguf.quants.quantize(rows, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("d.vector", np.ones(5, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    reader = gguf.GGUFReader(path)
    print(name, path.stat().st_size, [(t.name, t.tensor_type.name, t.shape.tolist()) for t in reader.tensors])
    for key, value, _, _ in pairs:
        if key == "tokens.damaged":
            continue  # gguf itself cannot show it
        read = reader.get_field(key).contents()
        assert np.array_equal(read, list(value) if isinstance(value, bytes) else value) or np.allclose(read, value, rtol=1e-7), (key, read)


FOLDER.mkdir(exist_ok=True)
write("values.gguf", WIDE)
write("narrow.gguf", NARROW, alignment=128)
