# SPDX-License-Identifier: MIT
# Engines that break on demand, for the tests of the watchdog and of devices. Nothing of this is shipped.

## make faults         engines that crash, hang or lose a device on demand, for the tests

faults: build/faults/.stamp build/played/quern-simd.mjs
.PHONY: faults

# tests/*.c in place of a file of the engine's, linked quickly: they are not measured.
build/wasm/simd/faults.o: src/wasm.c
build/wasm/simd/faults.o build/wasm/simd/played.o: build/wasm/simd/%.o: tests/%.c
	@mkdir -p $(@D)
	$(EMCC) $(STRICT) $(COMMON) -Os $(WASM_simd) -c $< -o $@
TEST_OBJECTS = $(patsubst %,build/wasm/simd/%.o,$(WASM_NAMES))
TEST_LINK = $(filter-out -sBINARYEN_EXTRA_PASSES%,$(WASM_LINK)) $(WASM_simd) -sMAXIMUM_MEMORY=4GB

# It crashes and hangs: the package with that engine in it.
FAULTS = build/wasm/simd/faults.o $(filter-out %/wasm.o,$(TEST_OBJECTS))
build/faults/.stamp: $(FAULTS) dist/index.js
	rm -rf build/faults
	cp -R dist build/faults
	rm build/faults/quern-relaxed.wasm build/faults/quern-*-text.wasm
	$(EMCC) $(TEST_LINK) -sENVIRONMENT=node $(FAULTS) -o build/faults/node/quern-simd.mjs
	$(EMCC) $(TEST_LINK) -sENVIRONMENT=web,worker $(FAULTS) -o build/faults/quern-simd.mjs
	ln build/faults/quern-simd.wasm build/faults/quern-simd-text.wasm
	@touch $@

# Its backend may be a played device, and its models may have states, for tests/js/engine/device.test.mjs and states.test.mjs.
PLAYED = $(filter-out %/compute/backends.o %/models/families.o,$(TEST_OBJECTS)) build/wasm/simd/played.o
build/played/quern-simd.mjs: $(PLAYED)
	@mkdir -p $(@D)
	$(EMCC) $(TEST_LINK) -sENVIRONMENT=node $(PLAYED) -o $@
