#!/usr/bin/env python3
"""Writes tests/text/goldens: what the Hugging Face `tokenizers` library makes of texts.

Not needed to build or to test. Run from the repository root, in an environment with
`pip install tokenizers==0.23.3`, with the shared data next to the repository:

    python scripts/make_tokenizer_goldens.py ../shared/data [NAME ...]

With names it writes those of NAME.json alone (for tiny/published.json, published). Training is not the same each time, so that the tiny tokenizers change with each run.
It writes
  texts.json      texts with Unicode edge cases, all made here
  tiny/*.json     small tokenizers trained on those texts, pipelines.json with variants, and published.json with the
                  pre-tokenizers of published models
  regexes.json    what regular expressions match
  NAME.json       for each tokenizer: ids and decoded text of each text (a hash where long), and
                  for each file of the shared data the number of ids and their hash

The hash of a list of numbers is FNV-1a over whole numbers: h = (h ^ number) * prime, 64 bits.
"""

import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

sys.path.insert(0, str(pathlib.Path(__file__).parent / "oracles"))
import regex_patterns
from tokenizer_texts import strings_of

GOLDENS = pathlib.Path("tests/text/goldens")
SHARED = {
    "llama2": "tokenizers/llama2",
    "llama3": "derived/llama3",
    "gpt2": "tokenizers/gpt2",
    "qwen2": "derived/qwen2",
    "phi-3-mini": "tokenizers/phi-3-mini",
    "phi-2": "tokenizers/phi-2",
    "falcon": "tokenizers/falcon",
    "t5-small": "tokenizers/t5-small",
    "torchtitan-test": "tokenizers/torchtitan-test",
    "torchtune-tiny": "tokenizers/torchtune-tiny",
    "tiny_bpe": "tokenizers/torchtune-tiny/tiny_bpe_tokenizer.json",
    "gemma_cropped": "tokenizers/torchtune-tiny/tokenizer_gemma_cropped.json",
}
FILES = [
    "text/botchan.txt",
    "text/c4_demo.jsonl",
    "text/tiny_shakespeare.txt",
    "text/wiki_demo.txt",
    "instruct/alpaca_5000.json",
    "instruct/alpaca_seed_tasks.jsonl",
    "instruct/dolly_hhrlhf_train_small.jsonl",
    "instruct/gsm8k/train.jsonl",
    "instruct/llamafactory/glaive_toolcall_en_demo.json",
    "instruct/torchtune/stack_exchange_paired_tiny.json",
]
# Files of which every string is encoded on its own, too.
STRINGS = ["instruct/alpaca_5000.json", "instruct/llamafactory/identity.json", "text/c4_demo.jsonl"]

