# SPDX-License-Identifier: MIT
# LlamaIndex, with its class for servers like this one.
from typing import Literal

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

from client import BASE, QUESTION, tell


class City(BaseModel):
    """A city."""

    city: Literal["Nairobi", "Oslo"]


def weather(city: Literal["Nairobi", "Oslo"]) -> str:
    """Says what the weather is in a city."""
    return f"Sunny in {city}."


model = OpenAILike(model="any", api_base=f"{BASE}/v1", api_key="none", temperature=0, is_chat_model=True, is_function_calling_model=True,
                   should_use_structured_outputs=True, context_window=1024, max_tokens=200)
asked = [ChatMessage(role="user", content=QUESTION)]
text = model.chat(asked).message.content
streamed = "".join(piece.delta or "" for piece in model.stream_chat(asked))
reply = model.chat_with_tools([FunctionTool.from_defaults(weather)], user_msg=QUESTION, tool_required=True)
call = model.get_tool_calls_from_response(reply)[0]
value = model.as_structured_llm(City).chat(asked).raw
tell(text=text, streamed=streamed, call={"name": call.tool_name, "arguments": call.tool_kwargs}, value=value.model_dump())
