#!/usr/bin/env python3
"""Writes one small file for each set of data_sets_first, _second and _third into a folder, in the set's own form.

    make_data_sets.py FOLDER [NAME...]

JSON, JSON Lines, CSV, text and Parquet as pandas, as Hugging Face datasets and as plain Arrow write it; gzip and Zstandard
by the file's ending. The same files come out each time.
"""

import csv
import gzip
import io
import json
import pathlib
import sys

import pyarrow
import pyarrow.parquet

import data_sets_third  # noqa: F401  Registers its sets, and those of data_sets_second.
from data_sets_first import SETS


def text_of(form, records):
    if form == "json":
        return json.dumps(records, ensure_ascii=False, indent=2)
    if form == "json-object":
        return json.dumps(records[0], ensure_ascii=True, indent=4)
    if form == "txt":
        return "<|endoftext|>\n".join(record["text"] + "\n" for record in records)
    if form.startswith("csv") or form == "tsv":
        out = io.StringIO(newline="")
        delimiter = {"csv-excel": ";", "tsv": "\t"}.get(form, ",")
        writer = csv.DictWriter(out, records[0].keys(), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(records)
        return ("\ufeff" if form == "csv-excel" else "") + out.getvalue()
    if form == "jsonl-notepad":
        return "\ufeff" + "\r\n\r\n".join(json.dumps(record) for record in records) + "\r\n"
    return "".join(json.dumps(record, ensure_ascii=record is records[0]) + "\n" for record in records)


def feature(kind):
    """A column's type in the notes that Hugging Face datasets leaves in a file."""
    if pyarrow.types.is_list(kind):
        return {"feature": feature(kind.value_type), "_type": "List"}
    if pyarrow.types.is_struct(kind):
        return {kind.field(n).name: feature(kind.field(n).type) for n in range(kind.num_fields)}
    return {"dtype": str(kind).replace("double", "float64"), "_type": "Value"}


def large(kind):
    """The type with long texts and lists, as polars writes them."""
    if kind == pyarrow.string():
        return pyarrow.large_string()
    if pyarrow.types.is_list(kind):
        return pyarrow.large_list(large(kind.value_type))
    if pyarrow.types.is_struct(kind):
        return pyarrow.struct([kind.field(n).with_type(large(kind.field(n).type)) for n in range(kind.num_fields)])
    return kind


def write_parquet(path, form, records):
    table = pyarrow.Table.from_pylist(records)
    if form == "parquet-large":
        table = table.cast(pyarrow.schema([field.with_type(large(field.type)) for field in table.schema]))
        table = table.set_column(1, "kind", table["kind"].dictionary_encode()).set_column(2, "score", table["score"].cast(pyarrow.decimal128(9, 3)))
    if form.startswith("parquet-pandas"):
        if form.endswith("index"):  # What is left of an index after rows were filtered.
            table = table.append_column("__index_level_0__", pyarrow.array([3 * n for n in range(len(records))]))
        longer = [field.with_type(pyarrow.large_string()) if field.type == pyarrow.string() else field for field in table.schema]
        notes = {"index_columns": ["__index_level_0__"] if form.endswith("index") else [], "columns": [], "pandas_version": "2.2.0"}
        table = table.cast(pyarrow.schema(longer)).replace_schema_metadata({"pandas": json.dumps(notes)})
    elif form == "parquet-datasets":
        notes = {"info": {"features": {field.name: feature(field.type) for field in table.schema}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(notes)})
    pyarrow.parquet.write_table(table, path, compression="zstd" if form == "parquet-zstd" else "snappy", row_group_size=17)


def write(folder, entry):
    path = pathlib.Path(folder) / entry["name"] / entry["file"]
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [record for record, _ in entry["records"]()]
    if entry["form"].startswith("parquet"):
        write_parquet(path, entry["form"], records)
        return path
    data = text_of(entry["form"], records).encode("utf-16" if entry["form"] == "csv-utf16" else "utf-8")
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    elif path.suffix == ".zst":
        sink = pyarrow.BufferOutputStream()
        with pyarrow.CompressedOutputStream(sink, "zstd") as out:
            out.write(data)
        data = sink.getvalue().to_pybytes()
    path.write_bytes(data)
    return path


def main():
    for name in sys.argv[2:] or SETS:
        print(write(sys.argv[1], SETS[name]))


if __name__ == "__main__":
    main()
