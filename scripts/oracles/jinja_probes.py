"""Small templates that show how single constructs of Jinja behave: attributes of every kind of value, and random expressions.
check_chat_templates compares what jinja2 writes of them with what Snug writes, which may be an error that names the construct."""

import copy
import json
import random
import shutil
import subprocess

import markupsafe
from jinja2.runtime import LoopContext, Macro

RECORD = {
    "messages": [
        {"role": "user", "content": "Hi yo, <b>Ann</b> & co.\n 2 lines", "n": 3, "f": -2.5, "l": [3, 1, 2], "d": {"a": 1, "items": [7]}, "t": True, "w": ["b", "A", "c"]},
        {"role": "assistant", "content": "ok", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.0}}}]},
    ]
}
SETUP = (
    "{% macro f(a, b=2) %}<{{ a }}{{ b }}>{% endmacro %}{% set s = namespace(x=1, y='q') %}{% set m = messages[0] %}"
    "{% set d = m.d %}{% set l = m.l %}{% set w = m.w %}{% set c = m.content %}"
)


def names(kind):
    return [name for name in dir(kind) if not name.startswith("__")]


VALUES = {
    "f": names(Macro) + ["x"],
    "s": ["x", "z", "items"],
    "self": ["x"],
    "range": ["x"],
    "range(3)": names(range) + ["x"],
    "dict": ["fromkeys", "x"],
    "namespace": ["x"],
    "raise_exception": ["x"],
    "cycler": ["next", "reset", "current", "x"],
    "joiner": ["x"],
    "(l | map('string'))": names(type(_ for _ in ())) + ["x"],
    "(d | items)": ["close", "x"],
    "d.items()": names(type({}.items())) + ["x"],
    "d.keys()": names(type({}.keys())) + ["x"],
    "d.values()": names(type({}.values())) + ["x"],
    "c": names(str) + ["x"],
    "(c | safe)": names(markupsafe.Markup) + ["x"],
    "(3)": names(int) + ["x"],
    "m.f": names(float) + ["x"],
    "m.t": names(bool) + ["x"],
    "none": ["x"],
    "l": names(list) + ["x"],
    "(1, 2)": names(tuple) + ["x"],
    "d": names(dict) + ["a", "x"],
    "d.get": ["x"],
    "missing": ["x"],
}


def attributes():
    for value, keys in VALUES.items():
        for key in dict.fromkeys(keys):
            for access in (f"{value}.{key}", f"{value}['{key}']"):
                yield SETUP + "{{ " + access + " is defined }}"
                yield SETUP + "{{ " + access + " }}"
    for key in names(LoopContext) + ["indx", "Last"]:
        yield "{% for x in [1, 2] %}{{ loop." + key + " }}{{ loop." + key + " is defined }}{% endfor %}"
    for key in names(Macro):
        yield "{% macro g() %}{{ caller." + key + " }}{% endmacro %}{% call g() %}x{% endcall %}"


FILTERS = [
    "abs", "batch(2)", "batch(2, 'z')", "capitalize", "center(9)", "count", "d('D')", "default('D', true)", "default", "dictsort", "dictsort(by='value')",
    "dictsort(reverse=true)", "e", "escape", "first", "float", "float(1.5)", "forceescape", "format(1)", "format('a', 2)", "indent", "indent(2, true)", "indent('> ', blank=true)",
    "int", "int(5)", "items", "join", "join(', ')", "join('-', attribute='role')", "last", "length", "list", "lower", "map('upper')", "map('string')", "map(attribute='role')",
    "map(attribute='n', default='none')", "max", "min", "max(attribute='n')", "reject('none')", "reject('string')", "rejectattr('n')", "replace('a', 'Z')",
    "replace('o', '', 1)", "reverse", "round", "round(1)", "round(1, 'floor')", "round(method='ceil')", "safe", "select", "select('number')", "selectattr('n', 'defined')",
    "selectattr('role', 'equalto', 'user')", "slice(2)", "slice(2, 'z')", "sort", "sort(reverse=true)", "sort(case_sensitive=true)", "sort(attribute='role')", "string", "sum",
    "sum(start=2)", "title", "tojson", "tojson(indent=2)", "tojson(ensure_ascii=true)", "tojson(sort_keys=true)", "trim", "trim('H')", "truncate(5)", "truncate(5, true)",
    "truncate(8, false, '..', 0)", "unique", "unique(true)", "upper", "wordcount", "urlencode", "attr('x')", "pprint", "random", "groupby('role')", "striptags", "xmlattr", "filesizeformat",
]
TESTS = [
    "boolean", "callable", "defined", "divisibleby 3", "eq 3", "escaped", "even", "false", "float", "ge 2", "gt 2", "in [1, 2, 3]", "in 'abc'", "integer", "iterable", "le 2", "lower",
    "lt 2", "mapping", "ne 3", "none", "number", "odd", "sequence", "string", "true", "undefined", "upper", "not none", "not defined", "sameas none", "filter", "test", "equalto 'user'",
]
METHODS = [
    "upper()", "lower()", "strip()", "strip('.')", "lstrip()", "rstrip('s')", "split()", "split(',')", "split(' ', 1)", "rsplit(None, 1)", "splitlines()", "splitlines(true)", "startswith('H')",
    "endswith(('.', 's'))", "find('o')", "rfind('o')", "index('i')", "count('n')", "replace('o', '0')", "join(['a', 'b'])", "format(1, x=2)", "title()", "capitalize()", "swapcase()", "zfill(5)",
    "center(7, '*')", "ljust(6)", "rjust(6)", "partition(',')", "rpartition('o')", "isdigit()", "isalpha()", "isspace()", "isupper()", "islower()", "isalnum()", "removeprefix('H')",
    "get('a')", "get('z', 9)", "items()", "keys()", "values()", "copy()", "index(3)", "count(1)", "casefold()", "expandtabs()", "encode()", "isnumeric()", "istitle()", "translate({})",
]
ATOMS = [
    "c", "d", "l", "w", "m", "s", "f", "messages", "m.role", "m.n", "m.f", "m.t", "none", "missing", "true", "false", "0", "1", "-1", "7", "2.5", "''", "'abc'", "'A b,c'", "' x '", "'%s %s'", "'{} {x}'",
    "'12'", "'-3.7'", "'<a>'", "[]", "{}", "[1, 'a', none]", "(1,)", "{'b': 2, 'a': [1]}", "range(4)", "d.a", "d['items']", "d.items", "d.items()", "messages[1].tool_calls", "messages[-1]", "l[0]", "l[::-1]",
    "c[1:4]", "c[-3:]", "s.x", "s.z", "f(1)", "f('x', b=3)", "loop", "varargs", "namespace()", "dict(a=1)", "'1_000'", "1e20", "'\\u00e9\\u00df'", "[[1, 2], [3]]", "true and none",
]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">", "<=", ">=", "in", "not in", "and", "or"]


