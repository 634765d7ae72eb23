/*
 * Operations on the objects of the lab's Host Networking Service. Settings and queries are JSON; IDs are GUIDs as text.
 */
#ifndef LAB_OBJECTS_H
#define LAB_OBJECTS_H

#include "store.h"

/* service_check fails while the feature of the Host Networking Service is not in effect. */
HRESULT service_check(void);

/* object_list returns the IDs of the objects that match the filter of the query. */
HRESULT object_list(enum kind kind, const struct json *query, struct json **ids);

/*
 * object_create stores an object with the settings; *made is the stored object. network is the ID of an endpoint's
 * network, otherwise NULL.
 */
HRESULT object_create(enum kind kind, const char *id, const char *network, struct json *settings, struct json **made);

/* object_modify adds or removes policies of networks and endpoints. */
HRESULT object_modify(enum kind kind, const char *id, const struct json *request);

/* object_delete deletes an object; a network is deleted together with its endpoints. */
HRESULT object_delete(enum kind kind, const char *id);

/*
 * object_vanish deletes an object as another program would, if a fault is set (faults.h), and returns the resulting
 * error; otherwise S_OK.
 */
HRESULT object_vanish(enum kind kind, const char *id);

/* object_attach records that an endpoint is attached to the host, until the host boots. */
HRESULT object_attach(const char *id, struct json *endpoint);

/* object_attached reports whether an endpoint is attached. */
int object_attached(const struct json *endpoint);

/* not_found returns the error for a missing object of a kind. */
HRESULT not_found(enum kind kind);

#endif
