# SPDX-License-Identifier: MIT
# LangChain for Python.
from langchain_openai import ChatOpenAI

from client import BASE, CITY, QUESTION, TOOL, tell

model = ChatOpenAI(model="any", temperature=0, api_key="none", base_url=f"{BASE}/v1")
text = model.invoke(QUESTION).content
streamed = "".join(piece.content for piece in model.stream(QUESTION))
call = model.bind_tools([TOOL], tool_choice="any", parallel_tool_calls=False).invoke(QUESTION).tool_calls[0]
value = model.with_structured_output({"title": "City", **CITY}, method="json_schema").invoke(QUESTION)
tell(text=text, streamed=streamed, call={"name": call["name"], "arguments": call["args"]}, value=value)
