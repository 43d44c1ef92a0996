# SPDX-License-Identifier: MIT
# Builds the engine natively and as WebAssembly. `make` alone lists the targets: the lines with two hashes, here and in
# the included files. Each config has a build folder of its own: make config=sanitize native

config ?= release
ifeq ($(origin CC),default)
CC = gcc
endif
BUILD = build/$(config)
PARTS = tests/c/tests.mk tests/faults.mk tests/fuzz/fuzz.mk tests/bench/bench.mk
NODE ?= node

# No build may fuse multiply-add or reorder arithmetic, so that all builds give the same results.
COMMON = -std=gnu11 -Isrc -isystem build/include -ffp-contract=off -pthread -MMD -MP -Wall -Wextra -Wshadow
# The engine must not narrow values silently; tests may.
STRICT = -Wconversion -Wsign-conversion -Werror

FLAGS_release  = -O2
FLAGS_debug    = -O0 -g
FLAGS_sanitize = -O2 -g1 -fno-var-tracking-assignments -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS_thread   = -O2 -g1 -fsanitize=thread -fno-sanitize-recover=all
# The address limit of wasm32 on a 64-bit machine: sizes that would wrap in wasm32 are refused here.
FLAGS_narrow   = $(FLAGS_sanitize) -DADDR_MAX=0xFFFFFFFFull
FLAGS_fuzz     = -O1 -g -Wno-pass-failed -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
# Lookups of bytes (vec_lookup) are one instruction with SSSE3, which x86 processors have had since 2006 or 2011.
MACHINE = $(if $(filter x86_64,$(shell uname -m)),-mssse3)
FLAGS = $(COMMON) $(MACHINE) $(FLAGS_$(config)) $(CFLAGS)

help:
	@sed -n 's/^## //p' Makefile $(PARTS)
.PHONY: help native wasm dist site docs serve test test-node lint stats size format clean

## make native         the command line, build/$config/quern (config=release; also debug sanitize thread narrow fuzz)

native: $(BUILD)/quern

# All sources but the interfaces of the wasm modules and the command line.
SOURCES = $(filter-out src/wasm.c src/compute/gpu/% src/engine/text_build.c src/grammar/face.c src/grammar/face_format.c src/cli/%,$(wildcard src/*.c src/*/*.c src/*/*/*.c))
OBJECTS = $(SOURCES:src/%.c=$(BUILD)/obj/%.o)
# Only command lines have these files, which convert models. No page loads them.
TOOL = $(addprefix cli/,gguf_writer convert convert_keys convert_values cli_claim cli_described cli_files cli_output cli_quantize imatrix)
TOOL_OBJECTS = $(TOOL:%=$(BUILD)/obj/%.o) $(BUILD)/obj/cli/cli_process.o
# Only two files depend on ADDR_MAX; all others are the objects of sanitize.
ifeq ($(config),narrow)
NARROW = $(BUILD)/obj/base/reader.o $(BUILD)/obj/engine/plan.o
OBJECTS := $(NARROW) $(filter-out $(NARROW:build/narrow/%=build/sanitize/%),$(SOURCES:src/%.c=build/sanitize/obj/%.o))
TOOL_OBJECTS := $(TOOL_OBJECTS:build/narrow/%=build/sanitize/%)
endif

$(BUILD)/obj/cli/cli_args.o: FLAGS += -DQUERN_VERSION='"$(shell sed -n 's/^  "version": "\(.*\)",$$/\1/p' package.json)"'
$(BUILD)/obj/cli/cli_args.o: package.json
$(BUILD)/quern: $(addprefix $(BUILD)/obj/cli/,cli.o cli_args.o cli_terminal.o cli_vision.o cli_grammar.o) $(TOOL_OBJECTS) $(OBJECTS)
	$(CC) $(FLAGS) $^ -o $@ -lm

$(BUILD)/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(STRICT) $(FLAGS) -c $< -o $@

