/* Wine's implementation of the Windows functions that call wmco-lab-ntfs.dll. */
#ifndef LAB_NTFS_H
#define LAB_NTFS_H

#include <aclapi.h>
#include <windows.h>

/* wine_function returns Wine's implementation of a function, below the patched function. */
void *wine_function(const WCHAR *library, const char *name);

/* WINE declares Wine's own implementation of a function as wine_NAME. */
#define WINE(LIBRARY, RESULT, NAME, PARAMETERS, ARGUMENTS)                                                   \
    typedef RESULT(WINAPI *NAME##_function) PARAMETERS;                                                      \
    static inline RESULT wine_##NAME PARAMETERS {                                                            \
        static NAME##_function found;                                                                        \
        if (found == NULL) found = (NAME##_function)wine_function(LIBRARY, #NAME);                           \
        return found ARGUMENTS;                                                                              \
    }

#define BASE L"kernelbase.dll"

WINE(BASE, HANDLE, CreateFileW, (LPCWSTR name, DWORD access, DWORD share, LPSECURITY_ATTRIBUTES sa, DWORD how, DWORD flags, HANDLE like),
     (name, access, share, sa, how, flags, like))
WINE(BASE, BOOL, CreateDirectoryW, (LPCWSTR name, LPSECURITY_ATTRIBUTES sa), (name, sa))
WINE(BASE, DWORD, GetFileAttributesW, (LPCWSTR name), (name))
WINE(BASE, BOOL, GetFileAttributesExW, (LPCWSTR name, GET_FILEEX_INFO_LEVELS level, LPVOID data), (name, level, data))
WINE(BASE, HANDLE, FindFirstFileW, (LPCWSTR name, LPWIN32_FIND_DATAW data), (name, data))
WINE(BASE, BOOL, GetFileInformationByHandle, (HANDLE h, LPBY_HANDLE_FILE_INFORMATION data), (h, data))
WINE(BASE, BOOL, GetFileInformationByHandleEx, (HANDLE h, FILE_INFO_BY_HANDLE_CLASS class, LPVOID data, DWORD size), (h, class, data, size))
WINE(BASE, BOOL, DeviceIoControl,
     (HANDLE h, DWORD code, LPVOID in, DWORD in_size, LPVOID out, DWORD out_size, LPDWORD got, LPOVERLAPPED overlapped),
     (h, code, in, in_size, out, out_size, got, overlapped))
WINE(BASE, BOOL, DeleteFileW, (LPCWSTR name), (name))
WINE(BASE, BOOL, RemoveDirectoryW, (LPCWSTR name), (name))
WINE(BASE, BOOL, MoveFileExW, (LPCWSTR from, LPCWSTR to, DWORD flags), (from, to, flags))

WINE(BASE, FARPROC, GetProcAddress, (HMODULE module, LPCSTR name), (module, name))

/* keep_descriptor stores the security descriptor with which a file or directory was created. */
void keep_descriptor(const WCHAR *path, const SECURITY_ATTRIBUTES *attributes);

#endif
