# SPDX-License-Identifier: MIT
# Builds the engine natively and as WebAssembly. `make` alone says what there is to make.
# Each config has its own folder, so switching never needs a clean: make config=sanitize test-c

config ?= release
ifeq ($(origin CC),default)
CC = gcc
endif
BUILD = build/$(config)
NODE ?= node

# The arithmetic allows no fused multiply-add and no reordering, in any build.
COMMON = -std=gnu11 -Isrc -isystem build/include -ffp-contract=off -pthread -MMD -MP -Wall -Wextra -Wconversion -Wshadow
# Files that read untrusted bytes: nothing narrows silently.
LOADERS = base/base base/arena base/reader base/json_reader load/checkpoint load/metadata load/sniff load/formats/gguf load/formats/safetensors load/formats/json load/formats/hf_config load/formats/hf_quantization load/formats/hf_tokenizer load/formats/hf_template load/formats/hf_special load/formats/hf_vectors load/formats/hf_vision load/formats/ajc1 load/formats/ajc1_tokenizer weights/dtype weights/quantize models/bind models/qwen models/qwen3_vision engine/intake cli/convert cli/convert_keys cli/gguf_writer text/tokenizer text/vocab text/bpe text/scores text/pieces base/unicode text/table text/sampler base/json base/sha256 image/header image/header_boxes image/size image/resize image/pixels image/taps engine/media engine/sight engine/look grammar/nodes grammar/derive grammar/ready grammar/build grammar/state grammar/class grammar/regex grammar/regex_class grammar/properties grammar/gbnf grammar/choices grammar/vocabulary grammar/mask grammar/mask_head grammar/mask_string grammar/compile grammar/saved grammar/schema_arrays grammar/schema_compile grammar/schema_emit grammar/schema_emit_arrays grammar/schema_emit_objects grammar/schema_formats grammar/schema_keywords grammar/schema_logic grammar/schema_numbers grammar/schema_objects grammar/schema_refs grammar/schema_sets grammar/schema_tagged grammar/schema_terms grammar/schema_tree grammar/schema_unevaluated grammar/schema_values grammar/schema_words
STRICT = -Wsign-conversion -Werror

FLAGS_release  = -O2
FLAGS_debug    = -O0 -g
FLAGS_sanitize = -O2 -g1 -fno-var-tracking-assignments -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS_thread   = -O2 -g1 -fsanitize=thread -fno-sanitize-recover=all
# wasm32's address space on a 64-bit machine: what would wrap there is refused here.
FLAGS_narrow   = $(FLAGS_sanitize) -DADDR_MAX=0xFFFFFFFFull
FLAGS_fuzz     = -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
ifeq ($(config),fuzz)
CC = clang-19
endif
FLAGS = $(COMMON) $(FLAGS_$(config)) $(CFLAGS)

# What only command lines have: the conversion of models. No page loads it.
TOOL = cli/gguf_writer cli/convert cli/convert_keys cli/cli_claim cli/cli_described cli/cli_files cli/cli_output cli/cli_quantize
SOURCES = $(filter-out src/wasm.c src/engine/blind.c src/grammar/face.c src/grammar/face_format.c src/cli/%,$(wildcard src/*.c src/*/*.c src/*/*/*.c))
# xxHash is one header of the system's; a copy of it alone, since the WebAssembly build must see no other header of the system.
XXHASH ?= $(firstword $(wildcard /usr/include/xxhash.h /usr/local/include/xxhash.h /opt/homebrew/include/xxhash.h))
build/include/xxhash.h: $(XXHASH)
	@mkdir -p $(@D)
	@test -n '$<' || { echo 'xxhash.h is missing: install libxxhash-dev (Debian) or xxhash, or pass XXHASH=path'; exit 1; }
	cp $< $@
$(BUILD)/obj/base/hash.o: build/include/xxhash.h

