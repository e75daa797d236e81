"""Files in the forms of twenty public data sets for instructions and conversations.

Names of columns, their nesting, their roles and the file's form are those of the public sets; every text is our own.
Each function yields pairs of a record and its meaning: what a careful reader of the set's card would have a model learn.
A meaning is {"messages"}, {"instruction", "input", "system", "answer"}, {"text"}, {"prompt", "chosen", "rejected"} or
{"out": why} for a record with nothing to learn.
"""

import json

from data_set_texts import answer, code, day, identifier, long_answer, question, thought, PLACES, TOPICS

SETS = {}


def data_set(name, file, form, **more):
    def register(function):
        SETS[name] = dict(name=name, file=file, form=form, records=function, **more)
        return function

    return register


def turn(role, content, **more):
    return {"role": role, "content": content, **more}


def pair(instruction, learned, context="", system=""):
    if not learned or not learned.strip():
        return {"out": "an empty answer"}
    return {"instruction": instruction, "input": context or "", "system": system or "", "answer": learned}


def answers(count, fault=None):
    """Answers of which one is very long, one empty, and one null where the set has such."""
    for i in range(count):
        yield i, "" if i == 5 else fault if i == 11 and fault != "" else long_answer(i) if i == 3 else answer(i)


@data_set("dolly-15k", "databricks-dolly-15k.jsonl", "jsonl")
def dolly():
    kinds = ["closed_qa", "open_qa", "summarization", "brainstorming", "classification"]
    for i, response in answers(30, None):
        context = f"{PLACES[i % 10]} is known for its {TOPICS[i % 10]}.\n\nThis was written in 19{i + 10}." if i % 3 == 0 else ""
        record = {"instruction": question(i), "context": context, "response": response, "category": kinds[i % 5]}
        yield record, pair(question(i), response, context)


def oasst_row(i, parent, role, text):
    names = ["toxicity", "severe_toxicity", "obscene", "identity_attack", "insult", "threat", "sexual_explicit"]
    return {
        "message_id": identifier(i), "parent_id": parent, "user_id": identifier(i + 900), "created_date": day(i),
        "text": text, "role": role, "lang": ["en", "es", "de"][i % 3], "review_count": 3,
        "review_result": None if i % 7 == 0 else True, "deleted": False, "rank": None if role == "prompter" else i % 3,
        "synthetic": False, "model_name": None,
        "detoxify": None if i % 4 == 0 else {name: 0.001 * (i + n) for n, name in enumerate(names)},
        "message_tree_id": identifier(i - i % 4), "tree_state": "ready_for_export",
        "emojis": {"name": ["+1", "_skip_reply"], "count": [i, 1]},
        "labels": {"name": ["spam", "quality"], "value": [0.0, 0.75], "count": [3, 3]},
    }


@data_set("oasst1", "data/train-00000-of-00001.parquet", "parquet-datasets")
def oasst1():
    """One message in each row; a conversation is the way from a message without a parent to one without a reply."""
    for i in range(40):
        role = "assistant" if i % 2 else "prompter"
        parent = identifier(i - 1) if i % 4 else None
        yield oasst_row(i, parent, role, answer(i) if i % 2 else question(i)), {"out": "one message of a tree"}


@data_set("oasst2-trees", "2023-11-05_oasst2_ready.trees.jsonl.gz", "jsonl")
def oasst2_trees():
    def message(i, role, replies):
        text = answer(i) if role == "assistant" else question(i)
        return {"message_id": identifier(i), "user_id": identifier(i + 77), "created_date": day(i), "text": text,
                "role": role, "lang": "en", "review_count": 3, "rank": 0, "synthetic": False,
                "labels": {"spam": {"value": 0.0, "count": 3}}, "replies": replies}

    for i in range(20):
        reply = message(10 * i + 1, "assistant", [message(10 * i + 3, "prompter", [message(10 * i + 4, "assistant", [])])])
        tree = message(10 * i, "prompter", [reply, message(10 * i + 2, "assistant", [])])
        yield ({"message_tree_id": identifier(10 * i), "tree_state": "ready_for_export", "prompt": tree},
               {"out": "a tree of replies"})


