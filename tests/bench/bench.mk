# SPDX-License-Identifier: MIT
# Benchmarks: the package beside other programs, and parts of the engine alone, from the objects that are shipped.

## make bench          quern in Chromium, WebKit, Firefox and Node beside wllama and native llama.cpp
## make bench-kernels  the product kernels natively, in Node and in Chromium
## make bench-ops      each operation alone, over lengths: build/bench/ops.html (ARGS=--quick)
## make bench-vision   the encoder of images by operation, natively, in Node and in Chromium (ARGS=PROJECTOR)

.PHONY: bench bench-kernels bench-ops bench-vision

bench: site
	$(NODE) tests/bench/bench.mjs

# --- kernels: behind a few exports ---

KERNELS = $(addprefix base/,arena base num reader pool) $(patsubst src/%.c,%,$(wildcard src/weights/*.c src/compute/cpu/*_simd.c)) \
	$(addprefix compute/cpu/,dots kernels_scalar)

build/release/kernels: tests/bench/kernels.c $(KERNELS:%=build/release/obj/%.o)
	$(CC) $(COMMON) -O2 -MT $@ $^ -o $@ -lm

build/bench/kernels-%.mjs: tests/bench/kernels.c $(foreach v,simd relaxed,$(KERNELS:%=build/wasm/$(v)/%.o))
	@mkdir -p $(@D)
	$(EMCC) -O3 $(WASM_SMALL) -pthread $(COMMON) $(WASM_$*) $< $(KERNELS:%=build/wasm/$*/%.o) -o $@ --no-entry -sMODULARIZE -sEXPORT_ES6 \
		-sINITIAL_MEMORY=512MB -sENVIRONMENT=web,worker,node '-sPTHREAD_POOL_SIZE=Module.nThreads||0' '-sINCOMING_MODULE_JS_API=[nThreads]' \
		'-sEXPORTED_FUNCTIONS=_kernels_open,_kernels_begin,_kernels_run,_kernels_name,_kernels_variant,_kernels_macs,_kernels_bytes' \
		'-sEXPORTED_RUNTIME_METHODS=UTF8ToString'

bench-kernels: build/release/kernels build/bench/kernels-simd.mjs build/bench/kernels-relaxed.mjs
	$(NODE) tests/bench/kernels.mjs $(ARGS)

# --- the operations alone, and the encoder of images: the whole engine's objects, natively and as WebAssembly ---

$(BUILD)/bench/%: tests/bench/%.c $(OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MT $@ -Itests/c $(filter %.c %.o,$^) -o $@ -lm

define BENCH_VARIANT
build/wasm/bench/ops-$(1).o build/wasm/bench/vision-$(1).o: build/wasm/bench/%-$(1).o: tests/bench/%.c
	@mkdir -p build/wasm/bench/node
	$$(EMCC) $$(COMMON) -O3 $$(WASM_$(1)) -Itests/c -c $$< -o $$@
build/wasm/bench/ops-$(1).mjs build/wasm/bench/vision-$(1).mjs: $(SOURCES:src/%.c=build/wasm/$(1)/%.o)
build/wasm/bench/ops-$(1).mjs: build/wasm/bench/ops-$(1).o
	$$(BENCH_LINK) $$(WASM_$(1)) -sENVIRONMENT=node $$^ -o build/wasm/bench/node/ops-$(1).mjs
	$$(BENCH_LINK) $$(WASM_$(1)) -sENVIRONMENT=web,worker $$^ -o $$@
build/wasm/bench/vision-$(1).mjs: build/wasm/bench/vision-$(1).o
	$$(BENCH_LINK) $$(WASM_$(1)) -sENVIRONMENT=web,worker,node '-sINCOMING_MODULE_JS_API=[wasmMemory,nThreads,print]' $$^ -o $$@
endef
BENCH_LINK = $(EMCC) $(WASM_LINK) -sMAXIMUM_MEMORY=4GB
$(foreach v,simd relaxed,$(eval $(call BENCH_VARIANT,$(v))))

bench-ops: $(BUILD)/bench/ops build/wasm/bench/ops-simd.mjs build/wasm/bench/ops-relaxed.mjs
	$(NODE) tests/bench/ops.mjs $(ARGS)
bench-vision: $(BUILD)/bench/vision build/wasm/bench/vision-simd.mjs build/wasm/bench/vision-relaxed.mjs
	$(NODE) tests/bench/vision.mjs $(ARGS)

# --- the schema compiler, line by line, for tests/js/grammar/schemas.test.mjs ---

$(BUILD)/bench/schema-lines: tests/bench/schema_lines.c $(filter $(BUILD)/obj/grammar/% $(BUILD)/obj/base/%,$(OBJECTS))
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MT $@ $(filter %.c %.o,$^) -o $@ -lm
