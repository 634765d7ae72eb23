/*
 * A JSON document as a tree of values: as much of RFC 8259 as HNS documents use. Text is UTF-8. Numbers are kept as written.
 */
#ifndef LAB_JSON_H
#define LAB_JSON_H

#include <stddef.h>

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_kind kind;
    char *key;          /* of a member of an object */
    char *text;         /* of a string (unescaped) or a number (as written) */
    struct json *first; /* child of an array or object */
    struct json *next;  /* sibling */
};

/* json_parse reads one document; NULL when it is none. */
struct json *json_parse(const char *text);
void json_free(struct json *value);

/* json_print gives the text without spaces; the caller frees it. */
char *json_print(const struct json *value);

/* json_get finds a member of an object, without regard to case as HNS does; NULL when there is none. */
struct json *json_get(const struct json *object, const char *key);

/* json_text is a member's text; "" when it has none. */
const char *json_text(const struct json *object, const char *key);

/* json_set puts a value into an object, in place of the member of that key. It owns the value. */
void json_set(struct json *object, const char *key, struct json *value);
void json_append(struct json *array, struct json *value);

/* json_equal compares two values; the order of members does not count. */
int json_equal(const struct json *a, const struct json *b);

struct json *json_new(enum json_kind kind);
struct json *json_string(const char *text);
struct json *json_number(unsigned long number);

#endif
