/*
 * mi.dll of the tests: Windows Management Infrastructure, which Wine lacks and windows_exporter opens before it serves anything.
 *
 * It simulates: an application, a session and their options, all of which can be made and closed.
 * It does not simulate: any class of WMI. Each query is answered with MI_RESULT_INVALID_NAMESPACE, as by a Windows without that namespace.
 * The layout of the objects and of their tables of functions is that of Microsoft's mi.h.
 */
#include <stdint.h>
#include <windows.h>

enum { OK = 0, INVALID_NAMESPACE = 3 };

/* Application, session, operation and options begin alike. */
struct object {
    uint64_t reserved1;
    intptr_t reserved2;
    const void *functions;
};

static uint32_t done(void) { return OK; }
static uint32_t unknown(void) { return INVALID_NAMESPACE; }

#define FUNCTIONS 32
static void *options[FUNCTIONS], *session[FUNCTIONS], *application[FUNCTIONS];

static uint32_t new_session(struct object *app, const WCHAR *protocol, const WCHAR *destination, struct object *how, void *callbacks,
                            void **error, struct object *made) {
    (void)app, (void)protocol, (void)destination, (void)how, (void)callbacks, (void)error;
    made->functions = session;
    return OK;
}

static uint32_t new_destination_options(struct object *app, struct object *made) {
    (void)app;
    made->functions = options;
    return OK;
}

static uint32_t new_operation_options(struct object *app, unsigned char must_understand, struct object *made) {
    (void)app, (void)must_understand;
    made->functions = options;
    return OK;
}

__declspec(dllexport) uint32_t MI_Application_InitializeV1(uint32_t flags, const WCHAR *id, void **error, struct object *made) {
    (void)flags, (void)id, (void)error;
    for (int i = 0; i < FUNCTIONS; i++) {
        options[i] = application[i] = done;
        session[i] = unknown;
    }
    session[0] = done; /* Close */
    application[1] = new_session;
    application[4] = new_destination_options;
    application[5] = new_operation_options;
    made->functions = application;
    return OK;
}
