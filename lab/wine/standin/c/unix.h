/* The Linux file system below Wine's drives, accessed by system calls of the x86-64 kernel. */
#ifndef LAB_UNIX_H
#define LAB_UNIX_H

#include <windows.h>

enum { UNIX_PATH = 4096 };

struct unix_stat {
    unsigned long long dev, ino, nlink;
    unsigned mode, uid, gid, pad;
    unsigned long long rdev;
    long long size, block_size, blocks, access_time, access_ns, modify_time, modify_ns, change_time, change_ns, unused[3];
};

/* unix_path converts a Windows path to a Linux path, or returns 0 if not even the directory of the path exists. */
int unix_path(const WCHAR *path, char out[UNIX_PATH]);

/* unix_path_of returns the Linux path of an open file. */
int unix_path_of(HANDLE handle, char out[UNIX_PATH]);

/* windows_path converts the target of a Linux link to a Windows path, or to a relative path. */
void windows_path(const char *path, WCHAR out[UNIX_PATH]);

/* The calls return 0 or more, or a negative error number. */
long unix_lstat(const char *path, struct unix_stat *out);
long unix_stat(const char *path, struct unix_stat *out);
long unix_symlink(const char *target, const char *path);
long unix_readlink(const char *path, char *out, size_t size);
long unix_unlink(const char *path);
long unix_rename(const char *from, const char *to);
/* unix_create creates or truncates a file. */
long unix_create(const char *path);
long unix_getxattr(const char *path, const char *name, void *out, size_t size);
long unix_setxattr(const char *path, const char *name, const void *value, size_t size);
long unix_removexattr(const char *path, const char *name);

int is_symlink(const struct unix_stat *s);
int is_directory(const struct unix_stat *s);

/* windows_error returns the last-error code for a negative error number. */
DWORD windows_error(long code);

#endif
