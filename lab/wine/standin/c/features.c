/* See features.h. */
#include "features.h"

#include <dismapi.h>

/* The key with which the servicing stack marks a pending reboot. It is also volatile in Windows. */
#define REBOOT_PENDING_KEY L"SOFTWARE\\Microsoft\\Windows\\CurrentVersion\\Component Based Servicing\\RebootPending"

static int pending(DWORD state) { return state == DismStateInstallPending || state == DismStateUninstallPending; }

static LONG open_pending(const WCHAR *name) {
    HKEY parent, key;
    LONG code = RegOpenKeyExW(HKEY_LOCAL_MACHINE, FEATURES_PENDING_KEY, 0, KEY_READ, &parent);
    if (code != ERROR_SUCCESS) return code;
    code = RegOpenKeyExW(parent, name, 0, KEY_READ, &key);
    if (code == ERROR_SUCCESS) RegCloseKey(key);
    RegCloseKey(parent);
    return code;
}

static LONG make_volatile(HKEY parent, const WCHAR *path, HKEY *key) {
    return RegCreateKeyExW(parent, path, 0, NULL, REG_OPTION_VOLATILE, KEY_ALL_ACCESS, NULL, key, NULL);
}

static LONG mark_pending(const WCHAR *name) {
    HKEY parent, key;
    LONG code = make_volatile(HKEY_LOCAL_MACHINE, FEATURES_PENDING_KEY, &parent);
    if (code != ERROR_SUCCESS) return code;
    code = make_volatile(parent, name, &key);
    if (code == ERROR_SUCCESS) RegCloseKey(key);
    RegCloseKey(parent);
    if (code == ERROR_SUCCESS) code = make_volatile(HKEY_LOCAL_MACHINE, REBOOT_PENDING_KEY, &key);
    if (code == ERROR_SUCCESS) RegCloseKey(key);
    return code;
}

/* forget_pending deletes the mark of a feature, and with the last mark also the key of the servicing stack. */
static void forget_pending(const WCHAR *name) {
    HKEY parent;
    DWORD left = 0;
    if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, FEATURES_PENDING_KEY, 0, KEY_ALL_ACCESS, &parent) != ERROR_SUCCESS) return;
    RegDeleteKeyW(parent, name);
    RegQueryInfoKeyW(parent, NULL, NULL, NULL, &left, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    RegCloseKey(parent);
    if (left == 0) RegDeleteKeyW(HKEY_LOCAL_MACHINE, REBOOT_PENDING_KEY);
}

/* after_boot returns the state of a feature, and the final state if a boot has deleted the mark of a pending change. */
static DWORD after_boot(const struct feature *f) {
    if (!pending(f->state) || open_pending(f->name) == ERROR_SUCCESS) return f->state;
    return f->state == DismStateInstallPending ? DismStateInstalled : DismStateStaged;
}

static LONG read_feature(HKEY features, const WCHAR *name, struct feature *found) {
    DWORD size = sizeof found->state;
    LONG code = RegGetValueW(features, name, L"State", RRF_RT_REG_DWORD, NULL, &found->state, &size);
    if (code != ERROR_SUCCESS) return code;
    size = sizeof found->restart;
    if (RegGetValueW(features, name, L"Restart", RRF_RT_REG_DWORD, NULL, &found->restart, &size) != ERROR_SUCCESS) found->restart = 0;
    size = sizeof found->display_name;
    if (RegGetValueW(features, name, L"DisplayName", RRF_RT_REG_SZ, NULL, found->display_name, &size) != ERROR_SUCCESS) {
        lstrcpynW(found->display_name, name, ARRAYSIZE(found->display_name));
    }
    lstrcpynW(found->name, name, ARRAYSIZE(found->name));
    found->state = after_boot(found);
    return ERROR_SUCCESS;
}

LONG feature_at(DWORD index, struct feature *found) {
    HKEY features;
    WCHAR name[ARRAYSIZE(found->name)];
    DWORD length = ARRAYSIZE(name);
    LONG code = RegOpenKeyExW(HKEY_LOCAL_MACHINE, FEATURES_KEY, 0, KEY_READ, &features);
    if (code != ERROR_SUCCESS) return code == ERROR_FILE_NOT_FOUND ? ERROR_NO_MORE_ITEMS : code;
    code = RegEnumKeyExW(features, index, name, &length, NULL, NULL, NULL, NULL);
    if (code == ERROR_SUCCESS) code = read_feature(features, name, found);
    RegCloseKey(features);
    return code;
}

LONG feature_find(const WCHAR *name, struct feature *found) {
    LONG code;
    for (DWORD i = 0; (code = feature_at(i, found)) == ERROR_SUCCESS; i++) {
        if (lstrcmpiW(found->name, name) == 0) return ERROR_SUCCESS;
    }
    return code == ERROR_NO_MORE_ITEMS ? ERROR_FILE_NOT_FOUND : code;
}

LONG feature_set(const struct feature *changed, DWORD state) {
    HKEY features, key;
    LONG code = RegOpenKeyExW(HKEY_LOCAL_MACHINE, FEATURES_KEY, 0, KEY_ALL_ACCESS, &features);
    if (code != ERROR_SUCCESS) return code;
    code = RegOpenKeyExW(features, changed->name, 0, KEY_ALL_ACCESS, &key);
    RegCloseKey(features);
    if (code != ERROR_SUCCESS) return code;
    if (pending(state)) { /* the mark first: a pending state without a mark means that the host was booted */
        code = mark_pending(changed->name);
    } else {
        forget_pending(changed->name);
    }
    if (code == ERROR_SUCCESS) code = RegSetValueExW(key, L"State", 0, REG_DWORD, (const BYTE *)&state, sizeof state);
    RegCloseKey(key);
    return code;
}
