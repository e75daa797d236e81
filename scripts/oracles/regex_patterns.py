"""Regular expressions of tokenizer files: the chains of pre-tokenizers that published models have, classes in brackets, and random ones."""

import random
import re

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
MARKS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
POSSESSIVE = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"


def two_cases(more, contraction, end):
    """Words of upper and lower case as o200k divides them; `more` narrows the classes."""
    start, upper, lower = r"[^\r\n\p{L}\p{N}]?", r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}" + more + "]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}" + more + "]"
    return f"{start}{upper}*{lower}+{contraction}|{start}{upper}+{lower}*{contraction}|{end}"


CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K_END = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = two_cases("", CONTRACTION, O200K_END)
TEKKEN = two_cases("", "", O200K_END.replace("{1,3}", ""))
KIMI = r"[\p{Han}]+|" + two_cases(r"&&[^\p{Han}]", CONTRACTION, O200K_END.replace("/", ""))
DEEPSEEK = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
            "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")
LATIN = (r"\s?[A-Za-z" + "\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f"
         "\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\U00010400-\U0001044f]+")
CJK = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
CJK_AND_MORE = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
THREES = r"\p{N}{1,3}"

# The distinct chains of a census of the models that are fetched most (2026): what each divides at, before a ByteLevel.
PUBLISHED = {
    "qwen2, qwen3": [CL100K % ""],
    "qwen3.5": [MARKS],
    "llama 3, glm 4": [CL100K % "{1,3}"],
    "deepseek v3": [THREES, CJK, DEEPSEEK],
    "gpt-oss, llama 4": [O200K],
    "mistral tekken, nemotron": [TEKKEN],
    "kimi k2": [KIMI],
    "minicpm5": [THREES, CL100K % "+"],
    "deepseek-coder-v2": ["[\r\n]", LATIN, r"\s?[!-/:-~" + "\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$", CJK_AND_MORE],
    "laguna": ["(?:\r?\n)+(?!\r?\n)", CL100K % ""],
    "bloom, bloomz": [r" ?[^(\s|[.,!?" + "\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"],
    "llada, ling": [POSSESSIVE],
    "spark": [THREES, CJK, DEEPSEEK.replace("+[\r\n]*|\\s*[\r\n]+", "+|[\r\n]")],
    "zeta": [CL100K.replace("\\r", "\r").replace("\\n", "\n").replace("\\p{N}]+[\r\n]*", "\\p{N}\r\n]+") % "{1}"],
    "falcon": ["[0-9][0-9][0-9]"],
    "a.x": [CJK, CL100K % ""],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK_AND_MORE],
    "command a": [r"\d{1,3}(?=(?:\d{3})*\b)", O200K],
    "whole characters": ["."],
}

# Classes in brackets, each for one rule of Oniguruma's.
CLASSES = [
    r"[a[bc]d-f]", r"[a[^bc]]", r"[^a[^bc]]", r"[^[^a]]", r"[^[^a]b]", r"[[a&&a]b]", r"[a[b[c[^d]]]]", r"[(\s|[.,!?])]", r"[^\s[:^punct:]]",
    r"[a-z&&[^aeiou]]", r"[a-z&&[aeiou]&&[^e]]", r"[^a-z&&[aeiou]]", r"[\p{L}&&[^\p{Han}\p{Lu}]]", r"[\w&&[^\d_]]", r"[[a-c][^b]&&[^c]x]",
    r"[a-z&&]", r"[&&a]", r"[a&&&x]", r"[a&&&&a]", r"[a&]", r"[a-&&x]", r"[a&&-x]", r"[\Wa&&[^!]]",
    r"[]a]", r"[^]a]", r"[]-a]", r"[a-]", r"[-a]", r"[a-c-e]", r"[!--]", r"[--/]", r"[a[b]-z]", r"[\d-]", r"[[-a]]", r"[a^]", r"[^^]", r"[\-\]\[\^\\]",
    r"[\W]", r"[^\W\d_]", r"[\H]", r"[\S\n]", r"[^\P{L}]", r"[\b]", r"[\A\z\B\R\k8]", r"[\x41-\x{5A}\u00e9]", "[\u00e9-\u00fc]", r"[\n-\r]", r"[|.$(){}*+?#~ ]",
    *(f"[[:{name}:]]" for name in "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit".split()),
    *(f"[a[:^{name}:]]" for name in "alpha digit punct word".split()), r"[[:a]]", r"[:alpha:]", r"[[.a.]]", r"[[=a=]]",
    r"\b", r"\B", r"\b\w", r"\R", r"\N", r"\O", r"\p{Alpha}", r"\p{Punct}", r"\p{^Word}", r"\p{Uppercase_Letter}", r"\p{Letter}+", r"\p{Emoji}", r"\p{Graph}",
]

