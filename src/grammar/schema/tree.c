/* SPDX-License-Identifier: MIT
 *
 * The tree of a schema's text, and the compiler's memory.
 */
#include "grammar/schema/tree.h"

#include "grammar/nodes.h"
#include "grammar/schema/numbers.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 1 << 16, POOL_MAX = 24 << 20, NODES_MAX = 150000, POINTER = 100, SENTENCE = 120 };

struct schema_pool {
    struct schema_pool *next;
    uint64_t used, size;
};

/* --- memory and errors ----------------------------------------------------------------------------------- */

static void *take_block(struct schema *s, uint64_t size)
{
    uint64_t room = size > BLOCK / 4 ? size : BLOCK;
    if (s->pool_size + room > POOL_MAX) {
        schema_refuse(s, s->root, "limit", "the schema has too many combinations");
        return NULL;
    }
    struct schema_pool *p = mem_alloc(s->mem, sizeof *p + room);
    if (!p) {
        s->status = fail(s->err, ERR_MEM_LOAD, "memory", 0, "Memory ran out while reading a schema.");
        return NULL;
    }
    p->size = room;
    p->used = size;
    s->pool_size += room;
    if (s->pool && room != BLOCK) { /* large blocks are used up at once; the first block is filled further */
        p->next = s->pool->next;
        s->pool->next = p;
    } else {
        p->next = s->pool;
        s->pool = p;
    }
    return p + 1;
}

void *schema_take(struct schema *s, uint64_t count, uint64_t size)
{
    uint64_t bytes = (count * size + 7) & ~(uint64_t)7;
    if (s->status) return NULL;
    node_work(s->g, 1); /* if this exceeds the limit, the next step fails with its own error */
    if (bytes == 0) bytes = 8;
    if (!s->pool || s->pool->size - s->pool->used < bytes) return take_block(s, bytes);
    void *p = (uint8_t *)(s->pool + 1) + s->pool->used;
    s->pool->used += bytes;
    return p;
}

void schema_release(struct schema *s)
{
    for (struct schema_pool *p = s->pool, *next; p; p = next) {
        next = p->next;
        mem_free(s->mem, p);
    }
    s->pool = NULL;
}

/* Writes a step of a pointer before the text at `at`. A pointer that is too long begins with dots. */
static size_t put_step(char *text, size_t at, const char *step, size_t n)
{
    if (at <= 4 || n + 1 > at - 4) {
        if (at > 3 && text[at] != '.') memcpy(text + at - 3, "...", 3), at -= 3;
        return at;
    }
    at -= n;
    memcpy(text + at, step, n);
    text[--at] = '/';
    return at;
}

/* The position of a node, as "#/a/b". */
static const char *pointer_of(const struct schema *s, uint32_t node, char text[POINTER])
{
    size_t at = POINTER - 1;
    text[at] = 0;
    for (; node && s->nodes && s->nodes[node].parent && text[at] != '.'; node = s->nodes[node].parent) {
        const struct schema_node *n = &s->nodes[node], *up = &s->nodes[n->parent];
        char name[QUOTED], number[12];
        uint32_t index = 0;
        for (uint32_t i = up->first; i != node; i = s->nodes[i].next) index++;
        snprintf(number, sizeof number, "%u", index);
        const char *step = n->key ? quoted(s->names[n->key], name) : number;
        at = put_step(text, at, step, strlen(step));
    }
    text[--at] = '#';
    return text + at;
}

int schema_refuse(struct schema *s, uint32_t node, const char *keyword, const char *sentence)
{
    char pointer[POINTER];
    if (s->status) return s->status;
    s->status = fail(s->err, ERR_SCHEMA, keyword, 0, "%s at %s: %.*s.", keyword, pointer_of(s, node, pointer), SENTENCE,
                     sentence);
    return s->status;
}

/* Whether a name can be the rule of a note; other names are only in its sentence. */
static bool is_plain(struct bytes name)
{
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] <= ' ' || name.data[i] >= 0x7F || name.data[i] == '"') return false;
    return name.size > 0 && name.size < 32;
}

static bool is_noted(struct schema *s, struct bytes keyword, struct bytes value)
{
    for (uint32_t i = 0; i < s->n_noted; i++)
        if (!bytes_compare(s->noted[i].keyword, keyword) && !bytes_compare(s->noted[i].value, value)) return true;
    if (s->n_noted == NOTED_MAX) return true;
    s->noted[s->n_noted++] = (struct schema_noted){keyword, value};
    return false;
}

