"""What the prose of docs/published.md says in figures, worked out from the tables of the same page, so that neither changes without the other."""

import decimal
import re
import statistics

GPU_TEST = "gpu-test"
OUT_OF_MEMORY = "out of memory"
DOES_NOT_FIT = "does not fit"
# A model with heads of 256, whose rows are described apart.
WIDE_HEADS = "Gemma"


def number(cell: str) -> float:
    """Of "1,311" or "31.5 GiB"."""
    return float(cell.split()[0].rstrip(",").replace(",", ""))


def rounded(value: float, places: int) -> str:
    """As a reader rounds: halves go up."""
    return str(decimal.Decimal(str(round(value, 9))).quantize(decimal.Decimal(1).scaleb(-places), decimal.ROUND_HALF_UP))


def span(values: list[float], places: int) -> str:
    return f"{rounded(min(values), places)} to {rounded(max(values), places)}"


def listed(numbers: list[int]) -> str:
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


class Row:
    """A line of the first table."""

    def __init__(self, cells: list[str]) -> None:
        self.number = int(cells[0])
        self.source, self.job, self.cards, self.rows, self.published, self.planned = cells[1:7]
        self.memory_ratio = float(cells[7]) if cells[7] else None
        self.published_speed = number(cells[8]) if cells[8] else None
        self.speed = number(cells[9])
        self.speed_ratio = float(cells[10]) if cells[10] else None

    def fits(self) -> bool:
        return DOES_NOT_FIT not in self.planned

    def method(self) -> str:
        return self.job.split()[-1]


def lines_after(page: str, heading: str) -> list[list[str]]:
    begin = page.index(heading)
    end = page.find("\n## ", begin + 1)
    part = page[begin:end if end > 0 else len(page)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if re.match(r"\| \d", line)]


def memory_claims(rows: dict[int, Row]) -> list[str]:
    grown = rows[172], rows[171]
    refused = [row for row in rows.values() if row.published == OUT_OF_MEMORY]
    return [
        f"Memory in the same setting: {span([row.memory_ratio for row in rows.values() if row.memory_ratio], 2)} of what was published",
        f"13B on four GPUs took {rows[74].published} by FSDP with offloading and {rows[75].published} by ZeRO-3",
        f"Snug plans {rows[75].planned}",
        f"{number(rows[168].published):g} and {rows[168].planned} (row 168)",
        f"{number(rows[179].published):g} and {rows[179].planned} (rows 179 and 188)",
        f"{number(rows[95].published):g} and {rows[95].planned} (row 95",
        f"the published peak grows by {rounded(number(grown[0].published) - number(grown[1].published), 1)} GiB and the plan by "
        f"{rounded(number(grown[0].planned) - number(grown[1].planned), 1)} (rows 171 and 172)",
        f"and planned to fit**: rows {listed([row.number for row in refused if row.fits()])}.",
        f"Row 86 by little ({number(rows[86].planned):g} of 85 GB)",
        f"Rows {listed([row.number for row in refused if not row.fits()])} fit neither",
    ]


def quantised_claims(rows: dict[int, Row]) -> list[str]:
    mine = [row for row in rows.values() if row.source == GPU_TEST and not row.job.startswith(WIDE_HEADS)]
    quantised = [row for row in mine if row.method() == "qlora"]
    plain = [row for row in mine if row.method() == "lora"]
    times = [other.published_speed / row.published_speed for row in quantised for other in plain
             if (other.job, other.cards) == (row.job.replace("qlora", "lora"), row.cards)]
    return [
        f"planned {span([row.speed_ratio for row in quantised], 0)} times as fast as in gpu-test** "
        f"(rows {', '.join(str(row.number) for row in quantised)})",
        f"where LoRA of Llama and Phi differs by {span([row.speed_ratio for row in plain], 1)}.",
        f"QLoRA takes {span(times, 1)} times the time of LoRA",
    ]


def speed_claims(rows: dict[int, Row]) -> list[str]:
    wide = [row for row in rows.values() if row.source == GPU_TEST and row.job.startswith(WIDE_HEADS) and row.method() != "qlora" and row.speed_ratio]
    on = {card: [row for row in wide if row.cards.endswith(f" {card}")] for card in ("a100", "h100", "rtx-pro-6000")}
    told_of = (190, 194, 195, 199)
    others = [row.speed_ratio for row in rows.values() if row.source == "fsdp-qlora" and row.speed_ratio and row.number not in told_of]
    return [
        f"(Gemma on an A100: {span([row.speed_ratio for row in on['a100']], 2)} of the published speed, "
        f"rows {listed([row.number for row in on['a100']])}; on an H100 {span([row.speed_ratio for row in on['h100']], 2)}, "
        f"on an RTX Pro 6000 {span([row.speed_ratio for row in on['rtx-pro-6000']], 2)})",
        f"(row 190, one row of 24,576 tokens: {rounded(rows[190].speed_ratio, 2)})",
        f"rows 194 and 195: {rounded(rows[194].speed_ratio, 1)} and {rounded(rows[195].speed_ratio, 1)}; "
        f"four H100, row 199: {rounded(rows[199].speed_ratio, 1)})",
        f"Speed of fsdp-qlora elsewhere: {span(others, 2)}.",
    ]


def best_claims(page: str, rows: dict[int, Row], affordable: float) -> list[str]:
    gains = []
    for cells in lines_after(page, "## In the best setting"):
        own = [rows[int(each)].speed for each in cells[0].split(",") if rows[int(each)].fits()]
        if own and cells[6]:
            gains.append(number(cells[6]) / max(own))
    slowest = "never slower than it" if min(gains) >= 1 else "slower than it at times"
    return [
        f"{rounded(statistics.median(gains), 1)} times as fast as Snug in the row's own setting in the median, and {slowest} where that fits",
        f"at most {affordable:g} GPUs times billions of parameters",
    ]


def missing(page: str, affordable: float) -> list[str]:
    """What the page's tables say and its prose does not. `affordable`: cards times billions of parameters of the largest job that is searched."""
    rows = {row.number: row for row in map(Row, lines_after(page, "## In the row's own setting"))}
    prose = " ".join(page.split())
    claims = [*memory_claims(rows), *quantised_claims(rows), *speed_claims(rows), *best_claims(page, rows, affordable)]
    return [claim for claim in claims if " ".join(claim.split()) not in prose]