OBJECTS = $(SOURCES:src/%.c=$(BUILD)/obj/%.o)
TOOL_OBJECTS = $(TOOL:%=$(BUILD)/obj/%.o) $(BUILD)/obj/cli/cli_process.o
# Two files know how far addresses go; the others are those of sanitize.
ifeq ($(config),narrow)
NARROW = $(BUILD)/obj/base/reader.o $(BUILD)/obj/engine/plan.o
OBJECTS := $(NARROW) $(filter-out $(NARROW:build/narrow/%=build/sanitize/%),$(SOURCES:src/%.c=build/sanitize/obj/%.o))
TOOL_OBJECTS := $(TOOL_OBJECTS:build/narrow/%=build/sanitize/%)
endif
C_TESTS = $(patsubst tests/c/%.c,$(BUILD)/tests/%,$(wildcard tests/c/test_*.c))
FUZZERS = $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: help native wasm dist faults site docs serve test test-c test-sanitize test-narrow test-thread test-node objects objects-sanitize run-c bench bench-kernels bench-ops bench-vision format lint stats size fuzz replay clean
.SECONDARY:

help:
	@echo 'make native    the command line, build/$$config/quern (config=$(config); also debug sanitize thread narrow fuzz)'
	@echo 'make wasm      the four WebAssembly variants, build/wasm/'
	@echo 'make dist      the npm package, dist/'
	@echo 'make site      the chat page as a static folder, build/site/'
	@echo 'make docs      the documentation as a static folder, docs/site/'
	@echo 'make serve     serves both'
	@echo 'make test      every test (npm test also installs what it needs)'
	@echo 'make bench     quern in Chromium, WebKit, Firefox and Node beside wllama and native llama.cpp'
	@echo 'make bench-kernels  the product kernels natively, in Node and in Chromium'
	@echo 'make bench-ops each operation alone, over lengths: build/bench/ops.html (ARGS=--quick)'
	@echo 'make bench-vision   the encoder of images by operation, natively, in Node and in Chromium (ARGS=PROJECTOR)'
	@echo 'make fuzz      the fuzz targets (clang-19)'
	@echo 'make format    clang-format on the C sources'
	@echo 'make lint      the checks of rooms, style and sizes'
	@echo 'make stats     sizes of files and functions against their limits'
	@echo 'make size      bytes of what is shipped, plain and compressed'
	@echo 'make clean     removes build/, dist/ and docs/site/'

# --- native ---

native: $(BUILD)/quern

$(BUILD)/obj/cli/cli_args.o: FLAGS += -DQUERN_VERSION='"$(shell sed -n 's/^  "version": "\(.*\)",$$/\1/p' package.json)"'
$(BUILD)/obj/cli/cli_args.o: package.json

$(BUILD)/quern: $(BUILD)/obj/cli/cli.o $(BUILD)/obj/cli/cli_args.o $(BUILD)/obj/cli/cli_terminal.o $(BUILD)/obj/cli/cli_vision.o $(BUILD)/obj/cli/cli_grammar.o $(TOOL_OBJECTS) $(OBJECTS)
	$(CC) $(FLAGS) $^ -o $@ -lm

$(addprefix $(BUILD)/obj/,$(addsuffix .o,$(LOADERS))): FLAGS += $(STRICT)

$(BUILD)/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -c $< -o $@

# They have a played device too, and a played architecture, in tables of their own.
$(BUILD)/tests/%.o: tests/c/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -c $< -o $@

