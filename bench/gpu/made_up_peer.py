"""Stands in for both of the peer's scripts where there is no card: answers as they do, or fails as one without flash attention."""

import json
import sys


def main() -> None:
    job = json.loads(sys.argv[1])
    if job.get("attention") == "flash_attention_2":
        raise SystemExit("ImportError: flash_attn is not installed")
    if "new_tokens" in job:
        assert len(job["ids"]) == 8 and job["stored"] in ("bf16", "nf4"), job
        print(json.dumps({"tokens_per_second": 20.0 if job["compile"] else 10.0, "prefill_seconds": 0.5}))
        return
    seconds = 0.5 if job["compile"] and job["checkpointing"] else 1.0
    print(json.dumps({"step_seconds": [9.0] * job["warmup"] + [seconds] * job["steps"], "optimizer": "AdamW", "losses": [], "versions": {}}))


if __name__ == "__main__":
    main()
