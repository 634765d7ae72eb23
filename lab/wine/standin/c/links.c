/*
 * wmco-lab-ntfs.dll: features of NTFS that Wine's drives lack: symbolic links (this file) and persistent access lists
 * (access.c). Wine's kernel32.dll and advapi32.dll are patched to forward calls to this library (patch.go), which calls
 * Wine's own functions.
 *
 * It simulates: symbolic links as links of Linux. CreateSymbolicLinkW creates a link, and paths follow links.
 * GetFileAttributes(Ex)W, FindFirstFileW and directory listings show a link as a reparse point. CreateFileW with
 * FILE_FLAG_OPEN_REPARSE_POINT opens the link itself, for its attributes and FSCTL_GET_REPARSE_POINT. DeleteFileW,
 * RemoveDirectoryW and MoveFileExW affect the link and not its target. GetSecurityInfo returns the security descriptor
 * with which a file or directory was created, or which SetSecurityInfo has set.
 *
 * Of ntdll.dll, only NtOpenFile supports links. It serves callers that find the function with GetProcAddress and open a
 * link to delete it, such as Go's os.RemoveAll (native.c).
 *
 * It does not simulate: links and descriptors for other callers of ntdll.dll; FindNextFileW, dangling links in a
 * directory listing, mount points, the privilege to create links, volumes other than C:. A descriptor has no effect:
 * access is never denied, and nothing is inherited.
 */
#include "ntfs.h"
#include "unix.h"

#include <string.h>
#include <wchar.h>
#include <winioctl.h>

enum { OPEN_LINKS = 64, TIMES_UNIX_EPOCH = 11644473600 };

#define DUMMY_FOLDER L"C:\\ProgramData\\wmco-lab"
#define DUMMY L"\\ProgramData\\wmco-lab\\link" /* the file that the handle of a link refers to */

/* open_links are the handles that were opened on links themselves. */
static struct {
    HANDLE handle;
    char path[UNIX_PATH];
} open_links[OPEN_LINKS];

static unsigned next_open;
static SRWLOCK lock = SRWLOCK_INIT; /* needs no DllMain: Wine may call the functions before DllMain */

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) {
    (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) DisableThreadLibraryCalls(instance);
    return TRUE;
}

/* find_link reports whether a path is a link. */
static int find_link(const WCHAR *name, char path[UNIX_PATH], struct unix_stat *s) {
    return name != NULL && wcspbrk(name, L"*<>\"") == NULL && unix_path(name, path) && unix_lstat(path, s) == 0 && is_symlink(s);
}

static DWORD link_attributes(const char *path) {
    struct unix_stat target;
    int folder = unix_stat(path, &target) == 0 && is_directory(&target);
    return FILE_ATTRIBUTE_REPARSE_POINT | (folder ? FILE_ATTRIBUTE_DIRECTORY : FILE_ATTRIBUTE_ARCHIVE);
}

static FILETIME modified(const struct unix_stat *s) {
    unsigned long long ticks = (unsigned long long)(s->modify_time + TIMES_UNIX_EPOCH) * 10000000 + (unsigned long long)s->modify_ns / 100;
    FILETIME t = {(DWORD)ticks, (DWORD)(ticks >> 32)};
    return t;
}

static BOOL done(long code) {
    if (code >= 0) return TRUE;
    SetLastError(windows_error(code));
    return FALSE;
}

BOOLEAN WINAPI Lab_CreateSymbolicLinkW(LPCWSTR link, LPCWSTR target, DWORD flags) {
    char at[UNIX_PATH], to[UNIX_PATH];
    (void)flags;
    if (!unix_path(link, at)) {
        SetLastError(ERROR_PATH_NOT_FOUND);
        return FALSE;
    }
    if (wcschr(target, L':') == NULL || !unix_path(target, to)) { /* relative, or in a missing directory */
        int absolute = target[0] != 0 && target[1] == L':';
        char root[UNIX_PATH] = "";
        if (absolute) unix_path(L"C:\\", root); /* ends with a slash */
        size_t used = strlen(root);
        memcpy(to, root, used + 1);
        WideCharToMultiByte(CP_UTF8, 0, target + (absolute ? 3 : 0), -1, to + used, UNIX_PATH - (int)used, NULL, NULL);
        for (char *c = to; *c != 0; c++) {
            if (*c == '\\') *c = '/';
        }
    }
    return (BOOLEAN)done(unix_symlink(to, at));
}

