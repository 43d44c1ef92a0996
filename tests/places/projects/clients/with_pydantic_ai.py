# SPDX-License-Identifier: MIT
# Pydantic AI: an agent with a tool and an output with a type, in one request, as it does by default.
from typing import Literal

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from client import BASE, QUESTION, tell


class City(BaseModel):
    city: Literal["Nairobi", "Oslo"]


model = OpenAIChatModel("any", provider=OpenAIProvider(base_url=f"{BASE}/v1", api_key="none"))
settings = {"temperature": 0}
text = Agent(model, model_settings=settings).run_sync(QUESTION).output
called = Agent(model, output_type=City, model_settings=settings).run_sync(QUESTION).output      # by a call that it demands
value = Agent(model, output_type=NativeOutput(City), model_settings=settings).run_sync(QUESTION).output
tell(text=text, call={"name": "weather", "arguments": called.model_dump()}, value=value.model_dump())
