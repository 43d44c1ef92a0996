# SPDX-License-Identifier: MIT
# Anthropic's client for Python.
from anthropic import Anthropic

from client import BASE, QUESTION, WEATHER, tell

client = Anthropic(base_url=BASE, api_key="none")
asked = {"model": "any", "max_tokens": 200, "extra_body": {"temperature": 0}, "messages": [{"role": "user", "content": QUESTION}]}
text = "".join(part.text for part in client.messages.create(**asked).content if part.type == "text")
with client.messages.stream(**asked) as stream:
    streamed = "".join(stream.text_stream)
tool = {"name": WEATHER["name"], "description": WEATHER["description"], "input_schema": WEATHER["parameters"]}
call = next(part for part in client.messages.create(**asked, tools=[tool], tool_choice={"type": "any"}).content if part.type == "tool_use")
tell(text=text, streamed=streamed, call={"name": call.name, "arguments": call.input})
