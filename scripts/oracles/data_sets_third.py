"""Files as they come out of spreadsheets, other tools and other companies' tuning services; see data_sets_first."""

import datetime
import json

from data_set_texts import answer, identifier, question, thought, PLACES, TOPICS
from data_sets_first import answers, data_set, pair, turn
from data_sets_second import FULL_TIDE, call


def chat(i, last):
    return [turn("user", question(i)), turn("assistant", last)]


@data_set("messages-in-csv", "chats.csv", "csv")
def messages_in_csv():
    """A list of messages as JSON in a cell, as pandas' to_csv after json.dumps leaves it."""
    for i, last in answers(15, ""):
        yield {"id": i, "messages": json.dumps(chat(i, last), ensure_ascii=False)}, {"messages": chat(i, last)}


@data_set("apigen-uniform", "data/train-00000-of-00001.parquet", "parquet-datasets")
def apigen_uniform():
    """Messages and tools as JSON texts."""
    for i in range(15):
        calls = [{"id": f"call_{i}", "type": "function", "function": {"name": "get_tide", "arguments": json.dumps({"place": PLACES[i % 10]})}}]
        messages = [turn("user", question(i)), {"role": "assistant", "content": None, "tool_calls": calls}]
        meaning = [turn("user", question(i)), turn("assistant", "", tool_calls=[{"type": "function", "function": call(PLACES[i % 10])}])]
        yield {"messages": json.dumps(messages), "tools": json.dumps([FULL_TIDE])}, {"messages": meaning, "tools": [FULL_TIDE]}


@data_set("excel-csv", "faq.csv", "csv-excel")
def excel_csv():
    """Semicolons, a byte order mark and lines that end in CR LF."""
    for i in range(15):
        yield {"Question": question(i), "Answer": answer(i)}, pair(question(i), answer(i))


@data_set("notepad-jsonl", "train.jsonl", "jsonl-notepad")
def notepad_jsonl():
    """A byte order mark, CR LF, and empty lines between."""
    for i in range(15):
        yield {"prompt": question(i), "completion": f" {answer(i)}"}, pair(question(i), f" {answer(i)}")


@data_set("lines-called-json", "train.json", "jsonl")
def lines_called_json():
    for i in range(15):
        yield {"instruction": question(i), "input": "", "output": answer(i)}, pair(question(i), answer(i))


@data_set("list-called-jsonl", "train.jsonl", "json")
def list_called_jsonl():
    for i in range(15):
        yield {"instruction": question(i), "input": "", "output": answer(i)}, pair(question(i), answer(i))


@data_set("polars-parquet", "train.parquet", "parquet-large")
def polars():
    """Long lists and texts, a time, a category and a decimal next to the messages."""
    for i, last in answers(25):
        messages = chat(i, last or answer(i) if i != 5 else "")
        record = {"when": datetime.datetime(2024, 5, 1 + i, 12, 30), "kind": ["faq", "mail"][i % 2], "score": i / 8, "messages": messages}
        yield record, {"messages": messages}


@data_set("vertex-gemini", "tuning.jsonl", "jsonl")
def gemini():
    for i, last in answers(15, ""):
        record = {"systemInstruction": {"role": "system", "parts": [{"text": f"You know {TOPICS[i % 10]}."}]},
                  "contents": [{"role": "user", "parts": [{"text": question(i)}]}, {"role": "model", "parts": [{"text": last}]}]}
        yield record, {"messages": [turn("system", f"You know {TOPICS[i % 10]}."), *chat(i, last)]}


@data_set("openassistant-guanaco", "openassistant_best_replies_train.jsonl", "jsonl", objective="text")
def guanaco():
    for i in range(15):
        text = f"### Human: {question(i)}### Assistant: {answer(i)}"
        yield {"text": text}, {"text": text}


