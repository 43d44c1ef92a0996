# SPDX-License-Identifier: MIT
# Compiles and links WebAssembly: flags of the engine, and the two further modules (grammars, the conversion tool).

comma = ,
EMCC = $(shell tools/toolchain.sh path)
# Debian's library cache has only wasm32 and is read-only; wasm64 libraries are built once, into a cache of our own.
EMCC64 = EM_FROZEN_CACHE=0 EM_CACHE=$(CURDIR)/.toolchain/cache64 EMCC_LOGGING=0 $(EMCC)
WASM_simd = -msimd128
WASM_relaxed = $(WASM_simd) -mrelaxed-simd
WASM_simd64 = $(WASM_simd) -sMEMORY64=1 -Wno-experimental
WASM_relaxed64 = $(WASM_relaxed) -sMEMORY64=1 -Wno-experimental
# Compiled for speed: kernels and packing. The rest is compiled for size, also the reference kernels, and packing for
# 64-bit addresses, whose code is larger.
HOT = $(addprefix compute/cpu/,gemm_simd floats_simd arrange_simd tables_simd) text/sampler
PACKING = $(if $(findstring 64,$(1)),,weights/pack weights/dtype weights/grids)
# Fast code whose vectors are written by hand: a compiler that vectorizes the rest of it makes 2 KB more (Brotli), and
# nothing faster.
BY_HAND = $(addprefix compute/cpu/,matmul attention kernels_simd attend_simd linear_simd)
# Image loops that would be twice as large, and not faster, when vectorized further.
WARM = compute/cpu/encode_simd image/taps
# A second pass of binaryen saves 2 KB. emmalloc saves 3 KB and is enough, because the engine allocates large blocks.
WASM_SMALL = -sBINARYEN_EXTRA_PASSES=-O3,--converge -sMALLOC=emmalloc
# Flags of every module with threads.
WASM_THREADS = -pthread -sSTRICT -sMODULARIZE -sEXPORT_ES6 -sALLOW_MEMORY_GROWTH -sMEMORY_GROWTH_LINEAR_STEP=16MB -sSTACK_SIZE=256KB \
	-sDEFAULT_PTHREAD_STACK_SIZE=256KB -sDYNAMIC_EXECUTION=0 --no-entry '-sPTHREAD_POOL_SIZE=Module.nThreads||0' -sPTHREAD_POOL_SIZE_STRICT=2 \
	-sSUPPORT_LONGJMP=0 -Wno-pthreads-mem-growth
# Function names keep binaryen from sorting functions by use, which separates similar ones and costs 10 KB in gzip. The
# package is shipped without the names.
WASM_LINK = -O3 $(WASM_SMALL) --profiling-funcs $(WASM_THREADS) -sINITIAL_MEMORY=32MB -sFILESYSTEM=0 -sTEXTDECODER=2 -lexports.js \
	--js-library src/pthread.js -sEXPORTED_RUNTIME_METHODS=PThread '-sINCOMING_MODULE_JS_API=[wasmMemory,instantiateWasm,nThreads,startThread]'

# The GPU's build. Its glue is its own, because it imports what a device does (src/compute/gpu/port.h).
GPU_LINK = $(subst nThreads$(comma)startThread,nThreads$(comma)startThread$(comma)gpu,$(WASM_LINK)) $(WASM_simd) -sMAXIMUM_MEMORY=4GB --js-library src/compute/gpu/port.js

# The grammar module: one for all variants, with a memory of its own and without glue.
GRAMMAR = $(patsubst src/%.c,build/wasm/grammar/%.o,$(sort $(wildcard src/grammar/*.c src/grammar/*/*.c))) \
	$(patsubst %,build/wasm/grammar/base/%.o,arena base reader json_reader json unicode)
build/wasm/grammar/grammar/mask.o build/wasm/grammar/grammar/derive.o: WASM_OPT = -O2
build/wasm/grammar/%.o: WASM_OPT = -Oz
build/wasm/grammar/%.o: src/%.c
	@mkdir -p $(@D)
	$(EMCC) $(STRICT) $(filter-out -pthread,$(COMMON)) $(WASM_OPT) -c $< -o $@
build/wasm/grammar.wasm: $(GRAMMAR)
	$(EMCC) -Oz -sSTRICT -sSTANDALONE_WASM --no-entry -sMALLOC=emmalloc -sALLOW_MEMORY_GROWTH -sINITIAL_MEMORY=4MB -sMAXIMUM_MEMORY=160MB \
		-sSTACK_SIZE=1MB -sFILESYSTEM=0 -sSUPPORT_LONGJMP=0 -Wl,--wrap=emscripten_resize_heap $^ -o $@

# The conversion tool, for Node only: it reads and writes files itself; its quantizers are compiled for speed.
build/wasm/tool/weights/%.o: src/weights/%.c
	@mkdir -p $(@D)
	$(EMCC) $(STRICT) $(COMMON) -O3 $(WASM_simd) -c $< -o $@
build/wasm/node/quern-tool.mjs: build/wasm/tool/weights/quantize.o build/wasm/tool/weights/fit.o \
		$(patsubst %,build/wasm/simd/%.o,cli/tool $(TOOL) $(filter-out weights/quantize weights/fit,$(SOURCES:src/%.c=%)))
	@mkdir -p $(@D)
	$(EMCC) -O3 $(WASM_THREADS) $(WASM_simd) -sINITIAL_MEMORY=64MB -sMAXIMUM_MEMORY=4GB -sENVIRONMENT=node -sNODERAWFS \
		'-sINCOMING_MODULE_JS_API=[nThreads]' -sEXPORTED_RUNTIME_METHODS=PThread,UTF8ToString,stringToUTF8,lengthBytesUTF8 $^ -o $@
