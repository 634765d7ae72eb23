/*
 * wmco-lab-services.dll: the parts of a service's configuration that Wine's service control manager does not store.
 * Wine's advapi32.dll is patched to forward five functions to this library (patch.go), which calls Wine's functions in
 * sechost.dll.
 *
 * It simulates: ChangeServiceConfig2W and QueryServiceConfig2W for recovery actions with their command and reboot
 * message, for recovery after a reported failure, and for delayed automatic start. As in Windows, the registry key of
 * the service contains the values FailureActions, FailureCommand, RebootMessage, FailureActionsOnNonCrashFailures and
 * DelayedAutostart. An action of an unknown type is rejected, and so is a reboot if the caller has not enabled
 * SeShutdownPrivilege. A command or a message without a pointer is not changed; an empty command or message is removed.
 *
 * It does not simulate: the restart of a crashed service, or any other effect of an action.
 */
#include <windows.h>

#include <stdlib.h>
#include <string.h>

enum { NAME = 256, ACTIONS = 64, TEXT = 1024 };

/* Calls of Wine's libraries below this library. Neither is linked: the exports of this library have the same names. */
#define CALL(library, function) ((__typeof__(&function))(void *)GetProcAddress(LoadLibraryW(library), #function))
#define SERVICES L"sechost.dll"
#define REGISTRY L"kernelbase.dll"

/* The names of open services: a handle does not contain the name. */
struct service {
    SC_HANDLE handle;
    struct service *next;
    WCHAR name[NAME + 1];
};

static struct service *services;
static SRWLOCK lock = SRWLOCK_INIT;

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) {
    (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) DisableThreadLibraryCalls(instance);
    return TRUE;
}

static SC_HANDLE remember(SC_HANDLE handle, const WCHAR *name) {
    DWORD error = GetLastError();
    struct service *service = NULL;
    if (handle != NULL && name != NULL && lstrlenW(name) <= NAME) service = malloc(sizeof *service);
    if (service != NULL) {
        service->handle = handle;
        lstrcpyW(service->name, name);
        AcquireSRWLockExclusive(&lock);
        service->next = services;
        services = service;
        ReleaseSRWLockExclusive(&lock);
    }
    SetLastError(error);
    return handle;
}

SC_HANDLE WINAPI lab_OpenServiceW(SC_HANDLE manager, const WCHAR *name, DWORD access) {
    return remember(CALL(SERVICES, OpenServiceW)(manager, name, access), name);
}

SC_HANDLE WINAPI lab_CreateServiceW(SC_HANDLE manager, const WCHAR *name, const WCHAR *shown, DWORD access, DWORD type, DWORD start,
                                    DWORD control, const WCHAR *path, const WCHAR *group, DWORD *tag, const WCHAR *dependencies,
                                    const WCHAR *user, const WCHAR *password) {
    return remember(CALL(SERVICES, CreateServiceW)(manager, name, shown, access, type, start, control, path, group, tag, dependencies,
                                                   user, password),
                    name);
}

BOOL WINAPI lab_CloseServiceHandle(SC_HANDLE handle) {
    AcquireSRWLockExclusive(&lock);
    for (struct service **at = &services; *at != NULL; at = &(*at)->next) {
        struct service *service = *at;
        if (service->handle != handle) continue;
        *at = service->next;
        free(service);
        break;
    }
    ReleaseSRWLockExclusive(&lock);
    return CALL(SERVICES, CloseServiceHandle)(handle);
}

/* open_key opens the registry key of an open service. */
static LONG open_key(SC_HANDLE handle, REGSAM access, HKEY *key) {
    WCHAR path[NAME + 64] = L"SYSTEM\\CurrentControlSet\\Services\\";
    LONG result = ERROR_INVALID_HANDLE;
    AcquireSRWLockShared(&lock);
    for (struct service *service = services; service != NULL; service = service->next) {
        if (service->handle != handle) continue;
        lstrcatW(path, service->name);
        result = ERROR_SUCCESS;
        break;
    }
    ReleaseSRWLockShared(&lock);
    return result != ERROR_SUCCESS ? result : CALL(REGISTRY, RegOpenKeyExW)(HKEY_LOCAL_MACHINE, path, 0, access, key);
}

