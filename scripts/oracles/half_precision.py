"""Twenty optimizer steps in fp16 with PyTorch's GradScaler: weights in fp16 next to fp32 masters, which the optimizer steps, as
DeepSpeed's fp16 and Snug's have it. (torch.autocast keeps the residual stream in fp32, which is another computation.)"""

import copy

import torch
from transformers import get_cosine_schedule_with_warmup

import golden_io


def round_parameters(half, masters) -> None:
    """What is no parameter, such as rotary frequencies, stays in fp32."""
    for (_, to), (_, master) in zip(half.named_parameters(), masters.named_parameters()):
        to.data = master.detach().half()


def train(masters, options: dict, ids, targets) -> dict:
    """Loss, norm of the unscaled gradients before clipping (infinite in a skipped step), learning rate and the scale after each step.

    options: optimizer (of the masters), max_grad_norm, warmup, steps, first_scale, window, bad_steps and the bad_factor of their loss.
    Gradients of weights are rounded to fp16 here, so that a scale may be too large which Snug's, in fp32, would bear: curves stay
    clear of such scales.
    """
    half = copy.deepcopy(masters)
    trained = [(to, master) for (_, to), (_, master) in zip(half.named_parameters(), masters.named_parameters())
               if master.requires_grad]
    optimizer = options["optimizer"]
    schedule = get_cosine_schedule_with_warmup(optimizer, options["warmup"], options["steps"])
    scaler = torch.amp.GradScaler("cpu", init_scale=options["first_scale"], growth_interval=options["window"])
    found = {"loss": [], "grad_norm": [], "learning_rate": [], "loss_scale": []}
    round_parameters(half, masters)
    for step in range(options["steps"]):
        logits = half(input_ids=ids[step], use_cache=False).logits
        loss = golden_io.summed_loss(logits.float(), targets[step]) / golden_io.trained_tokens(targets[step])
        if step in options["bad_steps"]:
            loss = loss * options["bad_factor"]
        half.zero_grad()
        scaler.scale(loss).backward()
        for to, master in trained:
            master.grad = to.grad.float()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_([master for _, master in trained], options["max_grad_norm"])
        found["loss"].append(float(loss.detach()))
        found["grad_norm"].append(float(norm) if torch.isfinite(norm) else float("inf"))
        found["learning_rate"].append(optimizer.param_groups[0]["lr"])
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        found["loss_scale"].append(scaler.get_scale())
        if scaler.get_scale() >= before:  # as transformers' Trainer asks whether a step was skipped
            schedule.step()
        round_parameters(half, masters)
    return {key: torch.tensor(values, dtype=torch.float64) for key, values in found.items()}
