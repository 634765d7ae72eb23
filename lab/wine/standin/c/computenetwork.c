/*
 * computenetwork.dll of the lab: the Host Compute Network API, which github.com/Microsoft/hcsshim/hcn calls.
 *
 * It simulates: networks, endpoints, load balancers and routes as documents that are created, opened, queried, listed
 * with a filter, modified (policies of networks and endpoints) and deleted. All processes of the host share the
 * documents, which persist across reboots, except networks with the flag EnableNonPersistent. Endpoints get addresses
 * from the subnet of the network. Calls return the codes of HNS for missing objects, existing objects, invalid JSON and
 * invalid addresses, and 1060 (no such service) while the feature Containers is not in effect. With faults (faults.h),
 * another program deletes objects after they were listed and before they are opened or deleted, or the service stops.
 *
 * It does not simulate: any traffic. Switches, adapters, routes and policies have no effect, an overlay network does
 * not interrupt the connections of the host, documents are not validated against the schema, and there are no
 * notifications.
 */
#include <objbase.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codes.h"
#include "objects.h"

struct handle {
    enum kind kind;
    char id[ID_LENGTH + 1];
};

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) {
    (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) DisableThreadLibraryCalls(instance);
    return TRUE;
}

static void id_text(const GUID *g, char text[ID_LENGTH + 1]) {
    snprintf(text, ID_LENGTH + 1, "%08lx-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", (unsigned long)g->Data1, g->Data2, g->Data3, g->Data4[0],
             g->Data4[1], g->Data4[2], g->Data4[3], g->Data4[4], g->Data4[5], g->Data4[6], g->Data4[7]);
}

static struct json *parse(const WCHAR *text) {
    int size = text != NULL ? WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL) : 0;
    char *utf8 = size > 0 ? malloc((size_t)size) : NULL;
    if (utf8 == NULL) return NULL;
    WideCharToMultiByte(CP_UTF8, 0, text, -1, utf8, size, NULL, NULL);
    struct json *value = json_parse(utf8);
    free(utf8);
    return value;
}

/* answer returns a document as text, which the caller frees with CoTaskMemFree. */
static HRESULT answer(const struct json *value, WCHAR **out) {
    char *text = json_print(value);
    int length = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    *out = CoTaskMemAlloc((size_t)length * sizeof **out);
    if (*out != NULL) MultiByteToWideChar(CP_UTF8, 0, text, -1, *out, length);
    free(text);
    return *out != NULL ? S_OK : E_OUTOFMEMORY;
}

/* explain returns the text of an error, which callers of the API include in their messages. */
static const char *explain(HRESULT code) {
    switch (code) {
    case HCN_E_NETWORK_NOT_FOUND:
        return "The network was not found.";
    case HCN_E_ENDPOINT_NOT_FOUND:
        return "The endpoint was not found.";
    case HCN_E_NETWORK_ALREADY_EXISTS:
        return "The network already exists.";
    case HCN_E_REQUEST_UNSUPPORTED:
        return "The request is not supported.";
    case HCN_E_MANAGER_STOPPED:
        return "The service manager has been stopped.";
    case HCN_E_INVALID_JSON:
        return "The JSON document is invalid.";
    case HCN_E_INVALID_IP:
        return "The IP address is invalid.";
    case HCN_E_ADDR_INVALID_OR_RESERVED:
        return "The IP address is invalid, reserved or in use, or the subnet has none left.";
    default:
        return "";
    }
}

/* finish ends a call: it releases the lock if held, and returns the error record. */
static HRESULT finish(HRESULT code, int locked, WCHAR **record) {
    if (locked) store_unlock();
    if (record != NULL) *record = NULL;
    if (SUCCEEDED(code) || record == NULL || *explain(code) == 0) return code;
    struct json *value = json_new(JSON_OBJECT);
    json_set(value, "Success", json_new(JSON_FALSE));
    json_set(value, "Error", json_string(explain(code)));
    json_set(value, "ErrorCode", json_number((unsigned long)code));
    answer(value, record);
    json_free(value);
    return code;
}

/* begin acquires the lock and checks that the service exists. */
static HRESULT begin(int *locked) {
    HRESULT code = store_lock();
    *locked = SUCCEEDED(code);
    return SUCCEEDED(code) ? service_check() : code;
}

static HRESULT enumerate(enum kind kind, const WCHAR *query_text, WCHAR **out, WCHAR **record) {
    int locked;
    struct json *query = parse(query_text), *ids = NULL;
    HRESULT code = begin(&locked);
    if (SUCCEEDED(code) && query == NULL && query_text != NULL && *query_text != 0) code = HCN_E_INVALID_JSON;
    if (SUCCEEDED(code)) code = object_list(kind, query, &ids);
    if (SUCCEEDED(code)) code = answer(ids, out);
    json_free(ids);
    json_free(query);
    return finish(code, locked, record);
}

static HRESULT open_handle(enum kind kind, const char *id, void **out) {
    struct handle *h = malloc(sizeof *h);
    if (h == NULL) return E_OUTOFMEMORY;
    h->kind = kind;
    strcpy(h->id, id);
    *out = h;
    return S_OK;
}