# xxHash is one system header. It is copied, because the WebAssembly build must see no other system header.
XXHASH ?= $(firstword $(wildcard /usr/include/xxhash.h /usr/local/include/xxhash.h /opt/homebrew/include/xxhash.h))
build/include/xxhash.h: $(XXHASH)
	@mkdir -p $(@D)
	@test -n '$<' || { echo 'xxhash.h is missing: install libxxhash-dev (Debian) or xxhash, or pass XXHASH=path'; exit 1; }
	cp $< $@
$(BUILD)/obj/base/hash.o: build/include/xxhash.h

## make wasm           the WebAssembly variants, build/wasm/

# Four variants of one source, each in full and for text (-text). Page and Node have their own glue for one .wasm.
VARIANTS = simd relaxed simd64 relaxed64
BUILDS = $(VARIANTS) $(VARIANTS:%=%-text)
MODULES = $(BUILDS:%=build/wasm/quern-%.mjs) build/wasm/quern-gpu.mjs build/wasm/node/quern-tool.mjs build/wasm/grammar.wasm
wasm: $(MODULES)
include tools/wasm.mk

# Grammars are a module of their own. FULL lists the files that the text build lacks: vision, formats other than GGUF,
# weights in grids or quantised by other programs, profiles, and answers of devices; src/engine/text_build.c replaces them. One glue serves
# all builds, because exported names are not shortened by frequency (-lexports.js).
WASM_NAMES = $(filter-out grammar/%,$(SOURCES:src/%.c=%)) wasm
FULL = $(filter image/% engine/projector engine/encode engine/device models/qwen3_vision models/qwen3_encode compute/cpu/encode% \
	$(filter-out load/formats/gguf,$(filter load/formats/%,$(WASM_NAMES))) base/json_reader base/sha256 compute/profile \
	weights/grids weights/codes models/bind_parts compute/cpu/full_simd,$(WASM_NAMES))
