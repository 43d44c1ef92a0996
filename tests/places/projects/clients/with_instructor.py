# SPDX-License-Identifier: MIT
# Instructor, by tools and by a format.
from typing import Literal

import instructor
from openai import OpenAI
from pydantic import BaseModel

from client import BASE, QUESTION, tell


class City(BaseModel):
    city: Literal["Nairobi", "Oslo"]


def asked(mode):
    client = instructor.from_openai(OpenAI(base_url=f"{BASE}/v1", api_key="none"), mode=mode)
    return client.chat.completions.create(model="any", temperature=0, messages=[{"role": "user", "content": QUESTION}], response_model=City).model_dump()


tell(call={"name": "weather", "arguments": asked(instructor.Mode.TOOLS)}, value=asked(instructor.Mode.JSON_SCHEMA))