static BOOL store(SC_HANDLE handle, const WCHAR *value, DWORD type, const void *data, DWORD size) {
    HKEY key;
    LONG result = open_key(handle, KEY_SET_VALUE, &key);
    if (result == ERROR_SUCCESS) {
        result = CALL(REGISTRY, RegSetValueExW)(key, value, 0, type, data, size);
        CALL(REGISTRY, RegCloseKey)(key);
    }
    SetLastError(result);
    return result == ERROR_SUCCESS;
}

/* load reads a value. If the value does not exist, the data is not changed. */
static BOOL load(SC_HANDLE handle, const WCHAR *value, void *data, DWORD *size) {
    HKEY key;
    LONG result = open_key(handle, KEY_QUERY_VALUE, &key);
    if (result == ERROR_SUCCESS) {
        result = CALL(REGISTRY, RegQueryValueExW)(key, value, NULL, NULL, data, size);
        CALL(REGISTRY, RegCloseKey)(key);
    }
    if (result != ERROR_SUCCESS) *size = 0;
    if (result == ERROR_FILE_NOT_FOUND) result = ERROR_SUCCESS;
    SetLastError(result);
    return result == ERROR_SUCCESS;
}

/* The value FailureActions: SERVICE_FAILURE_ACTIONS of a 32-bit process, followed by the actions. */
struct stored_actions {
    DWORD reset_period, message, command, count, offset;
    SC_ACTION actions[ACTIONS];
};

enum { OWN_RESTART = 4 /* SC_ACTION_OWN_RESTART */, SHUTDOWN_PRIVILEGE = 19 };

static BOOL may_reboot(void) {
    HANDLE token;
    BOOL enabled = FALSE;
    PRIVILEGE_SET set = {.PrivilegeCount = 1, .Control = PRIVILEGE_SET_ALL_NECESSARY};
    set.Privilege[0].Luid.LowPart = SHUTDOWN_PRIVILEGE;
    if (!CALL(REGISTRY, OpenProcessToken)(GetCurrentProcess(), TOKEN_QUERY, &token)) return FALSE;
    if (!CALL(REGISTRY, PrivilegeCheck)(token, &set, &enabled)) enabled = FALSE;
    CloseHandle(token);
    return enabled;
}

/* refusal returns the error with which Windows rejects the actions, or ERROR_SUCCESS. */
static DWORD refusal(const SERVICE_FAILURE_ACTIONSW *info) {
    if (info->lpsaActions == NULL) return ERROR_SUCCESS;
    if (info->cActions > ACTIONS) return ERROR_INVALID_PARAMETER;
    for (DWORD i = 0; i < info->cActions; i++) {
        if ((DWORD)info->lpsaActions[i].Type > OWN_RESTART) return ERROR_INVALID_PARAMETER;
        if (info->lpsaActions[i].Type == SC_ACTION_REBOOT && !may_reboot()) return ERROR_ACCESS_DENIED;
    }
    return ERROR_SUCCESS;
}

static BOOL store_text(SC_HANDLE handle, const WCHAR *value, const WCHAR *text) {
    if (text == NULL) return TRUE; /* no change */
    return store(handle, value, REG_SZ, text, (lstrlenW(text) + 1) * sizeof *text);
}