HAND_MADE = [
    "Hello, world!",
    "",
    " ",
    "  ",
    "   leading and trailing   ",
    "a",
    "The quick brown fox jumps over the lazy dog.",
    "I'm you're he'll we've they'd it's don't I'M YOU'RE HE'LL WE'VE THEY'D IT'S",
    "don\u2019t \u2018quote\u2019 \u201cdouble\u201d \u2014 dash \u2026",
    "'\u017f long s after an apostrophe, 'S 's",
    "tabs\tand\t\tmore\t\t\ttabs\t\t\t\tend",
    "new\nlines\n\nand\r\nreturns\r\r\n\n\n  \n indented\n\tboth \n",
    "spaces  two   three    four     five" + " " * 20 + "twenty",
    "x" + " " * 40 + "y" + "\n" * 7 + "z",
    "1 12 123 1234 12345 1234567890 3.14159 1,000,000 0x1F 1e-9",
    "\u0661\u0662\u0663 \u2160\u2161 \u00bd \u00b2\u00b3 \u2462 \u0967\u0968",
    "caf\u00e9 cafe\u0301 na\u00efve \u00c5ngstr\u00f6m A\u030angstro\u0308m \ufb01ne \u1e9b\u0323",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01 \u3053\u3093\u306b\u3061\u306f \uc548\ub155\ud558\uc138\uc694 \u1112\u1161\u11ab",
    "\u041f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440 \u0393\u03b5\u03b9\u03ac \u03a3\u03b1\u03c2 \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd \u2764\ufe0f \u2728",
    "\U0001d54f \U00020000 \U0001f9ff \U0010ffff \ue000 \ufffd \ufeffbom",
    "\u0000\u0001\u0002\u001f\u007f\u0080\u0085\u00a0\u00ad\u200b\u200d\u2028\u2029\u202f\u205f\u3000\u180e.",
    "a\u00a0b\u2003c\u3000d\u1680e\u180ef\u200bg",
    "def f(x):\n    if x > 0:\n        return x ** 2  # square\n    return {'a': [1, 2], \"b\": None}\n",
    "<html><body class=\"x\">&amp;</body></html> //comment /* c */ $var #tag @user a_b-c",
    "!!!???...;;;::: (([[{{}}])) +-*/=%^&|~`<>",
    "http://example.org/path?q=1&r=2#frag user@example.org C:\\dir\\file.txt",
    "Antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abababababababababababababababababababababababababababababababab",
    "\u01c4X \u01c6x \u0130stanbul \u0131 I i \u1e9e \u00df \u03a3\u03c3\u03c2",
    "<s>bos</s>eos <unk> <pad>",
    "</s>",
    "a</s>",
    "a </s> b",
    " </s>  b",
    "<|endoftext|>",
    "one<|endoftext|>two <|endoftext|> three<|endoftext|><|endoftext|>\n<|endoftext|>  x",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n",
    "<|user|>\nQuestion?<|end|>\n<|assistant|>\n  Answer.<|end|>\n",
    "  <|user|>   \n\n x <|system|>\u00a0\u3000y<|placeholder1|>",
    "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|end_of_text|>",
    "<|reserved_special_token_1|><|reserved_special_token_10|><|reserved_special_token_100|>",
    "<|im_start<|im_start|>|> <|endoftext <|<|>|>",
    "<0x41> <0x0A> <0xFF> \u2581 \u2581\u2581x \u2581a b",
    ">>TITLE<<abc>>ABSTRACT<< x>>INTRODUCTION<<",
    "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello </s><s>[INST] Bye [/INST]",
    "<mask> the <mask>the<mask> word <word> xwordx word",
    "\u0120 \u010a \u0100 \u0143 literal letters of the byte alphabet",
    "mixed \u4e2d\u6587English123\u6570\u5b57\u00e9\u00e8\U0001f600abc\u0440\u0443\u0441",
    "ends with newline\n",
    "ends with space ",
    "\n",
    "\n\n",
    " \n ",
    "\t",
    "\r\n",
    "e\u0301\u0301\u0323\u0301 a\u0328\u030a \u1100\u1161\u11a8\u11a8 \uac00\u11a8",
]


def fnv(numbers):
    h = 0xCBF29CE484222325
    for n in numbers:
        h = ((h ^ n) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def random_texts(count):
    """Texts that no hand would write: characters of all kinds, drawn by a fixed generator."""
    pool = list("abcdefghij  \n\t'.,<>|/\\0123456789ABC_-") + [" ", " ", "\r\n", "'s", "'Re", "</s>"]
    pool += list("\u00e9\u00df\u0301\u0327\u0130\u4e2d\u3042\uac00\u1161\u0645\u0928\u094d\u200d\u00a0\u3000\u2581\u00b2\u2167\u0661\u2028")
    pool += ["\U0001f600", "\U0001f3fd", "<|endoftext|>", "<|end|>", "\u0000", "\ufffd", "\u0915\u094d\u0937"]
    state = 12345
    texts = []
    for _ in range(count):
        text = ""
        for _ in range(48):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            text += pool[(state >> 33) % len(pool)]
        texts.append(text)
    return texts


def tiny_tokenizers(texts):
    """A byte-level and a SentencePiece-style tokenizer with 400 tokens, as JSON documents."""
    byte_level = Tokenizer(models.BPE())
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_level.decoder = decoders.ByteLevel()
    byte_level.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=400,
            show_progress=False,
            special_tokens=["<|endoftext|>", "<s>", "</s>", "<mask>"],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        ),
    )
    piece = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    piece.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    piece.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    piece.train_from_iterator(
        [t for t in texts if t.isascii()],
        trainers.BpeTrainer(
            vocab_size=460, show_progress=False, limit_alphabet=60, special_tokens=["<unk>", "<s>", "</s>"] + bytes_
        ),
    )
    unigram = Tokenizer(models.Unigram())
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.train_from_iterator(
        texts, trainers.UnigramTrainer(vocab_size=300, show_progress=False, unk_token="<unk>", special_tokens=["<unk>"])
    )
    word_piece = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    word_piece.normalizer = normalizers.BertNormalizer()
    word_piece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    word_piece.decoder = decoders.WordPiece()
    word_piece.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=400, show_progress=False, special_tokens=["[UNK]", "[CLS]", "[SEP]"])
    )
    byte_document = json.loads(byte_level.to_str())
    piece_document = json.loads(piece.to_str())
    # Byte tokens belong to the vocabulary but are no added tokens.
    piece_document["added_tokens"] = [t for t in piece_document["added_tokens"] if not t["content"].startswith("<0x")]
    return {"byte_level": byte_document, "piece": piece_document, "unigram": json.loads(unigram.to_str()),
            "word_piece": json.loads(word_piece.to_str())}