void schema_note(struct schema *s, uint32_t node, const char *sentence, bool by_value)
{
    struct bytes keyword = s->names[s->nodes[node].key],
                 value = by_value ? s->nodes[node].text : (struct bytes){NULL, 0};
    char pointer[POINTER], name[QUOTED];
    const char *rule = is_plain(keyword) ? quoted(keyword, name) : "keyword";
    uint32_t schema = s->nodes[node].parent;
    if (s->status) return;
    if (s->options.strict) schema_refuse(s, schema, rule, sentence);
    if (s->status || is_noted(s, keyword, value)) return;
    char whose[48] = "";
    if (s->options.tool) snprintf(whose, sizeof whose, "The parameters of tool %d: ", s->options.tool - 1);
    grammar_note(s->g, rule, "%s%s at %s: %.*s.", whose, rule, pointer_of(s, schema, pointer), SENTENCE, sentence);
}

gr_expr schema_checked(struct schema *s, uint32_t node, const char *keyword, gr_expr e)
{
    const struct error *why = grammar_error(s->g);
    if (e || s->status) return s->status ? 0 : e;
    if (why->code != ERR_SCHEMA) {
        if (s->err) *s->err = *why;
        s->status = why->code ? why->code : ERR_MEM_LOAD;
        return 0;
    }
    char sentence[ERROR_MESSAGE];
    size_t n = strlen(why->message);
    snprintf(sentence, sizeof sentence, "%.*s", (int)(n && why->message[n - 1] == '.' ? n - 1 : n), why->message);
    schema_refuse(s, node, keyword, sentence);
    return 0;
}

/* --- names ----------------------------------------------------------------------------------------------- */

static uint32_t hash_of(struct bytes b)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < b.size; i++) hash = (hash ^ b.data[i]) * 16777619u;
    return hash;
}

static bool grow_names(struct schema *s)
{
    uint32_t slots = s->name_slots ? s->name_slots * 4 : 1024;
    struct bytes *names = schema_take(s, slots, sizeof *names);
    uint32_t *table = schema_take(s, slots, sizeof *table);
    if (!names || !table) return false;
    if (s->n_names) memcpy(names, s->names, (s->n_names + 1) * sizeof *names);
    for (uint32_t i = 1; i <= s->n_names; i++) {
        uint32_t at = hash_of(names[i]) & (slots - 1);
        while (table[at]) at = (at + 1) & (slots - 1);
        table[at] = i;
    }
    s->names = names;
    s->name_table = table;
    s->name_slots = slots;
    return true;
}

uint32_t schema_name(struct schema *s, struct bytes name)
{
    if (s->status || (s->n_names + 2 > s->name_slots / 2 && !grow_names(s))) return 0;
    uint32_t at = hash_of(name) & (s->name_slots - 1);
    for (uint32_t id; (id = s->name_table[at]) != 0; at = (at + 1) & (s->name_slots - 1))
        if (bytes_compare(s->names[id], name) == 0) return id;
    s->names[++s->n_names] = name;
    s->name_table[at] = s->n_names;
    return s->n_names;
}

/* --- reading --------------------------------------------------------------------------------------------- */

static uint32_t add_node(struct schema *s, enum json_kind kind, uint32_t parent, uint32_t last)
{
    if (s->n_nodes == NODES_MAX) schema_refuse(s, s->root, "limit", "it has more than 150,000 values");
    if (!s->status && !node_work(s->g, 1)) schema_checked(s, s->root, "limit", 0);
    if (s->n_nodes + 1 >= s->node_room) {
        uint32_t room = s->node_room ? s->node_room * 2 : 256;
        struct schema_node *nodes = s->status ? NULL : mem_resize(s->mem, s->nodes, (uint64_t)room * sizeof *nodes);
        if (!nodes && !s->status)
            s->status = fail(s->err, ERR_MEM_LOAD, "memory", 0, "Memory ran out while reading a schema.");
        if (!nodes) return 0;
        s->nodes = nodes;
        s->node_room = room;
    }
    uint32_t id = ++s->n_nodes;
    s->nodes[id] = (struct schema_node){.kind = kind, .parent = parent};
    if (last) s->nodes[last].next = id;
    else if (parent) s->nodes[parent].first = id;
    if (parent) s->nodes[parent].count++;
    return id;
}

/* Reads the value at the reader. A container is only opened. */
static uint32_t read_one(struct schema *s, struct json_reader *r, uint32_t parent, uint32_t last, uint32_t key)
{
    enum json_kind kind = json_peek(r);
    uint32_t id = add_node(s, kind, parent, last);
    if (!id) return 0;
    struct schema_node *n = &s->nodes[id];
    n->key = key;
    if (kind == JSON_OBJECT || kind == JSON_ARRAY) json_open(r, kind);
    else if (kind == JSON_STRING) json_string_value(r, &n->text);
    else {
        size_t at = r->pos;
        json_skip(r);
        n->text = (struct bytes){r->text + at, r->pos - at};
    }
    return id;
}

