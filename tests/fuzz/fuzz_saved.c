/* SPDX-License-Identifier: MIT
 *
 * The input is damage to the file of a saved conversation: edits of the header and of records, some of them hashed
 * again, so that the code after the hash check is reached. Nothing is restored from the first edited record on, except
 * records that were hashed again; and the conversation continues.
 *
 * Layout: edits of 5 bytes: record (the last number means the header), u16 offset, the byte to xor, whether the record
 * is hashed again.
 *
 *   build/fuzz/fuzz/fuzz_saved -max_len=40 -timeout=5 NEW_CORPUS tests/fuzz/corpus/saved
 */
#include "engine/saved.h"
#include "engine/state.h"
#include "load.h"

#include <stdio.h>

enum { RECORDS = 4, TOKENS = RECORDS * KV_PAGE + 9, CONTEXT = 192, AT_HASH = 280, EDIT = 5 };

static const struct bytes name = {(const uint8_t *)"fuzzed", 6};

static struct quern_engine *engine;
static uint64_t record_size;
static uint8_t header[SAVED_HEADER], *records; /* [RECORDS] as written */
static int32_t ids[TOKENS];

/* Loads the smallest model, with a context of some pages. */
static void load_model(void)
{
    static uint8_t model[1 << 16];
    static const char key[] = "qwen3.context_length";
    const struct quern_options options = {.context_size = CONTEXT};
    FILE *f = fopen("tests/fuzz/corpus/gguf/minimal", "rb");
    require(f != NULL);
    size_t size = fread(model, 1, sizeof model, f), at = 0;
    fclose(f);
    while (at + sizeof key < size && memcmp(model + at, key, sizeof key - 1)) at++;
    model[at + sizeof key - 1 + 4] = CONTEXT; /* after the type of the value */
    engine = quern_new(&options);
    require(engine && quern_feed(engine, model, size) == OK && quern_finish(engine) == OK);
}

static struct quern_sequence *held(uint8_t *own_header)
{
    struct quern_sequence *s = quern_sequence_new(engine, 0, 0);
    require(s && quern_sequence_set(s, ids, TOKENS, QUERN_HELD) >= 0 && saved_open(s, name, own_header) == OK);
    return s;
}

static void make_file(void)
{
    for (int i = 0; i < TOKENS; i++) ids[i] = i * 7 % 251;
    struct quern_sequence *s = quern_sequence_new(engine, 0, 0);
    require(s && quern_sequence_set(s, ids, TOKENS, QUERN_LAST) == 0);
    while (quern_sequence_pending(s)) require(quern_step(engine, 0) == OK);
    quern_sequence_free(s);
    s = held(header);
    record_size = saved_record(engine);
    records = malloc(RECORDS * record_size);
    require(records != NULL);
    for (int i = 0; i < RECORDS; i++) require(saved_take(s, records + (uint64_t)i * record_size) == OK);
    quern_sequence_free(s);
}

static void forget(void *context, int page) { (void)context, (void)page; }

static void go_on(struct quern_sequence *s)
{
    struct quern_reply reply = {.max_tokens = 3};
    int n;
    require(quern_reply_begin(s, &reply) == OK);
    for (bool ended = false; !ended;) {
        require(quern_step(engine, 0) == OK);
        const struct quern_event *events = quern_events(engine, &n);
        for (int i = 0; i < n; i++) ended |= events[i].type == QUERN_END;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t own_header[SAVED_HEADER], edited[SAVED_HEADER], hash[HASH_BYTES];
    bool changed = false, anew[RECORDS] = {false}, touched[RECORDS] = {false}, astray[RECORDS] = {false};
    if (!engine) load_model(), make_file();
    kv_each_forgotten(engine->kv, forget, NULL);
    uint8_t *own = malloc(RECORDS * record_size);
    require(own != NULL);
    memcpy(own, records, RECORDS * record_size);
    memcpy(edited, header, sizeof header);
    for (; size >= EDIT; data += EDIT, size -= EDIT) {
        int i = data[0] % (RECORDS + 1);
        uint8_t *record = own + (uint64_t)i * record_size;
        if (i == RECORDS)
            edited[load_u16(data + 1) % SAVED_HEADER] ^= data[3], changed = memcmp(edited, header, sizeof header) != 0;
        else record[load_u16(data + 1) % record_size] ^= data[3], anew[i] = data[4] & 1;
    }
    for (int i = 0; i < RECORDS; i++) {
        uint8_t *record = own + (uint64_t)i * record_size;
        touched[i] = memcmp(record, records + (uint64_t)i * record_size, record_size) != 0;
        /* ids, number, the previous record's hash */
        astray[i] = memcmp(record, records + (uint64_t)i * record_size, AT_HASH) != 0;
        if (!touched[i] || !anew[i]) continue;
        memset(record + AT_HASH, 0, HASH_BYTES);
        hash128(record, record_size, hash);
        memcpy(record + AT_HASH, hash, HASH_BYTES);
    }
    struct bytes found;
    require(saved_name(edited, &found) == (changed ? ERR_FORMAT : OK));
    struct quern_sequence *s = held(own_header);
    require(!memcmp(own_header, header, sizeof header));
    int status = OK, given = 0;
    for (; given < RECORDS && !status; given += !status) {
        status = saved_give(s, own + (uint64_t)given * record_size, record_size);
        require(quern_sequence_length(s) == (given + !status) * KV_PAGE);
        require(status == OK || status == ERR_FORMAT || status == ERR_EMPTY);
        require(status ? touched[given] || (given && touched[given - 1])
                       : !astray[given] && (!touched[given] || anew[given]));
    }
    go_on(s);
    quern_sequence_free(s);
    free(own);
    return 0;
}
