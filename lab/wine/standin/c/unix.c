/* See unix.h. */
#include "unix.h"

#include "ntfs.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { CLOSE = 3, STAT = 4, LSTAT = 6, RENAME = 82, CREAT = 85, UNLINK = 87, SYMLINK = 88, READLINK = 89, SETXATTR = 188, GETXATTR = 191, REMOVEXATTR = 197 };

static long call(long number, const void *a, const void *b, const void *c, size_t d, long e) {
    long long result;
    register size_t r10 __asm__("r10") = d;
    register long long r8 __asm__("r8") = e;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((long long)number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return (long)result;
}

long unix_stat(const char *path, struct unix_stat *out) { return call(STAT, path, out, NULL, 0, 0); }
long unix_lstat(const char *path, struct unix_stat *out) { return call(LSTAT, path, out, NULL, 0, 0); }
long unix_symlink(const char *target, const char *path) { return call(SYMLINK, target, path, NULL, 0, 0); }
long unix_unlink(const char *path) { return call(UNLINK, path, NULL, NULL, 0, 0); }
long unix_rename(const char *from, const char *to) { return call(RENAME, from, to, NULL, 0, 0); }
long unix_readlink(const char *path, char *out, size_t size) { return call(READLINK, path, out, (void *)size, 0, 0); }
long unix_getxattr(const char *path, const char *name, void *out, size_t size) { return call(GETXATTR, path, name, out, size, 0); }
long unix_setxattr(const char *path, const char *name, const void *value, size_t size) { return call(SETXATTR, path, name, value, size, 0); }
long unix_removexattr(const char *path, const char *name) { return call(REMOVEXATTR, path, name, NULL, 0, 0); }

long unix_create(const char *path) {
    long file = call(CREAT, path, (void *)0600, NULL, 0, 0);
    if (file >= 0) call(CLOSE, (void *)(size_t)file, NULL, NULL, 0, 0);
    return file;
}

int is_symlink(const struct unix_stat *s) { return (s->mode & 0170000) == 0120000; }
int is_directory(const struct unix_stat *s) { return (s->mode & 0170000) == 0040000; }

DWORD windows_error(long code) {
    switch (-code) {
    case 2:
        return ERROR_FILE_NOT_FOUND;
    case 1:
    case 13:
    case 21:
        return ERROR_ACCESS_DENIED;
    case 17:
        return ERROR_ALREADY_EXISTS;
    case 20:
        return ERROR_PATH_NOT_FOUND;
    case 28:
        return ERROR_DISK_FULL;
    case 39:
        return ERROR_DIR_NOT_EMPTY;
    default:
        return ERROR_GEN_FAILURE;
    }
}

typedef char *(CDECL *path_function)(const WCHAR *);

int unix_path(const WCHAR *path, char out[UNIX_PATH]) {
    static path_function find;
    if (find == NULL) find = (path_function)wine_function(L"kernel32.dll", "wine_get_unix_file_name");
    char *found = find != NULL && path != NULL ? find(path) : NULL;
    if (found == NULL) return 0;
    size_t length = strlen(found);
    /* A drive is a link that Wine created: the slash at its end is kept. */
    while (length > 1 && found[length - 1] == '/' && found[length - 2] != ':') length--;
    int fits = length < UNIX_PATH;
    if (fits) {
        memcpy(out, found, length);
        out[length] = 0;
    }
    HeapFree(GetProcessHeap(), 0, found);
    return fits;
}

int unix_path_of(HANDLE handle, char out[UNIX_PATH]) {
    WCHAR path[UNIX_PATH];
    DWORD length = GetFinalPathNameByHandleW(handle, path, UNIX_PATH, 0);
    return length > 0 && length < UNIX_PATH && unix_path(path, out);
}

void windows_path(const char *path, WCHAR out[UNIX_PATH]) {
    static const char drive[] = "/dosdevices/c:/";
    const char *inside = strstr(path, drive);
    WCHAR *at = out;
    if (inside != NULL) {
        wcscpy(out, L"C:\\");
        at += 3;
        path = inside + sizeof drive - 1;
    }
    MultiByteToWideChar(CP_UTF8, 0, path, -1, at, UNIX_PATH - 4);
    for (; *at != 0; at++) {
        if (*at == L'/') *at = L'\\';
    }
}
