#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The Python package gguf 0.19.0 writes nested arrays, which GGUF allows, but reads and copies them as flat arrays.
#
# - GGUFWriter writes [[1, 2], [3]]. GGUFReader reads [1, 2, 3] from the same file and loses the ends of the arrays.
# - gguf-new-metadata, the package's command that copies a file to change its description, stores the flat array:
#   another type and other values, without a warning. @huggingface/gguf 0.4.6 shows that the first file is correct and
#   the copy is not.
#
# Expected output: the results of both readers for the original and for the copy.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check gguf==0.19.0
npm install --silent --no-save --prefix "$dir" @huggingface/gguf@0.4.6
cd "$dir"
cat > write.py <<'PY'
from gguf import GGUFWriter
writer = GGUFWriter("original.gguf", "qwen3")
writer.add_array("example.lists", [[1, 2], [3]])
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
PY
cat > read.py <<'PY'
from gguf import GGUFReader
for name in ("original", "copy"):
    print(name, "gguf:", GGUFReader(name + ".gguf").fields["example.lists"].contents())
PY
cat > read.mjs <<'JS'
import { gguf } from '@huggingface/gguf';
for (const name of ['original', 'copy']) {
  const { metadata } = await gguf(`./${name}.gguf`, { allowLocalFile: true });
  console.log(name, '@huggingface/gguf:', JSON.stringify(metadata['example.lists']));
}
JS
venv/bin/python write.py
venv/bin/gguf-new-metadata --general-name Example original.gguf copy.gguf 2> log || { cat log; exit 1; }
{ venv/bin/python read.py; node read.mjs; } > seen
cat seen
diff - seen <<'SEEN'
original gguf: [1, 2, 3]
copy gguf: [1, 2, 3]
original @huggingface/gguf: [[1,2],[3]]
copy @huggingface/gguf: [1,2,3]
SEEN