/* Reads all values, container by container. The path from the root is a stack of their last children. */
static void read_values(struct schema *s, struct json_reader *r)
{
    uint32_t open[JSON_DEPTH + 1] = {0}, last[JSON_DEPTH + 1] = {0};
    s->root = read_one(s, r, 0, 0, 0);
    open[r->depth] = s->root;
    for (int depth = r->depth; depth > 0 && !r->status && !s->status;) {
        struct bytes text;
        bool object = s->nodes[open[depth]].kind == JSON_OBJECT;
        if (!(object ? json_key(r, &text) : json_more(r))) {
            depth = r->depth;
            continue;
        }
        uint32_t key = object ? schema_name(s, text) : 0, parent = open[depth];
        uint32_t id = s->status ? 0 : read_one(s, r, parent, last[depth], key);
        last[depth] = id;
        if (r->depth > depth) {
            depth = r->depth;
            open[depth] = id;
            last[depth] = 0;
        }
    }
    json_finish(r);
}

/* Refuses duplicate members, because it would be unclear which of them counts. */
static void refuse_doubles(struct schema *s)
{
    uint32_t *seen = schema_take(s, (uint64_t)s->n_names + 1, sizeof *seen);
    for (uint32_t i = 1; seen && i <= s->n_nodes; i++) {
        const struct schema_node *n = &s->nodes[i];
        if (!n->key) continue;
        if (seen[n->key] == n->parent) schema_refuse(s, i, "json", "a member of this name occurs twice");
        seen[n->key] = n->parent;
    }
}

static uint32_t add_word(struct schema *s, enum json_kind kind) { return s->status ? 0 : add_node(s, kind, 0, 0); }

int schema_read(struct schema *s, struct bytes text)
{
    struct error err = {0};
    if (text.size > SCHEMA_TEXT_MAX) return schema_refuse(s, 0, "limit", "a schema has at most 1 MB");
    uint8_t *own = schema_take(s, text.size + 1, 1);
    if (!own) return s->status;
    if (text.size) memcpy(own, text.data, text.size);
    struct json_reader r = {.text = own, .size = text.size, .rule = "json", .what = "The schema", .err = &err};
    read_values(s, &r);
    if (r.status && !s->status) s->status = fail(s->err, ERR_SCHEMA, "json", err.offset, "%s", err.message);
    refuse_doubles(s);
    s->truth = add_word(s, JSON_TRUE);
    s->untruth = add_word(s, JSON_FALSE);
    s->nothing = add_word(s, JSON_NULL);
    return s->status;
}

/* --- questions ------------------------------------------------------------------------------------------- */

uint32_t schema_member(const struct schema *s, uint32_t node, const char *key)
{
    if (s->nodes[node].kind != JSON_OBJECT) return 0;
    for (uint32_t i = s->nodes[node].first; i; i = s->nodes[i].next)
        if (bytes_equal(s->names[s->nodes[i].key], key)) return i;
    return 0;
}

/* Drafts up to 7 ignore everything beside $ref. */
uint32_t schema_keyword(const struct schema *s, uint32_t node, const char *key)
{
    if (s->draft <= 7 && strcmp(key, "$ref") != 0 && schema_member(s, node, "$ref")) return 0;
    return schema_member(s, node, key);
}

static uint32_t member_named(const struct schema *s, uint32_t node, uint32_t name)
{
    uint32_t i = s->nodes[node].first;
    while (i && s->nodes[i].key != name) i = s->nodes[i].next;
    return i;
}

/* Recursion is no deeper than the nesting of the text. */
bool schema_equal(const struct schema *s, uint32_t a, uint32_t b)
{
    const struct schema_node *x = &s->nodes[a], *y = &s->nodes[b];
    if (x->kind != y->kind || x->count != y->count) return false;
    if (x->kind == JSON_STRING) return bytes_compare(x->text, y->text) == 0;
    if (x->kind == JSON_NUMBER) return decimal_compare_texts(x->text, y->text) == 0;
    for (uint32_t i = x->first, j = y->first; i; i = s->nodes[i].next, j = s->nodes[j].next) {
        uint32_t other = x->kind == JSON_OBJECT ? member_named(s, b, s->nodes[i].key) : j;
        if (!other || !schema_equal(s, i, other)) return false;
    }
    return true;
}

uint32_t schema_count(struct schema *s, uint32_t node, const char *keyword)
{
    struct decimal d;
    uint64_t value = 0;
    bool whole = s->nodes[node].kind == JSON_NUMBER && decimal_read(s->nodes[node].text, &d) && d.point >= d.n &&
                 (!d.negative || d.n == 0);
    if (!whole)
        return (void)schema_refuse(s, s->nodes[node].parent, keyword, "a whole number from 0 on was expected"), 0;
    for (int i = 0; i < d.point && value < GR_MANY; i++) value = value * 10 + (uint64_t)(i < d.n ? d.digits[i] : 0);
    return value < GR_MANY - 1 ? (uint32_t)value : GR_MANY - 1;
}