def expression(rng, depth):
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(ATOMS)
    inner = lambda: expression(rng, depth - 1)
    kind = rng.randrange(10)
    if kind < 4:
        return f"({inner()} | {rng.choice(FILTERS)})"
    if kind == 4:
        return f"({inner()} is {rng.choice(TESTS)})"
    if kind == 5:
        return f"({inner()}).{rng.choice(METHODS)}"
    if kind == 6:
        return f"({inner()} {rng.choice(OPERATORS)} {inner()})"
    if kind == 7:
        return rng.choice([f"({inner()})[{rng.choice(['0', '-1', '1:', '::2', ':-1', chr(39) + 'a' + chr(39), inner()])}]", f"[{inner()}, {inner()}]", "{'k': " + inner() + "}", f"({inner()},)"])
    if kind == 8:
        return f"({inner()} if {inner()} else {inner()})" if rng.random() < 0.7 else f"({inner()} if {inner()})"
    return rng.choice([f"(not {inner()})", f"(-{inner()})", f"f({inner()})", f"namespace(v={inner()}).v", f"dict(v={inner()})"])


def statement(rng):
    body = "{{ " + expression(rng, rng.randrange(1, 4)) + " }}"
    kind = rng.randrange(8)
    if kind < 4:
        return body
    if kind == 4:
        return "{% for q in " + expression(rng, 1) + " %}[{{ q }}{{ loop.index }}{{ loop.last }}]{% else %}none{% endfor %}"
    if kind == 5:
        return "{% if " + expression(rng, 2) + " %}yes{% else %}no{% endif %}"
    if kind == 6:
        return "{% set v = " + expression(rng, 2) + " %}{{ v }}{{ v is defined }}"
    return "{% set v %}" + body + "{% endset %}{{ v | length }}{% filter upper %}" + body + "{% endfilter %}"


def expressions(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        yield SETUP + statement(rng)


def theirs(source):
    """What jinja2 writes as transformers sets it up, or the exception."""
    from transformers.utils.chat_template_utils import _compile_jinja_template

    try:
        template = _compile_jinja_template.__wrapped__(source)
        return template.render(messages=copy.deepcopy(RECORD["messages"]), tools=None, documents=None, add_generation_prompt=True)
    except Exception as error:  # whatever jinja2 raises is a refusal
        return error


def ours(dump, folder, data, path):
    """What Snug writes, or nothing where it refuses."""
    run = subprocess.run([dump, folder, data, path], capture_output=True, text=True)
    if run.returncode not in (0, 2):
        raise SystemExit(f"{dump} ended with {run.returncode}: {run.stderr}")
    answer = json.loads(run.stdout) if run.returncode == 0 else {"error": run.stderr}
    return answer.get("prompt", answer).get("text")


def compare(dump, tokenizer, work, seed, count):
    """Counts of sources that are written alike or refused, and what differs."""
    folder, path = work / "probes", work / "probe.jinja"
    folder.mkdir()
    shutil.copy(tokenizer, folder / "tokenizer.json")
    data = work / "probes.jsonl"
    data.write_text(json.dumps(RECORD) + "\n")
    counts = {"attributes": 0, "expressions": 0, "equal": 0, "refused by both": 0, "refused by Snug alone": 0}
    wrong = []
    for kind, source in [*(("attributes", s) for s in attributes()), *(("expressions", s) for s in expressions(seed, count))]:
        counts[kind] += 1
        path.write_text(source)
        expected, got = theirs(source), ours(dump, folder, data, path)
        if isinstance(expected, Exception) and got is None:
            counts["refused by both"] += 1
        elif got is None:
            counts["refused by Snug alone"] += 1
        elif got == expected:
            counts["equal"] += 1
        else:
            wrong.append((kind, source, str(expected), got))
    return {"seed": seed, **counts}, wrong