TEXT_NAMES = $(filter-out $(FULL),$(WASM_NAMES)) engine/text_build
# The GPU's build has another backend.
GPU_NAMES = $(filter-out compute/cpu/% compute/backends,$(WASM_NAMES)) $(patsubst src/%.c,%,$(wildcard src/compute/gpu/*.c))

# $(1): variant, $(2): compiler, $(3): most memory. Before 3.1.70 Emscripten writes glue that asks for 64-bit
# memories in an old form, which browsers no longer know; sed replaces it.
define WASM_VARIANT
$(addprefix build/wasm/$(1)/,$(addsuffix .o,$(HOT))): WASM_OPT = -O3
$(addprefix build/wasm/$(1)/,$(addsuffix .o,$(PACKING))): WASM_OPT = -O2
$(addprefix build/wasm/$(1)/,$(addsuffix .o,$(BY_HAND))): WASM_OPT = -O2 -fno-vectorize -fno-slp-vectorize
$(addprefix build/wasm/$(1)/,$(addsuffix .o,$(WARM))): WASM_OPT = -Os -fno-vectorize -fno-slp-vectorize
build/wasm/$(1)/image/resize.o: WASM_OPT = -O2
build/wasm/$(1)/%.o: WASM_OPT = -Oz
# Emscripten makes SIMD128 of xxHash's SSE2: 16 GB/s instead of 8; 11 with -Os, which leaves loops as they are.
build/wasm/$(1)/base/hash.o: WASM_OPT = -O2 -fno-vectorize -fno-slp-vectorize -msse2
build/wasm/$(1)/base/hash.o: build/include/xxhash.h
build/wasm/$(1)/%.o: src/%.c
	@mkdir -p $$(@D)
	$$($(2)) $$(STRICT) $$(COMMON) $$(WASM_OPT) $$(WASM_$(1)) -c $$< -o $$@

LINK_$(1) = $$(WASM_LINK) $$(WASM_$(1)) -sMAXIMUM_MEMORY=$(3)
build/wasm/quern-$(1).mjs: src/pthread.js $(addprefix build/wasm/$(1)/,$(addsuffix .o,$(WASM_NAMES)))
	@mkdir -p build/wasm/node
	$$($(2)) $$(LINK_$(1)) -sENVIRONMENT=node $$(filter %.o,$$^) -o build/wasm/node/quern-$(1).mjs
	$$($(2)) $$(LINK_$(1)) -sENVIRONMENT=web,worker $$(filter %.o,$$^) -o $$@
	cmp build/wasm/quern-$(1).wasm build/wasm/node/quern-$(1).wasm
	sed -i 's/index:"i64"/address:"i64"/g' build/wasm/quern-$(1).mjs build/wasm/node/quern-$(1).mjs

build/wasm/quern-$(1)-text.mjs: src/pthread.js $(addprefix build/wasm/$(1)/,$(addsuffix .o,$(TEXT_NAMES)))
	@mkdir -p $$(@D)
	$$($(2)) $$(LINK_$(1)) -Wl,--unresolved-symbols=ignore-all -sENVIRONMENT=web,worker $$(filter %.o,$$^) -o $$@
	sed -i 's/index:"i64"/address:"i64"/g' $$@
endef
$(foreach v,simd relaxed,$(eval $(call WASM_VARIANT,$(v),EMCC,4GB)))
$(foreach v,simd64 relaxed64,$(eval $(call WASM_VARIANT,$(v),EMCC64,16GB)))

build/wasm/simd/compute/gpu/record.o: WASM_OPT = -O2
build/wasm/quern-gpu.mjs: src/pthread.js src/compute/gpu/port.js $(addprefix build/wasm/simd/,$(addsuffix .o,$(GPU_NAMES)))
	@mkdir -p build/wasm/node
	$(EMCC) $(GPU_LINK) -sENVIRONMENT=node $(filter %.o,$^) -o build/wasm/node/quern-gpu.mjs
	$(EMCC) $(GPU_LINK) -sENVIRONMENT=web,worker $(filter %.o,$^) -o $@
	cmp build/wasm/quern-gpu.wasm build/wasm/node/quern-gpu.wasm

## make dist           the npm package, dist/
## make site           the chat page as a static folder, build/site/
## make docs           the documentation as a static folder, docs/site/
## make serve          serves both

dist: dist/index.js
dist/index.js: $(MODULES) $(wildcard js/* js/*/*) web/isolated.js web/sw-headers.js tools/build.mjs package.json
	$(NODE) tools/build.mjs
	@touch $@

site: build/site/app.js
build/site/app.js: dist/index.js $(shell find web -type f) tools/site.mjs
	$(NODE) tools/site.mjs
	@touch $@

docs: docs/site/search.json
docs/site/search.json: build/site/app.js js/index.d.ts js/shared/errors.js js/shared/hints.js web/base.css tools/docs.mjs \
		$(wildcard docs/*.md docs/recipes/*.md docs/theme/* tools/docs/*)
	$(NODE) tools/docs.mjs
	@touch $@

serve: site docs ; $(NODE) tools/serve.mjs --docs docs/site

## make test           every test (npm test also installs what it needs)

test: lint test-c test-node

# The library in Node, the page and the library in Chromium. Also apart: make test-node SUITES=web, or SUITES=js/server
SUITES ?= js web
test-node: native site faults
	$(NODE) tools/test-node.mjs $(wildcard $(SUITES:%=tests/%/*.test.mjs) $(SUITES:%=tests/%/*/*.test.mjs))

## make lint           the checks of rooms, style and sizes
## make stats          sizes of files and functions against their limits
## make size           bytes of what is shipped, plain and compressed
## make format         clang-format on the C sources
## make clean          removes build/, dist/ and docs/site/

lint: ; $(NODE) tools/lint.mjs
stats: ; $(NODE) tools/lint.mjs --stats
size: dist ; $(NODE) tools/sizes.mjs
format: ; clang-format-19 -i $(shell find src tests -name '*.[ch]')
clean: ; rm -rf build dist docs/site

include $(PARTS)
-include $(shell find build -name '*.d' 2>/dev/null)
