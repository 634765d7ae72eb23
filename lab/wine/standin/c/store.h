/*
 * What the lab's Host Networking Service knows: one JSON file per object, C:\ProgramData\wmco-lab\hns\<kind>\<ID>.json. Every
 * process of the host sees the same; between store_lock and store_unlock no other one changes it.
 */
#ifndef LAB_STORE_H
#define LAB_STORE_H

#include <windows.h>

#include "json.h"

enum kind { NETWORK, ENDPOINT, LOAD_BALANCER, ROUTE, KINDS };

enum { ID_LENGTH = 36 }; /* of xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */

HRESULT store_lock(void);
void store_unlock(void);

/* store_load reads an object; NULL when it is not there. */
struct json *store_load(enum kind kind, const char *id);

/* store_list reads all objects of a kind into an array, sorted by ID. */
struct json *store_list(enum kind kind);

/* store_save makes or replaces the object of that ID. */
HRESULT store_save(enum kind kind, const char *id, const struct json *object);
HRESULT store_delete(enum kind kind, const char *id);

/* store_first_since_boot tells, once after each boot, that this is the first use since. */
int store_first_since_boot(void);

#endif
