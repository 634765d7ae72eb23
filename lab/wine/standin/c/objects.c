/* See objects.h. */
#include "objects.h"

#include <dismapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addresses.h"
#include "codes.h"
#include "faults.h"
#include "features.h"

enum { NON_PERSISTENT = 8, REMOTE = 1 }; /* flags of networks, of endpoints */

HRESULT not_found(enum kind kind) {
    switch (kind) {
    case NETWORK:
        return HCN_E_NETWORK_NOT_FOUND;
    case ENDPOINT:
        return HCN_E_ENDPOINT_NOT_FOUND;
    default:
        return HRESULT_FROM_WIN32(ERROR_NOT_FOUND);
    }
}

static unsigned long flags(const struct json *object) { return strtoul(json_text(object, "Flags"), NULL, 10); }

static void delete_network(const char *id) {
    struct json *endpoints = store_list(ENDPOINT);
    for (const struct json *e = endpoints->first; e != NULL; e = e->next) {
        if (_stricmp(json_text(e, "HostComputeNetwork"), id) == 0) store_delete(ENDPOINT, json_text(e, "ID"));
    }
    json_free(endpoints);
    store_delete(NETWORK, id);
}

int object_attached(const struct json *endpoint) {
    const struct json *attached = json_get(endpoint, "LabAttached");
    return attached != NULL && attached->kind == JSON_TRUE;
}

static HRESULT set_attached(const char *id, struct json *endpoint, enum json_kind attached) {
    json_set(endpoint, "LabAttached", json_new(attached));
    return store_save(ENDPOINT, id, endpoint);
}

HRESULT object_attach(const char *id, struct json *endpoint) { return set_attached(id, endpoint, JSON_TRUE); }

/* forget_after_boot deletes the networks that do not persist across a boot, and all attachments. */
static void forget_after_boot(void) {
    struct json *endpoints = store_list(ENDPOINT);
    for (struct json *e = endpoints->first; e != NULL; e = e->next) {
        char id[ID_LENGTH + 1];
        snprintf(id, sizeof id, "%s", json_text(e, "ID"));
        if (object_attached(e)) set_attached(id, e, JSON_FALSE);
    }
    json_free(endpoints);
    struct json *networks = store_list(NETWORK);
    for (const struct json *n = networks->first; n != NULL; n = n->next) {
        if (flags(n) & NON_PERSISTENT) delete_network(json_text(n, "ID"));
    }
    json_free(networks);
}

HRESULT service_check(void) {
    struct feature containers;
    HRESULT answer = (HRESULT)fault_number(L"hns", L"Answer");
    if (FAILED(answer)) return answer;
    LONG code = feature_find(L"Containers", &containers);
    if (code != ERROR_SUCCESS || (containers.state != DismStateInstalled && containers.state != DismStateUninstallPending)) {
        return HRESULT_FROM_WIN32(ERROR_SERVICE_DOES_NOT_EXIST);
    }
    if (store_first_since_boot()) forget_after_boot();
    return S_OK;
}

/* passes reports whether an object has all properties of a filter. The case of IDs is ignored. */
static int passes(const struct json *object, const struct json *filter) {
    if (filter == NULL) return 1;
    for (const struct json *wanted = filter->first; wanted != NULL; wanted = wanted->next) {
        const struct json *has = json_get(object, wanted->key);
        int id = _stricmp(wanted->key, "ID") == 0 || _strnicmp(wanted->key, "HostCompute", 11) == 0;
        if (id ? _stricmp(json_text(object, wanted->key), wanted->text != NULL ? wanted->text : "") != 0 : !json_equal(has, wanted)) return 0;
    }
    return 1;
}

HRESULT object_list(enum kind kind, const struct json *query, struct json **ids) {
    const char *text = json_text(query, "Filter");
    struct json *filter = *text != 0 ? json_parse(text) : NULL;
    if (*text != 0 && (filter == NULL || filter->kind != JSON_OBJECT)) {
        json_free(filter);
        return HCN_E_INVALID_JSON;
    }
    struct json *objects = store_list(kind);
    *ids = json_new(JSON_ARRAY);
    for (const struct json *o = objects->first; o != NULL; o = o->next) {
        if (passes(o, filter)) json_append(*ids, json_string(json_text(o, "ID")));
    }
    json_free(objects);
    json_free(filter);
    return S_OK;
}

/* prepare_network validates a network and rejects a second network of the same name. */
static HRESULT prepare_network(struct json *network) {
    HRESULT code = check_network(network);
    struct json *networks = store_list(NETWORK);
    for (const struct json *n = networks->first; n != NULL && SUCCEEDED(code); n = n->next) {
        if (_stricmp(json_text(n, "Name"), json_text(network, "Name")) == 0) code = HCN_E_NETWORK_ALREADY_EXISTS;
    }
    json_free(networks);
    return code;
}

