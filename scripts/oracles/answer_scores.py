#!/usr/bin/env python3
"""Writes tests/goldens/answer_scores.json: what answers are worth next to references, by other people's code.

    PYTHON scripts/oracles/answer_scores.py

PYTHON must have sacrebleu, rouge_score and jsonschema (requirements.txt). BLEU is sacrebleu's with its defaults (sentence_bleu of each pair, corpus_bleu of all, of pairs
in groups of seven, and the words of tokenizer 13a), ROUGE the F measure of rouge_score without a stemmer, edit_distance the textbook's table over the characters of both texts without white space at
their ends, repetition the share of runs of four words that came before. What is valid under a schema is what jsonschema says of it.
"""

import json
import pathlib

import jsonschema
import sacrebleu
from rouge_score import rouge_scorer
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/goldens/answer_scores.json"
ROUGE = ["rouge1", "rouge2", "rougeL", "rougeLsum"]

# (answer, reference)
PAIRS = [
    ("", ""),
    ("", "the cat"),
    ("the cat", ""),
    ("   ", "\n"),
    ("the cat sat on the mat", "the cat sat on the mat"),
    ("The cat sat on the mat.", "the cat sat on the mat"),
    ("the the the the the the the", "the cat is on the mat"),
    ("the cat the cat the cat the cat", "the cat the cat"),
    ("a", "a"),
    ("a", "b"),
    ("a b", "b a"),
    ("one two three", "one two three four"),
    ("one two three four", "one two three"),
    ("one two three four five", "five four three two one"),
    ("It is a guide to action which ensures that the military always obeys the commands of the party.",
     "It is a guide to action that ensures that the military will forever heed Party commands."),
    ("It is to insure the troops forever hearing the activity guidebook that party direct.",
     "It is a guide to action that ensures that the military will forever heed Party commands."),
    ("Prices rose 1,234.5 percent, to $12,000.", "Prices rose by 1,234.5 per cent to $12,000"),
    ("3.14,15", "3.14, 15"),
    ("v1.2.3-beta", "v1.2.3 beta"),
    ("In 1990-1995 sales fell 5-10%.", "In 1990 - 1995 sales fell 5 - 10 %."),
    ("5-", "-5"),
    (".5 and ,6 and 7.", ".5 and ,6 and 7."),
    ("end.", "end ."),
    ("...", "…"),
    ("wait...what?!", "wait ... what ? !"),
    ("don't can't won't", "do n't ca n't wo n't"),
    ("state-of-the-art", "state of the art"),
    ("well-\nknown", "wellknown"),
    ("line one\nline two", "line one line two"),
    ("line two\nline one", "line one\nline two"),
    ("the cat sat\non the mat\n\nand slept", "and slept the cat\nsat on a mat"),
    ("w1 w2 w3 w4 w5", "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5"),
    ("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5"),
    ("a a a\na a", "a\na a a a\na"),
    ("x y x y\ny x y x", "y y x x\nx x y y"),
    ("&quot;AT&amp;T&quot; &lt;b&gt;", "\"AT&T\" <b>"),
    ("&amp;lt;", "<"),
    ("<skipped>word", "word"),
    ("{a}[b](c)/d\\e|f~g`h^i_j", "{ a } [ b ] ( c ) / d \\ e | f ~ g ` h ^ i _ j"),
    ("a+b=c*d#e@f!g$h%i&j", "a + b = c * d # e @ f ! g $ h % i & j"),
    ("\"quoted\" 'single' `tick`", "\" quoted \" ' single ' ` tick `"),
    ("naïve café", "naive cafe"),
    ("Ünïcödé wörds", "ünïcödé wörds"),
    ("ΑΒΓ αβγ", "αβγ ΑΒΓ"),
    ("Я люблю собак.", "Я люблю кошек."),
    ("我喜欢狗。", "我喜欢猫。"),
    ("今天天气很好", "今天天气很好"),
    ("東京タワー は 高い", "東京タワー が 高い"),
    ("안녕하세요 세계", "안녕 세계"),
    ("مرحبا بالعالم", "مرحبا"),
    ("🙂 smile 👩‍👩‍👧", "🙂 smile 👨‍👩‍👧"),
    ("e\u0301 e", "é e"),
    ("non\u00a0breaking\u3000spaces", "non breaking spaces"),
    ("\u212aelvin \u0130stanbul", "kelvin istanbul"),
    ("A\u0130B c", "ai b c"),
    ("tab\tand\rreturn\x0bvertical", "tab and return vertical"),
    ("price: 10,000.00.", "price: 10000.00"),
    ("１２３ 456", "123 456"),
    ("UPPER lower MiXeD", "upper LOWER mixed"),
    ("the quick brown fox jumps over the lazy dog again and again and again",
     "the quick brown dog jumps over the lazy fox again and again"),
    ("to be or not to be to be or not to be to be or not to be", "to be or not to be"),
    ("kitten", "sitting"),
    ("ab" * 40, "ba" * 40),
    ("x_y_z 1_000", "x y z 1000"),
]

