# SPDX-License-Identifier: MIT
# OpenAI's Agents SDK for Python, which asks /v1/responses: an agent with a tool, and one whose output has a type.
from typing import Literal

from agents import Agent, ModelSettings, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic import BaseModel

from client import BASE, QUESTION, tell


class City(BaseModel):
    city: Literal["Nairobi", "Oslo"]


called = []


@function_tool
def weather(city: Literal["Nairobi", "Oslo"]) -> str:
    """Says what the weather is in a city."""
    called.append(city)
    return "Sunny."


set_default_openai_client(AsyncOpenAI(base_url=f"{BASE}/v1", api_key="none"))
set_tracing_disabled(True)
plain = ModelSettings(temperature=0)
text = Runner.run_sync(Agent(name="plain", model="any", model_settings=plain), QUESTION).final_output
Runner.run_sync(Agent(name="caller", model="any", tools=[weather], model_settings=ModelSettings(temperature=0, tool_choice="required")), QUESTION)
value = Runner.run_sync(Agent(name="typed", model="any", output_type=City, model_settings=plain), QUESTION).final_output
tell(text=text, call={"name": "weather", "arguments": {"city": called[0]}}, value=value.model_dump())
