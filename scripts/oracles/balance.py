"""The loss that balances experts, next to the mean cross entropy, and every gradient of both together."""

import pathlib

import torch

import cases
import golden_io
import tiny_models

COEFFICIENT = 0.5  # so much that gradients without it, or with another one, are far off
# Tokens of each row; what follows them is padding.
LENGTHS = {"mixtral": (33, 33), "qwen3_moe": (33, 20), "gpt_oss": (33, 26)}


def turn_on(model, coefficient: float) -> None:
    """As transformers does where config.json has output_router_logits true."""
    model.config.output_router_logits = True
    model.config.router_aux_loss_coef = model.router_aux_loss_coef = coefficient


def make(name: str, root: pathlib.Path) -> str:
    """Writes root/balanced_NAME, of the model NAME and its batch."""
    model = tiny_models.build(name)
    turn_on(model, COEFFICIENT)
    ids, labels = cases.batch(name)
    mask = (torch.arange(cases.LENGTH) < torch.tensor(LENGTHS[name])[:, None]).long()
    labels = labels.masked_fill(mask == 0, golden_io.IGNORED)
    found = model(input_ids=ids, attention_mask=mask, labels=labels, use_cache=False)
    found.loss.backward()
    grads = golden_io.gradients(model)

    twin = tiny_models.build(name)
    plain = twin(input_ids=ids, attention_mask=mask, labels=labels, use_cache=False)
    assert torch.allclose(found.loss, plain.loss + COEFFICIENT * found.aux_loss, rtol=1e-6)
    plain.loss.backward()
    without = golden_io.gradients(twin)
    router = next(key for key in grads if key.endswith(("gate.weight", "router.weight")))
    change = golden_io.relative_error(without[router], grads[router])
    assert change > 0.1, "the loss must matter"

    golden_io.write(root / f"balanced_{name}" / "golden.safetensors", {
        "ids": ids, "targets": golden_io.shifted(labels), "lengths": torch.tensor(LENGTHS[name]),
        "coefficient": torch.tensor([COEFFICIENT]), "loss": found.loss.reshape(1), "aux_loss": found.aux_loss.reshape(1),
        **grads,
    })
    return (f"balanced_{name}: loss {float(found.loss):.6f}, of which {COEFFICIENT} x {float(found.aux_loss):.6f}; without it "
            f"the router's gradient is {change:.2f} off")
