#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The Python package gguf 0.19.0 writes arrays of arrays, which GGUF allows, but reads them back flat and copies them so.
#
# - GGUFWriter writes [[1, 2], [3]]. GGUFReader tells [1, 2, 3] of the same file, and keeps no trace of where the arrays ended.
# - gguf-new-metadata, the command of this package that copies a file to change a description, stores the flat array: another
#   type and other values, without a word. @huggingface/gguf 0.4.6 shows that the first file is whole and the copy is not.
#
# Output seen: of the original and of the copy, what each of the two readers tells.
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
