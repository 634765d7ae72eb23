/* NtOpenFile for links, and the GetProcAddress with which callers find it; see links.c. */
#include "ntfs.h"
#include "unix.h"

#include <string.h>
#include <winternl.h>

typedef NTSTATUS(NTAPI *open_function)(HANDLE *, ACCESS_MASK, OBJECT_ATTRIBUTES *, IO_STATUS_BLOCK *, ULONG, ULONG);

NTSTATUS NTAPI LdrGetProcedureAddress(HMODULE module, const ANSI_STRING *name, ULONG ordinal, void **address);

/* wine_function queries ntdll.dll directly, below the patched GetProcAddress. */
void *wine_function(const WCHAR *library, const char *name) {
    ANSI_STRING text = {(USHORT)strlen(name), (USHORT)(strlen(name) + 1), (char *)name};
    void *found = NULL;
    return LdrGetProcedureAddress(GetModuleHandleW(library), &text, 0, &found) >= 0 ? found : NULL;
}

/* native_path finds the Linux path of the object of a native call. */
static int native_path(const OBJECT_ATTRIBUTES *object, char path[UNIX_PATH]) {
    static const WCHAR dos[] = L"\\??\\";
    enum { DOS = ARRAYSIZE(dos) - 1 };
    WCHAR name[UNIX_PATH];
    size_t length = object->ObjectName->Length / sizeof(WCHAR);
    if (length >= UNIX_PATH) return 0;
    memcpy(name, object->ObjectName->Buffer, length * sizeof(WCHAR));
    name[length] = 0;
    if (object->RootDirectory == NULL) return wcsncmp(name, dos, DOS) == 0 && unix_path(name + DOS, path);
    if (!unix_path_of(object->RootDirectory, path)) return 0;
    size_t used = strlen(path);
    if (used + 3 * length + 2 > UNIX_PATH) return 0;
    path[used++] = '/';
    WideCharToMultiByte(CP_UTF8, 0, name, -1, path + used, UNIX_PATH - (int)used, NULL, NULL);
    for (; path[used] != 0; used++) {
        if (path[used] == '\\') path[used] = '/';
    }
    return 1;
}

/*
 * open_file opens a link for deletion. Wine would open, and delete, the target of the link. Therefore an empty file
 * replaces the link and is then deleted.
 */
static NTSTATUS NTAPI open_file(HANDLE *handle, ACCESS_MASK access, OBJECT_ATTRIBUTES *object, IO_STATUS_BLOCK *status, ULONG share, ULONG options) {
    static open_function wine;
    char path[UNIX_PATH], draft[UNIX_PATH + 16];
    struct unix_stat s;
    if (wine == NULL) wine = (open_function)wine_function(L"ntdll.dll", "NtOpenFile");
    if ((access & DELETE) && (options & FILE_OPEN_REPARSE_POINT) && native_path(object, path) && unix_lstat(path, &s) == 0 && is_symlink(&s)) {
        strcpy(draft, path);
        strcat(draft, ".wmco-lab");
        if (unix_create(draft) >= 0 && unix_rename(draft, path) < 0) unix_unlink(draft);
        options &= ~(ULONG)FILE_DIRECTORY_FILE;
    }
    return wine(handle, access, object, status, share, options);
}

FARPROC WINAPI Lab_GetProcAddress(HMODULE module, LPCSTR name) {
    if ((ULONG_PTR)name > 0xFFFF && strcmp(name, "NtOpenFile") == 0 && module == GetModuleHandleW(L"ntdll.dll")) return (FARPROC)(void *)open_file;
    return wine_GetProcAddress(module, name);
}
