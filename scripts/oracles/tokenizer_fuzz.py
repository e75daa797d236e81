"""tokenizer.json files of random components: every one that the tokenizers library has, with random settings."""

import string

import regex_patterns

ALPHABET = list(string.ascii_letters[:36] + string.digits + " .,'-_!?\u2581\u00e9\u00df\u0130\u0301\u4e2d\u3042\uac00\u0416\u00bd\u0661\ufb01\U0001f600\n")
REGEXES = [
    r"\s+", r"\w+", r"\W", r"[^\w\s]", r"[^\w\s]+", r"\d{1,3}", r"\p{N}{1,2}", r"\p{L}+", r"[\p{Lu}\p{Lt}]", r"\p{Han}+", r"\p{Han}|\p{Hiragana}",
    r"(?=[A-Z])", r"x*", r"a|", r"\b", r"(?i:'s|'t|'re)", r"(?i:ß)", r"(?i:ss)", r"[a-c]+", r"[^a-c]", r"^a", r"b$", r"\s+(?!\S)|\s+", r"(?<=a)b",
    r" ?[^\s\p{L}\p{N}]+", r"[\r\n]+", r".", r"\S", r"\D+", r"\h", r"\p{^L}", r"\P{L}", r"(ab|cd)+", r"\p{M}", r"\p{P}", r"\p{S}+", r"[\w]", r"[^\w]",
    r"\p{Latin}", r"\p{Common}", r"\p{Greek}|\p{Cyrillic}", r"e{,2}", r"e{2,}", r"\n|\t", r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+",
]
LITERALS = [" ", "a", "ab", ".", "\u2581", "", "e\u0301", "\n", "  ", "'", "\u00e9", "**"]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
BYTE_CHARACTERS = [chr(c) for c in list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256)) + list(range(256, 324))]


def pattern(rng):
    if rng.random() < 0.2:
        return {"Regex": regex_patterns.random_class(rng)}
    return {"Regex": rng.choice(REGEXES)} if rng.random() < 0.6 else {"String": rng.choice(LITERALS)}


def flag(rng):
    return rng.random() < 0.5


def metaspace(rng):
    return {"type": "Metaspace", "replacement": rng.choice("\u2581\u2581\u2581_"), "prepend_scheme": rng.choice(["always", "first", "first", "never"]),
            "split": flag(rng)}


def byte_level(rng):
    return {"type": "ByteLevel", "add_prefix_space": flag(rng), "trim_offsets": flag(rng), "use_regex": flag(rng)}


def normalizer(rng, charsmap):
    kind = rng.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Prepend", "Replace", "Replace", "ByteLevel", "Nmt",
                       "BertNormalizer", "Precompiled"])
    if kind == "Strip":
        return {"type": kind, "strip_left": flag(rng), "strip_right": flag(rng)}
    if kind == "Prepend":
        return {"type": kind, "prepend": rng.choice(["\u2581", " ", "a", "xy", "\u4e2d"])}
    if kind == "Replace":
        return {"type": kind, "pattern": pattern(rng), "content": rng.choice(["", " ", "\u2581", "a", "zz", "\u00e9"])}
    if kind == "BertNormalizer":
        return {"type": kind, "clean_text": flag(rng), "handle_chinese_chars": flag(rng), "strip_accents": rng.choice([None, True, False]),
                "lowercase": flag(rng)}
    if kind == "Precompiled":
        return {"type": kind, "precompiled_charsmap": charsmap}
    return {"type": kind}


