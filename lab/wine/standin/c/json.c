/* See json.h. */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

/* buffer is a text that grows. */
struct buffer {
    char *data;
    size_t length, size;
};

static void put(struct buffer *b, const char *text, size_t length) {
    if (b->length + length + 1 > b->size) {
        b->size = (b->length + length + 1) * 2;
        b->data = realloc(b->data, b->size);
        if (b->data == NULL) abort();
    }
    memcpy(b->data + b->length, text, length);
    b->length += length;
    b->data[b->length] = 0;
}

static void put_text(struct buffer *b, const char *text) { put(b, text, strlen(text)); }

struct json *json_new(enum json_kind kind) {
    struct json *value = calloc(1, sizeof *value);
    if (value == NULL) abort();
    value->kind = kind;
    return value;
}

static char *copy(const char *text) {
    struct buffer b = {0};
    put_text(&b, text);
    return b.data;
}

struct json *json_string(const char *text) {
    struct json *value = json_new(JSON_STRING);
    value->text = copy(text);
    return value;
}

struct json *json_number(unsigned long number) {
    char text[24];
    struct json *value = json_new(JSON_NUMBER);
    snprintf(text, sizeof text, "%lu", number);
    value->text = copy(text);
    return value;
}

void json_free(struct json *value) {
    while (value != NULL) {
        struct json *next = value->next;
        json_free(value->first);
        free(value->key);
        free(value->text);
        free(value);
        value = next;
    }
}

static const char *skip(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') at++;
    return at;
}

/* parse_hex parses four hexadecimal digits, or returns -1. */
static long parse_hex(const char *at) {
    char digits[5] = {0};
    char *end;
    strncpy(digits, at, 4);
    if (strspn(digits, "0123456789abcdefABCDEF") != 4) return -1;
    return strtol(digits, &end, 16);
}

static void put_code(struct buffer *b, unsigned long code) {
    char utf8[4];
    if (code < 0x80) {
        utf8[0] = (char)code;
        put(b, utf8, 1);
    } else if (code < 0x800) {
        utf8[0] = (char)(0xC0 | code >> 6);
        utf8[1] = (char)(0x80 | (code & 0x3F));
        put(b, utf8, 2);
    } else if (code < 0x10000) {
        utf8[0] = (char)(0xE0 | code >> 12);
        utf8[1] = (char)(0x80 | (code >> 6 & 0x3F));
        utf8[2] = (char)(0x80 | (code & 0x3F));
        put(b, utf8, 3);
    } else {
        utf8[0] = (char)(0xF0 | code >> 18);
        utf8[1] = (char)(0x80 | (code >> 12 & 0x3F));
        utf8[2] = (char)(0x80 | (code >> 6 & 0x3F));
        utf8[3] = (char)(0x80 | (code & 0x3F));
        put(b, utf8, 4);
    }
}

/* parse_escape parses an escape sequence after its backslash, or returns NULL. */
static const char *parse_escape(const char *at, struct buffer *b) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *name = *at != 0 ? strchr(names, *at) : NULL;
    long code, low;
    if (name != NULL) {
        put(b, values + (name - names), 1);
        return at + 1;
    }
    if (*at != 'u' || (code = parse_hex(at + 1)) <= 0) return NULL; /* a C string cannot contain NUL */
    at += 5;
    if (code >= 0xD800 && code < 0xDC00 && at[0] == '\\' && at[1] == 'u' && (low = parse_hex(at + 2)) >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        at += 6;
    }
    put_code(b, (unsigned long)code);
    return at;
}

/* parse_string parses a string from after its opening quote. */
static const char *parse_string(const char *at, char **text) {
    struct buffer b = {0};
    put(&b, "", 0);
    while (at != NULL && *at != '"') {
        if ((unsigned char)*at < 0x20) { /* the end, or a character that requires an escape */
            at = NULL;
        } else if (*at == '\\') {
            at = parse_escape(at + 1, &b);
        } else {
            put(&b, at++, 1);
        }
    }
    if (at == NULL) {
        free(b.data);
        return NULL;
    }
    *text = b.data;
    return at + 1;
}

static const char *parse_value(const char *at, struct json **out, int depth);

/* parse_children parses the rest of an array or object. */
static const char *parse_children(const char *at, struct json *parent, char close, int depth) {
    struct json **tail = &parent->first;
    at = skip(at);
    if (*at == close) return at + 1;
    for (;;) {
        char *key = NULL;
        if (parent->kind == JSON_OBJECT) {
            at = skip(at);
            if (*at != '"' || (at = parse_string(at + 1, &key)) == NULL) return NULL;
            at = skip(at);
            if (*at++ != ':') {
                free(key);
                return NULL;
            }
        }
        at = parse_value(at, tail, depth + 1);
        if (at == NULL) {
            free(key);
            return NULL;
        }
        (*tail)->key = key;
        tail = &(*tail)->next;
        at = skip(at);
        if (*at == close) return at + 1;
        if (*at++ != ',') return NULL;
    }
}