static HRESULT create(enum kind kind, const struct handle *network, const GUID *wanted, const WCHAR *text, void **out, WCHAR **record) {
    int locked;
    GUID id = *wanted, none = {0};
    char id_buffer[ID_LENGTH + 1];
    struct json *settings = parse(text), *made = NULL;
    HRESULT code = begin(&locked);
    if (SUCCEEDED(code) && settings == NULL) code = HCN_E_INVALID_JSON;
    if (SUCCEEDED(code) && memcmp(&id, &none, sizeof id) == 0) {
        WCHAR braced[ID_LENGTH + 3] = L"{";
        MultiByteToWideChar(CP_UTF8, 0, json_text(settings, "ID"), -1, braced + 1, ID_LENGTH + 1);
        braced[ID_LENGTH + 1] = L'}';
        if (CLSIDFromString(braced, &id) != S_OK) code = CoCreateGuid(&id);
    }
    id_text(&id, id_buffer);
    if (SUCCEEDED(code)) code = object_create(kind, id_buffer, network != NULL ? network->id : NULL, settings, &made);
    if (SUCCEEDED(code)) code = open_handle(kind, id_buffer, out);
    json_free(settings);
    return finish(code, locked, record);
}

static HRESULT open_object(enum kind kind, const GUID *wanted, void **out, WCHAR **record) {
    int locked;
    char id[ID_LENGTH + 1];
    HRESULT code = begin(&locked);
    id_text(wanted, id);
    if (SUCCEEDED(code)) code = object_vanish(kind, id);
    if (SUCCEEDED(code)) {
        struct json *object = store_load(kind, id);
        code = object != NULL ? open_handle(kind, id, out) : not_found(kind);
        json_free(object);
    }
    return finish(code, locked, record);
}

static HRESULT query(enum kind kind, const struct handle *h, WCHAR **out, WCHAR **record) {
    int locked;
    HRESULT code = begin(&locked);
    if (SUCCEEDED(code) && (h == NULL || h->kind != kind)) code = E_HANDLE;
    if (SUCCEEDED(code)) {
        struct json *object = store_load(kind, h->id);
        code = object != NULL ? answer(object, out) : not_found(kind);
        json_free(object);
    }
    return finish(code, locked, record);
}

static HRESULT modify(enum kind kind, const struct handle *h, const WCHAR *text, WCHAR **record) {
    int locked;
    struct json *request = parse(text);
    HRESULT code = begin(&locked);
    if (SUCCEEDED(code) && (h == NULL || h->kind != kind)) code = E_HANDLE;
    if (SUCCEEDED(code) && request == NULL) code = HCN_E_INVALID_JSON;
    if (SUCCEEDED(code)) code = object_modify(kind, h->id, request);
    json_free(request);
    return finish(code, locked, record);
}

static HRESULT delete_object(enum kind kind, const GUID *wanted, WCHAR **record) {
    int locked;
    char id[ID_LENGTH + 1];
    HRESULT code = begin(&locked);
    id_text(wanted, id);
    if (SUCCEEDED(code)) code = object_vanish(kind, id);
    if (SUCCEEDED(code)) code = object_delete(kind, id);
    return finish(code, locked, record);
}

static HRESULT close_handle(enum kind kind, struct handle *h) {
    if (h == NULL || h->kind != kind) return E_HANDLE;
    free(h);
    return S_OK;
}

/* The entry points for one kind of object, except Create, which has other parameters. */
#define ENTRY_POINTS(NAME, NAMES, KIND)                                                                                         \
    HRESULT WINAPI HcnEnumerate##NAMES(PCWSTR q, PWSTR *out, PWSTR *record) { return enumerate(KIND, q, out, record); }          \
    HRESULT WINAPI HcnOpen##NAME(const GUID *id, void **out, PWSTR *record) { return open_object(KIND, id, out, record); }       \
    HRESULT WINAPI HcnModify##NAME(void *h, PCWSTR s, PWSTR *record) { return modify(KIND, h, s, record); }                      \
    HRESULT WINAPI HcnDelete##NAME(const GUID *id, PWSTR *record) { return delete_object(KIND, id, record); }                    \
    HRESULT WINAPI HcnClose##NAME(void *h) { return close_handle(KIND, h); }                                                     \
    HRESULT WINAPI HcnQuery##NAME##Properties(void *h, PCWSTR q, PWSTR *out, PWSTR *record) {                                    \
        (void)q;                                                                                                                 \
        return query(KIND, h, out, record);                                                                                      \
    }

#define CREATE(NAME, KIND) \
    HRESULT WINAPI HcnCreate##NAME(const GUID *id, PCWSTR s, void **out, PWSTR *record) { return create(KIND, NULL, id, s, out, record); }

ENTRY_POINTS(Network, Networks, NETWORK)
ENTRY_POINTS(Endpoint, Endpoints, ENDPOINT)
ENTRY_POINTS(LoadBalancer, LoadBalancers, LOAD_BALANCER)
ENTRY_POINTS(SdnRoute, SdnRoutes, ROUTE)
CREATE(Network, NETWORK)
CREATE(LoadBalancer, LOAD_BALANCER)
CREATE(SdnRoute, ROUTE)

HRESULT WINAPI HcnCreateEndpoint(const struct handle *network, const GUID *id, PCWSTR s, void **out, PWSTR *record) {
    if (network == NULL || network->kind != NETWORK) return E_HANDLE;
    return create(ENDPOINT, network, id, s, out, record);
}