def pipelines():
    """Variants of the tiny tokenizers: [name, base, keys of the document, keys of its model]."""
    meta = lambda scheme, split: {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split}
    split = lambda pattern, behavior, invert=False: {
        "type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
    byte = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    seq = lambda *steps: {"type": "Sequence", "pretokenizers": list(steps)}
    norm = lambda *steps: {"type": "Sequence", "normalizers": list(steps)}
    template = lambda single, tokens: {
        "type": "TemplateProcessing", "single": single, "pair": [],
        "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]} for t, i in tokens.items()}}
    special = lambda t: {"SpecialToken": {"id": t, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    token = lambda i, content, **flags: {
        **{"id": i, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
           "normalized": False, "special": False}, **flags}
    result = [["plain_byte_level", "byte_level", {}, {}], ["plain_piece", "piece", {}, {}]]
    for scheme in ("always", "first", "never"):
        for cut in (True, False):
            result.append([f"metaspace_{scheme}_{cut}", "piece",
                           {"normalizer": None, "pre_tokenizer": meta(scheme, cut),
                            "decoder": meta(scheme, cut)}, {}])
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        result.append([f"split_{behavior}", "byte_level",
                       {"pre_tokenizer": seq(split({"Regex": "\\s+|\\p{N}"}, behavior), byte)}, {}])
        result.append([f"invert_{behavior}", "byte_level",
                       {"pre_tokenizer": seq(split({"Regex": "\\w+"}, behavior, True), byte)}, {}])
        result.append([f"punctuation_{behavior}", "byte_level",
                       {"pre_tokenizer": seq({"type": "Punctuation", "behavior": behavior}, byte)}, {}])
    result += [
        ["split_string", "byte_level", {"pre_tokenizer": seq(split({"String": "."}, "MergedWithPrevious"), byte)}, {}],
        ["digits", "byte_level", {"pre_tokenizer": seq({"type": "Digits", "individual_digits": True}, byte)}, {}],
        ["digits_after_bytes", "byte_level", {"pre_tokenizer": seq(byte, {"type": "Digits", "individual_digits": False})}, {}],
        ["whitespace", "byte_level", {"pre_tokenizer": seq({"type": "Whitespace"}, byte)}, {}],
        ["whitespace_split", "byte_level", {"pre_tokenizer": seq({"type": "WhitespaceSplit"}, byte)}, {}],
        ["prefix_space", "byte_level", {"pre_tokenizer": {**byte, "add_prefix_space": True, "use_regex": True}}, {}],
        ["o200k", "byte_level", {"pre_tokenizer": seq(split({"Regex":
            "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
            "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
            "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}, "Isolated"), byte)}, {}],
        ["nfkc_lower_strip", "byte_level", {"normalizer": norm({"type": "NFKC"}, {"type": "Lowercase"},
            {"type": "Strip", "strip_left": True, "strip_right": False})}, {}],
        ["nfd", "byte_level", {"normalizer": {"type": "NFD"}}, {}],
        ["nfc", "byte_level", {"normalizer": {"type": "NFC"}}, {}],
        ["nfkd_strip", "byte_level", {"normalizer": norm({"type": "NFKD"},
            {"type": "Strip", "strip_left": True, "strip_right": True})}, {}],
        ["replace_regex", "byte_level", {"normalizer": {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "}}, {}],
        ["bytes_as_normalizer", "byte_level", {"normalizer": {"type": "ByteLevel"},
            "pre_tokenizer": split({"Regex": "[a-z]+"}, "Isolated")}, {}],
        ["template", "byte_level", {"post_processor": {"type": "Sequence", "processors": [
            {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
            template([special("<s>"), text, special("</s>"), special("</s>")], {"<s>": 1, "</s>": 2})]}}, {}],
        ["roberta", "byte_level", {"post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2],
            "cls": ["<s>", 1], "trim_offsets": True, "add_prefix_space": True}}, {}],
        ["flags", "byte_level", {"added_tokens": [
            token(0, "<|endoftext|>", special=True), token(1, "<s>", special=True, rstrip=True),
            token(2, "</s>", special=True, lstrip=True), token(3, "<mask>", lstrip=True, rstrip=True),
            token(400, "word", single_word=True), token(401, "<mask>the"), token(402, "  ", normalized=True),
            token(403, "\u01c4X", normalized=True), token(404, "is", single_word=True, rstrip=True)],
            "normalizer": {"type": "Lowercase"}}, {}],
        ["no_fallback_fused", "piece", {}, {"byte_fallback": False}],
        ["no_fallback", "piece", {}, {"byte_fallback": False, "fuse_unk": False}],
        ["no_unknown", "piece", {}, {"byte_fallback": False, "unk_token": None}],
        ["ignore_merges", "byte_level", {"pre_tokenizer": seq({"type": "WhitespaceSplit"}, byte)}, {"ignore_merges": True}],
        ["no_decoder", "byte_level", {"decoder": None}, {}],
    ]
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        result.append([f"nothing_{behavior}", "byte_level", {"pre_tokenizer": seq(split({"Regex": "(?=[A-Z])|x*"}, behavior), byte)}, {}])
        result.append([f"two_steps_{behavior}", "byte_level", {"pre_tokenizer": seq(
            {"type": "Punctuation", "behavior": behavior}, {"type": "WhitespaceSplit"}, split({"Regex": "[a-c]+"}, behavior, True), byte)}, {}])
    replace = lambda pattern, content: {"type": "Replace", "pattern": pattern, "content": content}
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    first = {"pre_tokenizer": seq(split({"Regex": "[^a-z]"}, "Isolated"), meta("first", False))}
    # What a text begins with, taken away, put before it, replaced and made of several characters.
    for name, steps in {"strip": [strip], "prepend": [{"type": "Prepend", "prepend": "x\u2581"}], "nfd": [{"type": "NFD"}],
                        "replace": [replace({"Regex": "^(a| )"}, "")], "nothing": [replace({"Regex": "x*"}, "y")],
                        "bert": [{"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}],
                        "all": [{"type": "Nmt"}, {"type": "StripAccents"}, strip, {"type": "Prepend", "prepend": "ab"}, {"type": "NFKC"}]}.items():
        result.append([f"first_after_{name}", "piece", {**first, "normalizer": norm(*steps)}, {}])
    result += [
        ["words_and_others", "byte_level", {"pre_tokenizer": seq(split({"Regex": "[^\\w\\s]|\\p{Han}+|\\p{Greek}"}, "Isolated"), byte)}, {}],
        ["characters", "piece", {"pre_tokenizer": seq({"type": "CharDelimiterSplit", "delimiter": "e"}, {"type": "FixedLength", "length": 4})}, {}],
        ["bert_words", "byte_level", {"normalizer": {"type": "StripAccents"}, "pre_tokenizer": seq({"type": "BertPreTokenizer"}, byte)}, {}],
        ["plain_unigram", "unigram", {"decoder": meta("always", True)}, {}],
        ["unigram_bytes", "unigram", {"pre_tokenizer": None}, {"byte_fallback": True}],
        ["unigram_cleaned", "unigram", {"normalizer": norm({"type": "Nmt"}, {"type": "NFKC"}, replace({"Regex": " {2,}"}, " "))}, {}],
        ["plain_word_piece", "word_piece", {}, {}],
        ["word_piece_cased", "word_piece", {"normalizer": {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": False,
            "strip_accents": False, "lowercase": False}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False}},
            {"max_input_chars_per_word": 8}],
        ["word_level", "word_piece", {"decoder": {"type": "CTC", "pad_token": "[UNK]", "word_delimiter_token": "e", "cleanup": True}},
            {"type": "WordLevel", "continuing_subword_prefix": None, "max_input_chars_per_word": None}],
        ["bpe_decoder", "byte_level", {"decoder": {"type": "BPEDecoder", "suffix": "e"}}, {}],
    ]
    return result


def decoding_twin(tokenizer):
    """The same tokenizer for decoding. Version 0.23.3 decodes special tokens that are declared as
    normalized in their normalized form and then does not know them as special; 0.19 and Snug do."""
    document = json.loads(tokenizer.to_str())
    for token in document["added_tokens"]:
        token["normalized"] = False
    return Tokenizer.from_str(json.dumps(document))


def golden_of(tokenizer, texts):
    cases = []
    twin = decoding_twin(tokenizer)
    for text in texts:
        ids = tokenizer.encode(text).ids
        case = {"count": len(ids)}
        if len(ids) <= 24:
            case["ids"] = ids
        else:
            case["hash"] = fnv(ids)
        for key, skip in (("decoded", True), ("decoded_all", False)):
            case[key] = fnv(twin.decode(ids, skip_special_tokens=skip).encode())
        cases.append(case)
    return cases


def file_goldens(tokenizer, data):
    files = []
    for name in FILES:
        ids = tokenizer.encode((data / name).read_bytes().decode()).ids
        files.append({"path": name, "count": len(ids), "hash": fnv(ids)})
    for name in STRINGS:
        raw = (data / name).read_bytes().decode()
        document = [json.loads(line) for line in raw.splitlines()] if name.endswith("l") else json.loads(raw)
        ids = [i for text in strings_of(document) for i in tokenizer.encode(text).ids]
        files.append({"path": name, "strings": True, "count": len(ids), "hash": fnv(ids)})
    return files


def with_declared_tokens(tokenizer, folder):
    """Adds what tokenizer_config.json declares, as transformers does."""
    config = folder / "tokenizer_config.json"
    if not config.exists():
        return tokenizer
    declared = json.loads(config.read_text()).get("added_tokens_decoder", {})
    for _, token in sorted(declared.items(), key=lambda item: int(item[0])):
        flags = {k: token[k] for k in ("single_word", "lstrip", "rstrip", "normalized", "special")}
        tokenizer.add_tokens([AddedToken(token["content"], **flags)])
    return tokenizer


def write(path, document, indent=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    separators = None if indent else (",", ":")
    path.write_text(json.dumps(document, ensure_ascii=True, indent=indent, separators=separators) + "\n")


def write_tiny(texts):
    documents = tiny_tokenizers(HAND_MADE)
    for name, document in documents.items():
        write(GOLDENS / "tiny" / f"{name}.json", document)
    write_variants(documents, pipelines(), texts, "pipelines")


def write_variants(documents, kinds, texts, file):
    variants = []
    for name, base, keys, model_keys in kinds:
        document = {**documents[base], **keys}
        model = {**document["model"], **model_keys}
        document["model"] = {key: value for key, value in model.items() if key not in model_keys or value is not None}
        cases = golden_of(Tokenizer.from_str(json.dumps(document)), texts)
        hashes = [[c["count"], fnv(c["ids"]) if "ids" in c else c["hash"], c["decoded"], c["decoded_all"]] for c in cases]
        ids = fnv([int(h, 16) for _, h, _, _ in hashes])
        decoded = fnv([int(h, 16) for row in hashes for h in row[2:]])
        variants.append({"name": name, "base": base, "document": keys, "model": model_keys,
                         "hashes": [row[1][-6:] for row in hashes], "ids": ids, "decoded": decoded})
    write(GOLDENS / "tiny" / f"{file}.json", variants)


def write_published(texts):
    """The pre-tokenizers of published models, with the small byte-level vocabulary."""
    documents = {"byte_level": json.loads((GOLDENS / "tiny" / "byte_level.json").read_text())}
    byte = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    kinds = []
    for name, patterns in regex_patterns.PUBLISHED.items():
        steps = [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False} for pattern in patterns]
        kinds.append([name, "byte_level", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [*steps, byte]}}, {}])
    write_variants(documents, kinds, texts + regex_patterns.texts(), "published")


def write_regexes():
    """For each expression the hash of each text with a mark in place of every match."""
    texts, rng = regex_patterns.texts(), random.Random(7)
    patterns = regex_patterns.CLASSES + [p for chain in regex_patterns.PUBLISHED.values() for p in chain]
    patterns += [regex_patterns.random_pattern(rng) for _ in range(300)]
    matches = []
    for pattern in dict.fromkeys(patterns):
        try:
            replace = normalizers.Replace(Regex(pattern), "\u2404")
        except Exception:  # no expression to the library
            continue
        matches.append([pattern, [fnv(replace.normalize_str(text).encode())[-8:] for text in texts]])
    write(GOLDENS / "regexes.json", {"texts": texts, "matches": matches})


def main():
    data = pathlib.Path(sys.argv[1])
    only = sys.argv[2:]  # names of well-known tokenizers; all where none is given
    texts = HAND_MADE + random_texts(60)
    write(GOLDENS / "texts.json", texts)
    if not only:
        write_tiny(texts)
    if not only or "published" in only:
        write_published(texts)
    if not only or "regexes" in only:
        write_regexes()
    for name, path in SHARED.items():
        if only and name not in only:
            continue
        where = data / path
        folder = where.is_dir()
        tokenizer = Tokenizer.from_file(str(where / "tokenizer.json" if folder else where))
        if folder:
            tokenizer = with_declared_tokens(tokenizer, where)
        write(GOLDENS / f"{name}.json", {
            "tokenizer": path,
            "cases": [{**c} for c in golden_of(tokenizer, texts)],
            "files": file_goldens(tokenizer, data),
        })
        print(name, flush=True)


if __name__ == "__main__":
    main()
