/*
 * vmcompute.dll of the lab: of the first Host Networking API only the version of the service, by which hcsshim/hcn learns what
 * Windows can do (HNSCall GET /globals/version).
 *
 * It simulates: version 13.3, which Windows Server 2022 has; 9.5 where the registry says build 17763 (Windows Server 2019).
 * It does not simulate: any other call of HNSCall (answered with an error), and no Host Compute Service: no container can be made.
 */
#include <objbase.h>
#include <stdlib.h>
#include <windows.h>

#define VERSION_KEY L"SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion"

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) {
    (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) DisableThreadLibraryCalls(instance);
    return TRUE;
}

static const WCHAR *version(void) {
    WCHAR build[16] = {0};
    DWORD size = sizeof build;
    LONG code = RegGetValueW(HKEY_LOCAL_MACHINE, VERSION_KEY, L"CurrentBuild", RRF_RT_REG_SZ, NULL, build, &size);
    if (code == ERROR_SUCCESS && _wtoi(build) <= 17763) return L"{\"Success\":true,\"Output\":{\"Major\":9,\"Minor\":5}}";
    return L"{\"Success\":true,\"Output\":{\"Major\":13,\"Minor\":3}}";
}

HRESULT WINAPI HNSCall(PCWSTR method, PCWSTR path, PCWSTR request, PWSTR *response) {
    const WCHAR *text = L"{\"Success\":false,\"Error\":\"The lab knows of this API only GET /globals/version.\"}";
    (void)request;
    if (method == NULL || path == NULL || response == NULL) return E_INVALIDARG;
    if (lstrcmpiW(method, L"GET") == 0 && lstrcmpiW(path, L"/globals/version") == 0) text = version();
    size_t bytes = ((size_t)lstrlenW(text) + 1) * sizeof *text;
    *response = CoTaskMemAlloc(bytes);
    if (*response == NULL) return E_OUTOFMEMORY;
    memcpy(*response, text, bytes);
    return S_OK;
}
