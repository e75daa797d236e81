"""What is to be learned of a record, by the rules of docs/data.md, chat_templates.md and preferences.md: written here once
more on top of transformers and TRL, without a look at how Snug does it.

A meaning (data_sets_first.py) becomes documents: a list of pairs of ids and targets, both lists of numbers.
"""

from trl.data_utils import extract_prompt

ALPACA = ("Below is an instruction that describes a task{}. Write a response that appropriately completes the request.\n\n"
          "### Instruction:\n{}\n\n{}### Response:\n")


class LeftOut(Exception):
    """A record with nothing to learn, and why."""


class Rules:
    def __init__(self, tokenizer, has_marks, max_length):
        self.tokenizer, self.has_marks, self.max_length = tokenizer, has_marks, max_length

    def ids(self, text):
        return self.tokenizer(text).input_ids

    def with_end(self, ids):
        eos = self.tokenizer.eos_token_id
        return ids if ids and ids[-1] == eos else ids + [eos]

    def cut(self, ids, targets):
        """What is longer loses its end; the first token has none before it from which it could be learned."""
        targets = [0, *targets[1 : self.max_length]]
        if not any(targets):
            raise LeftOut("no room for an answer")
        return ids[: self.max_length], targets

    def chat(self, messages, tools=None, prompt=False):
        if not messages:
            return ""
        return self.tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=prompt)

    def documents(self, meaning, form):
        if "out" in meaning:
            raise LeftOut(meaning["out"])
        if "text" in meaning:
            return self.windows(self.with_end(self.ids(meaning["text"])))
        if "chosen" in meaning:
            return self.pair(meaning)
        if "label" in meaning:
            return [self.labelled(meaning)]
        if "messages" in meaning:
            return [self.conversation(meaning["messages"], meaning.get("tools"))]
        return [self.answered(meaning, form)]

    def windows(self, ids):
        """A long text in windows that overlap by a token, so that each but the first is a target once."""
        step = self.max_length - 1
        cuts = [ids[begin : begin + self.max_length] for begin in range(0, max(1, len(ids) - 1), step)]
        return [(cut, [0] + [1] * (len(cut) - 1)) for cut in cuts]

    def answered(self, meaning, form):
        asked = "\n".join(text for text in (meaning["instruction"], meaning["input"]) if text)
        if form == "chat":
            messages = [{"role": "system", "content": meaning["system"]}] if meaning["system"] else []
            messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": meaning["answer"]}]
            return self.conversation(messages)
        if form == "alpaca":
            context = meaning["input"]
            asked = ALPACA.format(", paired with an input that provides further context" if context else "", meaning["instruction"],
                                  f"### Input:\n{context}\n\n" if context else "")
        return self.answer_after(asked, meaning["answer"])

    def answer_after(self, prompt, answer):
        alone, ids = self.ids(prompt), self.with_end(self.ids(prompt + answer))
        return self.cut(ids, self.after(common(alone, ids), ids))

    def after(self, begin, ids):
        return [int(index >= begin) for index in range(len(ids))]

    def conversation(self, messages, tools=None):
        if not any(m["role"] == "assistant" for m in messages):
            raise LeftOut("no answer")
        if any(m["role"] == "assistant" and not m["content"].strip() and not m.get("tool_calls") for m in messages):
            raise LeftOut("an empty answer")
        options = dict(tools=tools, return_dict=True, return_assistant_tokens_mask=self.has_marks)
        whole = self.tokenizer.apply_chat_template(messages, **options)
        if self.has_marks:
            return self.cut(list(whole["input_ids"]), list(whole["assistant_masks"]))
        text = self.chat(messages, tools)
        spans = [self.answer_span(messages, tools, index, text) for index, m in enumerate(messages) if m["role"] == "assistant"]
        ids = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        assert ids["input_ids"] == list(whole["input_ids"])
        targets = [int(any(begin < token_end and token_begin < end for begin, end in spans)) for token_begin, token_end in ids["offset_mapping"]]
        return self.cut(ids["input_ids"], targets)

    def answer_span(self, messages, tools, index, text):
        """From the end of the prompt for generation to the end of the messages so far, without what follows the stop token."""
        before = self.chat(messages[:index], tools, prompt=True)
        if index == 0:  # What follows a user's message stands before an answer that begins the conversation.
            user = [{"role": "user", "content": "x"}]
            mark = self.chat(user, tools, prompt=True)[len(self.chat(user, tools)) :]
            before = text[: text.index(mark) + len(mark)]
        until = self.chat(messages[: index + 1], tools)
        assert text.startswith(before) and text.startswith(until)
        return len(before), len(until[: until.rindex(self.tokenizer.eos_token)] + self.tokenizer.eos_token)

    def prompt_and(self, meaning, answer):
        """The text of a prompt, and of it with an answer; a conversation's go through the template."""
        prompt = meaning["prompt"]
        if isinstance(prompt, str) and not meaning.get("is_chat"):
            return prompt, prompt + answer
        if isinstance(prompt, str):
            prompt = [{"role": "user", "content": prompt}]
        if meaning.get("system"):
            prompt = [{"role": "system", "content": meaning["system"]}, *prompt]
        return self.chat(prompt, prompt=True), self.chat([*prompt, {"role": "assistant", "content": answer}])

    def tokens(self, text, is_chat):
        return self.tokenizer(text, add_special_tokens=False).input_ids if is_chat else self.with_end(self.ids(text))

    def pair(self, meaning):
        if not isinstance(meaning["prompt"], str) and not (meaning["chosen"] and meaning["rejected"]):
            raise LeftOut("an empty answer")
        is_chat = not isinstance(meaning["prompt"], str) or meaning.get("is_chat", False)
        if meaning.get("prompt_inside"):
            told = extract_prompt({key: meaning["prompt"] + meaning[key] for key in ("chosen", "rejected")})
            meaning = meaning | told
        texts = [self.prompt_and(meaning, meaning[key]) for key in ("chosen", "rejected")]
        alone = self.tokenizer(texts[0][0], add_special_tokens=not is_chat).input_ids
        both = [self.tokens(text, is_chat) for _, text in texts]
        begin = min(common(alone, ids) for ids in both)
        first = 0 if meaning.get("learns_prompt") else begin  # ORPO learns the prompt of what was chosen.
        return [self.cut(ids, self.after(start, ids)) for start, ids in zip((first, begin), both)]

    def labelled(self, meaning):
        """The prompt and the answer of an example, as ids."""
        prompt, text = self.prompt_and(meaning, meaning["completion"])
        is_chat = not isinstance(meaning["prompt"], str)
        alone, ids = self.tokenizer(prompt, add_special_tokens=not is_chat).input_ids, self.tokens(text, is_chat)
        begin = common(alone, ids)
        if begin >= self.max_length:
            raise LeftOut("no room for an answer")
        return ids[:begin], ids[begin:]

    def with_answers_of_others(self, examples):
        """Of each example its own document, and its prompt with the answer of the one before; the first comes last."""
        for index in [*range(1, len(examples)), 0]:
            prompt, answer = examples[index]
            for learned in (answer, examples[index - 1][1]):
                yield self.cut(prompt + learned, self.after(len(prompt), prompt + learned))


def common(first, second):
    return next((index for index, (a, b) in enumerate(zip(first, second)) if a != b), min(len(first), len(second)))