# (schema, answers)
SCHEMAS = [
    (
        {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}}, "required": ["name", "age"], "additionalProperties": False},
        ['{"name": "Ada", "age": 36}', '{"age":36,"name":"Ada"}', '{\n  "name": "Ada",\n  "age": 36\n}\n', '{"name": "Ada"}', '{"name": "Ada", "age": -1}', '{"name": "Ada", "age": "36"}',
         '{"name": "Ada", "age": 36, "more": 1}', '{"name": "Ada", "age": 36', 'Here it is: {"name": "Ada", "age": 36}', '{"name": "\\u0041da \\ud83d\\ude42", "age": 1}', "", "null"],
    ),
    (
        {"type": "array", "items": {"enum": ["red", "green", 3]}, "minItems": 1, "maxItems": 3},
        ["[]", '["red"]', '[ "red",\n"green",3 ]', '["blue"]', '["red","red","red","red"]', '"red"'],
    ),
    (
        {"type": "object", "properties": {"b": {"type": "object", "properties": {"z": {"type": "number"}, "a": {"type": "boolean"}}, "required": ["z", "a"], "additionalProperties": False}, "a": {"type": ["string", "null"]}}, "required": ["b"], "additionalProperties": False},
        ['{"a": null, "b": {"a": true, "z": 1.5}}', '{"b": {"z": -2e3, "a": false}}', '{"b": {"z": 1}}', '{"a": 1, "b": {"a": true, "z": 1.5}}', '{"a": "x"}'],
    ),
]


def edit_distance(answer: str, reference: str) -> int:
    before = list(range(len(reference) + 1))
    for row, said in enumerate(answer, 1):
        after = [row]
        for column, expected in enumerate(reference, 1):
            after.append(min(before[column] + 1, after[-1] + 1, before[column - 1] + (said != expected)))
        before = after
    return before[-1]


def repetition(answer: str, size: int = 4) -> float:
    words = answer.split()
    runs = [tuple(words[at : at + size]) for at in range(len(words) - size + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def is_valid(schema: dict, answer: str) -> bool:
    try:
        jsonschema.validate(json.loads(answer), schema)
    except (json.JSONDecodeError, jsonschema.ValidationError):
        return False
    return True


def main() -> None:
    rouge, words = rouge_scorer.RougeScorer(ROUGE), Tokenizer13a()
    pairs = []
    for answer, reference in PAIRS:
        by_rouge = rouge.score(reference, answer)
        distance = edit_distance(answer.strip(), reference.strip())
        longer = max(len(answer.strip()), len(reference.strip()))
        scores = {name: float(by_rouge[name].fmeasure) for name in ROUGE}
        scores |= {"bleu": sacrebleu.sentence_bleu(answer, [reference]).score, "edit_distance": distance, "edit_similarity": 1 - distance / longer if longer else 1.0}
        scores |= {"exact": float(answer.strip() == reference.strip()), "length": len(answer.strip()), "repetition": repetition(answer)}
        pairs.append({"answer": answer, "reference": reference, "scores": scores, "words": words(answer.rstrip()).split()})
    groups = []
    for begin in range(0, len(PAIRS), 7):
        answers, references = zip(*PAIRS[begin : begin + 7])
        groups.append(sacrebleu.corpus_bleu(list(answers), [list(references)]).score)
    answers, references = zip(*PAIRS)
    schemas = [{"schema": schema, "answers": [[answer, is_valid(schema, answer)] for answer in texts]} for schema, texts in SCHEMAS]
    result = {"pairs": pairs, "groups_of_seven": groups, "corpus_bleu": sacrebleu.corpus_bleu(list(answers), [list(references)]).score, "schemas": schemas}
    GOLDEN.write_text(json.dumps(result, indent=0, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
