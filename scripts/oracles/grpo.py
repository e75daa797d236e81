"""The loss of rewarded answers, with the norm of its gradients and what is measured of them, as TRL's GRPOTrainer computes
them; and what TRL's GRPOTrainer and RLOOTrainer make of rewards."""

import itertools
import json
import pathlib
import tempfile

import torch
from datasets import Dataset
from peft import LoraConfig, set_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

import golden_io
import tiny_models
from preference import ADAPTER, LENGTH, MODEL, OPTIONS, TOKENIZER

NAME = "grpo"
MEASURES = ("clip_ratio/low_mean", "clip_ratio/high_mean", "clip_ratio/region_mean", "kl")
# Tokens of the prompt and of the answer; two prompts have three answers each. They are equally long, since the trainer counts positions from
# the padding of shorter ones on.
ANSWERS = ((5, 7), (5, 9), (5, 3), (5, 12), (5, 1), (5, 18))
ADVANTAGES = (1.25, -0.75, -0.5, 0.5, -1.5, 1.0)
MASKED = 1  # the answer that is not learned where truncated answers are masked
MAX_COMPLETION_LENGTH = 24
EPSILON, EPSILON_HIGH = 0.1, 0.28
# By how much answers were likelier when they were made, in the mean over their tokens: two are clipped low, one high, and one is capped.
MOVED = (0.05, 0.3, 0.25, -0.4, -0.6, 0.0)

# Rewards of groups of four by two functions, null where a function says nothing; with weights 1 and 0.5.
REWARDS = (
    ((1.0, 0.25), (0.0, 0.5), (0.0, None), (0.5, 1.0)),
    ((1.0, 0.0), (1.0, 0.0), (1.0, 0.0), (1.0, 0.0)),
    ((0.0, None), (None, None), (1.0, None), (None, 0.75)),
    ((None, None), (None, None), (None, None), (2.0, 0.5)),
)
REWARD_WEIGHTS = (1.0, 0.5)
COMPLETIONS = (3, 1, 8, 8, 2, 5, 8, 4, 7, 7, 1, 8, 6, 3, 2, 2)
ENDED = (True, True, False, True, True, True, False, True, True, True, True, False, True, True, True, True)


def model_and_options():
    model = tiny_models.build(MODEL)
    model.config._name_or_path = model.name_or_path = f"tests/goldens/{MODEL}/model"
    return model, LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, bias="none", **OPTIONS)


def trainer_of(folder: str, temperature: float = 1.0, trainer=GRPOTrainer, config=GRPOConfig, rewards=None, batch: int = len(ANSWERS),
               generations: int = 3, **options):
    """A trainer of the tiny model with the adapter of another golden, whose reference is the model without it."""
    model, adapter = model_and_options()
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    arguments = config(output_dir=folder, bf16=False, use_cpu=True, report_to="none", gradient_checkpointing=False, disable_tqdm=True,
                       per_device_train_batch_size=batch, num_generations=generations, temperature=temperature,
                       max_completion_length=MAX_COMPLETION_LENGTH, disable_dropout=True, **options)
    made = trainer(model, args=arguments, train_dataset=Dataset.from_list([{"prompt": "a"}, {"prompt": "b"}]),
                   processing_class=tokenizer, reward_funcs=rewards or (lambda completions, **_: [0.0] * len(completions)),
                   peft_config=adapter)
    set_peft_model_state_dict(made.model, load_file(f"tests/goldens/{ADAPTER}/adapter/adapter_model.safetensors"))
    made.model.train()
    made.current_gradient_accumulation_steps = 1
    return made