@data_set("sharegpt-vicuna", "ShareGPT_V3_unfiltered_cleaned_split.json", "json")
def sharegpt():
    for i, last in answers(30, ""):
        turns = [("human", question(i)), ("gpt", answer(i)), ("human", question(i + 1)), ("gpt", last)]
        if i % 6 == 2:
            turns = turns[1:]  # A part of a split conversation, that begins with an answer.
        if i == 7:
            turns = []
        if i % 8 == 4:
            turns.insert(0, ("system", f"You know everything about {TOPICS[i % 10]}."))
        extra = {"markdown": None, "text": None} if i % 5 == 1 else {}
        record = {"id": f"Qv{i:05d}_0", "conversations": [{"from": role, "value": text, **extra} for role, text in turns]}
        names = {"human": "user", "gpt": "assistant", "system": "system"}
        meaning = [turn(names[role], text) for role, text in turns]
        if not turns:
            yield record, {"out": "no turns"}
        else:
            yield record, {"messages": meaning}


@data_set("ultrachat-200k", "data/train_sft-00000-of-00003-a3ecf92756993583.parquet", "parquet-datasets")
def ultrachat_200k():
    for i, last in answers(30):
        last = answer(i) if last is None else last
        messages = [turn("user", question(i)), turn("assistant", answer(i)), turn("user", question(i + 3)), turn("assistant", last)]
        record = {"prompt": question(i), "prompt_id": identifier(i).replace("-", "") * 2, "messages": messages}
        yield record, {"messages": messages}


@data_set("ultrachat", "train_0.jsonl", "jsonl")
def ultrachat():
    for i, last in answers(20, ""):
        data = [question(i), answer(i), question(i + 1), last]
        if i == 9:
            data = data[:3]  # Some conversations stop after a question.
        roles = ["user", "assistant"] * 2
        yield {"id": str(i), "data": data}, {"messages": [turn(role, text) for role, text in zip(roles, data)]}


@data_set("openorca", "1M-GPT4-Augmented.parquet", "parquet-pandas")
def openorca():
    systems = ["", "You are an AI assistant. You will be given a task. You must generate a detailed and long answer.",
               "You are a helpful assistant, who always provide explanation. Think like you are answering to a five year old."]
    for i, response in answers(40):
        record = {"id": f"flan.{i * 17117}", "system_prompt": systems[i % 3], "question": question(i), "response": response}
        yield record, pair(question(i), response, system=systems[i % 3])


@data_set("slimorca", "oo-labeled_correct.gpt4.sharegpt.jsonl", "jsonl")
def slimorca():
    for i, response in answers(30, ""):
        system = f"You are an AI assistant that knows {TOPICS[i % 10]}."
        conversation = [{"from": "system", "value": system, "weight": None}] if i % 4 else []
        conversation += [{"from": "human", "value": question(i), "weight": 0.0}, {"from": "gpt", "value": response, "weight": 1.0}]
        messages = [turn("system", system)] if i % 4 else []
        yield {"conversations": conversation}, {"messages": messages + [turn("user", question(i)), turn("assistant", response)]}


@data_set("wizardlm-evol-v2", "WizardLM_evol_instruct_V2_143k.json", "json")
def wizardlm():
    for i, response in answers(30, ""):
        conversation = [{"from": "human", "value": question(i)}, {"from": "gpt", "value": response}]
        record = {"idx": f"b'{identifier(i)}'", "conversations": conversation}
        yield record, {"messages": [turn("user", question(i)), turn("assistant", response)]}


@data_set("metamathqa", "MetaMathQA-395K.json", "json")
def metamathqa():
    for i, response in answers(30, ""):
        record = {"type": ["GSM_Rephrased", "MATH_AnsAug", "GSM_SV", "GSM_FOBAR"][i % 4], "query": question(i),
                  "original_question": question(i + 6), "response": f"{response}\nThe answer is: {i}" if response else ""}
        yield record, pair(question(i), record["response"])


@data_set("mathinstruct", "MathInstruct.json", "json")
def mathinstruct():
    for i, output in answers(25, ""):
        output = code(i) if i % 4 == 0 else output
        yield {"source": f"data/CoT/set_{i % 3}.json", "output": output, "instruction": question(i)}, pair(question(i), output)


@data_set("gsm8k-csv", "main_train.csv", "csv")
def gsm8k():
    for i, response in answers(30, ""):
        last = f"{response}\n#### {i * 3:,}" if response else ""
        yield {"question": question(i), "answer": last}, pair(question(i), last)


@data_set("openhermes-2.5", "openhermes2_5.json", "json")
def openhermes():
    for i, response in answers(30, ""):
        system = f"You are a master of {TOPICS[i % 10]}." if i % 3 == 0 else None
        conversation = [{"from": "human", "value": question(i)}, {"from": "gpt", "value": response}]
        if system and i % 2:
            conversation.insert(0, {"from": "system", "value": system})
        record = {
            "custom_instruction": None, "topic": None, "model_name": None, "model": "gpt-4" if i % 2 else None,
            "skip_prompt_formatting": False if i % 2 else None, "category": ["coding", "orca", None][i % 3],
            "conversations": conversation, "views": None, "language": None, "id": None, "title": None, "idx": None,
            "hash": None, "avatarUrl": None, "system_prompt": system, "source": "airoboros2.2"}
        messages = [turn("user", question(i)), turn("assistant", response)]
        yield record, {"messages": ([turn("system", system)] if system else []) + messages}


