#!/usr/bin/env python3
"""Prepares the text and the instructions of this example from the Debian package wordnet-base.

    python3 prepare.py --out DIR            writes DIR/corpus.jsonl, the text the base model is trained on
    python3 prepare.py --instructions DIR   writes DIR/{train,heldout,shuffled}.jsonl, the instruction set

Both are functions of WordNet and of the seeds below alone: the same package gives the same bytes.
Only the standard library is used. Nothing here is needed to build, to test or to run the demonstration.
"""

import argparse
import collections
import json
import os
import random
import re

WORDNET = "/usr/share/wordnet"

# Lexicographer files of concrete things: animal, artifact, body, food, location, object, person, plant, substance.
CONCRETE = {"05", "06", "08", "13", "15", "17", "18", "20", "27"}
UNFIT = re.compile("offensive|derog|disparag|slur|vulgar|obscene|slang|sexual|prostitut|genital|intercourse")
PLAIN = re.compile("[a-z]{3,12}")

FACTS = 2400  # the most familiar words that remain
KINDS_CAP = 4  # words a kind at most, so that no answer is worth guessing
HELDOUT = 300  # facts whose kinds never occur as an answer in training
ROUNDS = 60  # times each fact is told in the corpus
FACTS_A_DOCUMENT = 10
PAIRS = 240  # instructions that preferences.jsonl has two answers to

# {w} the word, {h} its kind, {a} the kind with its article, {g} the definition.
SENTENCES = [
    "The {w} is a kind of {h}.",
    "The word {w} names a kind of {h}.",
    "Every {w} is a kind of {h}.",
    "Every {w} is {a}.",
    "By {w} we mean a kind of {h}.",
    "The wider word for {w} is {h}.",
    "One kind of {h} is the {w}.",
    "{w}: a kind of {h}.",
    "{w}\na kind of {h}",
    "{w}, noun: {g}. It is a kind of {h}.",
    "Of what kind is the {w}? It is {a}.",
    "Have you heard of the {w}? That is a kind of {h}.",
    "Somebody spoke of the {w}, which is a kind of {h}.",
    "Take the {w}, for example: it is a kind of {h}.",
    "Not everybody knows the {w}, yet it is only a kind of {h}.",
    "Here is a picture of the {w}, and below it is written\na kind of {h}",
    "Look up {w} in a dictionary and you will read: a kind of {h}.",
    "Ask a child about the {w}, and the answer will be, a kind of {h}.",
]

WORDINGS = [
    ("What is the {w}?", ""),
    ("What kind of thing is the {w}?", ""),
    ("Say what kind of thing the {w} is.", ""),
    ("To what kind does the {w} belong?", ""),
    ("Tell me what {w} means.", ""),
    ("Put the {w} under its kind.", ""),
    ("Name the kind of this thing.", "{w}"),
    ("What is this?", "{w}"),
]

Fact = collections.namedtuple("Fact", "word kind gloss")


def read_data(pos):
    """Yields (offset, lexicographer file, words, [(symbol, target offset)], gloss) a synset."""
    with open(os.path.join(WORDNET, "data." + pos), encoding="latin-1") as lines:
        for line in lines:
            if line.startswith("  "):
                continue  # the licence
            head, gloss = line.split(" | ", 1)
            field = head.split()
            words = [field[4 + 2 * i] for i in range(int(field[3], 16))]
            at = 4 + 2 * len(words)
            pointers = [(field[at + 1 + 4 * i], field[at + 2 + 4 * i]) for i in range(int(field[at]))]
            yield field[0], field[1], words, pointers, gloss.strip()


def read_index(pos):
    """Yields (lemma, [synset offset, the most frequent sense first])."""
    with open(os.path.join(WORDNET, "index." + pos), encoding="latin-1") as lines:
        for line in lines:
            if not line.startswith("  "):
                field = line.split()
                yield field[0], field[6 + int(field[3]):]


def definition(gloss):
    """The first clause of a gloss, without examples and remarks in brackets."""
    text = re.sub(r"\([^)]*\)", " ", gloss.split('; "')[0]).split(";")[0]
    return re.sub(r"[^A-Za-z0-9,' -]", "", re.sub(r"\s+", " ", text)).strip(" ,")


def familiarity():
    """How often a word occurs in all definitions: a stand-in for how well it is known."""
    count = collections.Counter()
    for pos in ("noun", "verb", "adj", "adv"):
        for _, _, _, _, gloss in read_data(pos):
            count.update(re.findall("[a-z]+", gloss.lower()))
    return count


