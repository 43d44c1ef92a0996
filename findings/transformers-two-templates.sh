#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# In transformers 5.24.0 a tokenizer and a processor take different chat templates from the same folder.
#
# - If a folder has chat_template.jinja and chat_template.json, the tokenizer uses the .jinja file and the processor the
#   .json file. The processor's own tokenizer keeps the other template, so one object has two templates.
# - With additional_chat_templates/tool_use.jinja beside both, the tokenizer loads, but the processor refuses the
#   folder.
# - Without chat_template.json both load. Then, for a conversation with tools, the tokenizer uses tool_use and the
#   processor uses "default".
#
# The templates in this script only contain the name of their file. No weights and no torch are needed.
# Expected output: the four lines at the end of this file.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.24.0 tokenizers==0.23.3 jinja2==3.1.6
mkdir -p "$dir/folder/additional_chat_templates"
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error "$dir/venv/bin/python" - "$dir/folder" > "$dir/seen" <<'PY'
import json, pathlib, sys
from tokenizers import Tokenizer, models
from transformers import AutoTokenizer, ProcessorMixin

class Processor(ProcessorMixin):
    def __init__(self, tokenizer=None, chat_template=None, **others):
        super().__init__(tokenizer, chat_template=chat_template)

folder = pathlib.Path(sys.argv[1])
Tokenizer(models.WordLevel({"hello": 0, "?": 1}, unk_token="?")).save(str(folder / "tokenizer.json"))
(folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
(folder / "processor_config.json").write_text(json.dumps({"processor_class": "Processor"}))
(folder / "chat_template.jinja").write_text("from the .jinja file")
(folder / "chat_template.json").write_text(json.dumps({"chat_template": "from the .json file"}))

def prompt(what, tools=None):
    return what.apply_chat_template([{"role": "user", "content": "hello"}], tools=tools, tokenize=False)

processor = Processor.from_pretrained(folder)
print("both files: tokenizer", prompt(AutoTokenizer.from_pretrained(folder)), "| processor", prompt(processor),
      "| its tokenizer", prompt(processor.tokenizer))
(folder / "additional_chat_templates" / "tool_use.jinja").write_text("from tool_use")
print("and tool_use: tokenizer has", sorted(AutoTokenizer.from_pretrained(folder).chat_template))
try:
    print("and tool_use: processor has", sorted(Processor.from_pretrained(folder).chat_template))
except ValueError as error:
    print("and tool_use: processor raises", str(error).split(" - ")[0])
(folder / "chat_template.json").unlink()
tools = [{"type": "function", "function": {"name": "clock"}}]
print("tools, no .json: tokenizer", prompt(AutoTokenizer.from_pretrained(folder), tools), "| processor",
      prompt(Processor.from_pretrained(folder), tools))
PY
cat "$dir/seen"
diff - "$dir/seen" <<'SEEN'
both files: tokenizer from the .jinja file | processor from the .json file | its tokenizer from the .jinja file
and tool_use: tokenizer has ['default', 'tool_use']
and tool_use: processor raises Cannot load chat template due to conflicting files
tools, no .json: tokenizer from tool_use | processor from the .jinja file
SEEN
