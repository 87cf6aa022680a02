"""Inspect's provider for Mezzotint: OpenAI's protocol, with `metrics` of each answer kept and the canvas set.

    inspect eval task.py --model mezzotint/lab -M steps=16 --model-base-url http://127.0.0.1:8000/v1

Each ModelOutput has `metadata["metrics"]`, as the server told them, and `metadata["step_budget"]`; the options of the
canvas stand in the log beside the model, as all arguments of a model do.
"""

import os
from typing import Any

from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput, modelapi
from inspect_ai.model._model_call import ModelCall
from inspect_ai.model._providers.openai_compatible import OpenAICompatibleAPI
from inspect_ai.tool import ToolChoice, ToolInfo

__all__ = ["MezzotintAPI"]

_CANVAS = ("steps", "sampler", "preset", "entropy_bound", "canvas_length")


@modelapi(name="mezzotint")
class MezzotintAPI(OpenAICompatibleAPI):
    """A model of a Mezzotint server, by default the one on this machine's port 8000.

    steps, sampler, preset, entropy_bound, canvas_length: how a canvas is denoised, see `x_diffusion`. decoder: the one
    that answers, where the model's name does not say. Answers are not streamed: Inspect would lose the metrics.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        decoder: str | None = None,
        **model_args: Any,
    ) -> None:
        """What the class says; others of `model_args` are those of Inspect's provider openai-api."""
        if model_args.get("stream"):
            raise ValueError("stream is on, which would lose the metrics; leave it out")
        canvas = {name: model_args.pop(name) for name in _CANVAS if name in model_args}
        self._options: dict[str, Any] = {"x_diffusion": canvas} if canvas else {}
        if decoder is not None:
            self._options["x_route"] = {"decoder": decoder}
        super().__init__(
            model_name=model_name,
            base_url=base_url,
            api_key=api_key or os.environ.get("MEZZOTINT_API_KEY") or "none",
            config=config or GenerateConfig(),
            service="mezzotint",
            service_base_url="http://127.0.0.1:8000/v1",
            **model_args,
        )

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput | tuple[ModelOutput | Exception, ModelCall]:
        """Answer as Inspect's own provider does, and keep what the server told beside the answer."""
        answered = await super().generate(input, tools, tool_choice, config)
        if isinstance(answered, tuple):
            output, call = answered
            metrics = (call.response or {}).get("metrics")
            if isinstance(output, ModelOutput) and isinstance(metrics, dict):
                work = metrics.get("diffusion") or {}
                told = {"metrics": metrics, "step_budget": work.get("step_budget")}
                output.metadata = {**(output.metadata or {}), **told}
        return answered

    def completion_params(self, config: GenerateConfig, tools: bool) -> dict[str, Any]:
        """Inspect's parameters with ours in the body; what a task's own extra_body says goes first."""
        params = super().completion_params(config, tools)
        return {**params, "extra_body": {**self._options, **(params.get("extra_body") or {})}}

    def auto_streamable(self, config: GenerateConfig) -> bool:
        """Never: see the class."""
        return False