static BOOL change_actions(SC_HANDLE handle, const SERVICE_FAILURE_ACTIONSW *info) {
    DWORD refused = refusal(info);
    if (refused != ERROR_SUCCESS) {
        SetLastError(refused);
        return FALSE;
    }
    if (!store_text(handle, L"RebootMessage", info->lpRebootMsg) || !store_text(handle, L"FailureCommand", info->lpCommand)) return FALSE;
    if (info->lpsaActions == NULL) return TRUE; /* no change */
    struct stored_actions stored = {.count = info->cActions, .offset = offsetof(struct stored_actions, actions)};
    if (info->cActions > 0) stored.reset_period = info->dwResetPeriod;
    DWORD size = info->cActions * sizeof *info->lpsaActions;
    memcpy(stored.actions, info->lpsaActions, size);
    return store(handle, L"FailureActions", REG_BINARY, &stored, stored.offset + size);
}

static BOOL enough(DWORD size, DWORD needed, DWORD *told) {
    if (told != NULL) *told = needed;
    if (size < needed) SetLastError(ERROR_INSUFFICIENT_BUFFER);
    return size >= needed;
}

/* put_text appends a text to a result, and returns the copy, or NULL for an empty text. */
static WCHAR *put_text(char **at, const WCHAR *text) {
    if (*text == 0) return NULL;
    WCHAR *copy = lstrcpyW((WCHAR *)*at, text);
    *at += (lstrlenW(text) + 1) * sizeof *text;
    return copy;
}

static BOOL query_actions(SC_HANDLE handle, SERVICE_FAILURE_ACTIONSW *info, DWORD size, DWORD *needed) {
    struct stored_actions stored = {0};
    WCHAR message[TEXT] = {0}, command[TEXT] = {0};
    DWORD length = sizeof stored, of_message = sizeof message - sizeof *message, of_command = sizeof command - sizeof *command;
    if (!load(handle, L"FailureActions", &stored, &length)) return FALSE;
    if (!load(handle, L"RebootMessage", message, &of_message) || !load(handle, L"FailureCommand", command, &of_command)) return FALSE;
    DWORD actions = stored.count * sizeof *info->lpsaActions;
    if (length < offsetof(struct stored_actions, actions) || length - offsetof(struct stored_actions, actions) < actions) {
        stored.count = actions = 0;
    }
    if (!enough(size, sizeof *info + actions + of_message + of_command, needed)) return FALSE;
    memset(info, 0, sizeof *info);
    info->dwResetPeriod = stored.reset_period;
    info->cActions = stored.count;
    if (stored.count > 0) info->lpsaActions = memcpy(info + 1, stored.actions, actions);
    char *at = (char *)(info + 1) + actions;
    info->lpRebootMsg = put_text(&at, message);
    info->lpCommand = put_text(&at, command);
    return TRUE;
}

/* flag returns the name of the value for a level with a single BOOL, or NULL for other levels. */
static const WCHAR *flag(DWORD level) {
    switch (level) {
    case SERVICE_CONFIG_DELAYED_AUTO_START_INFO: return L"DelayedAutostart";
    case SERVICE_CONFIG_FAILURE_ACTIONS_FLAG: return L"FailureActionsOnNonCrashFailures";
    }
    return NULL;
}

BOOL WINAPI lab_ChangeServiceConfig2W(SC_HANDLE handle, DWORD level, void *info) {
    if (level == SERVICE_CONFIG_FAILURE_ACTIONS) return change_actions(handle, info);
    if (flag(level) != NULL) return store(handle, flag(level), REG_DWORD, info, sizeof(DWORD));
    return CALL(SERVICES, ChangeServiceConfig2W)(handle, level, info);
}

BOOL WINAPI lab_QueryServiceConfig2W(SC_HANDLE handle, DWORD level, BYTE *buffer, DWORD size, DWORD *needed) {
    if (level == SERVICE_CONFIG_FAILURE_ACTIONS) return query_actions(handle, (SERVICE_FAILURE_ACTIONSW *)buffer, size, needed);
    if (flag(level) == NULL) return CALL(SERVICES, QueryServiceConfig2W)(handle, level, buffer, size, needed);
    if (!enough(size, sizeof(DWORD), needed)) return FALSE;
    DWORD length = sizeof(DWORD);
    memset(buffer, 0, length);
    return load(handle, flag(level), buffer, &length);
}
