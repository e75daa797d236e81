"""A training job's race: every variant of the peer tried once, then pairs of runs in turn."""

import dataclasses
import itertools
import json
import pathlib
import statistics

from contestants import (VARIANTS, Setting, Variant, loss_difference, product_rates, step_seconds, tokens_per_second,
                         train_peer, train_snug)
from model_flops import training_flops
from processes import Failure
from step_profile import profile

RECOMPUTES = ("none", "layer")
LOSS_TOLERANCE = 0.01


@dataclasses.dataclass(frozen=True)
class TrialOptions:
    """How the peer's variants are tried."""

    steps: int
    limit_seconds: float
    skip: list[str]  # words of variants to leave out
    file: pathlib.Path | None  # where trials are kept, and taken from when they are there

    def known(self) -> dict:
        if not self.file or not self.file.exists():
            return {}
        try:
            known = json.loads(self.file.read_text())
        except ValueError as error:
            raise SystemExit(f"--trials {self.file}: not JSON: {error}; name another file, or remove it") from None
        if not isinstance(known, dict) or not all(isinstance(trial, dict) and "index" in trial for trial in known.values()):
            raise SystemExit(f"--trials {self.file}: holds no trials; name another file, or remove it")
        return known

    def keep(self, method: str, trial: dict) -> None:
        if self.file:
            self.file.write_text(json.dumps(self.known() | {f"{method}: {trial['variant']}": trial}, indent=2) + "\n")


def try_variant(setting: Setting, method: str, variant: Variant, ours: dict, options: TrialOptions) -> dict:
    """One short run; a failed one keeps its reason."""
    trial = {"variant": str(variant), "index": VARIANTS.index(variant)}
    try:
        run = train_peer(setting, method, variant, options.steps, options.limit_seconds)
        trial |= {"step_seconds": step_seconds(setting, run), "peak_bytes": run["peak_bytes"],
                  "loss_difference": loss_difference(ours, run), "trained_dtypes": run["trained_dtypes"]}
    except Failure as failure:
        trial["failure"] = str(failure)
    options.keep(method, trial)
    return trial


def try_variants(setting: Setting, method: str, ours: dict, options: TrialOptions, say) -> list[dict]:
    """Every variant once, those that were left out with that reason."""
    trials, known = [], options.known()
    for variant in VARIANTS:
        trial = known.get(f"{method}: {variant}")
        if trial is None and (left_out := [word for word in options.skip if word in str(variant)]):
            trial = {"variant": str(variant), "index": VARIANTS.index(variant),
                     "failure": f"not tried (--skip {','.join(left_out)})"}
        trial = trial or try_variant(setting, method, variant, ours, options)
        say(f"  {method} peer {variant}: " + (trial.get("failure") or
            f"{trial['step_seconds']:.2f} s a step, {trial['peak_bytes'] / 2**30:.2f} GiB"))
        trials.append(trial)
    return trials


def winners(trials: list[dict]) -> dict[str, Variant]:
    """The peer's best for time, and its best for memory where that is another one, of those that computed the same;
    empty where none did."""
    sound = [trial for trial in trials if "failure" not in trial and trial["loss_difference"] <= LOSS_TOLERANCE]
    if not sound:
        return {}
    fastest = min(sound, key=lambda trial: trial["step_seconds"])["index"]
    leanest = min(sound, key=lambda trial: trial["peak_bytes"])["index"]
    if fastest == leanest:
        return {"fastest": VARIANTS[fastest]}
    return {"fastest": VARIANTS[fastest], "leanest": VARIANTS[leanest]}


def summary_of(setting: Setting, runs: list[dict]) -> dict:
    """Medians over the rounds, and the range of the rates."""
    rates = [tokens_per_second(setting, run) for run in runs]
    return {"tokens_per_second": statistics.median(rates), "slowest": min(rates), "fastest": max(rates),
            "peak_bytes": statistics.median(run["peak_bytes"] for run in runs),
            "import_bytes": statistics.median(run.get("import_bytes", 0) for run in runs),
            "step_seconds": [step_seconds(setting, run) for run in runs]}


def run_rounds(setting: Setting, method: str, peers: dict[str, Variant], pairs: int, say) -> tuple[dict, list[dict]]:
    """Everybody once a round, back and forth, and oneDNN's rate after each: runs by name, and the rates."""
    contestants = {f"snug {recompute}": lambda recompute=recompute: train_snug(setting, method, recompute, setting.steps)
                   for recompute in RECOMPUTES}
    for name, variant in peers.items():
        contestants[f"peer {name}"] = lambda variant=variant: train_peer(setting, method, variant, setting.steps,
                                                                         setting.limit_seconds)
    order = list(contestants)
    order = [name for pair in itertools.zip_longest(order[:2], order[2:]) for name in pair if name]
    runs, products = {name: [] for name in order}, []
    for round_number in range(pairs):
        for name in order if round_number % 2 == 0 else reversed(order):
            runs[name].append(contestants[name]())
            say(f"  {method} round {round_number + 1} {name}: "
                f"{tokens_per_second(setting, runs[name][-1]):.0f} tokens/s, "
                f"{runs[name][-1]['peak_bytes'] / 2**30:.2f} GiB")
        products.append(product_rates(setting, method))
    return runs, products


