"""Questions, answers and passages of our own, from which the files in the forms of public data sets are made.

Everything depends on a record's number alone, so that a file made again is the same file.
"""

THINGS = ["lamps", "ropes", "kettles", "maps", "oars", "bells", "crates", "lenses", "stamps", "hinges", "valves"]
PLACES = ["Bergen", "Łódź", "Kyoto", "São Paulo", "Tromsø", "Zürich", "Reykjavík", "Malmö", "القاهرة", "大阪"]
TOPICS = ["tides", "bread", "glaciers", "clocks", "bees", "bridges", "paper", "volcanoes", "violins", "lighthouses"]


def numbers(i):
    return 3 + i * 7 % 40, 2 + i * 5 % 23


def question(i):
    a, b = numbers(i)
    thing, place, topic = THINGS[i % 11], PLACES[i % 10], TOPICS[i % 10]
    return [
        f"A shop in {place} sells {a} {thing} a day. How many {thing} does it sell in {b} days?",
        f"Explain to a child of {b} years why {topic} matter.",
        f"Write a short note about {topic} near {place}.\nUse no more than {a} words.",
        f"Which is larger, {a} or {b}? Say why.",
        f"Give me {b} names for a boat that carries {thing} to {place} 🚢",
        f"What is the use of {thing}?",
    ][i % 6]


def answer(i):
    a, b = numbers(i)
    thing, place, topic = THINGS[i % 11], PLACES[i % 10], TOPICS[i % 10]
    return [
        f"It sells {a} × {b} = {a * b} {thing}.",
        f"Because {topic} are all around us: without them, {place} would look different.",
        f"The {topic} of {place} are quiet in winter.\n\nIn spring they \"wake up\" — as people say — and {thing} are sold.",
        f"{max(a, b)} is larger: the difference is {abs(a - b)}.",
        "\n".join(f"{n + 1}. {thing.title()} of {place} no. {n + 1}" for n in range(min(b, 5))),
        f"{thing.title()} help with work\tat home and at sea.  Two spaces, a tab and a back\\slash stand in this line.",
    ][i % 6]


def long_answer(i, sentences=700):
    return " ".join(f"Sentence {n} is about {TOPICS[(i + n) % 10]} and about {THINGS[n % 11]}." for n in range(sentences))


def passage(i):
    return " ".join(answer(i + n) for n in range(3)) + f" This was told in {PLACES[i % 10]}, on day {i}."


def summary(i):
    return f"A note on {TOPICS[i % 10]} in {PLACES[i % 10]}."


def code(i):
    a, b = numbers(i)
    return f"def step_{i}(values):\n    \"\"\"Adds {a}, then keeps what is above {b}.\"\"\"\n    return [v + {a} for v in values if v + {a} > {b}]\n"


def thought(i):
    a, b = numbers(i)
    return f"Let me see: {a} and {b} are given.\nTheir product is {a * b}."


def story(i):
    return f"Once there was a bell in {PLACES[i % 10]}. It rang {3 + i} times.\nThen everybody went home, and the {THINGS[i % 11]} were safe."


def identifier(i):
    return f"{i * 2654435761 % 2**32:08x}-{i * 40503 % 65536:04x}-4{i % 4096:03x}-a{i * 7 % 4096:03x}-{i * 11400714819323 % 2**48:012x}"


def day(i):
    return f"2023-0{1 + i % 9}-{10 + i % 18}T1{i % 10}:2{i % 10}:31.{100000 + i * 991}+00:00"