@data_set("capybara", "CapybaraPure_Decontaminated.jsonl", "jsonl")
def capybara():
    for i, last in answers(25, ""):
        turns = [(question(i), answer(i)), (question(i + 1), last)]
        messages = [m for asked, given in turns for m in (turn("user", asked), turn("assistant", given))]
        yield ({"source": "Dove", "conversation": [{"input": asked, "output": given} for asked, given in turns]},
               {"messages": messages})


@data_set("tulu-3-sft-mixture", "data/train-00000-of-00006.parquet", "parquet-zstd")
def tulu3():
    for i, response in answers(40):
        response = answer(i) if response is None else response
        messages = [turn("user", question(i)), turn("assistant", response)]
        if i % 5 == 0:
            messages.insert(0, turn("system", ""))
        yield {"id": f"personahub_{identifier(i)}", "messages": messages, "source": "ai2-adapt-dev/flan_v2_converted"}, {"messages": messages}


@data_set("no_robots", "data/train-00000-of-00001.parquet", "parquet-datasets")
def no_robots():
    for i, response in answers(25):
        response = answer(i) if response is None else response
        messages = [turn("user", question(i)), turn("assistant", response)]
        if i % 4 == 1:
            messages.insert(0, turn("system", f"{PLACES[i % 10]} is a chatbot that is also rude."))
        record = {"prompt": question(i), "prompt_id": identifier(i).replace("-", ""), "messages": messages, "category": "Chat"}
        yield record, {"messages": messages}


@data_set("lima", "train.jsonl", "jsonl")
def lima():
    for i, response in answers(20, ""):
        turns = [question(i), response] + ([question(i + 2), answer(i + 2)] if i % 7 == 0 else [])
        messages = [turn(["user", "assistant"][n % 2], text) for n, text in enumerate(turns)]
        yield {"conversations": turns, "source": ["stackexchange", "wikihow", "multi_turn"][i % 3]}, {"messages": messages}


@data_set("codealpaca", "code_alpaca_20k.json", "json")
def codealpaca():
    for i in range(30):
        output = "" if i == 5 else code(i)
        context = f"values = [{i}, 2]" if i % 2 else ""
        yield {"instruction": f"Write the function step_{i}.", "input": context, "output": output}, pair(f"Write the function step_{i}.", output, context)


@data_set("magicoder-oss-instruct", "data-oss_instruct-decontaminated.jsonl", "jsonl")
def magicoder():
    for i in range(25):
        solution = "" if i == 5 else f"Here it is:\n\n```python\n{code(i)}```"
        record = {"lang": "python", "raw_index": 1000 + i, "index": i * 3, "seed": code(i + 40)[:60],
                  "openai_fingerprint": None if i % 9 else "fp_eeff13170a", "problem": f"Write step_{i} well.", "solution": solution}
        yield record, pair(record["problem"], solution)


@data_set("glaive-function-calling-v2", "glaive-function-calling-v2.json", "json")
def glaive():
    """System message and conversation are texts with marks of their own; functions stand in the system text."""
    for i in range(25):
        told = "You are a helpful assistant, with no access to external functions."
        function = json.dumps({"name": "get_tide", "description": "The tide of a place",
                               "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}, indent=4)
        if i % 3:
            told = f"You are a helpful assistant with access to the following functions. Use them if required -\n{function}"
        turns = [("USER", question(i)), ("ASSISTANT", answer(i))]
        if i % 3:
            turns += [("USER", "What is the tide?"), ("ASSISTANT", "<functioncall> {\"name\": \"get_tide\", \"arguments\": '{\"place\": \"Bergen\"}'}"),
                      ("FUNCTION RESPONSE", "{\"tide\": \"low\"}"), ("ASSISTANT", "The tide is low.")]
        chat = "".join(f"{mark}: {text}{' <|endoftext|>' if mark == 'ASSISTANT' else ''}\n\n\n" for mark, text in turns)
        roles = {"USER": "user", "ASSISTANT": "assistant", "FUNCTION RESPONSE": "tool"}
        messages = [turn("system", told), *(turn(roles[mark], text) for mark, text in turns)]
        yield {"system": f"SYSTEM: {told}\n", "chat": chat}, {"messages": messages}
