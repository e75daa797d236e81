"""Files in the forms of public data sets for tools, preferences, reasoning, tasks and plain text; see data_sets_first."""

import json

from data_set_texts import answer, code, day, identifier, long_answer, passage, question, story, summary, thought, PLACES, TOPICS
from data_sets_first import answers, data_set, pair, turn

TIDE = {"name": "get_tide", "description": "The tide of a place",
        "parameters": {"place": {"description": "The place", "type": "str", "default": "Bergen"}}}
FULL_TIDE = {"type": "function", "function": {"name": "get_tide", "description": "The tide of a place", "parameters": {
    "type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}}


def call(place):
    return {"name": "get_tide", "arguments": {"place": place}}


@data_set("hermes-function-calling-v1", "func-calling.json", "json")
def hermes():
    """Tools and calls are written out in the texts; `tools` repeats them for other readers."""
    for i, last in answers(20, ""):
        system = f"You are a function calling AI model. <tools> {json.dumps([FULL_TIDE])} </tools>"
        turns = [("system", system), ("human", question(i)), ("gpt", f"<tool_call>\n{json.dumps(call(PLACES[i % 10]))}\n</tool_call>\n"),
                 ("tool", "<tool_response>\n{\"tide\": \"low\"}\n</tool_response>\n"), ("gpt", last)]
        record = {"id": identifier(i), "conversations": [{"from": role, "value": text} for role, text in turns],
                  "tools": json.dumps([FULL_TIDE]), "category": "Information", "subcategory": "Sea", "task": "Tides"}
        names = {"human": "user", "gpt": "assistant", "system": "system", "tool": "tool"}
        yield record, {"messages": [turn(names[role], text) for role, text in turns], "tools": [FULL_TIDE]}


@data_set("xlam-function-calling-60k", "xlam_function_calling_60k.json", "json")
def xlam():
    for i in range(25):
        calls = [call(PLACES[i % 10])] * (1 + i % 2)
        record = {"id": i, "query": question(i), "answers": json.dumps(calls) if i != 5 else "[]", "tools": json.dumps([TIDE])}
        meaning = [turn("user", question(i)), turn("assistant", "", tool_calls=calls)]
        yield record, {"messages": meaning, "tools": [TIDE]} if i != 5 else {"out": "no calls"}


@data_set("toolace", "data.json", "json")
def toolace():
    for i, last in answers(20, ""):
        system = f"You are an expert in composing functions. Here is a list of functions in JSON format:\n{json.dumps([TIDE])}"
        turns = [("user", question(i)), ("assistant", f"[get_tide(place=\"{PLACES[i % 10]}\")]")]
        if i % 2:
            turns += [("tool", json.dumps([{"name": "get_tide", "results": {"tide": "low"}}])), ("assistant", last)]
        yield ({"system": system, "conversations": [{"from": role, "value": text} for role, text in turns]},
               {"messages": [turn("system", system)] + [turn(role, text) for role, text in turns]})


@data_set("apigen-mt-5k", "apigen-mt_5k.json", "json")
def apigen_mt():
    for i in range(20):
        turns = [("human", question(i)), ("function_call", json.dumps(call(PLACES[i % 10]))), ("observation", '{"tide": "low"}'),
                 ("gpt", answer(i))]
        record = {"conversations": [{"from": role, "value": text} for role, text in turns],
                  "tools": json.dumps([FULL_TIDE["function"]]), "system": f"# Policy\nBe kind in {PLACES[i % 10]}."}
        yield record, {"messages": [turn("system", record["system"]), turn("user", question(i)),
                                    turn("assistant", "", tool_calls=[call(PLACES[i % 10])]), turn("tool", '{"tide": "low"}'),
                                    turn("assistant", answer(i))], "tools": [FULL_TIDE["function"]]}


@data_set("hh-rlhf", "helpful-base/train.jsonl.gz", "jsonl", objective="dpo")
def hh_rlhf():
    for i in range(25):
        start = f"\n\nHuman: {question(i)}\n\nAssistant: {answer(i)}\n\nHuman: And then?\n\nAssistant:"
        rejected = "" if i == 5 else " I do not know."
        yield ({"chosen": f"{start} {answer(i + 1)}", "rejected": f"{start}{rejected}"},
               {"prompt": start, "chosen": f" {answer(i + 1)}", "rejected": rejected} if rejected else {"out": "an empty answer"})


@data_set("ultrafeedback-binarized", "data/train_prefs-00000-of-00001.parquet", "parquet-datasets", objective="dpo")
def ultrafeedback():
    for i in range(25):
        asked, good, bad = turn("user", question(i)), answer(i), "" if i == 5 else f"{answer(i)} Perhaps."
        record = {"prompt": question(i), "prompt_id": identifier(i), "chosen": [asked, turn("assistant", good)],
                  "rejected": [asked, turn("assistant", bad)], "messages": [asked, turn("assistant", good)],
                  "score_chosen": 8.0 - i % 3, "score_rejected": 3.5}
        yield record, {"prompt": [asked], "chosen": good, "rejected": bad}


@data_set("orca-dpo-pairs", "orca_rlhf.jsonl", "jsonl", objective="dpo")
def orca_dpo():
    for i in range(25):
        system = "" if i % 3 else f"You know about {TOPICS[i % 10]}."
        yield ({"system": system, "question": question(i), "chosen": answer(i), "rejected": f"No {TOPICS[i % 10]}."},
               {"system": system, "prompt": question(i), "chosen": answer(i), "rejected": f"No {TOPICS[i % 10]}."})


@data_set("kto-mix-14k", "data/train-00000-of-00001.parquet", "parquet-datasets", objective="kto")
def kto_mix():
    for i in range(25):
        asked, given = [turn("user", question(i))], [turn("assistant", answer(i))]
        yield {"prompt": asked, "completion": given, "label": i % 3 > 0}, {"prompt": asked, "completion": answer(i), "label": i % 3 > 0}


@data_set("pku-saferlhf", "data/Alpaca-7B/train.jsonl", "jsonl", objective="dpo")
def saferlhf():
    """Which answer is better stands in a number next to both."""
    for i in range(20):
        record = {"prompt": question(i), "response_0": answer(i), "response_1": f"No {TOPICS[i % 10]}.", "prompt_source": "WizardLM",
                  "response_0_source": "Alpaca-7B", "is_response_0_safe": True, "is_response_1_safe": i % 2 == 0,
                  "response_0_harm_category": {"Violence": False, "Cybercrime": False}, "response_0_severity_level": 0,
                  "better_response_id": i % 2, "safer_response_id": 0, "response_0_sha256": identifier(i)}
        better, worse = ("response_1", "response_0") if i % 2 else ("response_0", "response_1")
        yield record, {"prompt": question(i), "chosen": record[better], "rejected": record[worse], "labelled": True}


@data_set("helpsteer2", "train.jsonl.gz", "jsonl")
def helpsteer2():
    for i, response in answers(25, ""):
        scores = {"helpfulness": i % 5, "correctness": 4, "coherence": 4, "complexity": 2, "verbosity": 1}
        yield {"prompt": question(i), "response": response, **scores}, pair(question(i), response)


@data_set("helpsteer3", "preference/train.jsonl.gz", "jsonl", objective="dpo")
def helpsteer3():
    for i in range(20):
        preference = i % 7 - 3
        context = [turn("user", question(i)), turn("assistant", answer(i)), turn("user", "And now?")]
        record = {"domain": "general", "language": "english", "context": context, "response1": answer(i + 1), "response2": answer(i + 2),
                  "overall_preference": preference, "individual_preference": [
                      {"score": preference, "reasoning": "It is clear.", "feedback1": "Good.", "feedback2": "Bad."}]}
        yield record, {"prompt": context, "labelled": True, "chosen": record["response1"], "rejected": record["response2"]}


@data_set("nectar", "data/train-00000-of-00001.parquet", "parquet-datasets", objective="dpo")
def nectar():
    for i in range(15):
        ranked = [{"answer": answer(i + n), "model": f"model-{n}", "rank": float(n + 1)} for n in range(3)]
        yield ({"prompt": f"\n\nHuman: {question(i)}\n\nAssistant: ", "answers": ranked, "turns": 1, "num_responses": 3,
                "source": ["lmsys-chat-1m"], "good_natured": True}, {"out": "a ranking of several answers"})


@data_set("openr1-math-220k", "data/train-00000-of-00010.parquet", "parquet-datasets")
def openr1():
    for i in range(15):
        full = f"<think>\n{thought(i)}\n</think>\n\n{answer(i)}"
        messages = [turn("user", question(i)), turn("assistant", full)]
        record = {"problem": question(i), "solution": answer(i), "answer": str(i), "problem_type": "Algebra", "question_type": "math-word-problem",
                  "source": "olympiads", "uuid": identifier(i), "is_reasoning_complete": [True, True], "generations": [full, f"<think>\n</think>{i}"],
                  "correctness_math_verify": [True, False], "correctness_llama": None if i % 3 else [True, True],
                  "finish_reasons": None, "correctness_count": 1, "messages": messages}
        yield record, {"messages": messages}


@data_set("openmathreasoning", "data/cot-00000-of-00144.parquet", "parquet-zstd")
def openmathreasoning():
    for i in range(15):
        full = f"<think>\n{thought(i)}\n</think>\n{answer(i)}"
        record = {"expected_answer": str(i), "problem_type": "has_answer_extracted", "problem_source": "aops_c4_high_school_math",
                  "generation_model": "DeepSeek-R1", "pass_rate_72b_tir": "0.65625" if i % 4 else "n/a", "problem": question(i),
                  "generated_solution": full, "inference_mode": "cot", "used_in_kaggle": True}
        yield record, pair(question(i), full)


@data_set("openthoughts-114k", "data/train-00000-of-00006.parquet", "parquet-datasets")
def openthoughts():
    system = "Your role as an assistant involves thoroughly exploring questions."
    for i in range(15):
        full = f"<|begin_of_thought|>\n\n{thought(i)}\n\n<|end_of_thought|>\n\n<|begin_of_solution|>\n\n{answer(i)}\n\n<|end_of_solution|>"
        yield ({"system": system, "conversations": [{"from": "user", "value": question(i)}, {"from": "assistant", "value": full}]},
               {"messages": [turn("system", system), turn("user", question(i)), turn("assistant", full)]})


@data_set("s1k", "data/train-00000-of-00001.parquet", "parquet-datasets")
def s1k():
    for i in range(12):
        record = {"solution": str(i), "question": question(i), "cot_type": "math", "source_type": "AI-MO/NuminaMath-CoT/aime",
                  "metadata": "{'answer': '128'}", "cot": None, "thinking_trajectories": [thought(i)], "attempt": answer(i)}
        yield record, {"out": "several columns could be the answer"}


@data_set("longalpaca", "LongAlpaca-12k.json", "json")
def longalpaca():
    for i in range(10):
        instruction = f"Below is a paper. Read it and answer.\n{long_answer(i, 300)}\nNow the question: {question(i)}"
        output = "" if i == 5 else answer(i)
        yield {"output": output, "input": "", "instruction": instruction, "file": f"book_{i}.txt" if i % 2 else ""}, pair(instruction, output)


@data_set("aya-dataset", "data/train-00000-of-00001.parquet", "parquet-datasets")
def aya():
    for i, targets in answers(25):
        record = {"inputs": question(i), "targets": targets or "", "language": "Standard Malay", "language_code": "zsm",
                  "annotation_type": "original-annotations", "user_id": identifier(i).replace("-", "")}
        yield record, pair(question(i), targets)


@data_set("squad-v2", "squad_v2/train-00000-of-00001.parquet", "parquet-datasets")
def squad():
    for i in range(25):
        texts = [] if i % 5 == 4 else [PLACES[i % 10]]
        record = {"id": identifier(i), "title": "Tides", "context": passage(i), "question": f"Where was this told ({i})?",
                  "answers": {"text": texts, "answer_start": [passage(i).rfind(PLACES[i % 10])] * len(texts)}}
        yield record, pair(record["question"], texts[0], passage(i)) if texts else {"out": "a question without an answer"}


@data_set("samsum", "train.json", "json")
def samsum():
    for i in range(20):
        told = "" if i == 5 else summary(i)
        record = {"id": str(13818513 + i), "summary": told, "dialogue": f"Amanda: {question(i)}\r\nJerry: {answer(i)}\r\nAmanda: Thanks :)"}
        yield record, pair(record["dialogue"], told)


@data_set("cnn-dailymail", "cnn_dailymail/train.csv", "csv")
def cnn():
    for i in range(15):
        yield ({"id": identifier(i).replace("-", ""), "article": long_answer(i, 150), "highlights": f"{summary(i)}\n{answer(i)}"},
               pair(long_answer(i, 150), f"{summary(i)}\n{answer(i)}"))


@data_set("wmt14-de-en", "de-en/train-00000-of-00003.parquet", "parquet-datasets")
def wmt():
    for i in range(30):
        pair_ = {"de": f"Die Glocke von {PLACES[i % 10]} läutet {i} mal.", "en": "" if i == 5 else f"The bell of {PLACES[i % 10]} rings {i} times."}
        yield {"translation": pair_}, pair(pair_["de"], pair_["en"])


@data_set("xsum", "train.jsonl.zst", "jsonl")
def xsum():
    for i in range(20):
        yield {"document": passage(i), "summary": summary(i), "id": str(35232142 + i)}, pair(passage(i), summary(i))


@data_set("boolq", "train.jsonl", "jsonl")
def boolq():
    for i in range(20):
        yield {"question": f"is day {i} told of in this text", "passage": passage(i), "answer": i % 3 > 0}, {"out": "an answer that is no text"}


@data_set("piqa", "train.jsonl", "jsonl")
def piqa():
    for i in range(20):
        yield {"goal": question(i), "sol1": answer(i), "sol2": answer(i + 1), "label": i % 2}, {"out": "a choice by number"}


@data_set("flan-v2", "cot_zsopt_train.jsonl.gz", "jsonl")
def flan():
    for i, targets in answers(25, ""):
        record = {"inputs": f"{passage(i)}\n\n{question(i)}", "targets": targets, "task_source": "Flan2021", "task_name": "cot_qasc",
                  "template_type": "zs_opt"}
        yield record, pair(record["inputs"], targets)


@data_set("p3", "ai2_arc_ARC_Challenge_heres_a_problem/train-00000-of-00001.parquet", "parquet-datasets")
def p3():
    """Token ids of another model's tokenizer stand next to the texts."""
    for i in range(15):
        yield ({"inputs": [3, 9, 10 + i], "inputs_pretokenized": question(i), "targets": [71 + i, 1], "targets_pretokenized": f"\n{answer(i)}"},
               {"instruction": question(i), "input": "", "system": "", "answer": f"\n{answer(i)}"})


@data_set("natural-instructions", "tasks/task001_quoref_question_generation.json", "json-object")
def natural_instructions():
    instances = [{"id": f"task001-{identifier(i)}", "input": passage(i), "output": [question(i), question(i + 1)]} for i in range(12)]
    task = {"Contributors": ["Nobody"], "Source": ["quoref"], "URL": ["https://example.org"], "Categories": ["Question Generation"],
            "Reasoning": [], "Definition": ["Write a question about the passage."], "Input_language": ["English"],
            "Positive Examples": [{"input": passage(90), "output": question(90), "explanation": "Good."}], "Negative Examples": [],
            "Instances": instances, "Instance License": ["CC BY 4.0"]}
    yield task, {"out": "one task with a list of instances"}


@data_set("c4", "en/c4-train.00000-of-01024.json.gz", "jsonl", objective="text")
def c4():
    for i in range(30):
        text = "" if i == 5 else long_answer(i) if i == 3 else story(i)
        yield {"text": text, "timestamp": f"2019-04-2{i % 10}T12:57:54Z", "url": f"https://example.org/{i}"}, {"text": text} if text else {"out": "empty"}


@data_set("wikitext-2-raw", "wikitext-2-raw-v1/train-00000-of-00001.parquet", "parquet-datasets", objective="text")
def wikitext():
    for i in range(40):
        text = ["", f" = {TOPICS[i % 10].title()} = \n", f" {passage(i)} \n", f" {story(i)} \n"][i % 4]
        yield {"text": text}, {"text": text} if text else {"out": "empty"}


@data_set("the-stack-dedup", "data/python/train-00000-of-00206.parquet", "parquet-zstd", objective="text")
def the_stack():
    for i in range(20):
        record = {"hexsha": identifier(i).replace("-", ""), "size": len(code(i)), "ext": "py", "lang": "Python",
                  "max_stars_repo_path": f"src/step_{i}.py", "max_stars_repo_name": "nobody/steps", "max_stars_repo_licenses": ["MIT"],
                  "max_stars_count": None if i % 2 else i, "max_stars_repo_stars_event_min_datetime": day(i), "content": code(i),
                  "avg_line_length": 21.5, "max_line_length": 64, "alphanum_fraction": 0.61}
        yield record, {"text": code(i)}


@data_set("tinystories", "TinyStories-train.txt", "txt", objective="text")
def tinystories():
    for i in range(12):
        yield {"text": story(i)}, {"text": story(i)}


@data_set("magpie-pro", "data/train-00000-of-00012.parquet", "parquet-datasets")
def magpie():
    for i in range(20):
        conversation = [{"from": "human", "value": question(i)}, {"from": "gpt", "value": answer(i)}]
        record = {"uuid": identifier(i), "instruction": question(i), "response": answer(i), "conversations": conversation,
                  "gen_input_configs": {"temperature": 1.0, "top_p": 1.0, "input_generator": "a-model", "seed": None, "extract_input": "<|im_start|>"},
                  "intent": "The user wants to know.", "knowledge": "Arithmetic.", "difficulty": "easy", "input_quality": "good",
                  "quality_explanation": "It is clear.", "task_category": "Math", "other_task_category": [], "llama_guard_2": "safe",
                  "instruct_reward": 4.5, "repeat_count": 0, "min_similar_uuid": None if i % 2 else identifier(i + 1), "instruction_length": 20,
                  "language": "EN"}
        yield record, {"messages": [turn("user", question(i)), turn("assistant", answer(i))]}


@data_set("wildchat-1m", "data/train-00000-of-00014.parquet", "parquet-datasets")
def wildchat():
    for i, last in answers(15):
        last = answer(i) if last is None else last
        def message(role, text):
            return {"content": text, "country": "Norway", "hashed_ip": identifier(i) if role == "user" else None, "header": {"accept-language": "nb"},
                    "language": "English", "redacted": False, "role": role, "state": "Vestland", "timestamp": None, "toxic": False,
                    "turn_identifier": 101002 + i}
        record = {"conversation_hash": identifier(i).replace("-", ""), "model": "gpt-4", "timestamp": day(i),
                  "conversation": [message("user", question(i)), message("assistant", last)], "turn": 1, "language": "English",
                  "openai_moderation": [{"categories": {"harassment": False}, "flagged": False}], "toxic": False, "redacted": False}
        yield record, {"messages": [turn("user", question(i)), turn("assistant", last)]}


@data_set("open-platypus", "data/train-00000-of-00001.parquet", "parquet-pandas-index")
def platypus():
    for i, output in answers(25):
        output = output or ""
        yield {"input": "", "output": output, "instruction": question(i), "data_source": "MATH/PRM-800K"}, pair(question(i), output)


@data_set("orpo-dpo-mix-40k", "data/train-00000-of-00001.parquet", "parquet-datasets", objective="orpo")
def orpo_mix():
    for i in range(20):
        asked = turn("user", question(i))
        record = {"source": "Airoboros", "chosen": [asked, turn("assistant", answer(i))], "rejected": [asked, turn("assistant", "No.")],
                  "prompt": question(i), "question": question(i)}
        yield record, {"prompt": [asked], "chosen": answer(i), "rejected": "No."}
