# SPDX-License-Identifier: MIT
# The fuzz targets, with libFuzzer, or without it over their corpus.

## make fuzz           the fuzz targets (config=fuzz, clang-19)
## make replay         their corpus, without libFuzzer

ifeq ($(config),fuzz)
CC = clang-19
endif

FUZZERS = $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAYS = $(FUZZERS:$(BUILD)/fuzz/fuzz_%=$(BUILD)/replay/%)
SETS = safetensors hf_tokenizer ajc1 any
$(FUZZERS) $(REPLAYS): $(wildcard tests/fuzz/*.h)
$(BUILD)/fuzz/fuzz_gguf $(BUILD)/replay/gguf $(BUILD)/fuzz/fuzz_projector $(BUILD)/replay/projector: tests/fuzz/gguf_mutator.c
$(SETS:%=$(BUILD)/fuzz/fuzz_%) $(SETS:%=$(BUILD)/replay/%): tests/fuzz/set.c

$(BUILD)/fuzz/%: tests/fuzz/%.c $(OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MT $@ -fsanitize=fuzzer $(filter %.c %.o,$^) -o $@ -lm
$(BUILD)/replay/%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MT $@ $(filter %.c %.o,$^) -o $@ -lm

fuzz: $(FUZZERS)
replay: $(REPLAYS)
	@set -e; for r in $^; do $$r tests/fuzz/corpus/$${r##*/}; done
.PHONY: fuzz replay
