/*
 * wmco-lab-events.dll: the event log. Wine accepts events, but does not store them. Wine's advapi32.dll is patched to
 * forward seven functions to this library (patch.go).
 *
 * It simulates: the log Application with the events that programs report, which persist across restarts; reading
 * backwards from the newest event, a few records at a time; clearing a log, after which each handle that was opened
 * before fails with ERROR_EVENTLOG_FILE_CHANGED. Records are values of a registry key.
 *
 * It does not simulate: the log System, which is empty; other logs and computers, other orders of reading, and message
 * texts from files. Only the latest events are kept.
 */
#include <windows.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY L"SOFTWARE\\wmco-lab\\eventlog"
#define RECORDS KEY L"\\Application"
#define NEXT L"Next"       /* the number of the next record */
#define CLEARED L"Cleared" /* the number of times that the log was cleared */

enum { NAME = 256, RECORD = 0x10000, KEPT = 1000, AT_ONCE = 2, SEQUENTIAL_BACKWARDS = 0x1 | 0x8 };

#ifndef ERROR_EVENTLOG_FILE_CHANGED
#define ERROR_EVENTLOG_FILE_CHANGED 1503
#endif

/* A handle refers to a source for reporting events, or to a log for reading. */
struct handle {
    struct handle *next;
    WCHAR name[NAME + 1]; /* of the source, or of the log */
    DWORD position, cleared;
};

static struct handle *handles;
static SRWLOCK lock = SRWLOCK_INIT;

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) {
    (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) DisableThreadLibraryCalls(instance);
    return TRUE;
}

static BOOL fail(DWORD code) {
    SetLastError(code);
    return code == ERROR_SUCCESS;
}

