# SPDX-License-Identifier: MIT
# Ollama's client for Python.
import json

from ollama import Client

from client import BASE, CITY, QUESTION, tell

client = Client(host=BASE)
asked = {"model": "any", "messages": [{"role": "user", "content": QUESTION}], "options": {"temperature": 0}, "think": False}
text = client.chat(**asked).message.content
streamed = "".join(piece.message.content or "" for piece in client.chat(**asked, stream=True))
value = json.loads(client.chat(**asked, format=CITY).message.content)
tell(text=text, streamed=streamed, value=value, vectors=len(client.embed(model="any", input=["one", "two"]).embeddings))