def answers(vocab: int) -> list:
    """Pairs of a prompt and an answer; those of three answers in turn share a prompt."""
    ids = iter(golden_io.random_ids((1000,), vocab, 5011).tolist())
    take = lambda count: [next(ids) for _ in range(count)]  # noqa: E731
    prompts = {i // 3: take(ANSWERS[i][0]) for i in range(0, len(ANSWERS), 3)}
    return [(prompts[i // 3], take(each[1])) for i, each in enumerate(ANSWERS)]


def padded(made: list) -> dict:
    """As GRPOTrainer pads them: prompts on the left, answers on the right."""
    longest_prompt, longest = (max(len(each[side]) for each in made) for side in (0, 1))
    left = [([0] * (longest_prompt - len(p)) + p, [0] * (longest_prompt - len(p)) + [1] * len(p)) for p, _ in made]
    right = [(a + [0] * (longest - len(a)), [1] * len(a) + [0] * (longest - len(a))) for _, a in made]
    return {"prompt_ids": torch.tensor([each[0] for each in left]), "prompt_mask": torch.tensor([each[1] for each in left]),
            "completion_ids": torch.tensor([each[0] for each in right]), "completion_mask": torch.tensor([each[1] for each in right]),
            "advantages": torch.tensor(ADVANTAGES)}


def packed(made: list, old: torch.Tensor) -> dict:
    """Rows of two answers side by side, as snug lays them out; what is known of a token stands where it is predicted."""
    size = len(made) * LENGTH
    ids, positions, targets = [0] * size, [0] * size, [golden_io.IGNORED] * size
    values, bounds = torch.zeros(size), []
    for first in range(0, len(made), 2):
        begin = first * LENGTH
        for i in (first, first + 1):
            prompt, answer = made[i]
            sequence = prompt + answer
            end = begin + len(sequence)
            ids[begin:end], positions[begin:end] = sequence, range(len(sequence))
            start = begin + len(prompt) - 1
            targets[start:start + len(answer)] = answer
            values[start:start + len(answer)] = old[i, :len(answer)]
            bounds.append([begin, end])
            begin = end
    return {"ids": torch.tensor(ids), "targets": torch.tensor(targets), "positions": torch.tensor(positions),
            "bounds": torch.tensor(bounds), "old": values}


def log_probabilities(trainer, inputs: dict) -> torch.Tensor:
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
    mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
    with torch.no_grad():
        return trainer._get_per_token_logps_and_entropies(trainer.model, ids, mask, inputs["completion_ids"].size(1))[0]


def case_of(trainer, inputs: dict, options: dict) -> dict:
    """The trainer's loss of one set of options."""
    trainer.loss_type, trainer.importance_sampling_level = options["loss_type"], options["importance_sampling_level"]
    trainer.beta, trainer.args.delta = options["beta"], options["delta"] or None
    trainer.args.use_bias_correction_kl = options["use_bias_correction_kl"]
    trainer.epsilon_low, trainer.epsilon_high = EPSILON, EPSILON_HIGH
    inputs = dict(inputs)
    if options["masked"]:
        inputs["completion_mask"] = inputs["completion_mask"].clone()
        inputs["completion_mask"][MASKED] = 0
    if options["on_policy"]:
        del inputs["old_per_token_logps"]
    inputs["num_items_in_batch"] = inputs["completion_mask"].sum()
    trainer._metrics["train"].clear()
    trainer.model.zero_grad()
    loss = trainer._compute_loss(trainer.model, inputs)
    loss.backward()
    norms = [weight.grad.double().norm() for weight in trainer.model.parameters() if weight.grad is not None]
    measured = [trainer._metrics["train"][each][0] if trainer._metrics["train"][each] else None for each in MEASURES]
    return options | {"loss": float(loss.detach().double()), "grad_norm": float(torch.stack(norms).norm()), "measures": measured}


def all_options() -> list:
    found = [{"loss_type": loss_type, "importance_sampling_level": level, "delta": delta, "beta": beta, "temperature": 0.8 if delta else 1.0,
              "use_bias_correction_kl": loss_type in ("grpo", "dapo"), "masked": beta > 0, "on_policy": False}
             for loss_type, level, delta, beta in itertools.product(
                 ("grpo", "bnpo", "dr_grpo", "dapo"), ("token", "sequence"), (0.0, 1.5), (0.0, 0.04))]
    return found + [{"loss_type": loss_type, "importance_sampling_level": "token", "delta": 0.0, "beta": 0.04, "temperature": 0.8,
                     "use_bias_correction_kl": loss_type == "grpo", "masked": False, "on_policy": True}
                    for loss_type in ("grpo", "dapo")]


def make_loss(root: pathlib.Path) -> str:
    cases = []
    generator = torch.Generator().manual_seed(5012)
    for temperature in (1.0, 0.8):
        with tempfile.TemporaryDirectory() as folder:
            trainer = trainer_of(folder, temperature, beta=0.04)
            made = answers(trainer.model.config.vocab_size)
            inputs = padded(made)
            if temperature == 1.0:
                shape = inputs["completion_ids"].shape
                old = (log_probabilities(trainer, inputs) + 0.25 * torch.randn(shape, generator=generator)
                       + torch.tensor(MOVED).unsqueeze(1))
            with trainer.model.disable_adapter():
                inputs["ref_per_token_logps"] = log_probabilities(trainer, inputs)
            inputs["old_per_token_logps"] = old
            cases += [case_of(trainer, inputs, each) for each in all_options() if each["temperature"] == temperature]
            if temperature == 1.0:
                gradients = {}
                case_of(trainer, inputs, cases[1])
                gradients = golden_io.gradients(trainer.model)
    golden_io.write(root / NAME / "golden.safetensors",
                    {**packed(made, old), "advantages": torch.tensor(ADVANTAGES), **gradients})
    (root / NAME / "settings.json").write_text(json.dumps(
        {"model": f"tests/goldens/{MODEL}/model", "adapter": f"tests/goldens/{ADAPTER}/adapter", "max_length": LENGTH,
         "answers": len(ANSWERS), "masked": MASKED, "max_completion_length": MAX_COMPLETION_LENGTH, "epsilon": EPSILON,
         "epsilon_high": EPSILON_HIGH, "with_gradients": 1}, indent=1) + "\n")
    (root / NAME / "cases.json").write_text("[\n" + ",\n".join(json.dumps(each) for each in cases) + "\n]\n")
    return f"{NAME}: {len(cases)} losses, {cases[0]['loss']:.6f} the first"


def make_rewards(root: pathlib.Path) -> str:
    """Advantages and metrics of REWARDS by each way to scale them, and by RLOO."""
    flat = [each for group in REWARDS for each in group]

    def first(completions, **_):
        return [each[0] for each in flat]

    def second(completions, **_):
        return [each[1] for each in flat]

    runs = []
    for trainer_class, config, options in [(GRPOTrainer, GRPOConfig, {"scale_rewards": word}) for word in ("group", "batch", "none")] + [
            (RLOOTrainer, RLOOConfig, {"normalize_advantages": normal}) for normal in (False,)]:
        with tempfile.TemporaryDirectory() as folder:
            trainer = trainer_of(folder, 1.0, trainer_class, config, [first, second], len(flat), 4, beta=0.0,
                                 reward_weights=list(REWARD_WEIGHTS), **options)
            end = trainer.processing_class.eos_token_id
            ids = [[5 + i % 3] * (length - 1) + [end if ended else 7] for i, (length, ended) in enumerate(zip(COMPLETIONS, ENDED))]
            # The tokens that answers end with are not in the tiny model's vocabulary.
            trainer._get_per_token_logps_and_entropies = lambda model, ids, mask, count, *_, **__: (torch.zeros(ids.size(0), count), None, None)
            trainer._generate_single_turn = lambda *_, **__: ids if trainer_class is RLOOTrainer else (ids, None)
            output = trainer._generate_and_score_completions([{"prompt": "a"}] * len(flat))
            metrics = {name: values[-1] for name, values in trainer._metrics["train"].items() if name != "num_tokens"}
        runs.append({"trainer": "rloo" if trainer_class is RLOOTrainer else "grpo", **options,
                     "advantages": output["advantages"].double().tolist(), "metrics": metrics})
    (root / "grpo_rewards.json").write_text(json.dumps(
        {"group": 4, "weights": REWARD_WEIGHTS, "rewards": flat, "lengths": COMPLETIONS, "ended": ENDED, "runs": runs},
        separators=(",", ":")).replace('{"trainer"', '\n{"trainer"') + "\n")
    return f"grpo_rewards.json: {len(runs)} ways of {len(flat)} rewards"
