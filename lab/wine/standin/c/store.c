/* See store.h. */
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT L"C:\\ProgramData\\wmco-lab\\hns"
#define BOOT_KEY L"SOFTWARE\\wmco-lab\\hns-boot" /* volatile: deleted by a boot */

static const WCHAR *const folders[KINDS] = {L"networks", L"endpoints", L"loadbalancers", L"routes"};

static HANDLE mutex;

HRESULT store_lock(void) {
    if (mutex == NULL) {
        HANDLE made = CreateMutexW(NULL, FALSE, L"Global\\wmco-lab-hns");
        if (made == NULL) return HRESULT_FROM_WIN32(GetLastError());
        if (InterlockedCompareExchangePointer(&mutex, made, NULL) != NULL) CloseHandle(made);
    }
    DWORD waited = WaitForSingleObject(mutex, 60000);
    /* An abandoned mutex is harmless: each file is replaced in one step. */
    return waited == WAIT_OBJECT_0 || waited == WAIT_ABANDONED ? S_OK : HRESULT_FROM_WIN32(ERROR_TIMEOUT);
}

void store_unlock(void) { ReleaseMutex(mutex); }

int store_first_since_boot(void) {
    HKEY key;
    DWORD disposition = 0;
    if (RegCreateKeyExW(HKEY_LOCAL_MACHINE, BOOT_KEY, 0, NULL, REG_OPTION_VOLATILE, KEY_ALL_ACCESS, NULL, &key, &disposition) != ERROR_SUCCESS) {
        return 0;
    }
    RegCloseKey(key);
    return disposition == REG_CREATED_NEW_KEY;
}

static void path_of(enum kind kind, const char *id, const WCHAR *suffix, WCHAR path[MAX_PATH]) {
    WCHAR wide[ID_LENGTH + 1] = {0};
    MultiByteToWideChar(CP_UTF8, 0, id, -1, wide, ARRAYSIZE(wide));
    wide[ID_LENGTH] = 0;
    swprintf(path, MAX_PATH, L"%ls\\%ls\\%ls%ls", ROOT, folders[kind], wide, suffix);
}

static HRESULT make_folders(enum kind kind) {
    WCHAR path[MAX_PATH];
    static const WCHAR *const parents[] = {L"C:\\ProgramData", L"C:\\ProgramData\\wmco-lab", ROOT};
    for (size_t i = 0; i < ARRAYSIZE(parents); i++) CreateDirectoryW(parents[i], NULL);
    swprintf(path, MAX_PATH, L"%ls\\%ls", ROOT, folders[kind]);
    if (CreateDirectoryW(path, NULL) || GetLastError() == ERROR_ALREADY_EXISTS) return S_OK;
    return HRESULT_FROM_WIN32(GetLastError());
}

static struct json *load(const WCHAR *path) {
    struct json *object = NULL;
    LARGE_INTEGER size;
    DWORD got = 0;
    HANDLE file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE) return NULL;
    if (GetFileSizeEx(file, &size) && size.QuadPart < 1 << 24) {
        char *text = calloc(1, (size_t)size.QuadPart + 1);
        if (text != NULL && ReadFile(file, text, (DWORD)size.QuadPart, &got, NULL)) object = json_parse(text);
        free(text);
    }
    CloseHandle(file);
    return object;
}

struct json *store_load(enum kind kind, const char *id) {
    WCHAR path[MAX_PATH];
    path_of(kind, id, L".json", path);
    return load(path);
}

struct json *store_list(enum kind kind) {
    WCHAR pattern[MAX_PATH];
    WIN32_FIND_DATAW entry;
    struct json *list = json_new(JSON_ARRAY);
    swprintf(pattern, MAX_PATH, L"%ls\\%ls\\*.json", ROOT, folders[kind]);
    HANDLE find = FindFirstFileW(pattern, &entry);
    for (BOOL more = find != INVALID_HANDLE_VALUE; more; more = FindNextFileW(find, &entry)) {
        WCHAR path[MAX_PATH];
        swprintf(path, MAX_PATH, L"%ls\\%ls\\%ls", ROOT, folders[kind], entry.cFileName);
        struct json *object = load(path);
        if (object == NULL) continue;
        struct json **at = &list->first;
        while (*at != NULL && _stricmp(json_text(*at, "ID"), json_text(object, "ID")) < 0) at = &(*at)->next;
        object->next = *at;
        *at = object;
    }
    if (find != INVALID_HANDLE_VALUE) FindClose(find);
    return list;
}

HRESULT store_save(enum kind kind, const char *id, const struct json *object) {
    WCHAR path[MAX_PATH], draft[MAX_PATH];
    DWORD wrote = 0;
    HRESULT code = make_folders(kind);
    if (FAILED(code)) return code;
    path_of(kind, id, L".json", path);
    path_of(kind, id, L".new", draft);
    HANDLE file = CreateFileW(draft, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE) return HRESULT_FROM_WIN32(GetLastError());
    char *text = json_print(object);
    BOOL done = WriteFile(file, text, (DWORD)strlen(text), &wrote, NULL);
    DWORD error = GetLastError();
    free(text);
    CloseHandle(file);
    if (!done) return HRESULT_FROM_WIN32(error);
    return MoveFileExW(draft, path, MOVEFILE_REPLACE_EXISTING) ? S_OK : HRESULT_FROM_WIN32(GetLastError());
}

HRESULT store_delete(enum kind kind, const char *id) {
    WCHAR path[MAX_PATH];
    path_of(kind, id, L".json", path);
    return DeleteFileW(path) ? S_OK : HRESULT_FROM_WIN32(GetLastError());
}
