"""A task of Inspect: prompts of lab's extract family, right if the answer is exactly what was asked for."""

import os

from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate


@task
def extract() -> Task:
    """Samples come from the file that EXTRACT names: `input` and `target` a line."""
    return Task(dataset=json_dataset(os.environ["EXTRACT"]), solver=generate(), scorer=match(location="exact"))
