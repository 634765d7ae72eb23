/*
 * A JSON document as a tree of values, for the part of RFC 8259 that HNS documents use. Text is UTF-8. Numbers are kept
 * as written.
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

/* json_parse parses one document, or returns NULL if the text is invalid. */
struct json *json_parse(const char *text);
void json_free(struct json *value);

/* json_print returns the text without spaces. The caller frees the text. */
char *json_print(const struct json *value);

/* json_get returns a member of an object, or NULL. Like HNS, it ignores the case of keys. */
struct json *json_get(const struct json *object, const char *key);

/* json_text returns the text of a member, or "". */
const char *json_text(const struct json *object, const char *key);

/* json_set adds a value to an object, or replaces the member with this key. The object owns the value. */
void json_set(struct json *object, const char *key, struct json *value);
void json_append(struct json *array, struct json *value);

/* json_equal compares two values, ignoring the order of members. */
int json_equal(const struct json *a, const struct json *b);

struct json *json_new(enum json_kind kind);
struct json *json_string(const char *text);
struct json *json_number(unsigned long number);

#endif