ATOMS = list("abcxyzAZ09_ .,!?()|^$*+{}-:&=#~\u00e9\u4e2d\u3002\u00df\u00bd\u00b2") + [
    r"\]", r"\[", r"\\", r"\-", r"\^", r"\&", r"\s", r"\S", r"\w", r"\W", r"\d", r"\D", r"\h", r"\H", r"\p{L}", r"\P{L}", r"\p{^Lu}", r"\p{Han}", r"\p{M}",
    r"\n", r"\t", r"\b", r"\x41", r"\x{4e2d}", r"\u00e9", r"\A", r"\z", r"\.", "[:alpha:]", "[:^space:]", "[:punct:]", "[:word:]", "[:upper:]", "-", "-", "&&",
    "&&", "a-f", "0-9", "!-/", "\u00e0-\u00fc", r"\p{Alpha}", r"\p{Lowercase}", r"\p{Latin}", "]", "^"]
REPEATS = ["", "", "+", "*", "?", "+?", "*?", "{2}", "{1,3}", "{,2}", "++", "?+", "*+"]
CHARACTERS = list("abcxyzABZ09_ .,!?()|^$*+{}-:&=#~[]\\/\n\r\t\u00e9\u00c9\u4e2d\u3002\u00df\u00bd\u00b2\u0301\u00a0\u2028\u3042\uac00\u0416\u01c5\u2160\U0001f600\u200d\b")


NEGATED = re.compile(r"\\[SWDHP]|\\p\{\^|\[:\^")
PLAIN_ATOMS = [atom for atom in ATOMS if not NEGATED.match(atom)]


def random_class(rng, depth=0, plain=False):
    """Within a negated class in another nothing is negated: the library takes ASCII alone of [^[^x]] where x is every character."""
    is_negated = not plain and rng.random() < 0.3
    plain = plain or (is_negated and depth > 0)
    atoms = PLAIN_ATOMS if plain else ATOMS
    parts = [random_class(rng, depth + 1, plain) if rng.random() < 0.2 and depth < 3 else rng.choice(atoms) for _ in range(rng.randrange(1, 6))]
    return "[" + ("^" if is_negated else "") + "".join(parts) + "]"


def random_pattern(rng):
    """Many are no expression to the library either."""
    parts = []
    for _ in range(rng.randrange(1, 4)):
        roll = rng.random()
        if roll < 0.1:
            parts.append(rng.choice(["(?=", "(?!", "(?<=", "(?<!"]) + random_class(rng) + ")")
        elif roll < 0.2:
            parts.append(rng.choice([r"\b", r"\B"]))
        else:
            one = random_class(rng) if roll < 0.7 else rng.choice([r"\R", r"\N", r"\w", r"\W", r"\S", r"\d", r"\p{L}", " ", "."])
            group = rng.choice(["(?i:%s)", "(?:%s|a)", "(?>%s)"]) if roll > 0.9 else "%s"
            parts.append(group.replace("%s", one) + rng.choice(REPEATS))
    return rng.choice(["", "|"]).join(parts)


def random_text(rng):
    return "".join(rng.choice(CHARACTERS) for _ in range(rng.randrange(1, 40)))


def texts(seed=5):
    """Every character, words, and some at random."""
    rng = random.Random(seed)
    return ["".join(CHARACTERS), "aaabbb  \r\n--ss 1234567 12 don't [a-z]&&x", *(random_text(rng) for _ in range(6))]
