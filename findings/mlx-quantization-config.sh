#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# A model that mlx-lm 0.32.2 quantises has a config.json that transformers 5.24.0 refuses.
#
# mlx-lm describes its quantisation twice, under "quantization" (which it reads) and under "quantization_config" (which
# transformers reads). Neither has "quant_method", by which transformers distinguishes GPTQ, AWQ, FP8 and others. So
# transformers raises an error about a model that is not "correctly quantized", instead of naming MLX. Without the
# second copy, the same step of transformers treats the packed weights as ordinary ones.
#
# The model is a Qwen3 of one layer with random weights, on the CPU of Linux. The script calls only that step of
# from_pretrained() which chooses the quantiser, so it needs no torch. Two minutes, 400 MB.
# Expected output: the two descriptions are equal; mlx-lm opens the folder; transformers raises an error; without the
# copy it chooses no quantiser.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check 'mlx[cpu]==0.32.4' mlx-lm==0.32.2 transformers==5.24.0
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error "$dir/venv/bin/python" - "$dir/model" > "$dir/seen" <<'PY'
import json, pathlib, sys
from mlx_lm.models import qwen3
from mlx_lm.utils import load_model, quantize_model, save_config, save_model
from transformers import AutoConfig
from transformers.quantizers.auto import get_hf_quantizer

folder = pathlib.Path(sys.argv[1])
config = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 64, "num_hidden_layers": 1, "head_dim": 32,
          "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-6, "vocab_size": 64,
          "max_position_embeddings": 64, "rope_theta": 10000.0, "tie_word_embeddings": True}
model, config = quantize_model(qwen3.Model(qwen3.ModelArgs.from_dict(config)), config, 64, 4)
save_model(folder, model)
save_config(config, folder / "config.json")
saved = json.loads((folder / "config.json").read_text())
print("quantization:", saved["quantization"])
print("quantization_config:", saved["quantization_config"])
print("mlx-lm opens:", type(load_model(folder)[0].model.layers[0].mlp.gate_proj).__name__)
try:
    get_hf_quantizer(AutoConfig.from_pretrained(folder), None, None, False, None)
except ValueError as error:
    print("transformers raises:", error)
del saved["quantization_config"]
(folder / "config.json").write_text(json.dumps(saved))
print("without the copy:", get_hf_quantizer(AutoConfig.from_pretrained(folder), None, None, False, None)[0])
PY
grep -v '^\[INFO\]' "$dir/seen" > "$dir/lines"
cat "$dir/lines"
diff - "$dir/lines" <<'SEEN'
quantization: {'group_size': 64, 'bits': 4, 'mode': 'affine'}
quantization_config: {'group_size': 64, 'bits': 4, 'mode': 'affine'}
mlx-lm opens: QuantizedLinear
transformers raises: The model's quantization config from the arguments has no `quant_method` attribute. Make sure that the model has been correctly quantized
without the copy: None
SEEN
