/*
 * wmco-lab-routes.dll: adding and deleting routes of a running Windows. Wine's IP Helper API lists routes, but cannot
 * change them. Wine's iphlpapi.dll is patched to export three more functions, which call this library (patch.go).
 *
 * It simulates: InitializeIpForwardEntry, which sets an invalid metric and an invalid site prefix length;
 * CreateIpForwardEntry2 for IPv4, which rejects a row that InitializeIpForwardEntry did not initialize, and a row with
 * an invalid metric; DeleteIpForwardEntry2. The route is a Linux route in the network namespace of the host, so packets
 * follow the route and GetIpForwardTable2 lists it. The lab's first process deletes such routes when it boots the host.
 *
 * It does not simulate: metrics, lifetimes and the protocol of a route, an interface that is identified only by its
 * LUID, IPv6.
 */
#include <winsock2.h>
#include <ws2ipdef.h>
#include <iphlpapi.h>
#include <netioapi.h>
#include <windows.h>

enum { SYS_CLOSE = 3, SYS_SOCKET = 41, SYS_SENDTO = 44, SYS_RECVFROM = 45 }; /* system calls */
enum { NETLINK = 16, RAW = 3, NEWROUTE = 24, DELROUTE = 25, STATIC = 4, UNICAST = 1, MAIN = 254, LINK = 253, NOWHERE = 255, ONLINK = 4 };
enum { REQUEST = 1, ACK = 4, EXCL = 0x200, CREATE = 0x400 };       /* flags of a message */
enum { TO = 1, THROUGH = 4, OVER = 5 };               /* attributes of a message */

/* message is a message of rtnetlink(7): a header, the route, and attributes of 4 bytes each. */
struct message {
    unsigned int length;
    unsigned short type, flags;
    unsigned int sequence, port;
    unsigned char family, bits, source_bits, service, table, protocol, scope, kind;
    unsigned int route_flags;
    struct { unsigned short length, kind; unsigned int value; } attributes[3];
};

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) {
    (void)reserved;
    if (reason == DLL_PROCESS_ATTACH) DisableThreadLibraryCalls(instance);
    return TRUE;
}

static long long call(long long number, long long a, const void *b, long long c, long long d) {
    long long result;
    register long long r10 __asm__("r10") = d;
    register long long r8 __asm__("r8") = 0;
    register long long r9 __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static void add(struct message *m, unsigned short kind, unsigned int value) {
    int i = (m->length - (unsigned int)(size_t)&((struct message *)0)->attributes) / sizeof m->attributes[0];
    m->attributes[i].length = sizeof m->attributes[0];
    m->attributes[i].kind = kind;
    m->attributes[i].value = value;
    m->length += sizeof m->attributes[0];
}

/* ask sends a message to Linux and returns the error number, or 0. */
static int ask(const struct message *m) {
    struct { unsigned int length; unsigned short type, flags; unsigned int sequence, port; int error; char rest[512]; } answer = {0};
    long long socket = call(SYS_SOCKET, NETLINK, (void *)RAW, 0, 0);
    if (socket < 0) return (int)-socket;
    long long result = call(SYS_SENDTO, socket, m, m->length, 0);
    if (result >= 0) result = call(SYS_RECVFROM, socket, &answer, sizeof answer, 0);
    call(SYS_CLOSE, socket, NULL, 0, 0);
    return result < 0 ? (int)-result : -answer.error;
}

static DWORD change(const MIB_IPFORWARD_ROW2 *row, unsigned short type, unsigned short flags) {
    if (row == NULL || row->DestinationPrefix.Prefix.si_family != AF_INET || row->InterfaceIndex == 0) return ERROR_INVALID_PARAMETER;
    struct message m = {0};
    unsigned int gateway = row->NextHop.Ipv4.sin_addr.s_addr;
    m.length = (unsigned int)(size_t)&((struct message *)0)->attributes;
    m.type = type;
    m.flags = REQUEST | ACK | flags;
    m.family = 2;
    m.bits = row->DestinationPrefix.PrefixLength;
    m.table = MAIN;
    m.protocol = STATIC;
    m.scope = type == DELROUTE ? NOWHERE : gateway == 0 ? LINK : 0;
    m.kind = UNICAST;
    m.route_flags = gateway != 0 ? ONLINK : 0;
    add(&m, TO, row->DestinationPrefix.Prefix.Ipv4.sin_addr.s_addr);
    add(&m, THROUGH, row->InterfaceIndex);
    if (gateway != 0) add(&m, OVER, gateway);
    switch (ask(&m)) {
    case 0:
        return NO_ERROR;
    case 1: /* EPERM */
        return ERROR_ACCESS_DENIED;
    case 3: /* ESRCH */
    case 19: /* ENODEV */
        return ERROR_NOT_FOUND;
    case 17: /* EEXIST */
        return ERROR_OBJECT_ALREADY_EXISTS;
    default:
        return ERROR_INVALID_PARAMETER;
    }
}

enum { NOT_VALID = 255 };

void WINAPI lab_InitializeIpForwardEntry(MIB_IPFORWARD_ROW2 *row) {
    ZeroMemory(row, sizeof *row);
    row->SitePrefixLength = NOT_VALID;
    row->Metric = 0xffffffff;
    row->ValidLifetime = row->PreferredLifetime = 0xffffffff;
    row->Protocol = MIB_IPPROTO_NETMGMT;
    row->Loopback = row->AutoconfigureAddress = row->Immortal = TRUE;
}

/* made reports whether InitializeIpForwardEntry initialized a row. */
static int made(const MIB_IPFORWARD_ROW2 *row) {
    return row != NULL && row->SitePrefixLength == NOT_VALID && row->ValidLifetime == 0xffffffff && row->Loopback;
}

DWORD WINAPI lab_CreateIpForwardEntry2(const MIB_IPFORWARD_ROW2 *row) {
    if (!made(row) || row->Metric == 0xffffffff) return ERROR_INVALID_PARAMETER;
    return change(row, NEWROUTE, CREATE | EXCL);
}

DWORD WINAPI lab_DeleteIpForwardEntry2(const MIB_IPFORWARD_ROW2 *row) { return change(row, DELROUTE, 0); }
