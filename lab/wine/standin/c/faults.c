/* See faults.h. */
#include "faults.h"

#include <wchar.h>

static void key_of(const WCHAR *part, WCHAR path[MAX_PATH]) { swprintf(path, MAX_PATH, L"SOFTWARE\\wmco-lab\\faults\\%ls", part); }

DWORD fault_number(const WCHAR *part, const WCHAR *name) {
    WCHAR path[MAX_PATH];
    DWORD value = 0, size = sizeof value;
    key_of(part, path);
    if (RegGetValueW(HKEY_LOCAL_MACHINE, path, name, RRF_RT_REG_DWORD, NULL, &value, &size) != ERROR_SUCCESS) return 0;
    return value;
}

void fault_text(const WCHAR *part, const WCHAR *name, WCHAR *out, DWORD count) {
    WCHAR path[MAX_PATH];
    DWORD size = count * sizeof *out;
    key_of(part, path);
    if (RegGetValueW(HKEY_LOCAL_MACHINE, path, name, RRF_RT_REG_SZ, NULL, out, &size) != ERROR_SUCCESS) *out = 0;
}

int fault_countdown(const WCHAR *part, const WCHAR *name) {
    WCHAR path[MAX_PATH];
    DWORD left = fault_number(part, name);
    if (left == 0) return 0;
    left--;
    key_of(part, path);
    RegSetKeyValueW(HKEY_LOCAL_MACHINE, path, name, REG_DWORD, &left, sizeof left);
    return 1;
}

HRESULT enumeration_fault(const WCHAR *part, DWORD given) {
    HRESULT code = (HRESULT)fault_number(part, L"FailCode");
    return FAILED(code) && given >= fault_number(part, L"FailAt") ? code : S_OK;
}
