"""An agent of pydantic-ai that looks three things up, each once, and reports; prints its hops as JSON.

Arguments: URL, model, seed.
"""

import asyncio
import json
import sys

from pydantic import BaseModel
from pydantic_ai import Agent, RunContext, ToolDefinition, capture_run_messages
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

HOPS: list[str] = []


async def offer_once(_context: RunContext[None], tool: ToolDefinition) -> ToolDefinition | None:
    """A tool that was used is not offered again."""
    return None if any(hop.startswith(f"{tool.name} ") for hop in HOPS) else tool


class Report(BaseModel):
    """What was found."""

    city: str
    celsius: int


def make_agent(url: str, model: str, seed: int) -> "Agent[None, Report]":
    """An agent with three tools, whose end is a report."""
    provider = OpenAIProvider(base_url=url, api_key="none")
    settings = ModelSettings(max_tokens=120, temperature=1.0, seed=seed, parallel_tool_calls=False)
    agent = Agent(
        OpenAIChatModel(model, provider=provider),
        output_type=Report,
        model_settings=settings,
        retries=3,
    )

    @agent.tool_plain(prepare=offer_once)
    def find_city(person: str) -> dict[str, str]:
        """Find the city of a person."""
        HOPS.append(f"find_city {person}")
        return {"city": "Lund"}

    @agent.tool_plain(prepare=offer_once)
    def read_weather(city: str) -> dict[str, int]:
        """Read the weather of a city."""
        HOPS.append(f"read_weather {city}")
        return {"celsius": 7}

    @agent.tool_plain(prepare=offer_once)
    def tell_time(city: str) -> dict[str, str]:
        """Tell the time in a city."""
        HOPS.append(f"tell_time {city}")
        return {"time": "18:28"}

    return agent


async def main() -> None:
    """Run it once."""
    url, model, seed = sys.argv[1:4]
    agent = make_agent(url, model, int(seed))
    with capture_run_messages() as messages:
        try:
            result = await agent.run("Find the city of Pihus, then its weather, then report.")
        except Exception as error:
            print(json.dumps({"error": repr(error), "hops": HOPS, "messages": len(messages)}))
            raise
    requests = result.usage.requests
    print(json.dumps({"hops": HOPS, "requests": requests, "report": result.output.model_dump()}))


if __name__ == "__main__":
    asyncio.run(main())