def qlora_next_to_lora(setting: Setting, pairs: int, say) -> dict:
    """Snug's LoRA and QLoRA in turn, nothing recomputed: what 4 bits cost in time. The ratio is the rounds' median."""
    rates = {"lora": [], "qlora": []}
    for round_number in range(pairs):
        for method in list(rates) if round_number % 2 == 0 else reversed(list(rates)):
            rates[method].append(tokens_per_second(setting, train_snug(setting, method, "none", setting.steps)))
            say(f"  in turn, round {round_number + 1} {method}: {rates[method][-1]:.0f} tokens/s")
    return {"rounds": pairs, "tokens_per_second": {method: statistics.median(of_method) for method, of_method in rates.items()},
            "ratio": statistics.median(qlora / lora for lora, qlora in zip(rates["lora"], rates["qlora"]))}


def race(setting: Setting, method: str, pairs: int, options: TrialOptions, say) -> dict:
    """All there is to say of a job, or why there is nothing: {"failure": ...}. No pairs: the trials alone."""
    try:
        ours = train_snug(setting, method, "none", options.steps)
    except Failure as failure:
        say(f"  {method} snug: {failure}")
        return {"method": method, "failure": f"snug: {failure}"}
    trials = try_variants(setting, method, ours, options, say) if setting.python else []
    if pairs == 0:
        return {"method": method, "failure": "no rounds were asked for", "trials": trials}
    peers = winners(trials)
    runs, products = run_rounds(setting, method, peers, pairs, say)
    flops = training_flops(setting.shape, method, setting.row_tokens)
    result = {"method": method, "flops_per_token": flops, "trained_tokens_per_step": ours["trained_tokens"],
              "trials": trials, "peer_variants": {name: str(variant) for name, variant in peers.items()},
              "contestants": {name: summary_of(setting, of_name) for name, of_name in runs.items()},
              "losses": {name: of_name[0]["losses"] for name, of_name in runs.items()},
              "grad_norms": {name: of_name[0]["grad_norms"] for name, of_name in runs.items()},
              "planned_bytes": {name: of_name[0]["planned_bytes"] for name, of_name in runs.items()
                                if "planned_bytes" in of_name[0]}}
    add_comparisons(result, setting, runs, products)
    result["onednn_seconds"] = {group: statistics.median(of_round[group]["seconds"] for of_round in products)
                                for group in ("wide", "narrow")}
    try:
        result["profile"] = profile(setting, method)
    except Failure as failure:
        result["profile_failure"] = str(failure)
    return result


def add_comparisons(result: dict, setting: Setting, runs: dict, products: list[dict]) -> None:
    """Ratios within rounds, agreement of losses, and shares of what oneDNN reaches."""
    reference = "peer fastest" if "peer fastest" in runs else None
    if reference:
        result["speed_ratio"] = {
            name: statistics.median(tokens_per_second(setting, ours) / tokens_per_second(setting, theirs)
                                    for ours, theirs in zip(runs[name], runs[reference]))
            for name in runs if name.startswith("snug")}
        leanest = "peer leanest" if "peer leanest" in runs else reference
        result["memory_ratio"] = {
            name: result["contestants"][name]["peak_bytes"] / result["contestants"][peer]["peak_bytes"]
            for name, peer in (("snug none", reference), ("snug layer", leanest))}
    first = runs["snug none"][0]
    result["loss_difference"] = {name: loss_difference(first, of_name[0]) for name, of_name in runs.items()
                                 if name != "snug none"}
    result["losses_agree"] = all(value <= LOSS_TOLERANCE for value in result["loss_difference"].values())
    rates = {group: statistics.median(of_round[group]["flops_per_second"] for of_round in products
                                      if of_round[group]["flops_per_second"]) for group in ("all", "wide")}
    result["onednn_flops_per_second"] = rates
    result["own_flops_per_second"] = {
        group: statistics.median(of_round[group]["own_flops_per_second"] for of_round in products)
        for group in ("all", "wide")}
    result["onednn_libraries"] = products[0]["libraries"]
    for name, summary in result["contestants"].items():
        reached = summary["tokens_per_second"] * result["flops_per_token"]
        summary["model_flops_per_second"] = reached
        summary["share_of_onednn"] = {group: reached / rate for group, rate in rates.items()}