$(BUILD)/tests/%: tests/c/%.c $(BUILD)/tests/played.o $(BUILD)/tests/played_model.o $(OBJECTS) $(TOOL_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MT $@ -Wno-conversion $(filter-out %/compute/backends.o %/models/architectures.o,$(filter %.c %.o,$^)) -o $@ -lm

# A target with libFuzzer, and the same over its corpus without.
SETS = safetensors hf_tokenizer ajc1 any
REPLAYS = $(FUZZERS:$(BUILD)/fuzz/fuzz_%=$(BUILD)/replay/%)
$(FUZZERS) $(REPLAYS): $(wildcard tests/fuzz/*.h)
$(BUILD)/fuzz/fuzz_gguf $(BUILD)/replay/gguf $(BUILD)/fuzz/fuzz_projector $(BUILD)/replay/projector: tests/fuzz/gguf_mutator.c
$(SETS:%=$(BUILD)/fuzz/fuzz_%) $(SETS:%=$(BUILD)/replay/%): tests/fuzz/set.c

$(BUILD)/fuzz/%: tests/fuzz/%.c $(OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MT $@ -Wno-conversion -fsanitize=fuzzer $(filter %.c %.o,$^) -o $@ -lm

$(BUILD)/replay/%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MT $@ -Wno-conversion $(filter %.c %.o,$^) -o $@ -lm

fuzz: $(FUZZERS)

replay: $(REPLAYS)
	@set -e; for r in $^; do $$r tests/fuzz/corpus/$${r##*/}; done

# --- WebAssembly: one source, four variants, each with vision and (-text) without, two pieces of glue (page, Node) over the same .wasm ---

EMCC = $(shell tools/toolchain.sh path)
# Debian's cache of libraries is complete for wasm32 and takes no others: wasm64's are built, once, into a cache of our own.
EMCC64 = EM_FROZEN_CACHE=0 EM_CACHE=$(CURDIR)/.toolchain/cache64 EMCC_LOGGING=0 $(EMCC)
VARIANTS = simd relaxed simd64 relaxed64
BUILDS = $(VARIANTS) $(VARIANTS:%=%-text)
WASM_simd = -msimd128
WASM_relaxed = $(WASM_simd) -mrelaxed-simd
WASM_simd64 = $(WASM_simd) -sMEMORY64=1 -Wno-experimental
WASM_relaxed64 = $(WASM_relaxed) -sMEMORY64=1 -Wno-experimental
WASM_COMPILE = $(COMMON)
# Kernels and packing for speed, the rest for size, the reference kernels too. Packing for 64-bit addresses, whose code is larger, is for size.
HOT = $(addprefix compute/cpu/,matmul attention kernels_simd gemm_simd floats_simd arrange_simd attend_simd) text/sampler $(if $(findstring 64,$(1)),,weights/pack weights/dtype)
# Loops of images that gain nothing from being made wider than they are, and would be twice as large.
WARM = compute/cpu/encode_simd image/taps
# A second pass of binaryen takes 2 KB more away, emmalloc 3: the engine takes memory in large pieces.
# Names keep binaryen from sorting functions by use, which takes like ones apart: 10 KB more in gzip. The package comes without the names.
WASM_SMALL = -sBINARYEN_EXTRA_PASSES=-O3,--converge -sMALLOC=emmalloc
WASM_LINK = -O3 $(WASM_SMALL) --profiling-funcs -pthread -sSTRICT -sMODULARIZE -sEXPORT_ES6 -sALLOW_MEMORY_GROWTH -sMEMORY_GROWTH_LINEAR_STEP=16MB -sINITIAL_MEMORY=32MB -sSTACK_SIZE=256KB \
	-sDEFAULT_PTHREAD_STACK_SIZE=256KB -sFILESYSTEM=0 -sDYNAMIC_EXECUTION=0 --no-entry '-sPTHREAD_POOL_SIZE=Module.nThreads||0' -sPTHREAD_POOL_SIZE_STRICT=2 \
	'-sINCOMING_MODULE_JS_API=[wasmMemory,instantiateWasm,nThreads,startThread]' -sTEXTDECODER=2 \
	-sSUPPORT_LONGJMP=0 -Wno-pthreads-mem-growth -sEXPORTED_RUNTIME_METHODS=PThread --js-library src/pthread.js -lexports.js

# Grammars are a module of their own.
WASM_NAMES = $(filter-out grammar/%,$(SOURCES:src/%.c=%)) wasm
# What only an engine with vision calls, and what stands in for it: src/engine/blind.c. One glue serves all builds, since its names are not shortened by use (-lexports.js).
VISION = $(filter image/% engine/sight engine/look models/qwen3_vision models/qwen3_encode compute/cpu/encode% load/formats/hf_vision base/sha256,$(WASM_NAMES))
TEXT_NAMES = $(filter-out $(VISION),$(WASM_NAMES)) engine/blind

# $(1): the variant, $(2): its compiler, $(3): the most memory. Before 3.1.70 the glue words memories of 64 bits in a way that browsers no longer know.
define WASM_VARIANT
$(addprefix build/wasm/$(1)/,$(addsuffix .o,$(HOT))): WASM_OPT = -O3
$(addprefix build/wasm/$(1)/,$(addsuffix .o,$(WARM))): WASM_OPT = -Os -fno-vectorize -fno-slp-vectorize
build/wasm/$(1)/image/resize.o: WASM_OPT = -O2
build/wasm/$(1)/%.o: WASM_OPT = -Oz
# xxHash knows SSE2, which Emscripten translates to SIMD128: 16 GB/s instead of 8; 11 where loops stay as they are (-Os).
build/wasm/$(1)/base/hash.o: WASM_OPT = -O2 -fno-vectorize -fno-slp-vectorize -msse2
build/wasm/$(1)/base/hash.o: build/include/xxhash.h
build/wasm/$(1)/%.o: src/%.c
	@mkdir -p $$(@D)
	$$($(2)) $$(WASM_COMPILE) $$(WASM_OPT) $$(WASM_$(1)) -c $$< -o $$@

build/wasm/quern-$(1).mjs: src/pthread.js $(addprefix build/wasm/$(1)/,$(addsuffix .o,$(WASM_NAMES)))
	@mkdir -p build/wasm/node
	$$($(2)) $$(WASM_LINK) $$(WASM_$(1)) -sMAXIMUM_MEMORY=$(3) -sENVIRONMENT=node $$(filter %.o,$$^) -o build/wasm/node/quern-$(1).mjs
	$$($(2)) $$(WASM_LINK) $$(WASM_$(1)) -sMAXIMUM_MEMORY=$(3) -sENVIRONMENT=web,worker $$(filter %.o,$$^) -o $$@
	cmp build/wasm/quern-$(1).wasm build/wasm/node/quern-$(1).wasm
	sed -i 's/index:"i64"/address:"i64"/g' build/wasm/quern-$(1).mjs build/wasm/node/quern-$(1).mjs

build/wasm/quern-$(1)-text.mjs: src/pthread.js $(addprefix build/wasm/$(1)/,$(addsuffix .o,$(TEXT_NAMES)))
	@mkdir -p $$(@D)
	$$($(2)) $$(WASM_LINK) -Wl,--unresolved-symbols=ignore-all $$(WASM_$(1)) -sMAXIMUM_MEMORY=$(3) -sENVIRONMENT=web,worker $$(filter %.o,$$^) -o $$@
	sed -i 's/index:"i64"/address:"i64"/g' $$@
endef
$(eval $(call WASM_VARIANT,simd,EMCC,4GB))
$(eval $(call WASM_VARIANT,relaxed,EMCC,4GB))
$(eval $(call WASM_VARIANT,simd64,EMCC64,16GB))
$(eval $(call WASM_VARIANT,relaxed64,EMCC64,16GB))

wasm: $(BUILDS:%=build/wasm/quern-%.mjs) build/wasm/node/quern-tool.mjs build/wasm/grammar.wasm

# --- grammars: a module for every variant, with a memory of its own; it has no glue ---

GRAMMAR_NAMES = $(patsubst src/%.c,%,$(wildcard src/grammar/*.c)) base/arena base/base base/reader base/json_reader base/json base/unicode
GRAMMAR_HOT = grammar/mask grammar/derive
GRAMMAR_COMPILE = $(filter-out -pthread,$(COMMON))
$(GRAMMAR_HOT:%=build/wasm/grammar/%.o): WASM_OPT = -O2
build/wasm/grammar/%.o: WASM_OPT = -Oz
build/wasm/grammar/%.o: src/%.c
	@mkdir -p $(@D)
	$(EMCC) $(GRAMMAR_COMPILE) $(WASM_OPT) -c $< -o $@

build/wasm/grammar.wasm: $(GRAMMAR_NAMES:%=build/wasm/grammar/%.o)
	$(EMCC) -Oz -sSTRICT -sSTANDALONE_WASM --no-entry -sMALLOC=emmalloc -sALLOW_MEMORY_GROWTH -sINITIAL_MEMORY=4MB -sMAXIMUM_MEMORY=160MB -sSTACK_SIZE=1MB \
		-sFILESYSTEM=0 -sSUPPORT_LONGJMP=0 -Wl,--wrap=emscripten_resize_heap $^ -o $@

# --- the conversion tool, for Node alone: it reads and writes the disk itself ---

# Its quantisers are compiled for speed.
build/wasm/tool/weights/quantize.o: src/weights/quantize.c
	@mkdir -p $(@D)
	$(EMCC) $(WASM_COMPILE) -O3 $(WASM_simd) -c $< -o $@

build/wasm/node/quern-tool.mjs: build/wasm/tool/weights/quantize.o $(addprefix build/wasm/simd/,$(addsuffix .o,cli/tool $(TOOL) $(filter-out weights/quantize,$(SOURCES:src/%.c=%))))
	@mkdir -p $(@D)
	$(EMCC) -O3 -pthread $(WASM_simd) -sSTRICT -sMODULARIZE -sEXPORT_ES6 -sALLOW_MEMORY_GROWTH -sMEMORY_GROWTH_LINEAR_STEP=16MB -sINITIAL_MEMORY=64MB -sMAXIMUM_MEMORY=4GB -sSTACK_SIZE=256KB \
		-sDEFAULT_PTHREAD_STACK_SIZE=256KB -sDYNAMIC_EXECUTION=0 --no-entry -sENVIRONMENT=node -sNODERAWFS '-sPTHREAD_POOL_SIZE=Module.nThreads||0' -sPTHREAD_POOL_SIZE_STRICT=2 \
		'-sINCOMING_MODULE_JS_API=[nThreads]' -sEXPORTED_RUNTIME_METHODS=PThread,UTF8ToString,stringToUTF8,lengthBytesUTF8 -sSUPPORT_LONGJMP=0 -Wno-pthreads-mem-growth \
		$(filter %.o,$^) -o $@

# --- kernel benchmark: the engine's own objects behind a few exports ---

KERNELS = base/arena base/base weights/dtype base/num base/reader weights/pack base/pool compute/cpu/arrange_simd compute/cpu/attend_simd compute/cpu/dots compute/cpu/encode_simd compute/cpu/floats_simd compute/cpu/gemm_simd compute/cpu/kernels_scalar compute/cpu/kernels_simd

build/release/kernels: tests/bench/kernels.c $(KERNELS:%=build/release/obj/%.o)
	$(CC) $(COMMON) -O2 -MT $@ $^ -o $@ -lm

build/bench/kernels-%.mjs: tests/bench/kernels.c $(foreach v,simd relaxed,$(KERNELS:%=build/wasm/$(v)/%.o))
	@mkdir -p $(@D)
	$(EMCC) -O3 $(WASM_SMALL) -pthread $(WASM_COMPILE) $(WASM_$*) -Wno-conversion $< $(KERNELS:%=build/wasm/$*/%.o) -o $@ --no-entry -sMODULARIZE -sEXPORT_ES6 \
		-sINITIAL_MEMORY=512MB -sENVIRONMENT=web,worker,node '-sPTHREAD_POOL_SIZE=Module.nThreads||0' '-sINCOMING_MODULE_JS_API=[nThreads]' \
		'-sEXPORTED_FUNCTIONS=_kernels_open,_kernels_begin,_kernels_run,_kernels_name,_kernels_variant,_kernels_macs,_kernels_bytes' '-sEXPORTED_RUNTIME_METHODS=UTF8ToString'

bench-kernels: build/release/kernels build/bench/kernels-simd.mjs build/bench/kernels-relaxed.mjs
	$(NODE) tests/bench/kernels.mjs $(ARGS)

# --- the operations alone, for tests/bench/ops.mjs: the engine's own objects ---

OPS_NATIVE = $(BUILD)/bench/ops
$(OPS_NATIVE): tests/bench/ops.c $(OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MT $@ -Wno-conversion -Itests/c $(filter %.c %.o,$^) -o $@ -lm

# --- the schema compiler, line by line, for tests/js/schemas.test.mjs ---

$(BUILD)/bench/schema-lines: tests/bench/schema_lines.c $(filter $(BUILD)/obj/grammar/% $(BUILD)/obj/base/%,$(OBJECTS))
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MT $@ -Wno-conversion $(filter %.c %.o,$^) -o $@ -lm

# --- the encoder of images, by operation ---

$(BUILD)/bench/vision: tests/bench/vision.c $(OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MT $@ -Wno-conversion $(filter %.c %.o,$^) -o $@ -lm

define VISION_VARIANT
build/wasm/bench/vision-$(1).mjs: tests/bench/vision.c $(addprefix build/wasm/$(1)/,$(addsuffix .o,$(SOURCES:src/%.c=%)))
	@mkdir -p $$(@D)
	$$(EMCC) $$(filter-out -MMD -MP,$$(WASM_COMPILE)) -O3 $$(WASM_$(1)) -Wno-conversion -c $$< -o build/wasm/bench/vision-$(1).o
	$$(EMCC) $$(WASM_LINK) $$(WASM_$(1)) -sMAXIMUM_MEMORY=4GB -sENVIRONMENT=web,worker,node '-sINCOMING_MODULE_JS_API=[wasmMemory,nThreads,print]' build/wasm/bench/vision-$(1).o $$(filter %.o,$$^) -o $$@
endef
$(eval $(call VISION_VARIANT,simd))
$(eval $(call VISION_VARIANT,relaxed))

bench-vision: $(BUILD)/bench/vision build/wasm/bench/vision-simd.mjs build/wasm/bench/vision-relaxed.mjs
	$(NODE) tests/bench/vision.mjs $(ARGS)

define OPS_VARIANT
build/wasm/bench/ops-$(1).mjs: tests/bench/ops.c $(addprefix build/wasm/$(1)/,$(addsuffix .o,$(SOURCES:src/%.c=%)))
	@mkdir -p build/wasm/bench/node
	$$(EMCC) $$(filter-out -MMD -MP,$$(WASM_COMPILE)) -O3 $$(WASM_$(1)) -Wno-conversion -Itests/c -c $$< -o build/wasm/bench/ops-$(1).o
	$$(EMCC) $$(WASM_LINK) $$(WASM_$(1)) -sMAXIMUM_MEMORY=4GB -sENVIRONMENT=node build/wasm/bench/ops-$(1).o $$(filter %.o,$$^) -o build/wasm/bench/node/ops-$(1).mjs
	$$(EMCC) $$(WASM_LINK) $$(WASM_$(1)) -sMAXIMUM_MEMORY=4GB -sENVIRONMENT=web,worker build/wasm/bench/ops-$(1).o $$(filter %.o,$$^) -o $$@
endef
$(eval $(call OPS_VARIANT,simd))
$(eval $(call OPS_VARIANT,relaxed))

bench-ops: $(OPS_NATIVE) build/wasm/bench/ops-simd.mjs build/wasm/bench/ops-relaxed.mjs
	$(NODE) tests/bench/ops.mjs $(ARGS)

# --- an engine whose backend is a played device, for tests/js/device.test.mjs ---

PLAYED = $(filter-out %/compute/backends.o,$(addprefix build/wasm/simd/,$(addsuffix .o,$(WASM_NAMES)))) build/wasm/simd/played.o

build/wasm/simd/played.o: tests/played.c
	@mkdir -p $(@D)
	$(EMCC) $(WASM_COMPILE) -Os $(WASM_simd) -c $< -o $@

build/played/quern-simd.mjs: $(PLAYED)
	@mkdir -p $(@D)
	$(EMCC) $(filter-out -sBINARYEN_EXTRA_PASSES%,$(WASM_LINK)) $(WASM_simd) -sMAXIMUM_MEMORY=4GB -sENVIRONMENT=node $(PLAYED) -o $@

# --- package and page ---

# --- an engine that crashes and hangs on demand, for the tests of the watchdog: the package with that engine in it ---

FAULTS = build/wasm/simd/faults.o $(filter-out %/wasm.o,$(addprefix build/wasm/simd/,$(addsuffix .o,$(WASM_NAMES))))

build/wasm/simd/faults.o: tests/faults.c src/wasm.c
	@mkdir -p $(@D)
	$(EMCC) $(WASM_COMPILE) -Os $(WASM_simd) -c $< -o $@

FAULTS_LINK = $(filter-out -sBINARYEN_EXTRA_PASSES%,$(WASM_LINK)) $(WASM_simd) -sMAXIMUM_MEMORY=4GB
build/faults/.stamp: $(FAULTS) dist/index.js
	rm -rf build/faults
	cp -R dist build/faults
	rm build/faults/quern-relaxed.wasm build/faults/quern-*-text.wasm
	$(EMCC) $(FAULTS_LINK) -sENVIRONMENT=node $(FAULTS) -o build/faults/node/quern-simd.mjs
	$(EMCC) $(FAULTS_LINK) -sENVIRONMENT=web,worker $(FAULTS) -o build/faults/quern-simd.mjs
	ln build/faults/quern-simd.wasm build/faults/quern-simd-text.wasm
	@touch $@

faults: build/faults/.stamp build/played/quern-simd.mjs

dist: dist/index.js
dist/index.js: $(BUILDS:%=build/wasm/quern-%.mjs) build/wasm/node/quern-tool.mjs build/wasm/grammar.wasm $(wildcard js/* js/*/*) web/isolated.js web/sw-headers.js tools/build.mjs package.json
	$(NODE) tools/build.mjs
	@touch $@

site: build/site/app.js
build/site/app.js: dist/index.js $(shell find web -type f) tools/site.mjs
	$(NODE) tools/site.mjs
	@touch $@

docs: docs/site/search.json
docs/site/search.json: build/site/app.js js/index.d.ts js/shared/errors.js js/shared/hints.js web/base.css tools/docs.mjs $(wildcard docs/*.md docs/recipes/*.md docs/theme/* tools/docs/*)
	$(NODE) tools/docs.mjs
	@touch $@

serve: site docs
	$(NODE) tools/serve.mjs --docs docs/site

# --- tests ---

test: lint test-c test-node

# Under ASan and UBSan; again with wasm32's addresses; and under ThreadSanitizer the pool, and what of the engine differs with
# threads. Two jobs at a time, of any of the three; the output of each comes when it ends.
test-c: build/include/xxhash.h build/fixtures/.stamp
	$(MAKE) -j2 --output-sync=target --no-print-directory test-sanitize test-narrow test-thread

test-sanitize: objects-sanitize
	$(MAKE) config=sanitize native run-c replay

objects-sanitize:
	$(MAKE) config=sanitize objects

objects: $(OBJECTS) $(TOOL_OBJECTS)

test-narrow: objects-sanitize
	$(MAKE) config=narrow run-c replay TESTS='test_gguf test_containers' $(if $(QUERN_LONG),,ONLY_test_containers='folders checkpoints catalogue damaged_checkpoint')

test-thread:
	$(MAKE) config=thread run-c TESTS='test_engine test_pool test_experts test_convert test_batches test_kept' ONLY_test_batches=by_threads \
	    ONLY_test_kept='fingerprint_in_slices in_halves' $(if $(QUERN_LONG),,ONLY_test_convert='threads_change_nothing every_write_can_fail') \
	    ONLY_test_engine='beside_another many_at_once attention_from_another_thread warmed_up_by_threads hashes_of_chunks'

# Files that the C tests read, written by Node.
build/fixtures/.stamp: $(wildcard tests/fixtures/*.mjs)
	$(NODE) tests/fixtures/write-c-fixtures.mjs
	@touch $@

TESTS ?= $(notdir $(C_TESTS))
.PHONY: $(TESTS:%=run/%)
run-c: $(TESTS:%=run/%)
$(TESTS:%=run/%): run/%: $(BUILD)/tests/% build/fixtures/.stamp
	@echo "== $<"; $< tests/fixtures $(ONLY_$(@F)) $(ONLY)

# The library in Node, the page and the library in Chromium. Also apart: make test-node SUITES=js
SUITES ?= js web
test-node: native site faults
	$(NODE) tools/test-node.mjs $(wildcard $(SUITES:%=tests/%/*.test.mjs))

bench: site
	$(NODE) tests/bench/bench.mjs

lint:
	$(NODE) tools/lint.mjs

stats:
	$(NODE) tools/lint.mjs --stats

size: dist
	$(NODE) tools/sizes.mjs

format:
	clang-format-19 -i $(shell find src tests -name '*.[ch]')

clean:
	rm -rf build dist docs/site

-include $(shell find build -name '*.d' 2>/dev/null)
