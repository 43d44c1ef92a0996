/* SPDX-License-Identifier: MIT
 *
 * A schema's text as a tree, and what every part of the compiler shares: its memory, its names, its first error.
 *
 * Nodes lie in the order of the text, so a parent comes before what it holds, and one pass finds which nodes are
 * schemas and to which resource ($id) they belong. The first error stays: every function returns at once then, and
 * results are empty.
 */
#ifndef QUERN_SCHEMA_TREE_H
#define QUERN_SCHEMA_TREE_H

#include "base/json_reader.h"
#include "grammar/schema/schema.h"

/* What stands at a node: a schema, names or a list of schemas, or anything else. */
enum schema_place { PLACE_OTHER, PLACE_SCHEMA, PLACE_MAP, PLACE_LIST };

struct schema_node {
    enum json_kind kind;
    enum schema_place place;
    uint32_t parent, first, next, count; /* 0: none; the root is node 1 */
    uint32_t key;                        /* the name of a member; 0: an element */
    uint32_t resource;
    struct bytes text;                   /* of a string, or a number as it is written */
    const struct schema_set *sets[4];    /* what it allows: as schema, and as value; and what is left */
};

/* A part of the document with an address of its own, and a place with a name in it. */
struct schema_resource {
    struct bytes uri;
    uint32_t name, node; /* name: the URI's number among the names */
};

struct schema_anchor {
    uint32_t name, node, resource, next; /* next: of the same name; 0: none */
    bool dynamic;
};

/* A node and the step of a pointer that leads to it from its parent. */
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
    uint32_t n_resources, n_anchors, n_outermost; /* both from 1 on; n_outermost: of `$recursiveAnchor: true` */
    uint32_t n_named, *resource_named, *anchor_named; /* by the number of a name up to n_named; 0: none */
    struct schema_child *children; /* [child_slots]: refs.c */
    uint32_t child_slots;
    int draft;   /* 4, 6, 7, 2019, 2020 */
    bool tracks; /* some unevaluatedX asks what has been looked at */
    struct schema_noted {
        struct bytes keyword, value;
    } noted[NOTED_MAX]; /* what has been passed over */
    uint32_t n_noted;

    struct schema_words *words;   /* the language of numbers and strings: words.h */
    struct schema_terms *terms;   /* conjunctions: sets.h */
    int depth;                    /* of schemas in one place */
    uint32_t here;                /* the schema at hand, for messages of limits */
    uint32_t *where;              /* names_where() */
    uint32_t where_room;
};

/* Zeroed, as long as the compiler; NULL after an error. */
void *schema_take(struct schema *s, uint64_t count, uint64_t size);
void schema_release(struct schema *s);

/* Says what is wrong at a node, unless something was before; returns the status. */
int schema_refuse(struct schema *s, uint32_t node, const char *keyword, const char *sentence);
/* The same of a member that says nothing: it is noted, once for each keyword (by_value: with this value), or refused
 * where that is asked for. */
void schema_note(struct schema *s, uint32_t node, const char *sentence, bool by_value);
/* What the grammar gave: 0 is its error, which is told with the keyword. */
gr_expr schema_checked(struct schema *s, uint32_t node, const char *keyword, gr_expr e);

int schema_read(struct schema *s, struct bytes text);
uint32_t schema_name(struct schema *s, struct bytes name);             /* its number; 0 after an error */
uint32_t schema_member(const struct schema *s, uint32_t node, const char *key); /* its value; 0: there is none */
/* the same, but for what drafts pass over beside $ref */
uint32_t schema_keyword(const struct schema *s, uint32_t node, const char *key);
bool schema_equal(const struct schema *s, uint32_t a, uint32_t b);     /* as JSON values */
/* A whole number >= 0; more than UINT32_MAX - 1 counts as that. */
uint32_t schema_count(struct schema *s, uint32_t node, const char *keyword);

/* refs.c */
int schema_places(struct schema *s);
uint32_t schema_target(struct schema *s, uint32_t node, uint32_t value, const char *keyword); /* 0 after an error */

#endif
