/*
 * dismapi.dll of the lab: the DISM API (dismapi.h) for the optional features of the running system.
 *
 * It simulates: sessions of the online image; the state of a feature; enabling and disabling. A change that needs a
 * reboot returns 3010 and stays pending until the next boot; until then, the RebootPending key of the servicing stack
 * exists, and the change can be reverted. DISMAPI_E_UNKNOWN_FEATURE is returned for features that the edition lacks;
 * other errors are DISMAPI_E_INVALID_DISM_SESSION and DISMAPI_E_DISMAPI_NOT_INITIALIZED. The registry contains the
 * features and their states (features.h).
 *
 * It does not simulate: offline images, packages, drivers, capabilities, parents of features, sources, progress,
 * cancellation, the duration of servicing, and DISMAPI_E_BUSY for concurrent callers. Enabling a feature installs
 * neither files nor services on the host.
 *
 * A feature whose files were removed cannot be enabled. In a session of the SSH server, Windows Update refuses the
 * request (E_ACCESSDENIED). Otherwise the source is missing, because the lab has no Windows Update
 * (CBS_E_SOURCE_MISSING).
 *
 * A call with a progress callback fails with E_ACCESSDENIED (0x80070005), as over SSH, where no console can show the
 * progress.
 */
#include "features.h"

#include <dismapi.h>

enum { SESSIONS = 16 };

#define CBS_E_SOURCE_MISSING 0x800F081F /* not in any header */

static LONG initialized;
static volatile LONG sessions[SESSIONS]; /* 1: open. The number of a session is its index plus 1. */

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) {
    (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) DisableThreadLibraryCalls(instance);
    return TRUE;
}

HRESULT WINAPI DismInitialize(DismLogLevel level, PCWSTR log, PCWSTR scratch) {
    (void)level, (void)log, (void)scratch;
    InterlockedExchange(&initialized, 1);
    return S_OK;
}

HRESULT WINAPI DismShutdown(void) {
    if (!initialized) return DISMAPI_E_DISMAPI_NOT_INITIALIZED;
    for (int i = 0; i < SESSIONS; i++) {
        if (sessions[i]) return DISMAPI_E_OPEN_SESSION_HANDLES;
    }
    InterlockedExchange(&initialized, 0);
    return S_OK;
}

HRESULT WINAPI DismOpenSession(PCWSTR image, PCWSTR windows, PCWSTR drive, DismSession *session) {
    (void)windows, (void)drive;
    if (!initialized) return DISMAPI_E_DISMAPI_NOT_INITIALIZED;
    if (image == NULL || session == NULL) return E_INVALIDARG;
    if (lstrcmpiW(image, DISM_ONLINE_IMAGE) != 0) return DISMAPI_E_MUST_SPECIFY_ONLINE_IMAGE;
    for (int i = 0; i < SESSIONS; i++) {
        if (InterlockedCompareExchange(&sessions[i], 1, 0) == 0) {
            *session = (DismSession)(i + 1);
            return S_OK;
        }
    }
    return HRESULT_FROM_WIN32(ERROR_TOO_MANY_SESS);
}

static HRESULT check(DismSession session) {
    if (!initialized) return DISMAPI_E_DISMAPI_NOT_INITIALIZED;
    return session >= 1 && session <= SESSIONS && sessions[session - 1] ? S_OK : (HRESULT)DISMAPI_E_INVALID_DISM_SESSION;
}

HRESULT WINAPI DismCloseSession(DismSession session) {
    HRESULT code = check(session);
    if (SUCCEEDED(code)) InterlockedExchange(&sessions[session - 1], 0);
    return code;
}

static HRESULT find(DismSession session, PCWSTR name, struct feature *found) {
    HRESULT code = check(session);
    if (FAILED(code)) return code;
    if (name == NULL) return E_INVALIDARG;
    LONG status = feature_find(name, found);
    return status == ERROR_FILE_NOT_FOUND ? (HRESULT)DISMAPI_E_UNKNOWN_FEATURE : HRESULT_FROM_WIN32(status);
}

/* place appends a string to a block, which DismDelete frees as one. */
static PCWSTR place(WCHAR **end, const WCHAR *text) {
    WCHAR *at = *end;
    lstrcpyW(at, text);
    *end += lstrlenW(text) + 1;
    return at;
}

static void *block(size_t bytes) { return HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, bytes); }

HRESULT WINAPI DismDelete(VOID *structure) {
    return HeapFree(GetProcessHeap(), 0, structure) ? S_OK : E_INVALIDARG;
}

