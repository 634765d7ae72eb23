/*
 * vmcompute.dll of the lab: parts of the first Host Networking API (HNSCall). These are the version of the service,
 * from which hcsshim/hcn derives the features of Windows; the lists of networks and of endpoints with their state; and
 * the attachment of an endpoint to the host.
 *
 * It simulates: version 13.3 of Windows Server 2022, or 9.5 if the build in the registry is at most 17763 (Windows
 * Server 2019). The endpoints of computenetwork.dll are listed with their MAC and IP addresses. An attachment lasts
 * until the endpoint is deleted or the host boots. A second attachment of an endpoint is rejected. With faults
 * (faults.h), the first attachments fail, attached endpoints have another state, and calls return an HRESULT instead of
 * a response.
 * It does not simulate: any other call of HNSCall (returns an error). An attached endpoint does not add an adapter to
 * the host. There is no Host Compute Service: containers cannot be created.
 */
#include <objbase.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "codes.h"
#include "faults.h"
#include "objects.h"

#define VERSION_KEY L"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion"
#define ENDPOINTS "/endpoints/"
#define NETWORKS "/networks/"

enum { CREATED = 1, ATTACHED = 2 };

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) {
    (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) DisableThreadLibraryCalls(instance);
    return TRUE;
}

static struct json *version(void) {
    WCHAR build[16] = {0};
    DWORD size = sizeof build;
    LONG code = RegGetValueW(HKEY_LOCAL_MACHINE, VERSION_KEY, L"CurrentBuild", RRF_RT_REG_SZ, NULL, build, &size);
    int older = code == ERROR_SUCCESS && _wtoi(build) <= 17763;
    struct json *value = json_new(JSON_OBJECT);
    json_set(value, "Major", json_number(older ? 9 : 13));
    json_set(value, "Minor", json_number(older ? 5 : 3));
    return value;
}

/* describe returns an endpoint in the format of the first API. */
static struct json *describe(const struct json *endpoint) {
    struct json *value = json_new(JSON_OBJECT);
    json_set(value, "ID", json_string(json_text(endpoint, "ID")));
    json_set(value, "Name", json_string(json_text(endpoint, "Name")));
    json_set(value, "VirtualNetwork", json_string(json_text(endpoint, "HostComputeNetwork")));
    json_set(value, "MacAddress", json_string(json_text(endpoint, "MacAddress")));
    const struct json *configurations = json_get(endpoint, "IpConfigurations");
    if (configurations != NULL && configurations->first != NULL) {
        json_set(value, "IPAddress", json_string(json_text(configurations->first, "IpAddress")));
    }
    DWORD attached = fault_number(L"hns", L"AttachedState");
    json_set(value, "State", json_number(object_attached(endpoint) ? (attached != 0 ? attached : ATTACHED) : CREATED));
    return value;
}

static struct json *list(void) {
    struct json *endpoints = store_list(ENDPOINT), *value = json_new(JSON_ARRAY);
    for (const struct json *e = endpoints->first; e != NULL; e = e->next) json_append(value, describe(e));
    json_free(endpoints);
    return value;
}

/* list_networks returns all networks, with the address of an adapter if one is set (faults.h). */
static struct json *list_networks(void) {
    struct json *networks = store_list(NETWORK), *value = json_new(JSON_ARRAY);
    WCHAR wide[64];
    char address[64];
    fault_text(L"hns", L"ManagementIP", wide, ARRAYSIZE(wide));
    WideCharToMultiByte(CP_UTF8, 0, wide, -1, address, sizeof address, NULL, NULL);
    for (const struct json *n = networks->first; n != NULL; n = n->next) {
        struct json *network = json_new(JSON_OBJECT);
        json_set(network, "ID", json_string(json_text(n, "ID")));
        json_set(network, "Name", json_string(json_text(n, "Name")));
        json_set(network, "Type", json_string(json_text(n, "Type")));
        if (*address != 0) json_set(network, "ManagementIP", json_string(address));
        json_append(value, network);
    }
    json_free(networks);
    return value;
}

/*
 * refuse_attach sets *code if HNS would reject the attachment of the endpoint now, and returns the text for the code.
 */
static const char *refuse_attach(const struct json *endpoint, HRESULT *code) {
    if (object_attached(endpoint)) {
        *code = HCN_E_ENDPOINT_ALREADY_ATTACHED;
        return "This endpoint is already attached to the switch.";
    }
    if (!fault_countdown(L"hns", L"AttachFails")) return NULL;
    *code = HRESULT_FROM_WIN32(ERROR_WRONG_DISK);
    return "The wrong diskette is in the drive.";
}

