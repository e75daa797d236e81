"""The versions of the peer's libraries, as JSON; null for one that is not installed."""

import importlib.metadata
import json
import platform


def version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    names = ("torch", "transformers", "peft", "bitsandbytes", "accelerate", "llama-cpp-python", "numpy")
    print(json.dumps({"python": platform.python_version(), **{name: version(name) for name in names}}))
