/*
 * Persistent access lists; see links.c. The descriptor is an extended attribute of the Linux file, in self-relative
 * form.
 */
#include <stdlib.h>

#include "ntfs.h"
#include "unix.h"

#define ATTRIBUTE "user.wmco-lab.descriptor"

enum { DESCRIPTOR = 4096 };

static DWORD keep(const char *path, PSECURITY_DESCRIPTOR absolute) {
    char relative[DESCRIPTOR];
    DWORD size = sizeof relative;
    PSECURITY_DESCRIPTOR value = absolute;
    SECURITY_DESCRIPTOR_CONTROL control;
    DWORD revision;
    if (!GetSecurityDescriptorControl(absolute, &control, &revision)) return GetLastError();
    if (!(control & SE_SELF_RELATIVE)) {
        if (!MakeSelfRelativeSD(absolute, relative, &size)) return GetLastError();
        value = relative;
    }
    long code = unix_setxattr(path, ATTRIBUTE, value, GetSecurityDescriptorLength(value));
    return code < 0 ? windows_error(code) : ERROR_SUCCESS;
}

void keep_descriptor(const WCHAR *path, const SECURITY_ATTRIBUTES *attributes) {
    char at[UNIX_PATH];
    if (attributes != NULL && attributes->lpSecurityDescriptor != NULL && unix_path(path, at)) keep(at, attributes->lpSecurityDescriptor);
}

/* read_kept returns the stored descriptor of a file, or NULL. The caller frees the descriptor with LocalFree. */
static PSECURITY_DESCRIPTOR read_kept(HANDLE h) {
    char path[UNIX_PATH], value[DESCRIPTOR];
    long size = unix_path_of(h, path) ? unix_getxattr(path, ATTRIBUTE, value, sizeof value) : 0;
    if (size <= 0) return NULL;
    PSECURITY_DESCRIPTOR copy = LocalAlloc(LMEM_FIXED, (SIZE_T)size);
    if (copy != NULL) memcpy(copy, value, (size_t)size);
    return copy;
}

/*
 * read_wine returns the descriptor that Wine derives from owner and mode of the Linux file, or from an object other
 * than a file.
 */
static DWORD read_wine(HANDLE h, SECURITY_INFORMATION parts, PSECURITY_DESCRIPTOR *out) {
    DWORD size = 0;
    GetKernelObjectSecurity(h, parts, NULL, 0, &size);
    if (size == 0) return GetLastError();
    *out = LocalAlloc(LMEM_FIXED, size);
    if (*out == NULL) return ERROR_OUTOFMEMORY;
    if (GetKernelObjectSecurity(h, parts, *out, size, &size)) return ERROR_SUCCESS;
    DWORD code = GetLastError();
    LocalFree(*out);
    return code;
}

/*
 * give_to_administrators replaces the owner by the Administrators group, also in the access list. On Windows Server,
 * this group owns the objects created by an administrator's programs; in Wine, the owner of the Linux file does. The
 * identifier of the group is never longer than the identifier of an account.
 */
static void give_to_administrators(PSECURITY_DESCRIPTOR descriptor) {
    static const unsigned char administrators[] = {1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0};
    unsigned char former[SECURITY_MAX_SID_SIZE];
    BOOL is, defaulted;
    PSID owner = NULL;
    PACL dacl = NULL;
    if (!GetSecurityDescriptorOwner(descriptor, &owner, &defaulted) || owner == NULL) return;
    size_t count = ((const unsigned char *)owner)[1], size = 8 + 4 * count;
    if (count < 2 || size > sizeof former) return;
    memcpy(former, owner, size);
    memcpy(owner, administrators, sizeof administrators);
    if (!GetSecurityDescriptorDacl(descriptor, &is, &dacl, &defaulted) || dacl == NULL) return;
    char *at = (char *)(dacl + 1);
    for (WORD i = 0; i < dacl->AceCount; i++) {
        char *sid = at + sizeof(ACE_HEADER) + sizeof(ACCESS_MASK);
        const ACE_HEADER *header = (const ACE_HEADER *)at;
        if (header->AceSize >= sizeof(ACE_HEADER) + sizeof(ACCESS_MASK) + size && memcmp(sid, former, size) == 0) {
            memcpy(sid, administrators, sizeof administrators);
        }
        at += header->AceSize;
    }
}

/*
 * Wine enforces the access list of a registry key, but does not inherit entries from the parent key: an empty list that
 * allows inherited entries would deny all access. Therefore each new list gets an additional entry for everyone, which
 * is hidden from callers.
 */
static const unsigned char everyone[] = {ACCESS_ALLOWED_ACE_TYPE, CONTAINER_INHERIT_ACE, 20, 0, 0x3f, 0, 0x0f, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};

static PACL widen(const ACL *dacl, char *room, size_t size) {
    if (dacl == NULL || dacl->AclSize + sizeof everyone > size) return (PACL)dacl;
    PACL wider = (PACL)room;
    memcpy(wider, dacl, dacl->AclSize);
    memcpy(room + dacl->AclSize, everyone, sizeof everyone);
    wider->AclSize = (WORD)(wider->AclSize + sizeof everyone);
    wider->AceCount++;
    return wider;
}