HRESULT WINAPI DismGetFeatureInfo(DismSession session, PCWSTR name, PCWSTR identifier, DismPackageIdentifier kind, DismFeatureInfo **out) {
    struct feature f;
    HRESULT code = find(session, name, &f);
    (void)identifier;
    if (FAILED(code)) return code;
    if (kind != DismPackageNone || out == NULL) return E_INVALIDARG;
    DismFeatureInfo *info = block(sizeof *info + sizeof f.name + 2 * sizeof f.display_name);
    if (info == NULL) return E_OUTOFMEMORY;
    WCHAR *end = (WCHAR *)(info + 1);
    info->FeatureName = place(&end, f.name);
    info->DisplayName = place(&end, f.display_name);
    info->Description = place(&end, f.display_name);
    info->FeatureState = f.state;
    info->RestartRequired = f.restart ? DismRestartRequired : DismRestartNo;
    *out = info;
    return S_OK;
}

HRESULT WINAPI DismGetFeatures(DismSession session, PCWSTR identifier, DismPackageIdentifier kind, DismFeature **out, UINT *count) {
    struct feature f;
    UINT n = 0;
    HRESULT code = check(session);
    (void)identifier;
    if (FAILED(code)) return code;
    if (kind != DismPackageNone || out == NULL || count == NULL) return E_INVALIDARG;
    while (feature_at(n, &f) == ERROR_SUCCESS) n++;
    DismFeature *features = block(n * (sizeof *features + sizeof f.name) + 1);
    if (features == NULL) return E_OUTOFMEMORY;
    WCHAR *end = (WCHAR *)(features + n);
    for (*count = 0; *count < n && feature_at(*count, &f) == ERROR_SUCCESS; ++*count) {
        features[*count].FeatureName = place(&end, f.name);
        features[*count].State = f.state;
    }
    *out = features;
    return S_OK;
}

/*
 * change sets a feature to a state, or to the pending state if a reboot is needed. An opposite pending change is
 * reverted.
 */
static HRESULT change(const struct feature *f, DWORD wanted, DWORD pending, DWORD opposite) {
    if (f->state == wanted) return S_OK;
    if (f->state == pending) return ERROR_SUCCESS_REBOOT_REQUIRED;
    DWORD next = f->restart && f->state != opposite ? pending : wanted;
    LONG code = feature_set(f, next);
    if (code != ERROR_SUCCESS) return HRESULT_FROM_WIN32(code);
    return next == pending ? ERROR_SUCCESS_REBOOT_REQUIRED : S_OK; /* plain 3010, not an HRESULT of facility Win32 */
}

HRESULT WINAPI DismEnableFeature(DismSession session, PCWSTR name, PCWSTR identifier, DismPackageIdentifier kind, WINBOOL limit,
                                 PCWSTR *sources, UINT source_count, WINBOOL all, HANDLE cancel, DISM_PROGRESS_CALLBACK progress,
                                 PVOID data) {
    struct feature f;
    HRESULT code = find(session, name, &f);
    (void)identifier, (void)kind, (void)limit, (void)sources, (void)source_count, (void)all, (void)cancel, (void)data;
    if (FAILED(code)) return code;
    if (progress != NULL) return E_ACCESSDENIED;
    if (f.state == DismStateRemoved) {
        return GetEnvironmentVariableW(L"SSH_CONNECTION", NULL, 0) != 0 ? E_ACCESSDENIED : (HRESULT)CBS_E_SOURCE_MISSING;
    }
    return change(&f, DismStateInstalled, DismStateInstallPending, DismStateUninstallPending);
}

HRESULT WINAPI DismDisableFeature(DismSession session, PCWSTR name, PCWSTR package, WINBOOL remove, HANDLE cancel,
                                  DISM_PROGRESS_CALLBACK progress, PVOID data) {
    struct feature f;
    HRESULT code = find(session, name, &f);
    (void)package, (void)remove, (void)cancel, (void)data;
    if (FAILED(code)) return code;
    if (progress != NULL) return E_ACCESSDENIED;
    if (f.state == DismStateNotPresent || f.state == DismStateRemoved) return S_OK;
    return change(&f, DismStateStaged, DismStateUninstallPending, DismStateInstallPending);
}

HRESULT WINAPI DismGetLastErrorMessage(DismString **out) {
    if (out == NULL) return E_INVALIDARG;
    DismString *message = block(sizeof *message + 64 * sizeof(WCHAR));
    if (message == NULL) return E_OUTOFMEMORY;
    WCHAR *end = (WCHAR *)(message + 1);
    message->Value = place(&end, L"The lab keeps no messages of DISM.");
    *out = message;
    return S_OK;
}
