/* See rules.h. */
#include "rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* The keys of texts in the value of a rule; a list has one entry for each element. */
static const struct {
    const WCHAR *key;
    int list;
} text_keys[TEXTS] = {
    [NAME] = {L"Name", 0},        [DESCRIPTION] = {L"Desc", 0},      [APPLICATION] = {L"App", 0},        [SERVICE] = {L"Svc", 0},
    [GROUPING] = {L"EmbedCtxt", 0}, [LOCAL_PORTS] = {L"LPort", 1},   [REMOTE_PORTS] = {L"RPort", 1},     [LOCAL_ADDRESSES] = {L"LA4", 1},
    [REMOTE_ADDRESSES] = {L"RA4", 1}, [ICMP] = {L"ICMP4", 1},        [INTERFACE_TYPES] = {L"IFType", 1},
};

static const struct {
    const WCHAR *name;
    LONG bit;
} profiles[] = {{L"Domain", 1}, {L"Private", 2}, {L"Public", 4}};

void rule_default(struct rule *rule) {
    memset(rule, 0, sizeof *rule);
    wcscpy(rule->text[LOCAL_ADDRESSES], L"*");
    wcscpy(rule->text[REMOTE_ADDRESSES], L"*");
    wcscpy(rule->text[INTERFACE_TYPES], L"All");
    rule->number[PROTOCOL] = PROTOCOL_ANY;
    rule->number[DIRECTION] = DIRECTION_IN;
    rule->number[ACTION] = 1;
    rule->number[PROFILES] = PROFILES_ALL;
}

static int implied(enum text which, const WCHAR *value) {
    return *value == 0 || wcscmp(value, L"*") == 0 || (which == INTERFACE_TYPES && _wcsicmp(value, L"All") == 0);
}

static void add(WCHAR *out, const WCHAR *key, const WCHAR *value, size_t length) {
    size_t used = wcslen(out);
    if (used + wcslen(key) + length + 3 >= RULE_LENGTH) return;
    swprintf(out + used, RULE_LENGTH - used, L"%ls=%.*ls|", key, (int)length, value);
}

static void add_word(WCHAR *out, const WCHAR *key, const WCHAR *value) { add(out, key, value, wcslen(value)); }

/* encode writes the value of a rule. */
static void encode(const struct rule *rule, WCHAR out[RULE_LENGTH]) {
    WCHAR number[16];
    wcscpy(out, L"v2.30|");
    add_word(out, L"Action", rule->number[ACTION] ? L"Allow" : L"Block");
    add_word(out, L"Active", rule->number[ENABLED] ? L"TRUE" : L"FALSE");
    add_word(out, L"Dir", rule->number[DIRECTION] == DIRECTION_OUT ? L"Out" : L"In");
    if (rule->number[PROTOCOL] != PROTOCOL_ANY) {
        swprintf(number, ARRAYSIZE(number), L"%ld", rule->number[PROTOCOL]);
        add_word(out, L"Protocol", number);
    }
    for (size_t i = 0; i < ARRAYSIZE(profiles) && rule->number[PROFILES] != PROFILES_ALL; i++) {
        if (rule->number[PROFILES] & profiles[i].bit) add_word(out, L"Profile", profiles[i].name);
    }
    if (rule->number[EDGE_TRAVERSAL]) add_word(out, L"Edge", L"TRUE");
    for (int i = TEXTS - 1; i >= 0; i--) {
        const WCHAR *at = rule->text[i];
        if (implied(i, at)) continue;
        while (*at != 0) {
            size_t length = text_keys[i].list ? wcscspn(at, L",") : wcslen(at);
            add(out, text_keys[i].key, at, length);
            at += length + (at[length] == L',');
        }
    }
}

static void append(WCHAR *list, const WCHAR *value, int is_list) {
    if (implied(TEXTS, list) || !is_list) *list = 0;
    if (wcslen(list) + wcslen(value) + 2 > TEXT_LENGTH) return;
    if (*list != 0) wcscat(list, L",");
    wcscat(list, value);
}

