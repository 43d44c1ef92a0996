# Runs the task against a server, whose completions address is given, and prints what each answer was given: [tokens, sum, greedy] by question.
# The tokenizer is the server's: `tokenizer_backend` is found out by lm-eval itself.
import json
import sys

import lm_eval
from lm_eval.tasks import TaskManager

ADDRESS, CONCURRENT = sys.argv[1], sys.argv[2]
results = lm_eval.simple_evaluate(
    model="local-completions",
    model_args=f"model=any,base_url={ADDRESS},num_concurrent={CONCURRENT},max_length=256",
    tasks=["quern_toy"],
    task_manager=TaskManager(include_path=".", include_defaults=False),
    log_samples=True,
    bootstrap_iters=0,
)
samples = sorted(results["samples"]["quern_toy"], key=lambda sample: sample["doc_id"])
print(json.dumps([[response[0] for response in sample["resps"]] for sample in samples]))
