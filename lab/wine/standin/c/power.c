/*
 * wmco-lab-power.dll: the restart of Windows. Wine's user32.dll and advapi32.dll are each patched to forward one
 * function to this library (patch.go).
 *
 * It simulates: ExitWindowsEx, which requires SeShutdownPrivilege and the right WINSTA_EXITWINDOWS, and fails with
 * ERROR_ACCESS_DENIED in sessions of the SSH server, detected by SSH_CONNECTION; InitiateSystemShutdownExW, which
 * requires only the privilege, and has no effect in Wine; ERROR_SHUTDOWN_IN_PROGRESS during a restart.
 * C:\windows\wmco-lab-restart.txt contains the function that last restarted the host and its message, as event 1074
 * does. faults.h lists faults.
 *
 * It does not simulate: the actual rights of sessions of Win32-OpenSSH, which no source documents; a shutdown without
 * restart; a delay, and its end by AbortSystemShutdown; remote computers; the time that services take to stop.
 */
#include "faults.h"

#include <stdio.h>

enum { SHUTDOWN_PRIVILEGE = 19, MESSAGE = 1024 };

/* Calls of Wine's library below this library. advapi32.dll, which forwards to this library, is not linked. */
#define CALL(function) ((__typeof__(&function))(void *)GetProcAddress(LoadLibraryW(L"kernelbase.dll"), #function))

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) {
    (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) DisableThreadLibraryCalls(instance);
    return TRUE;
}

static BOOL fail(DWORD error) {
    SetLastError(error);
    return FALSE;
}

static BOOL has_privilege(void) {
    HANDLE token;
    BOOL enabled = FALSE;
    PRIVILEGE_SET set = {.PrivilegeCount = 1, .Control = PRIVILEGE_SET_ALL_NECESSARY};
    set.Privilege[0].Luid.LowPart = SHUTDOWN_PRIVILEGE;
    if (!CALL(OpenProcessToken)(GetCurrentProcess(), TOKEN_QUERY, &token)) return FALSE;
    if (!CALL(PrivilegeCheck)(token, &set, &enabled)) enabled = FALSE;
    CloseHandle(token);
    return enabled;
}

/* record writes the function and the message to a file, in ASCII. */
static void record(const char *function, const WCHAR *message) {
    char text[MESSAGE + 64];
    DWORD written;
    int length = snprintf(text, sizeof text, "%s: %.*ls\r\n", function, MESSAGE, message == NULL ? L"" : message);
    HANDLE file = CreateFileW(L"C:\\windows\\wmco-lab-restart.txt", GENERIC_WRITE, FILE_SHARE_READ, NULL, CREATE_ALWAYS, 0, NULL);
    if (file == INVALID_HANDLE_VALUE) return;
    if (length > 0) WriteFile(file, text, length, &written, NULL);
    CloseHandle(file);
}

/* restart starts wineboot.exe, as Wine's ExitWindowsEx does for EWX_REBOOT | EWX_FORCE. */
static BOOL restart(const char *function, const WCHAR *message) {
    WCHAR line[] = L"C:\\windows\\system32\\wineboot.exe --kill";
    STARTUPINFOW start = {.cb = sizeof start};
    PROCESS_INFORMATION process;
    HANDLE mutex = CreateMutexW(NULL, TRUE, L"Global\\wmco-lab-restart");
    if (mutex == NULL || GetLastError() == ERROR_ALREADY_EXISTS) return fail(ERROR_SHUTDOWN_IN_PROGRESS);
    record(function, message);
    if (!CreateProcessW(NULL, line, NULL, NULL, FALSE, DETACHED_PROCESS, NULL, NULL, &start, &process)) {
        DWORD error = GetLastError();
        CloseHandle(mutex);
        return fail(error);
    }
    CloseHandle(process.hProcess);
    CloseHandle(process.hThread);
    return TRUE; /* the mutex exists until the process ends */
}

BOOL WINAPI lab_ExitWindowsEx(UINT flags, DWORD reason) {
    (void)reason;
    if (!(flags & EWX_REBOOT)) return fail(ERROR_CALL_NOT_IMPLEMENTED);
    if (!has_privilege()) return fail(ERROR_PRIVILEGE_NOT_HELD);
    if (GetEnvironmentVariableW(L"SSH_CONNECTION", NULL, 0) != 0 && !fault_number(L"power", L"ExitInSessions")) {
        return fail(ERROR_ACCESS_DENIED);
    }
    return restart("ExitWindowsEx", NULL);
}

BOOL WINAPI lab_InitiateSystemShutdownExW(WCHAR *machine, WCHAR *message, DWORD seconds, BOOL force, BOOL reboot, DWORD reason) {
    (void)seconds, (void)force, (void)reason;
    DWORD code = fault_number(L"power", L"Initiate");
    if (code != ERROR_SUCCESS) return fail(code);
    if (machine != NULL || !reboot) return fail(ERROR_CALL_NOT_IMPLEMENTED);
    if (!has_privilege()) return fail(ERROR_ACCESS_DENIED);
    return restart("InitiateSystemShutdownEx", message);
}
