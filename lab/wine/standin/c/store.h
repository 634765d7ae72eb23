/*
 * The store of the lab's Host Networking Service: one JSON file per object,
 * C:\ProgramData\wmco-lab\hns\<kind>\<ID>.json. All processes of the host share the store. Between store_lock and
 * store_unlock, no other process changes the store.
 */
#ifndef LAB_STORE_H
#define LAB_STORE_H

#include <windows.h>

#include "json.h"

enum kind { NETWORK, ENDPOINT, LOAD_BALANCER, ROUTE, KINDS };

enum { ID_LENGTH = 36 }; /* of xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */

HRESULT store_lock(void);
void store_unlock(void);

/* store_load reads an object, or returns NULL if the object does not exist. */
struct json *store_load(enum kind kind, const char *id);

/* store_list reads all objects of a kind into an array, sorted by ID. */
struct json *store_list(enum kind kind);

/* store_save creates or replaces the object with this ID. */
HRESULT store_save(enum kind kind, const char *id, const struct json *object);
HRESULT store_delete(enum kind kind, const char *id);

/* store_first_since_boot reports whether this is the first use after a boot. */
int store_first_since_boot(void);

#endif