@data_set("daily-dialog", "data/train-00000-of-00001.parquet", "parquet-datasets")
def daily_dialog():
    for i in range(15):
        dialog = [question(i), answer(i), question(i + 1), answer(i + 1)]
        yield {"dialog": dialog, "act": [2, 1, 2, 1], "emotion": [0, 0, 0, 4]}, {"messages": [turn(["user", "assistant"][n % 2], t) for n, t in enumerate(dialog)]}


@data_set("am-deepseek-r1", "am_0.9M.jsonl.zst", "jsonl")
def am_deepseek():
    for i in range(15):
        full = f"<think>{thought(i)}</think><answer>{answer(i)}</answer>"
        info = {"source": "natural", "reference_answer": None, "test_case": None, "think_content": thought(i), "answer_content": answer(i)}
        messages = [turn("user", question(i), info=info | {"think_content": None, "answer_content": None}), turn("assistant", full, info=info)]
        yield {"messages": messages}, {"messages": [turn("user", question(i)), turn("assistant", full)]}


@data_set("openai-functions", "ft.jsonl", "jsonl")
def openai_functions():
    """OpenAI's older form: one function_call in place of tool_calls, and the role function."""
    for i in range(15):
        function = {"name": "get_tide", "arguments": json.dumps({"place": PLACES[i % 10]})}
        messages = [turn("user", question(i)), {"role": "assistant", "content": None, "function_call": function},
                    {"role": "function", "name": "get_tide", "content": "low"}, turn("assistant", answer(i))]
        meaning = [turn("user", question(i)), turn("assistant", "", tool_calls=[{"type": "function", "function": call(PLACES[i % 10])}]),
                   turn("function", "low"), turn("assistant", answer(i))]
        yield {"messages": messages, "functions": [FULL_TIDE["function"]]}, {"messages": meaning}


@data_set("llama-nemotron", "SFT/math/math.jsonl.gz", "jsonl")
def nemotron():
    """The prompt is a list of messages, the answer a text."""
    for i in range(15):
        output = f"<think>\n{thought(i)}\n</think>\n{answer(i)}"
        record = {"input": [turn("user", question(i))], "output": output, "category": "math", "license": "cc-by-4.0", "reasoning": "on",
                  "generator": "DeepSeek-R1", "used_in_training": "Ultra", "version": "v1", "system_prompt": "detailed thinking on"}
        yield record, {"messages": [turn("system", "detailed thinking on"), turn("user", question(i)), turn("assistant", output)]}


@data_set("dpo-mix-7k", "data/train-00000-of-00001.parquet", "parquet-datasets", objective="dpo")
def dpo_mix():
    for i in range(15):
        asked = [turn("user", question(i)), turn("assistant", answer(i)), turn("user", "And then?")]
        record = {"dataset": "argilla/ultrafeedback", "chosen": [*asked, turn("assistant", answer(i + 1))],
                  "rejected": [*asked, turn("assistant", "No.")], "chosen_rating": 5.0, "rejected_rating": None if i % 3 else 2.5}
        yield record, {"prompt": asked, "chosen": answer(i + 1), "rejected": "No."}


@data_set("smoltalk2", "SFT/train-00000-of-00001.parquet", "parquet-datasets")
def smoltalk2():
    for i in range(15):
        messages = [turn("user", question(i)), turn("assistant", f"<think>\n{thought(i)}\n</think>\n{answer(i)}")]
        kwargs = {"custom_instructions": None, "enable_thinking": True, "python_tools": None, "xml_tools": None}
        yield {"messages": messages, "chat_template_kwargs": kwargs, "source": "OpenThoughts3"}, {"messages": messages}


@data_set("team-tsv", "answers.tsv", "tsv")
def tsv():
    for i in range(15):
        yield {"prompt": question(i).replace("\n", " "), "response": answer(i).replace("\n", " ").replace("\t", " ")}, pair(
            question(i).replace("\n", " "), answer(i).replace("\n", " ").replace("\t", " "))


@data_set("utf16-csv", "export.csv", "csv-utf16")
def utf16():
    for i in range(15):
        yield {"prompt": question(i), "completion": answer(i)}, pair(question(i), answer(i))
