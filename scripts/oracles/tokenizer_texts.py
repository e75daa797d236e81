"""Strings on which tokenizers are compared: all made here, from a seed, or read from the shared data."""

import json
import random
import unicodedata

POOL = list("abcdefghijklmnopqrstuvwxyz" * 2 + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" + "          \n\n\t.,;:!?'\"-_/\\()[]{}<>|@#$%^&*+=~`")
MIXED = POOL + list(
    "\u00e9\u00df\u0130\u0131\u017f\u212a\u01c5\u00bd\u00b2\u00b9\u2460\u2167\u0661\u0967\u0301\u0327\u0308\u0345\u05b0\u0e31\u0e33\u093f\u094d"
    "\u1100\u1161\u11a8\uac00\ud55c\u4e2d\u6587\u3001\u3002\u3042\u30ab\u30fc\uff21\uff11\uff76\uff9e\ufb01\ufb03\u1e9e\u03a3\u03c2\u03c3\u0394"
    "\u0416\u0436\u05d0\u0645\u0646\u0928\u0e01\u200b\u200c\u200d\u200e\u2028\u2029\u00a0\u1680\u180e\u2003\u202f\u205f\u3000\u0085\u00ad\ufeff"
    "\ufffd\ue000\u2581\u0120\u010a\u0000\u0001\u001f\u007f\u0300\u20ac\u00a9\u2122\u2019\u2014\u2026\U0001f600\U0001f44d\U0001f3fd\U0001f1e9"
    "\U0001f1ea\u2764\ufe0f\U0001f468\U0001f469\U0001d54f\U00020000\U000e0041\U0010ffff"
)
WORDS = ["hello", "world", " the", " and", "don't", "I'M", "we'LL", "naive", "12345", "3.14", "fooBarBaz", "snake_case", "http://a.b/c?d=e",
         "<s>", "</s>", "<unk>", "<pad>", "[MASK]", "<|endoftext|>", "  ", "\r\n", "\n\n\n", " " * 17, "##ing", "e\u0301a\u0308", "\ufb01ne"]


def random_string(rng, most=40):
    pool = rng.choice([POOL, MIXED, MIXED])
    parts = []
    for _ in range(rng.randrange(1, most)):
        roll = rng.random()
        if roll < 0.15:
            parts.append(rng.choice(WORDS))
        elif roll < 0.2:
            parts.append(" " * rng.randrange(1, 9))
        else:
            parts.append(rng.choice(pool))
    return "".join(parts)


def block_strings():
    """Every assigned code point but surrogates, 24 of a block of 256 at a time, bare and between letters and spaces."""
    for first in range(0, 0x110000, 256):
        points = [c for c in range(first, first + 256)
                  if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) not in ("Cn", "Co")]
        for i in range(0, len(points), 24):
            characters = [chr(c) for c in points[i:i + 24]]
            yield "".join(characters)
            yield "a".join(characters[:12]) + " " + " ".join(characters[12:])


def special_strings():
    for count in list(range(1, 70)) + [100, 127, 128, 129, 255, 256, 1000]:
        yield " " * count
        yield "x" + " " * count + "y" + "\n" * (count % 9) + "\t" * (count % 5)
        yield "ab" * count
    for c in list(range(0x20)) + list(range(0x7F, 0xA1)) + [0x200B, 0x200C, 0x200D, 0x2028, 0x2029, 0xFEFF, 0xFFFD]:
        yield f"a{chr(c)}b {chr(c)} c{chr(c)}{chr(c)}"
    people = ["\U0001f468", "\U0001f469", "\U0001f467", "\U0001f44d", "\u2764\ufe0f", "\U0001f1e9\U0001f1ea", "\U0001f3fb"]
    for a in people:
        for b in people:
            yield f"{a}\u200d{b} {a}{b}\U0001f3fd {a} {b}"


def strings_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_of(item)


def shared_strings(data, count, seed=1):
    """`count` strings of the shared data, the same for a seed: whole texts, lines and stretches of them."""
    found = []
    for path in sorted((data / "text").iterdir()) + sorted((data / "instruct").rglob("*.json*")):
        raw = path.read_text(encoding="utf-8")
        if path.suffix == ".jsonl":
            documents = [json.loads(line) for line in raw.splitlines() if line.strip()]
        elif path.suffix == ".json":
            documents = json.loads(raw)
        else:
            documents = raw.split("\n")
        texts = [text for text in strings_of(documents) if text]
        random.Random(seed).shuffle(texts)
        found += [text[:2000] for text in texts[:3000]]
    random.Random(seed).shuffle(found)
    return found[:count]


def all_strings(data, count):
    """At least `count` strings, from everything above."""
    rng = random.Random(7)
    texts = list(block_strings()) + list(special_strings())
    texts += [random_string(rng) for _ in range(count // 4)]
    return texts + shared_strings(data, max(0, count - len(texts)))