/*
 * attach attaches an endpoint to the host. On failure, *error is the reason, and *code is the result of HNSCall, if it
 * replaces a response.
 */
static struct json *attach(const char *id, const char *request, const char **error, HRESULT *code) {
    HRESULT refusal = S_OK;
    const char *text;
    struct json *asked = json_parse(request), *value = NULL;
    object_vanish(ENDPOINT, id);
    struct json *endpoint = store_load(ENDPOINT, id);
    if (strcmp(json_text(asked, "SystemType"), "Host") != 0 || strcmp(json_text(asked, "CompartmentId"), "1") != 0) {
        *error = "The lab attaches endpoints only to the host, in its own compartment.";
    } else if (endpoint == NULL) {
        *error = "Element not found.";
    } else if ((text = refuse_attach(endpoint, &refusal)) != NULL) {
        *error = text;
        if (fault_number(L"hns", L"AttachCodes") != 0) *code = refusal;
    } else if (FAILED(object_attach(id, endpoint))) {
        *error = "The attachment cannot be kept.";
    } else {
        value = json_new(JSON_OBJECT);
    }
    json_free(asked);
    json_free(endpoint);
    return value;
}

/* act executes a call on endpoints or networks. If the result is NULL, *error is the reason. */
static struct json *act(const char *method, const char *path, const char *request, const char **error, HRESULT *code) {
    static const char tail[] = "/attach";
    char id[ID_LENGTH + 1];
    if (_stricmp(method, "GET") == 0 && _stricmp(path, ENDPOINTS) == 0) return list();
    if (_stricmp(method, "GET") == 0 && _stricmp(path, NETWORKS) == 0) return list_networks();
    if (_stricmp(method, "POST") == 0 && _strnicmp(path, ENDPOINTS, strlen(ENDPOINTS)) == 0) {
        const char *at = path + strlen(ENDPOINTS);
        if (strlen(at) == ID_LENGTH + strlen(tail) && _stricmp(at + ID_LENGTH, tail) == 0) {
            snprintf(id, sizeof id, "%.*s", ID_LENGTH, at);
            return attach(id, request, error, code);
        }
    }
    *error = "The lab does not know this call of the first Host Networking API.";
    return NULL;
}

/* serve calls act under the lock of the store, if the service exists. */
static struct json *serve(const char *method, const char *path, const char *request, const char **error, HRESULT *code) {
    struct json *value = NULL;
    if (FAILED(store_lock())) {
        *error = "The lab's store of networks does not answer.";
        return NULL;
    }
    if (SUCCEEDED(service_check())) {
        value = act(method, path, request, error, code);
    } else {
        *error = "The specified service does not exist as an installed service.";
    }
    store_unlock();
    return value;
}

static char *utf8(const WCHAR *text) {
    int size = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *copy = malloc((size_t)size);
    if (copy != NULL) WideCharToMultiByte(CP_UTF8, 0, text, -1, copy, size, NULL, NULL);
    return copy;
}

/* answer creates a response, which the caller frees with CoTaskMemFree. The response owns the output. */
static HRESULT answer(struct json *output, const char *error, WCHAR **response) {
    struct json *value = json_new(JSON_OBJECT);
    json_set(value, "Success", json_new(output != NULL ? JSON_TRUE : JSON_FALSE));
    if (output != NULL) {
        json_set(value, "Output", output);
    } else {
        json_set(value, "Error", json_string(error));
    }
    char *text = json_print(value);
    int length = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    *response = CoTaskMemAlloc((size_t)length * sizeof **response);
    if (*response != NULL) MultiByteToWideChar(CP_UTF8, 0, text, -1, *response, length);
    free(text);
    json_free(value);
    return *response != NULL ? S_OK : E_OUTOFMEMORY;
}

HRESULT WINAPI HNSCall(PCWSTR method, PCWSTR path, PCWSTR request, PWSTR *response) {
    const char *error = "";
    HRESULT code = S_OK;
    if (method == NULL || path == NULL || response == NULL) return E_INVALIDARG;
    if (lstrcmpiW(method, L"GET") == 0 && lstrcmpiW(path, L"/globals/version") == 0) return answer(version(), NULL, response);
    char *method8 = utf8(method), *path8 = utf8(path), *request8 = utf8(request != NULL ? request : L"");
    struct json *output = NULL;
    if (method8 != NULL && path8 != NULL && request8 != NULL) output = serve(method8, path8, request8, &error, &code);
    free(method8);
    free(path8);
    free(request8);
    if (FAILED(code)) return code;
    return answer(output, error, response);
}
