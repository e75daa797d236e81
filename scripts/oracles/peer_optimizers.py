"""The optimizers of others that Snug's are compared with, and `python scripts/oracles/peer_optimizers.py`: the golden of
lion, adafactor and muon, matrices and a vector of each after 20 updates (tests/goldens/optimizers)."""

import pathlib

import torch
from transformers.optimization import Adafactor

SETTINGS = {
    "adamw": {"adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-8},
    "lion": {"adam_beta1": 0.9, "adam_beta2": 0.99},
    "adafactor": {"decay_rate": -0.8, "clip_threshold": 1.0},
    "muon": {"muon_momentum": 0.95, "ns_steps": 5, "adjust_lr_fn": "original", "adam_beta1": 0.9, "adam_beta2": 0.999,
             "adam_epsilon": 1e-8},
}


class PaperLion(torch.optim.Optimizer):
    """Algorithm 2 of "Symbolic Discovery of Optimization Algorithms", in any precision."""

    def __init__(self, params, lr, betas):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for weight in group["params"]:
                state = self.state[weight]
                momentum = state.setdefault("momentum", torch.zeros_like(weight))
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.sub_(group["lr"] * torch.sign(beta1 * momentum + (1 - beta1) * weight.grad))
                momentum.mul_(beta2).add_(weight.grad, alpha=1 - beta2)


class MuonAndAdamW(torch.optim.Optimizer):
    """torch's Muon on the groups of hidden matrices, its AdamW on the others."""

    def __init__(self, groups, lr, adjust_lr_fn="original"):
        groups = list(groups)
        hidden = [group for group in groups if group["hidden"]]
        others = [group for group in groups if not group["hidden"]]
        self.parts = [torch.optim.Muon(hidden, lr=lr, adjust_lr_fn=adjust_lr_fn)]
        if others:
            self.parts.append(torch.optim.AdamW(others, lr=lr, betas=(0.9, 0.999), eps=1e-8))
        super().__init__(groups, {"lr": lr})
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    @torch.no_grad()
    def step(self):
        for part in self.parts:
            part.step()


def make(name: str, params, learning_rate: float) -> torch.optim.Optimizer:
    if name == "adamw":
        return torch.optim.AdamW(params, lr=learning_rate, betas=(0.9, 0.999), eps=1e-8)
    if name == "muon":
        return MuonAndAdamW(params, learning_rate)
    if name == "adafactor":  # as transformers' Trainer makes it
        return Adafactor(params, lr=learning_rate, scale_parameter=False, relative_step=False)
    params = list(params)
    first = params[0]["params"][0] if isinstance(params[0], dict) else params[0]
    if first.dtype == torch.float64:  # bitsandbytes has none, and the curve in fp64 says how far fp32 is off
        return PaperLion(params, lr=learning_rate, betas=(0.9, 0.99))
    import bitsandbytes

    return bitsandbytes.optim.Lion32bit(params, lr=learning_rate, betas=(0.9, 0.99))


def state_of(optimizer: torch.optim.Optimizer, param) -> dict:
    """What the optimizer, or the part of it that steps the parameter, keeps of it."""
    parts = getattr(optimizer, "parts", [optimizer])
    return next(part.state[param] for part in parts if param in part.state)


def main() -> None:
    from adamw_8bit import values
    from safetensors.torch import save_file

    torch.set_num_threads(1)
    golden = {}
    for name in ("lion", "adafactor", "muon"):
        weights = {"matrix": torch.from_numpy(values(35, 1)).reshape(5, 7), "vector": torch.from_numpy(values(6, 2))}
        if name == "muon":  # a matrix that is taller than wide too
            weights["tall"] = torch.from_numpy(values(33, 3)).reshape(11, 3)
        params = {what: torch.nn.Parameter(tensor.clone()) for what, tensor in weights.items()}
        groups = [{"params": [param], "weight_decay": 0.1 if param.dim() > 1 else 0.0, "hidden": param.dim() > 1}
                  for param in params.values()]
        optimizer = make(name, groups, 1e-2)
        for step in range(1, 21):
            for salt, param in enumerate(params.values(), 1):
                param.grad = torch.from_numpy(values(param.numel(), 100 * salt + step)).reshape(param.shape)
            optimizer.step()
        for what, param in params.items():
            golden[f"{name}.{what}"] = param.detach().clone()
            for key, state in state_of(optimizer, param).items():
                if torch.is_tensor(state) and state.dim() > 0:
                    golden[f"{name}.{what}.{key}"] = state.clone()
    path = pathlib.Path("tests/goldens/optimizers/golden.safetensors")
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(golden, path)
    path.chmod(0o644)


if __name__ == "__main__":
    main()