static void narrow(PSECURITY_DESCRIPTOR descriptor) {
    BOOL is, defaulted;
    PACL dacl = NULL;
    if (!GetSecurityDescriptorDacl(descriptor, &is, &dacl, &defaulted) || dacl == NULL || dacl->AceCount == 0) return;
    const ACE_HEADER *last = (const ACE_HEADER *)(dacl + 1);
    for (WORD i = 1; i < dacl->AceCount; i++) last = (const ACE_HEADER *)((const char *)last + last->AceSize);
    if (last->AceSize == sizeof everyone && memcmp(last, everyone, sizeof everyone) == 0) dacl->AceCount--;
}

/*
 * change creates an absolute descriptor from the current descriptor and the changed parts. The result points into both.
 */
static void change(SECURITY_DESCRIPTOR *next, PSECURITY_DESCRIPTOR now, SECURITY_INFORMATION parts, PSID owner, PSID group, PACL dacl) {
    BOOL is = FALSE, defaulted;
    SECURITY_DESCRIPTOR_CONTROL control = 0;
    DWORD revision;
    PSID old_owner = NULL, old_group = NULL;
    PACL old_dacl = NULL;
    InitializeSecurityDescriptor(next, SECURITY_DESCRIPTOR_REVISION);
    if (now != NULL) {
        GetSecurityDescriptorControl(now, &control, &revision);
        GetSecurityDescriptorOwner(now, &old_owner, &defaulted);
        GetSecurityDescriptorGroup(now, &old_group, &defaulted);
        GetSecurityDescriptorDacl(now, &is, &old_dacl, &defaulted);
    }
    if (parts & PROTECTED_DACL_SECURITY_INFORMATION) control |= SE_DACL_PROTECTED;
    if (parts & UNPROTECTED_DACL_SECURITY_INFORMATION) control &= (SECURITY_DESCRIPTOR_CONTROL)~SE_DACL_PROTECTED;
    SetSecurityDescriptorOwner(next, parts & OWNER_SECURITY_INFORMATION ? owner : old_owner, FALSE);
    SetSecurityDescriptorGroup(next, parts & GROUP_SECURITY_INFORMATION ? group : old_group, FALSE);
    if (parts & DACL_SECURITY_INFORMATION) {
        SetSecurityDescriptorDacl(next, TRUE, dacl, FALSE);
    } else {
        SetSecurityDescriptorDacl(next, is, old_dacl, FALSE);
    }
    SetSecurityDescriptorControl(next, SE_DACL_PROTECTED, control & SE_DACL_PROTECTED);
}

/*
 * pack rebuilds the descriptor without the gaps that a shorter identifier leaves. The length of a descriptor is the sum
 * of its parts, so a caller that copies this number of bytes from a descriptor with a gap would get half a list.
 */
static DWORD pack(PSECURITY_DESCRIPTOR *descriptor) {
    SECURITY_DESCRIPTOR next;
    DWORD size = DESCRIPTOR;
    change(&next, *descriptor, 0, NULL, NULL, NULL);
    PSECURITY_DESCRIPTOR packed = LocalAlloc(LMEM_FIXED, size);
    if (packed == NULL) return ERROR_OUTOFMEMORY;
    if (!MakeSelfRelativeSD(&next, packed, &size)) {
        DWORD code = GetLastError();
        LocalFree(packed);
        return code;
    }
    LocalFree(*descriptor);
    *descriptor = packed;
    return ERROR_SUCCESS;
}

DWORD WINAPI Lab_GetSecurityInfo(HANDLE h, SE_OBJECT_TYPE type, SECURITY_INFORMATION parts, PSID *owner, PSID *group, PACL *dacl, PACL *sacl,
                                 PSECURITY_DESCRIPTOR *out) {
    BOOL is, defaulted;
    if (out == NULL) return ERROR_INVALID_PARAMETER;
    *out = type == SE_FILE_OBJECT ? read_kept(h) : NULL;
    DWORD code = ERROR_SUCCESS;
    if (*out == NULL) {
        code = read_wine(h, parts, out);
        if (code == ERROR_SUCCESS && type == SE_FILE_OBJECT) {
            give_to_administrators(*out);
            code = pack(out);
        }
    }
    if (code != ERROR_SUCCESS) return code;
    if (type == SE_REGISTRY_KEY) narrow(*out);
    if (owner != NULL) GetSecurityDescriptorOwner(*out, owner, &defaulted);
    if (group != NULL) GetSecurityDescriptorGroup(*out, group, &defaulted);
    if (dacl != NULL) GetSecurityDescriptorDacl(*out, &is, dacl, &defaulted);
    if (sacl != NULL) *sacl = NULL;
    return ERROR_SUCCESS;
}

DWORD WINAPI Lab_SetSecurityInfo(HANDLE h, SE_OBJECT_TYPE type, SECURITY_INFORMATION parts, PSID owner, PSID group, PACL dacl, PACL sacl) {
    char path[UNIX_PATH], room[DESCRIPTOR];
    SECURITY_DESCRIPTOR next;
    (void)sacl;
    if (type == SE_REGISTRY_KEY) dacl = widen(dacl, room, sizeof room);
    int file = type == SE_FILE_OBJECT && unix_path_of(h, path);
    PSECURITY_DESCRIPTOR now = file ? read_kept(h) : NULL;
    change(&next, now, parts, owner, group, dacl);
    DWORD code = ERROR_SUCCESS;
    if (file) {
        code = keep(path, &next);
    } else if (!SetKernelObjectSecurity(h, parts, &next)) {
        code = GetLastError();
    }
    LocalFree(now);
    return code;
}