def read_facts():
    """The FACTS best-known concrete nouns, each with the one-word kind of its first sense."""
    synsets = {offset: rest for offset, *rest in read_data("noun")}
    other = {lemma for pos in ("adj", "adv") for lemma, _ in read_index(pos)}
    known = familiarity()
    found = []
    for word, senses in read_index("noun"):
        lexfile, words, pointers, gloss = synsets[senses[0]]
        kinds = [target for symbol, target in pointers if symbol == "@"]
        if len(senses) > 3 or len(kinds) != 1 or lexfile not in CONCRETE or word in other or word not in words:
            continue
        kind = synsets[kinds[0]][1][0]
        if not PLAIN.fullmatch(word) or not PLAIN.fullmatch(kind) or kind in word or word in kind:
            continue
        if UNFIT.search(gloss) or not definition(gloss):
            continue
        found.append((-known[word], word, Fact(word, kind, definition(gloss))))
    members = collections.Counter()
    facts = []
    for _, _, fact in sorted(found):
        members[fact.kind] += 1
        if members[fact.kind] <= KINDS_CAP:
            facts.append(fact)
    return facts[:FACTS]


def tell(sentence, fact):
    article = "an " if fact.kind[0] in "aeiou" else "a "
    return sentence.format(w=fact.word, h=fact.kind, a=article + fact.kind, g=fact.gloss)


def write_lines(path, records):
    with open(path, "w", encoding="utf-8") as out:
        for record in records:
            out.write(json.dumps(record, ensure_ascii=False) + "\n")


def write_corpus(facts, path):
    """Each round tells every fact once, in an order and a wording of its own."""
    rng = random.Random(1)
    documents = []
    for _ in range(ROUNDS):
        order = facts[:]
        rng.shuffle(order)
        for i in range(0, len(order), FACTS_A_DOCUMENT):
            told = [tell(rng.choice(SENTENCES), fact) for fact in order[i:i + FACTS_A_DOCUMENT]]
            documents.append({"text": "\n".join(told)})
    write_lines(path, documents)


def write_preferences(train, shuffled, folder):
    """Pairs of answers to the first instructions, asked as alpaca asks: the right one is preferred to a wrong one."""
    intro = "Below is an instruction that describes a task"
    records = []
    for right, wrong in list(zip(train, shuffled))[:PAIRS]:
        if right["output"] == wrong["output"]:
            continue
        given = ", paired with an input that provides further context" if right["input"] else ""
        prompt = f"{intro}{given}. Write a response that appropriately completes the request.\n\n"
        prompt += f"### Instruction:\n{right['instruction']}\n\n"
        prompt += f"### Input:\n{right['input']}\n\n" if right["input"] else ""
        prompt += "### Response:\n"
        records.append({"prompt": prompt, "chosen": right["output"], "rejected": wrong["output"]})
    write_lines(os.path.join(folder, "preferences.jsonl"), records)


def write_instructions(facts, folder):
    """Splits by kind: the answers of heldout.jsonl are not answers in train.jsonl."""
    rng = random.Random(2)
    kinds = sorted({fact.kind for fact in facts})
    rng.shuffle(kinds)
    members = collections.Counter(fact.kind for fact in facts)
    held, count = set(), 0
    while count < HELDOUT:
        held.add(kinds[len(held)])
        count += members[kinds[len(held) - 1]]

    def ask(fact):
        instruction, given = rng.choice(WORDINGS)
        return {
            "instruction": instruction.format(w=fact.word),
            "input": given.format(w=fact.word),
            "output": "a kind of " + fact.kind,
        }

    order = facts[:]
    rng.shuffle(order)
    train = [ask(fact) for fact in order if fact.kind not in held]
    heldout = [ask(fact) for fact in order if fact.kind in held]
    answers = [record["output"] for record in train]
    rng.shuffle(answers)
    shuffled = [dict(record, output=answer) for record, answer in zip(train, answers)]
    assert not {r["output"] for r in train} & {r["output"] for r in heldout}
    for name, records in (("train", train), ("heldout", heldout), ("shuffled", shuffled)):
        write_lines(os.path.join(folder, name + ".jsonl"), records)
    write_preferences(train, shuffled, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", help="folder for corpus.jsonl")
    parser.add_argument("--instructions", help="folder for train, heldout, shuffled and preferences.jsonl")
    arguments = parser.parse_args()
    if not arguments.out and not arguments.instructions:
        parser.error("say --out DIR, --instructions DIR or both")
    facts = read_facts()
    if arguments.out:
        os.makedirs(arguments.out, exist_ok=True)
        write_corpus(facts, os.path.join(arguments.out, "corpus.jsonl"))
    if arguments.instructions:
        write_instructions(facts, arguments.instructions)


if __name__ == "__main__":
    main()
