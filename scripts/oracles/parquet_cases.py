"""Tables of random values in the shapes that data sets have, and the ways in which a Parquet file can keep them."""

import itertools
import random

import pyarrow as pa

WORDS = ["the", "a", "dog", "ünïcode", "漢字", '"quote"', "back\\slash", "line\nbreak", "tab\t", "emoji😀", "long"]


class Values:
    """Random values; one in seven is null."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self, words=8):
        return " ".join(self.random.choice(WORDS) for _ in range(self.random.randint(0, words)))

    def integer(self, bits, signed=True):
        low = -(2 ** (bits - 1)) if signed else 0
        return self.random.randint(low, low + 2**bits - 1)

    def maybe(self, make):
        return None if self.random.random() < 1 / 7 else make()

    def some(self, make, most=3):
        return [make() for _ in range(self.random.randint(0, most))]


def column(values, rows, make, type_):
    return pa.array([make() for _ in range(rows)], type_)


def flat(values, rows):
    """Every type of a value that is read."""
    maybe = values.maybe
    real = lambda: values.random.choice([values.random.gauss(0, 1e9), float("nan"), float("inf"), 0.1])
    return {
        "prompt": column(values, rows, values.text, pa.string()),
        "completion": column(values, rows, lambda: maybe(values.text), pa.string()),
        "i8": column(values, rows, lambda: maybe(lambda: values.integer(8)), pa.int8()),
        "i32": column(values, rows, lambda: maybe(lambda: values.integer(32)), pa.int32()),
        "i64": column(values, rows, lambda: maybe(lambda: values.integer(64)), pa.int64()),
        "u32": column(values, rows, lambda: values.integer(32, False), pa.uint32()),
        "u64": column(values, rows, lambda: values.integer(64, False), pa.uint64()),
        "f32": column(values, rows, lambda: maybe(lambda: values.random.gauss(0, 1)), pa.float32()),
        "f64": column(values, rows, lambda: maybe(real), pa.float64()),
        "flag": column(values, rows, lambda: maybe(lambda: values.random.random() < 0.5), pa.bool_()),
        "large": column(values, rows, lambda: maybe(values.text), pa.large_string()),
        "nothing": pa.array([None] * rows, pa.string()),
    }


def chat(values, rows):
    """Conversations, as data sets on the hub keep them."""
    message = lambda: {
        "role": values.random.choice(["user", "assistant"]),
        "content": values.maybe(values.text),
        "weight": values.maybe(lambda: values.random.randint(0, 1)),
    }
    type_ = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string()), ("weight", pa.int64())]))
    return {
        "messages": column(values, rows, lambda: values.maybe(lambda: values.some(message, 4)), type_),
        "id": pa.array(list(range(rows))),
    }


def deep(values, rows):
    """Lists of lists of objects with lists, and maps."""
    maybe, some = values.maybe, values.some
    inner = lambda: {
        "a": maybe(lambda: some(lambda: maybe(lambda: values.random.randint(0, 9)))),
        "s": maybe(lambda: {"x": maybe(values.text), "y": maybe(lambda: some(lambda: maybe(values.text)))}),
    }
    object_ = pa.struct(
        [("a", pa.list_(pa.int32())), ("s", pa.struct([("x", pa.string()), ("y", pa.list_(pa.string()))]))]
    )
    lists = pa.list_(pa.list_(object_))
    pairs = lambda: [(f"k{i}", maybe(lambda: [1, 2, 3])) for i in range(values.random.randint(0, 3))]
    return {
        "lists": column(
            values, rows, lambda: maybe(lambda: some(lambda: maybe(lambda: some(lambda: maybe(inner))))), lists
        ),
        "map": column(values, rows, lambda: maybe(pairs), pa.map_(pa.string(), pa.list_(pa.int64()))),
    }


def tokens(values, rows):
    ids = lambda: [values.random.randint(0, 50000) for _ in range(values.random.randint(1, 200))]
    return {
        "input_ids": column(values, rows, ids, pa.list_(pa.int32())),
        "labels": column(
            values, rows, lambda: values.maybe(lambda: values.some(lambda: -100)), pa.large_list(pa.int64())
        ),
    }


def alike(values, rows):
    """Few values that come again and again, so that runs are long."""
    return {
        "text": column(values, rows, lambda: values.random.choice(["one", "two", "three", None]), pa.string()),
        "category": column(values, rows, lambda: values.random.choice(["one", "two"]), pa.string()).dictionary_encode(),
        "same": pa.array(["x"] * rows),
    }


TABLES = {make.__name__: make for make in (flat, chat, deep, tokens, alike)}
CODECS = ["none", "snappy", "gzip", "zstd"]
PAGES = ["1.0", "2.0"]
ENCODINGS = ["plain", "dictionary", "delta"]


def encoding_of(values, name, leaf):
    """What pyarrow is told of a column that is not to have a dictionary."""
    choices = {
        "INT32": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
        "INT64": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
        "BYTE_ARRAY": ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"],
        "FLOAT": ["BYTE_STREAM_SPLIT"],
        "DOUBLE": ["BYTE_STREAM_SPLIT"],
        "BOOLEAN": ["RLE"],
    }
    return values.random.choice(choices[leaf])


def cases(seeds):
    """Each table in each way: (name, table, how pyarrow writes it)."""
    for seed, kind, codec, pages, encoding in itertools.product(range(seeds), TABLES, CODECS, PAGES, ENCODINGS):
        values = Values(f"{seed} {kind} {codec} {pages} {encoding}")
        rows = values.random.choice([0, 1, 7, 300, 2000])
        table = pa.table(TABLES[kind](values, min(rows, 300) if kind == "deep" else rows))
        how = {
            "compression": codec,
            "data_page_version": pages,
            "data_page_size": values.random.choice([100, 2000, 1 << 20]),
            "row_group_size": values.random.choice([50, 1000, 100000]),
            "use_dictionary": encoding == "dictionary",
        }
        yield f"{kind}-{codec}-{pages}-{encoding}-{seed}", table, how, values if encoding == "delta" else None
