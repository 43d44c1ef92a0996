# SPDX-License-Identifier: MIT
# The C tests, natively.

.PHONY: test-c test-sanitize test-narrow test-thread objects objects-sanitize run-c

# Under ASan and UBSan; again with wasm32's addresses; and under ThreadSanitizer the tests of the pool and of what threads
# change in the engine. Two jobs at a time, of any of the three; each prints its output when it ends.
test-c: build/include/xxhash.h build/fixtures/.stamp
	$(MAKE) -j2 --output-sync=target --no-print-directory test-sanitize test-narrow test-thread

test-sanitize: objects-sanitize
	$(MAKE) config=sanitize native run-c replay
objects-sanitize:
	$(MAKE) config=sanitize objects
objects: $(OBJECTS) $(TOOL_OBJECTS)

test-narrow: objects-sanitize
	$(MAKE) config=narrow run-c replay TESTS='test_gguf test_containers' \
		$(if $(QUERN_LONG),,ONLY_test_containers='folders checkpoints catalogue damaged_checkpoint')

test-thread:
	$(MAKE) config=thread run-c TESTS='test_engine test_pool test_experts test_convert test_batches test_saved' ONLY_test_batches=by_threads \
		ONLY_test_kept='fingerprint_in_slices in_halves' $(if $(QUERN_LONG),,ONLY_test_convert='threads_change_nothing every_write_can_fail') \
		ONLY_test_engine='beside_another many_at_once attention_from_another_thread warmed_up_by_threads hashes_of_chunks'

# Files that the C tests read, written by Node.
build/fixtures/.stamp: $(wildcard tests/fixtures/*.mjs)
	$(NODE) tests/fixtures/write-c-fixtures.mjs
	@touch $@

# They also have a simulated device and an imitated architecture, in their own tables of backends and families.
$(BUILD)/tests/played.o $(BUILD)/tests/played_model.o: $(BUILD)/tests/%.o: tests/c/%.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -c $< -o $@
$(BUILD)/tests/%: tests/c/%.c $(BUILD)/tests/played.o $(BUILD)/tests/played_model.o $(OBJECTS) $(TOOL_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MT $@ $< $(filter-out %/compute/backends.o %/models/families.o,$(filter %.o,$^)) -o $@ -lm

TESTS ?= $(patsubst tests/c/%.c,%,$(wildcard tests/c/test_*.c))
.PHONY: $(TESTS:%=run/%)
run-c: $(TESTS:%=run/%)
$(TESTS:%=run/%): run/%: $(BUILD)/tests/% build/fixtures/.stamp
	@echo "== $<"; $< tests/fixtures $(ONLY_$(@F)) $(ONLY)
