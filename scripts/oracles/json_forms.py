"""Texts and whether they are JSON that is valid under a schema, by the library jsonschema.

Snug's masks are narrower than a schema in a few stated ways (src/text/grammar/schema_grammar.h), which the library is told here: objects with
properties are closed unless they say otherwise, a schema with properties is of objects, and integers have no fraction.

    pip install jsonschema
    python scripts/oracles/json_forms.py    writes tests/goldens/json_forms.json
"""

import json
from pathlib import Path

import jsonschema
from jsonschema import Draft202012Validator

SCHEMAS = [
 {"type":"object"},{},True,
 {"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"additionalProperties":False},
 {"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"},"c":{"type":"boolean"},"d":{"type":"null"}},"required":["b"]},
 {"type":"object","properties":{"a":{"type":"integer"},"ab":{"type":"integer"},"é\"":{"type":"integer"}},"additionalProperties":{"type":"string"}},
 {"type":"array","items":{"type":"integer","minimum":-12,"maximum":305},"minItems":2,"maxItems":4},
 {"type":"array","items":{"enum":["a","b\n",3,None,{"x":[1,2]},1.5]},"minItems":1},
 {"$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"]}},"$ref":"#/$defs/node"},
 {"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}},"n":{"const":"x"}},"required":["n"]},
 {"type":"string","minLength":2,"maxLength":5},{"type":"string","maxLength":0},
 {"type":"string","pattern":"^[a-z]{2,3}\\d?$"},{"type":"string","pattern":"ab"},{"type":"string","pattern":"^a|b$"},{"type":"string","pattern":"^(\"|\\\\|\\n|x)+$"},
 {"type":"number","minimum":0,"maximum":1},{"type":"number","exclusiveMinimum":-0.5,"exclusiveMaximum":12.25},{"type":"number","minimum":3.75},{"type":"number","maximum":-2.5},{"type":"number","multipleOf":0.01,"minimum":0,"maximum":5},
 {"type":"integer","minimum":1},{"type":"integer","exclusiveMinimum":-100,"exclusiveMaximum":0},{"type":"integer","minimum":-5,"maximum":5},{"type":"integer","minimum":1.5,"maximum":10.5},{"type":"integer","maximum":7},{"type":"integer","minimum":-1000,"maximum":-17},
 {"type":["string","null"]},{"type":["integer","object"],"minimum":5,"maximum":9,"properties":{"q":{"type":"boolean"}}},
 {"anyOf":[{"type":"string","maxLength":3},{"type":"integer"}]},{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"]},{"type":"object","properties":{"k":{"const":"b"},"y":{"type":"string"}},"required":["k","y"]}]},
 {"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"anyOf":[{"properties":{"b":{"type":"integer"}},"required":["b"]},{"properties":{"c":{"type":"string"}},"required":["c"]}]},
 {"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"integer"},"a":{"minimum":3,"maximum":4}},"required":["b"]}]},
 {"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2},
 {"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2,"maxItems":2},
 {"type":"object","required":["z"],"properties":{"a":{"type":"integer"}}},
 {"properties":{"d":{"type":"string","format":"date"},"t":{"type":"string","format":"date-time"},"u":{"type":"string","format":"uuid"},"i":{"type":"string","format":"ipv4"},"e":{"type":"string","format":"email"},"h":{"type":"string","format":"hostname"},"r":{"type":"string","format":"uri"},"p":{"type":"string","format":"duration"},"m":{"type":"string","format":"time"}},"required":["d","t","u","i","e","h","r","p","m"]},
]
VALUES = [1,0,-1,5,6,9,10,305,306,-12,-13,0.5,1.0,1.5,12.25,12.24,3.75,3.74,-2.5,-2.49,-0.5,-0.49,4.999,5.01,"", "a","ab","abc","abcdef","xab","b","ax","\"","\\","x\n","ab1","abc12",None,True,False,[],{},[1],[1,2],[305,-12],[1,"a"],[1,2,3,4,5],["a"],[None,3],[{"x":[1,2]}],{"name":"é","age":3},{"name":"x"},{"b":1},{"a":"x","b":2e3},{"b":1,"d":None},{"a":1},{"ab":1,"q":"s"},{"q":1},{"ac":"x"},{"v":1,"next":None},{"v":1,"next":{"v":2,"next":None}},{"v":1},{"n":"x"},{"kids":[{"n":"x"},{"kids":[],"n":"x"}],"n":"x"},{"k":"a","x":1},{"k":"b","x":1},{"k":"b","y":"s"},{"a":1,"b":2},{"a":3,"b":2},{"a":1,"c":"u"},{"z":1},{"a":1,"z":[]},{"z":1,"y":2},{"x":1,"y":2,"w":3},{"q":True},7,8,-17,-16,-1000,-1001,100,99999]


def closed(schema, is_part=False):
    """The schema with what Snug adds to it; of parts that hold together only the whole is closed."""
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            parts_hold_together = key == "allOf" or "properties" in schema
            result[key] = [closed(one, parts_hold_together) for one in schema[key]]
    for key in ("properties", "$defs"):
        if key in schema:
            result[key] = {name: closed(one) for name, one in schema[key].items()}
    if isinstance(schema.get("items"), dict):
        result["items"] = closed(schema["items"])
    if isinstance(schema.get("prefixItems"), list):
        result["prefixItems"] = [closed(one) for one in schema["prefixItems"]]
    if "properties" in schema:
        for name in schema.get("required", []):  # what is required may come
            result["properties"].setdefault(name, True)
    if "properties" in schema and "type" not in schema:
        result["type"] = "object"
    is_whole = "properties" in schema or "allOf" in schema
    if is_whole and not is_part and "additionalProperties" not in schema:
        result["unevaluatedProperties"] = False
    return result


def main():
    is_integer = lambda checker, value: isinstance(value, int) and not isinstance(value, bool)
    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", is_integer)
    validator = jsonschema.validators.extend(Draft202012Validator, type_checker=checker)
    texts = [json.dumps(value, ensure_ascii=False) for value in VALUES]
    texts += [json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in VALUES]
    texts = list(dict.fromkeys(texts))
    cases = []
    for schema in SCHEMAS:
        of_schema = validator(closed(schema), format_checker=validator.FORMAT_CHECKER)
        valid = [i for i, text in enumerate(texts) if of_schema.is_valid(json.loads(text))]
        cases.append({"schema": schema, "valid": valid})
    golden = Path(__file__).parents[2] / "tests/goldens/json_forms.json"
    lines = ",\n".join(json.dumps(case) for case in cases)
    golden.write_text(f'{{"texts": {json.dumps(texts)},\n"cases": [\n{lines}\n]}}\n')


main()
