# SPDX-License-Identifier: MIT
# How WebAssembly is compiled and linked, and the two modules beside the engine: grammars, and the conversion tool.

EMCC = $(shell tools/toolchain.sh path)
# Debian's cache of libraries is complete for wasm32 and takes no others: wasm64's are built, once, into a cache of our own.
EMCC64 = EM_FROZEN_CACHE=0 EM_CACHE=$(CURDIR)/.toolchain/cache64 EMCC_LOGGING=0 $(EMCC)
WASM_simd = -msimd128
WASM_relaxed = $(WASM_simd) -mrelaxed-simd
WASM_simd64 = $(WASM_simd) -sMEMORY64=1 -Wno-experimental
WASM_relaxed64 = $(WASM_relaxed) -sMEMORY64=1 -Wno-experimental
# Kernels and packing for speed, the rest for size, the reference kernels too. Packing for 64-bit addresses, whose code is larger, is for size.
HOT = $(addprefix compute/cpu/,matmul attention kernels_simd gemm_simd floats_simd arrange_simd attend_simd) text/sampler \
	$(if $(findstring 64,$(1)),,weights/pack weights/dtype)
# Loops of images that gain nothing from being made wider than they are, and would be twice as large.
WARM = compute/cpu/encode_simd image/taps
# A second pass of binaryen takes 2 KB more away, emmalloc 3: the engine takes memory in large pieces.
WASM_SMALL = -sBINARYEN_EXTRA_PASSES=-O3,--converge -sMALLOC=emmalloc
# What every module has that works with threads.
WASM_THREADS = -pthread -sSTRICT -sMODULARIZE -sEXPORT_ES6 -sALLOW_MEMORY_GROWTH -sMEMORY_GROWTH_LINEAR_STEP=16MB -sSTACK_SIZE=256KB \
	-sDEFAULT_PTHREAD_STACK_SIZE=256KB -sDYNAMIC_EXECUTION=0 --no-entry '-sPTHREAD_POOL_SIZE=Module.nThreads||0' -sPTHREAD_POOL_SIZE_STRICT=2 \
	-sSUPPORT_LONGJMP=0 -Wno-pthreads-mem-growth
# Names keep binaryen from sorting functions by use, which takes like ones apart: 10 KB more in gzip. The package comes without the names.
WASM_LINK = -O3 $(WASM_SMALL) --profiling-funcs $(WASM_THREADS) -sINITIAL_MEMORY=32MB -sFILESYSTEM=0 -sTEXTDECODER=2 -lexports.js \
	--js-library src/pthread.js -sEXPORTED_RUNTIME_METHODS=PThread '-sINCOMING_MODULE_JS_API=[wasmMemory,instantiateWasm,nThreads,startThread]'

# Grammars: one module beside every variant, with a memory of its own; it has no glue.
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

# The conversion tool, for Node alone: it reads and writes the disk itself, and its quantisers are compiled for speed.
build/wasm/tool/weights/quantize.o: src/weights/quantize.c
	@mkdir -p $(@D)
	$(EMCC) $(STRICT) $(COMMON) -O3 $(WASM_simd) -c $< -o $@
build/wasm/node/quern-tool.mjs: build/wasm/tool/weights/quantize.o \
		$(patsubst %,build/wasm/simd/%.o,cli/tool $(TOOL) $(filter-out weights/quantize,$(SOURCES:src/%.c=%)))
	@mkdir -p $(@D)
	$(EMCC) -O3 $(WASM_THREADS) $(WASM_simd) -sINITIAL_MEMORY=64MB -sMAXIMUM_MEMORY=4GB -sENVIRONMENT=node -sNODERAWFS \
		'-sINCOMING_MODULE_JS_API=[nThreads]' -sEXPORTED_RUNTIME_METHODS=PThread,UTF8ToString,stringToUTF8,lengthBytesUTF8 $^ -o $@
