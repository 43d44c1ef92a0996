# SPDX-License-Identifier: MIT
# LiteLLM.
import json
from typing import Literal

import litellm
from pydantic import BaseModel

from client import BASE, QUESTION, TOOL, tell


class City(BaseModel):
    city: Literal["Nairobi", "Oslo"]


asked = {"model": "openai/any", "api_base": f"{BASE}/v1", "api_key": "none", "temperature": 0, "messages": [{"role": "user", "content": QUESTION}]}
text = litellm.completion(**asked).choices[0].message.content
streamed = "".join(event.choices[0].delta.content or "" for event in litellm.completion(**asked, stream=True))
called = litellm.completion(**asked, tools=[TOOL], tool_choice="required").choices[0].message.tool_calls[0].function
value = json.loads(litellm.completion(**asked, response_format=City).choices[0].message.content)
tell(text=text, streamed=streamed, call={"name": called.name, "arguments": json.loads(called.arguments)}, value=value)