static const char *parse_word(const char *at, struct json **out) {
    static const struct {
        const char *word;
        enum json_kind kind;
    } words[] = {{"null", JSON_NULL}, {"true", JSON_TRUE}, {"false", JSON_FALSE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strncmp(at, words[i].word, strlen(words[i].word)) == 0) {
            *out = json_new(words[i].kind);
            return at + strlen(words[i].word);
        }
    }
    return NULL;
}

static const char *parse_value(const char *at, struct json **out, int depth) {
    const char *end;
    struct json *value;
    at = skip(at);
    if (depth > MAX_DEPTH) return NULL;
    if (*at == '{' || *at == '[') {
        value = json_new(*at == '{' ? JSON_OBJECT : JSON_ARRAY);
        end = parse_children(at + 1, value, *at == '{' ? '}' : ']', depth);
    } else if (*at == '"') {
        value = json_new(JSON_STRING);
        end = parse_string(at + 1, &value->text);
    } else if (*at == '-' || (*at >= '0' && *at <= '9')) {
        struct buffer b = {0};
        put(&b, at, strspn(at, "+-.0123456789eE"));
        value = json_new(JSON_NUMBER);
        value->text = b.data;
        end = at + b.length;
    } else {
        return parse_word(at, out);
    }
    if (end == NULL) {
        json_free(value);
        return NULL;
    }
    *out = value;
    return end;
}

struct json *json_parse(const char *text) {
    struct json *value = NULL;
    const char *end = text != NULL ? parse_value(text, &value, 0) : NULL;
    if (end != NULL && *skip(end) == 0) return value;
    json_free(value);
    return NULL;
}

static void print_string(struct buffer *b, const char *text) {
    put_text(b, "\"");
    for (; *text != 0; text++) {
        char escape[8];
        if (*text == '"' || *text == '\\') {
            put_text(b, "\\");
            put(b, text, 1);
        } else if ((unsigned char)*text < 0x20) {
            snprintf(escape, sizeof escape, "\\u%04x", *text);
            put_text(b, escape);
        } else {
            put(b, text, 1);
        }
    }
    put_text(b, "\"");
}

static void print(struct buffer *b, const struct json *value) {
    static const char *const words[] = {"null", "false", "true"};
    switch (value->kind) {
    case JSON_NUMBER:
        put_text(b, value->text);
        return;
    case JSON_STRING:
        print_string(b, value->text);
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        put_text(b, value->kind == JSON_ARRAY ? "[" : "{");
        for (const struct json *child = value->first; child != NULL; child = child->next) {
            if (child->key != NULL) {
                print_string(b, child->key);
                put_text(b, ":");
            }
            print(b, child);
            if (child->next != NULL) put_text(b, ",");
        }
        put_text(b, value->kind == JSON_ARRAY ? "]" : "}");
        return;
    default:
        put_text(b, words[value->kind]);
    }
}

char *json_print(const struct json *value) {
    struct buffer b = {0};
    print(&b, value);
    return b.data;
}

struct json *json_get(const struct json *object, const char *key) {
    if (object == NULL || object->kind != JSON_OBJECT) return NULL;
    for (struct json *child = object->first; child != NULL; child = child->next) {
        if (_stricmp(child->key, key) == 0) return child;
    }
    return NULL;
}

const char *json_text(const struct json *object, const char *key) {
    const struct json *value = json_get(object, key);
    return value != NULL && value->text != NULL ? value->text : "";
}

void json_append(struct json *array, struct json *value) {
    struct json **tail = &array->first;
    while (*tail != NULL) tail = &(*tail)->next;
    *tail = value;
}

void json_set(struct json *object, const char *key, struct json *value) {
    struct json **at = &object->first;
    value->key = copy(key);
    while (*at != NULL && _stricmp((*at)->key, key) != 0) at = &(*at)->next;
    if (*at != NULL) { /* at the same position, to keep the order of members */
        struct json *old = *at;
        value->next = old->next;
        old->next = NULL;
        json_free(old);
    }
    *at = value;
}

static size_t count(const struct json *value) {
    size_t n = 0;
    for (const struct json *child = value->first; child != NULL; child = child->next) n++;
    return n;
}

int json_equal(const struct json *a, const struct json *b) {
    if (a == NULL || b == NULL || a->kind != b->kind || count(a) != count(b)) return a == b;
    if (a->text != NULL && strcmp(a->text, b->text) != 0) return 0;
    const struct json *other = b->first;
    for (const struct json *child = a->first; child != NULL; child = child->next) {
        if (!json_equal(child, a->kind == JSON_OBJECT ? json_get(b, child->key) : other)) return 0;
        other = other->next;
    }
    return 1;
}