static struct handle *make(const WCHAR *name) {
    if (name == NULL || *name == 0 || lstrlenW(name) > NAME) {
        fail(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    struct handle *h = calloc(1, sizeof *h);
    if (h == NULL) return NULL;
    lstrcpyW(h->name, name);
    AcquireSRWLockExclusive(&lock);
    h->next = handles;
    handles = h;
    ReleaseSRWLockExclusive(&lock);
    return h;
}

static struct handle *find(HANDLE of) {
    AcquireSRWLockShared(&lock);
    struct handle *h = handles;
    while (h != NULL && h != of) h = h->next;
    ReleaseSRWLockShared(&lock);
    return h;
}

static BOOL forget(HANDLE of) {
    BOOL found = FALSE;
    AcquireSRWLockExclusive(&lock);
    for (struct handle **at = &handles; *at != NULL && !found; at = &(*at)->next) {
        if (*at != of) continue;
        struct handle *h = *at;
        *at = h->next;
        free(h);
        found = TRUE;
        break;
    }
    ReleaseSRWLockExclusive(&lock);
    return fail(found ? ERROR_SUCCESS : ERROR_INVALID_HANDLE);
}

static DWORD number(const WCHAR *value, DWORD otherwise) {
    DWORD result = otherwise, size = sizeof result;
    if (RegGetValueW(HKEY_LOCAL_MACHINE, KEY, value, RRF_RT_REG_DWORD, NULL, &result, &size) != ERROR_SUCCESS) return otherwise;
    return result;
}

static LONG set_number(const WCHAR *value, DWORD to) { return RegSetKeyValueW(HKEY_LOCAL_MACHINE, KEY, value, REG_DWORD, &to, sizeof to); }

/* enter acquires a mutex that all processes of a host share; leave releases it. */
static HANDLE enter(void) {
    HANDLE mutex = CreateMutexW(NULL, FALSE, L"Global\\wmco-lab-events");
    if (mutex != NULL) WaitForSingleObject(mutex, INFINITE);
    return mutex;
}

static void leave(HANDLE mutex) {
    DWORD error = GetLastError();
    if (mutex != NULL) {
        ReleaseMutex(mutex);
        CloseHandle(mutex);
    }
    SetLastError(error);
}

/* ---- reporting ---- */

HANDLE WINAPI lab_RegisterEventSourceW(const WCHAR *server, const WCHAR *source) {
    (void)server;
    return make(source);
}

BOOL WINAPI lab_DeregisterEventSource(HANDLE of) { return forget(of); }

static BOOL put(char *record, DWORD *length, const WCHAR *text) {
    DWORD size = (lstrlenW(text) + 1) * sizeof *text;
    if (*length + size + 2 * sizeof(DWORD) > RECORD) return FALSE;
    memcpy(record + *length, text, size);
    *length += size;
    return TRUE;
}

static DWORD seconds(void) {
    FILETIME time;
    GetSystemTimeAsFileTime(&time);
    ULONGLONG ticks = ((ULONGLONG)time.dwHighDateTime << 32) | time.dwLowDateTime;
    return (DWORD)(ticks / 10000000 - 11644473600ULL);
}

static LONG save(DWORD of, const char *record, DWORD length) {
    WCHAR name[16];
    swprintf(name, ARRAYSIZE(name), L"%08lu", of);
    LONG code = RegSetKeyValueW(HKEY_LOCAL_MACHINE, RECORDS, name, REG_BINARY, record, length);
    if (code == ERROR_SUCCESS) code = set_number(NEXT, of + 1);
    if (of > KEPT) {
        swprintf(name, ARRAYSIZE(name), L"%08lu", of - KEPT);
        RegDeleteKeyValueW(HKEY_LOCAL_MACHINE, RECORDS, name);
    }
    return code;
}

BOOL WINAPI lab_ReportEventW(HANDLE of, WORD type, WORD category, DWORD id, void *user, WORD count, DWORD size, const WCHAR **strings,
                             void *data) {
    struct handle *source = find(of);
    WCHAR computer[MAX_COMPUTERNAME_LENGTH + 1] = {0};
    DWORD length = ARRAYSIZE(computer);
    (void)user, (void)size, (void)data;
    if (source == NULL) return fail(ERROR_INVALID_HANDLE);
    char *record = calloc(1, RECORD);
    if (record == NULL) return fail(ERROR_OUTOFMEMORY);
    EVENTLOGRECORD *fixed = (EVENTLOGRECORD *)record;
    GetComputerNameW(computer, &length);
    length = sizeof *fixed;
    BOOL fits = put(record, &length, source->name) && put(record, &length, computer);
    fixed->StringOffset = length;
    for (WORD i = 0; i < count && fits; i++) fits = put(record, &length, strings[i]);
    length = (length + 3) & ~3u;
    fixed->DataOffset = fixed->UserSidOffset = length;
    fixed->Length = length + sizeof(DWORD);
    memcpy(record + length, &fixed->Length, sizeof(DWORD));
    fixed->EventID = id;
    fixed->EventType = type;
    fixed->EventCategory = category;
    fixed->NumStrings = count;
    fixed->TimeGenerated = fixed->TimeWritten = seconds();
    LONG code = fits ? ERROR_SUCCESS : ERROR_INVALID_PARAMETER;
    if (fits) {
        HANDLE mutex = enter();
        fixed->RecordNumber = number(NEXT, 1);
        code = save(fixed->RecordNumber, record, fixed->Length);
        leave(mutex);
    }
    free(record);
    return fail(code);
}

/* ---- reading ---- */

HANDLE WINAPI lab_OpenEventLogW(const WCHAR *server, const WCHAR *log) {
    (void)server;
    struct handle *h = make(log);
    if (h == NULL) return NULL;
    h->position = _wcsicmp(log, L"System") == 0 ? 1 : number(NEXT, 1);
    h->cleared = number(CLEARED, 0);
    return h;
}

BOOL WINAPI lab_CloseEventLog(HANDLE of) { return forget(of); }

static BOOL read(struct handle *log, char *buffer, DWORD size, DWORD *got, DWORD *needed) {
    if (log->cleared != number(CLEARED, 0)) return fail(ERROR_EVENTLOG_FILE_CHANGED);
    *got = 0;
    for (int records = 0; log->position > 1 && records < AT_ONCE;) {
        WCHAR name[16];
        swprintf(name, ARRAYSIZE(name), L"%08lu", log->position - 1);
        DWORD length = size - *got;
        LONG code = RegGetValueW(HKEY_LOCAL_MACHINE, RECORDS, name, RRF_RT_REG_BINARY, NULL, buffer + *got, &length);
        if (code == ERROR_MORE_DATA) {
            if (records > 0) break;
            *needed = length;
            return fail(ERROR_INSUFFICIENT_BUFFER);
        }
        log->position--;
        if (code == ERROR_FILE_NOT_FOUND) continue;
        if (code != ERROR_SUCCESS) return fail(code);
        *got += length;
        records++;
    }
    return fail(*got > 0 ? ERROR_SUCCESS : ERROR_HANDLE_EOF);
}

BOOL WINAPI lab_ReadEventLogW(HANDLE of, DWORD how, DWORD from, void *buffer, DWORD size, DWORD *got, DWORD *needed) {
    struct handle *log = find(of);
    (void)from;
    if (log == NULL) return fail(ERROR_INVALID_HANDLE);
    if (how != SEQUENTIAL_BACKWARDS || buffer == NULL || got == NULL || needed == NULL) return fail(ERROR_INVALID_PARAMETER);
    HANDLE mutex = enter();
    BOOL done = read(log, buffer, size, got, needed);
    leave(mutex);
    return done;
}

BOOL WINAPI lab_ClearEventLogW(HANDLE of, const WCHAR *backup) {
    if (find(of) == NULL) return fail(ERROR_INVALID_HANDLE);
    if (backup != NULL) return fail(ERROR_INVALID_PARAMETER);
    HANDLE mutex = enter();
    RegDeleteTreeW(HKEY_LOCAL_MACHINE, RECORDS);
    LONG code = set_number(CLEARED, number(CLEARED, 0) + 1);
    if (code == ERROR_SUCCESS) code = set_number(NEXT, 1);
    leave(mutex);
    return fail(code);
}
