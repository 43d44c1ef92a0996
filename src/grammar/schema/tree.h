/* SPDX-License-Identifier: MIT
 *
 * A schema's text as a tree, and the data that all parts of the compiler share: memory, names, the first error.
 *
 * Nodes are in the order of the text, so a parent comes before its children. One pass finds which nodes are schemas and
 * which resource ($id) each belongs to. After the first error every function returns at once, and results are empty.
 */
#ifndef QUERN_SCHEMA_TREE_H
#define QUERN_SCHEMA_TREE_H

#include "base/json_reader.h"
#include "grammar/schema/schema.h"

/* The role of a node: a schema, a map or a list of schemas, or something else. */
enum schema_place { PLACE_OTHER, PLACE_SCHEMA, PLACE_MAP, PLACE_LIST };

struct schema_node {
    enum json_kind kind;
    enum schema_place place;
    uint32_t parent, first, next, count; /* 0: none; the root is node 1 */
    uint32_t key;                        /* name of a member; 0: an element of a list */
    uint32_t resource;
    struct bytes text;                   /* of a string, or of a number as it is written */
    const struct schema_set *sets[4]; /* allowed values, as a schema (0, 1) and as a value (2, 3): positive, negated */
};

/* A part of the document with its own address; an anchor is a named place in it. */
struct schema_resource {
    struct bytes uri;
    uint32_t name, node; /* name: number of the URI among the names */
};

struct schema_anchor {
    uint32_t name, node, resource, next; /* next: of the same name; 0: none */
    bool dynamic;
};

/* A node, and the step of a pointer from its parent to it. */
struct schema_child {
    uint32_t node, step;
};

enum { NOTED_MAX = 32 };

struct schema_pool; /* blocks of memory */

struct schema {
    struct grammar *g;
    struct mem *mem;
    struct error *err;
    int status;
    struct schema_options options;
    struct schema_pool *pool;
    uint64_t pool_size;

    struct schema_node *nodes;
    uint32_t n_nodes, node_room, root, truth, untruth, nothing; /* the last three: values true, false and null */
    struct bytes *names; /* from 1 on */
    uint32_t n_names, *name_table, name_slots;
    struct schema_resource *resources;
    struct schema_anchor *anchors;
    uint32_t n_resources, n_anchors, n_outermost; /* both from 1 on; n_outermost: number of `$recursiveAnchor: true` */
    uint32_t n_named, *resource_named, *anchor_named; /* by the number of a name up to n_named; 0: none */
    struct schema_child *children; /* [child_slots]: refs.c */
    uint32_t child_slots;
    int draft;   /* 4, 6, 7, 2019, 2020 */
    bool tracks; /* an unevaluatedX needs to know which members were evaluated */
    struct schema_noted {
        struct bytes keyword, value;
    } noted[NOTED_MAX]; /* keywords that were ignored with a note */
    uint32_t n_noted;

    struct schema_words *words;   /* the language of numbers and strings: words.h */
    gr_expr excluded;             /* strings that cannot be written; 0: none */
    struct schema_terms *terms;   /* conjunctions: sets.h */
    int depth;                    /* of schemas in one place */
    uint32_t here;                /* the current schema, for messages about limits */
    uint32_t *where;              /* names_where() */
    uint32_t where_room;
};

/* Zeroed memory that lives as long as the compiler; NULL after an error. */
void *schema_take(struct schema *s, uint64_t count, uint64_t size);
void schema_release(struct schema *s);

/* Reports an error at a node, unless there was one before. Returns the status. */
int schema_refuse(struct schema *s, uint32_t node, const char *keyword, const char *sentence);
/* Reports a member without effect: as a note, once per keyword (by_value: per keyword and value), or as an error with
 * options.strict. */
void schema_note(struct schema *s, uint32_t node, const char *sentence, bool by_value);
/* Returns e. If e is 0, reports the grammar's error with the keyword. */
gr_expr schema_checked(struct schema *s, uint32_t node, const char *keyword, gr_expr e);

int schema_read(struct schema *s, struct bytes text);
uint32_t schema_name(struct schema *s, struct bytes name);             /* the number of the name; 0 after an error */
uint32_t schema_member(const struct schema *s, uint32_t node, const char *key); /* the value's node; 0: absent */
/* the same, but 0 for keywords that drafts ignore beside $ref */
uint32_t schema_keyword(const struct schema *s, uint32_t node, const char *key);
bool schema_equal(const struct schema *s, uint32_t a, uint32_t b);     /* compares them as JSON values */
/* Reads a whole number >= 0; larger numbers count as UINT32_MAX - 1. */
uint32_t schema_count(struct schema *s, uint32_t node, const char *keyword);

/* refs.c */
int schema_places(struct schema *s);
uint32_t schema_target(struct schema *s, uint32_t node, uint32_t value, const char *keyword); /* 0 after an error */

#endif