def pre_tokenizer(rng):
    kind = rng.choice(["BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Metaspace", "Metaspace", "Whitespace", "WhitespaceSplit", "Split",
                       "Split", "Split", "Punctuation", "Digits", "UnicodeScripts", "FixedLength"])
    if kind == "ByteLevel":
        return byte_level(rng)
    if kind == "CharDelimiterSplit":
        return {"type": kind, "delimiter": rng.choice(" ae\u00e9\u2581")}
    if kind == "Metaspace":
        return metaspace(rng)
    if kind == "Split":
        return {"type": kind, "pattern": pattern(rng), "behavior": rng.choice(BEHAVIORS), "invert": flag(rng)}
    if kind == "Punctuation":
        return {"type": kind, "behavior": rng.choice(BEHAVIORS)}
    if kind == "Digits":
        return {"type": kind, "individual_digits": flag(rng)}
    if kind == "FixedLength":
        return {"type": kind, "length": rng.randrange(1, 6)}
    return {"type": kind}


def decoder(rng):
    kind = rng.choice(["BPEDecoder", "ByteLevel", "WordPiece", "Metaspace", "CTC", "Fuse", "Strip", "Replace", "ByteFallback"])
    if kind == "BPEDecoder":
        return {"type": kind, "suffix": rng.choice(["</w>", "b"])}
    if kind == "ByteLevel":
        return byte_level(rng)
    if kind == "WordPiece":
        return {"type": kind, "prefix": rng.choice(["##", "a"]), "cleanup": flag(rng)}
    if kind == "Metaspace":
        return metaspace(rng)
    if kind == "CTC":
        return {"type": kind, "pad_token": "<pad>", "word_delimiter_token": rng.choice("|a"), "cleanup": flag(rng)}
    if kind == "Strip":
        return {"type": kind, "content": rng.choice(" a\u2581"), "start": rng.randrange(3), "stop": rng.randrange(3)}
    if kind == "Replace":
        return {"type": kind, "pattern": pattern(rng), "content": rng.choice(["", " ", "zz"])}
    return {"type": kind}