static HRESULT prepare_endpoint(const char *network_id, struct json *endpoint) {
    struct json *network = store_load(NETWORK, network_id), *endpoints;
    HRESULT code = S_OK;
    if (network == NULL) return HCN_E_NETWORK_NOT_FOUND;
    json_set(endpoint, "HostComputeNetwork", json_string(network_id));
    if (!(flags(endpoint) & REMOTE)) {
        endpoints = store_list(ENDPOINT);
        code = assign_address(network, endpoints, endpoint);
        json_free(endpoints);
    }
    json_free(network);
    return code;
}

HRESULT object_create(enum kind kind, const char *id, const char *network, struct json *settings, struct json **made) {
    HRESULT code = S_OK;
    if (settings->kind != JSON_OBJECT) return HCN_E_INVALID_JSON;
    json_set(settings, "ID", json_string(id));
    if (json_get(settings, "SchemaVersion") == NULL) {
        struct json *version = json_new(JSON_OBJECT);
        json_set(version, "Major", json_number(2));
        json_set(version, "Minor", json_number(0));
        json_set(settings, "SchemaVersion", version);
    }
    if (kind == NETWORK) code = prepare_network(settings);
    if (kind == ENDPOINT) code = prepare_endpoint(network, settings);
    if (SUCCEEDED(code)) code = store_save(kind, id, settings);
    if (SUCCEEDED(code)) *made = settings;
    return code;
}

/* without removes the first element of a list that equals a value, and reports whether an element was removed. */
static int without(struct json *list, const struct json *value) {
    for (struct json **at = &list->first; *at != NULL; at = &(*at)->next) {
        if (!json_equal(*at, value)) continue;
        struct json *gone = *at;
        *at = gone->next;
        gone->next = NULL;
        json_free(gone);
        return 1;
    }
    return 0;
}

static struct json *clone(const struct json *value) {
    char *text = json_print(value);
    struct json *copy = json_parse(text);
    free(text);
    return copy;
}

static struct json *list_of(struct json *object, const char *key) {
    struct json *list = json_get(object, key);
    if (list == NULL || list->kind != JSON_ARRAY) {
        list = json_new(JSON_ARRAY);
        json_set(object, key, list);
    }
    return list;
}

/* change adds a value to a list, or removes the value. */
static HRESULT change(struct json *list, const char *request, const struct json *value) {
    if (_stricmp(request, "Add") == 0) {
        json_append(list, clone(value));
        return S_OK;
    }
    if (_stricmp(request, "Remove") != 0) return HCN_E_REQUEST_UNSUPPORTED;
    return without(list, value) ? S_OK : HRESULT_FROM_WIN32(ERROR_NOT_FOUND);
}

static HRESULT change_policies(struct json *object, const char *request, const struct json *settings) {
    const struct json *policies = json_get(settings, "Policies");
    struct json *list = list_of(object, "Policies");
    HRESULT code = policies != NULL ? S_OK : HCN_E_INVALID_JSON;
    for (const struct json *p = policies != NULL ? policies->first : NULL; p != NULL && SUCCEEDED(code); p = p->next) {
        code = change(list, request, p);
    }
    return code;
}

HRESULT object_modify(enum kind kind, const char *id, const struct json *request) {
    const struct json *settings = json_get(request, "Settings");
    const char *type = json_text(request, "ResourceType"), *action = json_text(request, "RequestType");
    struct json *object = store_load(kind, id);
    HRESULT code = HCN_E_REQUEST_UNSUPPORTED;
    if (object == NULL) return not_found(kind);
    if (settings == NULL) {
        code = HCN_E_INVALID_JSON;
    } else if ((kind == NETWORK || kind == ENDPOINT) && _stricmp(type, "Policy") == 0) {
        code = change_policies(object, action, settings);
    }
    if (SUCCEEDED(code)) code = store_save(kind, id, object);
    json_free(object);
    return code;
}

HRESULT object_delete(enum kind kind, const char *id) {
    struct json *object = store_load(kind, id);
    if (object == NULL) return not_found(kind);
    json_free(object);
    if (kind != NETWORK) return store_delete(kind, id);
    delete_network(id);
    return S_OK;
}

HRESULT object_vanish(enum kind kind, const char *id) {
    WCHAR name[64];
    char text[128];
    struct json *object = fault_number(L"hns", L"Vanish") != 0 ? store_load(kind, id) : NULL;
    if (object == NULL) return S_OK;
    fault_text(L"hns", L"Name", name, ARRAYSIZE(name));
    WideCharToMultiByte(CP_UTF8, 0, name, -1, text, sizeof text, NULL, NULL);
    int concerned = *text == 0 || _stricmp(text, json_text(object, "Name")) == 0;
    json_free(object);
    if (!concerned || fault_countdown(L"hns", L"Skip") || !fault_countdown(L"hns", L"Vanish")) return S_OK;
    HRESULT code = (HRESULT)fault_number(L"hns", L"Code");
    object_delete(kind, id);
    return FAILED(code) ? code : not_found(kind);
}
