# SPDX-License-Identifier: MIT
# OpenAI's client for Python: chat completions, and responses.
import json
from typing import Literal

from openai import OpenAI
from pydantic import BaseModel

from client import BASE, QUESTION, TOOL, tell


class City(BaseModel):
    city: Literal["Nairobi", "Oslo"]


client = OpenAI(base_url=f"{BASE}/v1", api_key="none")
asked = {"model": "any", "temperature": 0, "messages": [{"role": "user", "content": QUESTION}]}

text = client.chat.completions.create(**asked).choices[0].message.content
streamed = "".join(event.choices[0].delta.content or "" for event in client.chat.completions.create(**asked, stream=True) if event.choices)
called = client.chat.completions.create(**asked, tools=[TOOL], tool_choice="required").choices[0].message.tool_calls[0].function
value = client.chat.completions.parse(**asked, response_format=City).choices[0].message.parsed
answer = client.responses.create(model="any", temperature=0, input=QUESTION)
tell(text=text, streamed=streamed, call={"name": called.name, "arguments": json.loads(called.arguments)}, value=value.model_dump(), more=[answer.output_text])