def post_processor(rng):
    kind = rng.choice(["TemplateProcessing", "TemplateProcessing", "ByteLevel", "BertProcessing", "RobertaProcessing"])
    if kind == "ByteLevel":
        return byte_level(rng)
    if kind != "TemplateProcessing":
        result = {"type": kind, "sep": ["b", rng.randrange(9)], "cls": ["a", rng.randrange(9)]}
        return result if kind == "BertProcessing" else {**result, "trim_offsets": flag(rng), "add_prefix_space": flag(rng)}
    names = ["<a>", "<b>"]
    piece = lambda: {"SpecialToken": {"id": rng.choice(names), "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    single = [piece() for _ in range(rng.randrange(3))] + [text] + [piece() for _ in range(rng.randrange(3))]
    return {"type": kind, "single": single, "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {n: {"id": n, "ids": [i, i + 1][:1 + i % 2], "tokens": [n, n][:1 + i % 2]} for i, n in enumerate(names)}}


def chain(rng, make, key, most=3):
    steps = [make() for _ in range(rng.choice([0, 1, 1, 2, most]))]
    if not steps:
        return None
    return steps[0] if len(steps) == 1 and flag(rng) else {"type": "Sequence", key: steps}


def grown(rng, alphabet, count, join):
    """Tokens made of earlier ones, and the pairs they were made of."""
    tokens, pairs = list(dict.fromkeys(alphabet)), []
    known = set(tokens)
    for _ in range(count):
        left, right = rng.choice(tokens), rng.choice(tokens)
        token = join(left, right)
        if token not in known and len(token) <= 6:
            known.add(token)
            tokens.append(token)
            pairs.append([left, right])
    return tokens, pairs


def bpe(rng):
    alphabet = BYTE_CHARACTERS if flag(rng) else rng.sample(ALPHABET, len(ALPHABET) - rng.randrange(12))
    prefix = "##" if rng.random() < 0.15 else None
    suffix = "</w>" if rng.random() < 0.1 else None
    extra = [f"<0x{b:02X}>" for b in range(256)] if rng.random() < 0.3 else []
    extra = extra[:rng.choice([255, 256, 256])]
    more = [prefix + c for c in alphabet] if prefix else []
    more += [c + suffix for c in alphabet] if suffix else []
    skip = lambda token: token[len(prefix):] if prefix and token.startswith(prefix) else token
    tokens, pairs = grown(rng, alphabet + more, rng.randrange(200), lambda a, b: a + skip(b))
    if prefix:
        pairs = [[a, b] for a, b in pairs if b.startswith(prefix)]
    tokens = list(dict.fromkeys(["<unk>"] + tokens + extra))
    return {"type": "BPE", "dropout": None, "unk_token": rng.choice([None, "<unk>"]), "continuing_subword_prefix": prefix,
            "end_of_word_suffix": suffix, "fuse_unk": flag(rng), "byte_fallback": bool(extra) and flag(rng), "ignore_merges": rng.random() < 0.2,
            "vocab": {t: i for i, t in enumerate(tokens)}, "merges": pairs}


def unigram(rng):
    alphabet = rng.sample(ALPHABET, len(ALPHABET) - rng.randrange(20))
    tokens, _ = grown(rng, alphabet, rng.randrange(300), lambda a, b: a + b)
    if flag(rng):
        tokens += [f"<0x{b:02X}>" for b in range(rng.choice([256, 200]))]
    tokens = list(dict.fromkeys(["<pad>", "<unk>"] + tokens))
    scores = [rng.choice([0.0, -1.0, -2.0, -rng.random() * 12]) for _ in tokens]
    return {"type": "Unigram", "unk_id": rng.choice([1, 1, 1, 0, None]), "vocab": [[t, s] for t, s in zip(tokens, scores)],
            "byte_fallback": flag(rng)}


def word_piece(rng):
    alphabet = rng.sample(ALPHABET, len(ALPHABET) - rng.randrange(20))
    tokens, _ = grown(rng, alphabet, rng.randrange(300), lambda a, b: a + b)
    prefix = rng.choice(["##", "##", "", "a"])
    tokens = list(dict.fromkeys(["[UNK]"] + tokens + [prefix + t for t in tokens if flag(rng)]))
    return {"type": "WordPiece", "unk_token": rng.choice(["[UNK]", "[UNK]", "none"]), "continuing_subword_prefix": prefix,
            "max_input_chars_per_word": rng.choice([100, 5]), "vocab": {t: i for i, t in enumerate(tokens)}}


def word_level(rng):
    tokens, _ = grown(rng, ALPHABET, rng.randrange(300), lambda a, b: a + b)
    tokens = ["<unk>"] + tokens
    return {"type": "WordLevel", "vocab": {t: i for i, t in enumerate(tokens)}, "unk_token": rng.choice(["<unk>", "<unk>", "none"])}


def added_tokens(rng, size):
    contents = ["<s>", "</s>", "<pad>", "<|endoftext|>", "[MASK]", "ab", "AB", "  ", " a", "a ", "\u00e9", "e\u0301", "the", "<S>", "\n", "x"]
    chosen = rng.sample(contents, rng.choice([0, 1, 2, 4, 6]))
    return [{"id": size + i, "content": content, "single_word": rng.random() < 0.2, "lstrip": rng.random() < 0.3, "rstrip": rng.random() < 0.3,
             "normalized": flag(rng), "special": flag(rng)} for i, content in enumerate(chosen)]


def random_document(rng, charsmap):
    model = rng.choice([bpe, bpe, unigram, word_piece, word_level])(rng)
    vocab = model["vocab"]
    known = set(vocab) if isinstance(vocab, dict) else {t for t, _ in vocab}
    added = [t for t in added_tokens(rng, len(vocab)) if t["content"] not in known]
    for i, token in enumerate(added):
        token["id"] = len(vocab) + i
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": chain(rng, lambda: normalizer(rng, charsmap), "normalizers"),
            "pre_tokenizer": chain(rng, lambda: pre_tokenizer(rng), "pretokenizers"),
            "post_processor": chain(rng, lambda: post_processor(rng), "processors", 2),
            "decoder": chain(rng, lambda: decoder(rng), "decoders"), "model": model}