static HANDLE open_dummy(void) {
    HANDLE h = wine_CreateFileW(L"C:" DUMMY, FILE_READ_ATTRIBUTES | READ_CONTROL, 7, NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    if (h != INVALID_HANDLE_VALUE) return h;
    wine_CreateDirectoryW(DUMMY_FOLDER, NULL);
    return wine_CreateFileW(L"C:" DUMMY, FILE_READ_ATTRIBUTES | READ_CONTROL, 7, NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
}

/* opened reports whether a handle was opened on a link, and returns the path of the link. */
static int opened(HANDLE h, char path[UNIX_PATH]) {
    int found = 0;
    AcquireSRWLockExclusive(&lock);
    for (unsigned i = 0; i < OPEN_LINKS && !found; i++) {
        if (open_links[i].handle != h || h == NULL) continue;
        WCHAR real[MAX_PATH] = L"";
        DWORD length = GetFinalPathNameByHandleW(h, real, MAX_PATH, 0);
        size_t suffix = wcslen(DUMMY);
        found = length > suffix && length < MAX_PATH && _wcsicmp(real + length - suffix, DUMMY) == 0;
        if (found) {
            strcpy(path, open_links[i].path);
        } else {
            open_links[i].handle = NULL; /* closed, and the handle was reused for another file */
        }
    }
    ReleaseSRWLockExclusive(&lock);
    return found;
}

HANDLE WINAPI Lab_CreateFileW(LPCWSTR name, DWORD access, DWORD share, LPSECURITY_ATTRIBUTES sa, DWORD how, DWORD flags, HANDLE like) {
    char path[UNIX_PATH];
    struct unix_stat s;
    if ((flags & FILE_FLAG_OPEN_REPARSE_POINT) && how == OPEN_EXISTING && find_link(name, path, &s)) {
        HANDLE h = open_dummy();
        if (h == INVALID_HANDLE_VALUE) return h;
        AcquireSRWLockExclusive(&lock);
        for (unsigned i = 0; i < OPEN_LINKS; i++) { /* left from a closed link */
            if (open_links[i].handle == h) open_links[i].handle = NULL;
        }
        open_links[next_open].handle = h;
        strcpy(open_links[next_open].path, path);
        next_open = (next_open + 1) % OPEN_LINKS;
        ReleaseSRWLockExclusive(&lock);
        SetLastError(ERROR_SUCCESS);
        return h;
    }
    HANDLE h = wine_CreateFileW(name, access, share, sa, how, flags, like);
    if (h != INVALID_HANDLE_VALUE && sa != NULL && sa->lpSecurityDescriptor != NULL && GetLastError() != ERROR_ALREADY_EXISTS) {
        DWORD code = GetLastError();
        keep_descriptor(name, sa);
        SetLastError(code);
    }
    return h;
}

BOOL WINAPI Lab_CreateDirectoryW(LPCWSTR name, LPSECURITY_ATTRIBUTES sa) {
    if (!wine_CreateDirectoryW(name, sa)) return FALSE;
    keep_descriptor(name, sa);
    return TRUE;
}

DWORD WINAPI Lab_GetFileAttributesW(LPCWSTR name) {
    char path[UNIX_PATH];
    struct unix_stat s;
    return find_link(name, path, &s) ? link_attributes(path) : wine_GetFileAttributesW(name);
}

BOOL WINAPI Lab_GetFileAttributesExW(LPCWSTR name, GET_FILEEX_INFO_LEVELS level, LPVOID data) {
    char path[UNIX_PATH];
    struct unix_stat s;
    if (level != GetFileExInfoStandard || !find_link(name, path, &s)) return wine_GetFileAttributesExW(name, level, data);
    WIN32_FILE_ATTRIBUTE_DATA *out = data;
    memset(out, 0, sizeof *out);
    out->dwFileAttributes = link_attributes(path);
    out->ftCreationTime = out->ftLastAccessTime = out->ftLastWriteTime = modified(&s);
    return TRUE;
}

HANDLE WINAPI Lab_FindFirstFileW(LPCWSTR name, LPWIN32_FIND_DATAW data) {
    char path[UNIX_PATH];
    struct unix_stat s;
    if (!find_link(name, path, &s)) return wine_FindFirstFileW(name, data);
    HANDLE h = open_dummy();
    if (h != INVALID_HANDLE_VALUE) CloseHandle(h); /* the file exists now */
    h = wine_FindFirstFileW(L"C:" DUMMY, data);
    if (h == INVALID_HANDLE_VALUE) return h;
    data->dwFileAttributes = link_attributes(path);
    data->ftCreationTime = data->ftLastAccessTime = data->ftLastWriteTime = modified(&s);
    data->nFileSizeHigh = data->nFileSizeLow = 0;
    data->dwReserved0 = IO_REPARSE_TAG_SYMLINK;
    MultiByteToWideChar(CP_UTF8, 0, strrchr(path, '/') + 1, -1, data->cFileName, MAX_PATH);
    data->cAlternateFileName[0] = 0;
    return h;
}

BOOL WINAPI Lab_GetFileInformationByHandle(HANDLE h, LPBY_HANDLE_FILE_INFORMATION data) {
    char path[UNIX_PATH];
    struct unix_stat s;
    if (!wine_GetFileInformationByHandle(h, data)) return FALSE;
    if (!opened(h, path) || unix_lstat(path, &s) != 0) return TRUE;
    data->dwFileAttributes = link_attributes(path);
    data->ftCreationTime = data->ftLastAccessTime = data->ftLastWriteTime = modified(&s);
    data->nFileIndexHigh = (DWORD)(s.ino >> 32);
    data->nFileIndexLow = (DWORD)s.ino;
    data->nNumberOfLinks = 1;
    return TRUE;
}

/*
 * mark_links marks links in a directory listing as reparse points. name_offset is the offset of the name in an entry.
 */
static void mark_links(HANDLE h, char *entry, size_t name_offset) {
    enum { ATTRIBUTES = 56, NAME_LENGTH = 60, EA_SIZE = 64 };
    char folder[UNIX_PATH], path[UNIX_PATH * 2];
    struct unix_stat s;
    if (!unix_path_of(h, folder)) return;
    for (DWORD next;; entry += next) {
        memcpy(&next, entry, sizeof next);
        int length = (int)(*(DWORD *)(entry + NAME_LENGTH) / sizeof(WCHAR));
        size_t used = strlen(folder);
        memcpy(path, folder, used);
        path[used++] = '/';
        used += (size_t)WideCharToMultiByte(CP_UTF8, 0, (WCHAR *)(entry + name_offset), length, path + used, UNIX_PATH, NULL, NULL);
        path[used] = 0;
        if (unix_lstat(path, &s) == 0 && is_symlink(&s)) {
            *(DWORD *)(entry + ATTRIBUTES) = link_attributes(path);
            *(DWORD *)(entry + EA_SIZE) = IO_REPARSE_TAG_SYMLINK;
        }
        if (next == 0) return;
    }
}

BOOL WINAPI Lab_GetFileInformationByHandleEx(HANDLE h, FILE_INFO_BY_HANDLE_CLASS class, LPVOID data, DWORD size) {
    char path[UNIX_PATH];
    if (class == FileAttributeTagInfo && size >= sizeof(FILE_ATTRIBUTE_TAG_INFO) && opened(h, path)) {
        FILE_ATTRIBUTE_TAG_INFO *out = data;
        out->FileAttributes = link_attributes(path);
        out->ReparseTag = IO_REPARSE_TAG_SYMLINK;
        return TRUE;
    }
    if (!wine_GetFileInformationByHandleEx(h, class, data, size)) return FALSE;
    if (class == FileIdBothDirectoryInfo || class == FileIdBothDirectoryRestartInfo) mark_links(h, data, 104);
    if (class == 14 || class == 15) mark_links(h, data, 68); /* FileFullDirectoryInfo, FileFullDirectoryRestartInfo */
    return TRUE;
}

/* describe writes the reparse data of a link, and returns the number of bytes, or 0 if the data does not fit. */
static DWORD describe(const char *path, char *out, DWORD size) {
    enum { HEADER = 20 }; /* tag, two lengths, four offsets and lengths of names, flags */
    char target[UNIX_PATH];
    WCHAR name[UNIX_PATH], substitute[UNIX_PATH + 4];
    long length = unix_readlink(path, target, sizeof target - 1);
    if (length < 0) return 0;
    target[length] = 0;
    windows_path(target, name);
    int absolute = name[0] != 0 && name[1] == L':';
    wcscpy(substitute, absolute ? L"\\??\\" : L"");
    wcscat(substitute, name);
    WORD name_bytes = (WORD)(wcslen(name) * 2), substitute_bytes = (WORD)(wcslen(substitute) * 2);
    DWORD total = HEADER + (DWORD)name_bytes + substitute_bytes;
    if (total > size) return 0;
    struct {
        DWORD tag;
        WORD data_length, reserved, substitute_offset, substitute_length, print_offset, print_length;
        DWORD flags;
    } head = {IO_REPARSE_TAG_SYMLINK, (WORD)(total - 8), 0, 0, substitute_bytes, substitute_bytes, name_bytes, !absolute};
    memcpy(out, &head, HEADER);
    memcpy(out + HEADER, substitute, substitute_bytes);
    memcpy(out + HEADER + substitute_bytes, name, name_bytes);
    return total;
}

BOOL WINAPI Lab_DeviceIoControl(HANDLE h, DWORD code, LPVOID in, DWORD in_size, LPVOID out, DWORD out_size, LPDWORD got, LPOVERLAPPED overlapped) {
    char path[UNIX_PATH];
    if (code != FSCTL_GET_REPARSE_POINT) return wine_DeviceIoControl(h, code, in, in_size, out, out_size, got, overlapped);
    if (!opened(h, path)) {
        SetLastError(ERROR_NOT_A_REPARSE_POINT);
        return FALSE;
    }
    DWORD bytes = describe(path, out, out_size);
    if (got != NULL) *got = bytes;
    if (bytes != 0) return TRUE;
    SetLastError(ERROR_INSUFFICIENT_BUFFER);
    return FALSE;
}

BOOL WINAPI Lab_DeleteFileW(LPCWSTR name) {
    char path[UNIX_PATH];
    struct unix_stat s;
    if (!find_link(name, path, &s)) return wine_DeleteFileW(name);
    if (link_attributes(path) & FILE_ATTRIBUTE_DIRECTORY) { /* as for a directory */
        SetLastError(ERROR_ACCESS_DENIED);
        return FALSE;
    }
    return done(unix_unlink(path));
}

BOOL WINAPI Lab_RemoveDirectoryW(LPCWSTR name) {
    char path[UNIX_PATH];
    struct unix_stat s;
    if (!find_link(name, path, &s)) return wine_RemoveDirectoryW(name);
    if (link_attributes(path) & FILE_ATTRIBUTE_DIRECTORY) return done(unix_unlink(path));
    SetLastError(ERROR_DIRECTORY);
    return FALSE;
}

BOOL WINAPI Lab_MoveFileExW(LPCWSTR from, LPCWSTR to, DWORD flags) {
    char source[UNIX_PATH], target[UNIX_PATH];
    struct unix_stat s, t;
    if (to == NULL || (!find_link(from, source, &s) && !find_link(to, target, &t))) return wine_MoveFileExW(from, to, flags);
    if (!unix_path(from, source) || !unix_path(to, target) || unix_lstat(source, &s) != 0) {
        SetLastError(ERROR_FILE_NOT_FOUND);
        return FALSE;
    }
    if (unix_lstat(target, &t) == 0) {
        int folder = is_directory(&t) || (is_symlink(&t) && (link_attributes(target) & FILE_ATTRIBUTE_DIRECTORY));
        if (folder || !(flags & MOVEFILE_REPLACE_EXISTING)) {
            SetLastError(folder ? ERROR_ACCESS_DENIED : ERROR_ALREADY_EXISTS);
            return FALSE;
        }
    }
    return done(unix_rename(source, target));
}