static void decode_pair(struct rule *rule, const WCHAR *key, const WCHAR *value) {
    if (_wcsicmp(key, L"Action") == 0) rule->number[ACTION] = _wcsicmp(value, L"Allow") == 0;
    if (_wcsicmp(key, L"Active") == 0) rule->number[ENABLED] = _wcsicmp(value, L"TRUE") == 0;
    if (_wcsicmp(key, L"Dir") == 0) rule->number[DIRECTION] = _wcsicmp(value, L"Out") == 0 ? DIRECTION_OUT : DIRECTION_IN;
    if (_wcsicmp(key, L"Protocol") == 0) rule->number[PROTOCOL] = _wtoi(value);
    if (_wcsicmp(key, L"Edge") == 0) rule->number[EDGE_TRAVERSAL] = _wcsicmp(value, L"TRUE") == 0;
    for (size_t i = 0; i < ARRAYSIZE(profiles) && _wcsicmp(key, L"Profile") == 0; i++) {
        if (_wcsicmp(value, profiles[i].name) != 0) continue;
        rule->number[PROFILES] = (rule->number[PROFILES] == PROFILES_ALL ? 0 : rule->number[PROFILES]) | profiles[i].bit;
    }
    for (int i = 0; i < TEXTS; i++) {
        if (_wcsicmp(key, text_keys[i].key) != 0) continue;
        if (i == INTERFACE_TYPES && _wcsicmp(rule->text[i], L"All") == 0) rule->text[i][0] = 0;
        append(rule->text[i], value, text_keys[i].list);
    }
}

/* decode parses the value of a rule, and modifies the value. */
static void decode(struct rule *rule, WCHAR *value) {
    rule_default(rule);
    for (WCHAR *next; value != NULL && *value != 0; value = next) {
        next = wcschr(value, L'|');
        if (next != NULL) *next++ = 0;
        WCHAR *equals = wcschr(value, L'=');
        if (equals == NULL) continue; /* the version */
        *equals = 0;
        decode_pair(rule, value, equals + 1);
    }
    int ports = rule->number[PROTOCOL] == PROTOCOL_TCP || rule->number[PROTOCOL] == PROTOCOL_UDP;
    if (ports && rule->text[LOCAL_PORTS][0] == 0) wcscpy(rule->text[LOCAL_PORTS], L"*");
    if (ports && rule->text[REMOTE_PORTS][0] == 0) wcscpy(rule->text[REMOTE_PORTS], L"*");
}

static LONG open_key(HKEY *key) {
    return RegCreateKeyExW(HKEY_LOCAL_MACHINE, RULES_KEY, 0, NULL, 0, KEY_ALL_ACCESS, NULL, key, NULL);
}

LONG rule_at(DWORD index, struct rule *rule) {
    HKEY key;
    WCHAR id[ARRAYSIZE(rule->id)], value[RULE_LENGTH + 1] = {0};
    DWORD length = ARRAYSIZE(id), size = RULE_LENGTH * sizeof *value, type;
    LONG code = open_key(&key);
    if (code != ERROR_SUCCESS) return code;
    code = RegEnumValueW(key, index, id, &length, NULL, &type, (BYTE *)value, &size);
    RegCloseKey(key);
    if (code == ERROR_NO_MORE_ITEMS) return code;
    decode(rule, code == ERROR_SUCCESS && type == REG_SZ ? value : NULL);
    if (code == ERROR_SUCCESS) wcscpy(rule->id, id);
    return ERROR_SUCCESS;
}

LONG rule_named(const WCHAR *name, struct rule *rule) {
    LONG code;
    for (DWORD i = 0; (code = rule_at(i, rule)) == ERROR_SUCCESS; i++) {
        if (*rule->text[NAME] != 0 && lstrcmpiW(rule->text[NAME], name) == 0) return ERROR_SUCCESS;
    }
    return code == ERROR_NO_MORE_ITEMS ? ERROR_FILE_NOT_FOUND : code;
}

LONG rule_removed(const WCHAR *name, struct rule *rule) {
    LONG code;
    for (DWORD i = 0; (code = rule_at(i, rule)) == ERROR_SUCCESS; i++) {
        if (rule->number[DIRECTION] == DIRECTION_OUT && lstrcmpiW(rule->text[NAME], name) == 0) return ERROR_SUCCESS;
    }
    return code == ERROR_NO_MORE_ITEMS ? rule_named(name, rule) : code;
}

LONG rule_save(const struct rule *rule) {
    HKEY key;
    WCHAR value[RULE_LENGTH];
    LONG code = open_key(&key);
    if (code != ERROR_SUCCESS) return code;
    encode(rule, value);
    code = RegSetValueExW(key, rule->id, 0, REG_SZ, (const BYTE *)value, (DWORD)((wcslen(value) + 1) * sizeof *value));
    RegCloseKey(key);
    return code;
}

LONG rule_delete(const struct rule *rule) {
    HKEY key;
    LONG code = open_key(&key);
    if (code != ERROR_SUCCESS) return code;
    code = RegDeleteValueW(key, rule->id);
    RegCloseKey(key);
    return code;
}
