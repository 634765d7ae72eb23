/* What can be done with the objects of the lab's Host Networking Service. Settings and queries are JSON; IDs are GUIDs as text. */
#ifndef LAB_OBJECTS_H
#define LAB_OBJECTS_H

#include "store.h"

/* service_check fails while the feature that brings the Host Networking Service is not in force. */
HRESULT service_check(void);

/* object_list gives the IDs of the objects that pass the query's filter. */
HRESULT object_list(enum kind kind, const struct json *query, struct json **ids);

/* object_create keeps an object of these settings; *made is as it was kept. network is the ID of an endpoint's network, else NULL. */
HRESULT object_create(enum kind kind, const char *id, const char *network, struct json *settings, struct json **made);

/* object_modify adds or removes policies of networks and endpoints. */
HRESULT object_modify(enum kind kind, const char *id, const struct json *request);

/* object_delete takes an object away, a network with its endpoints. */
HRESULT object_delete(enum kind kind, const char *id);

/* object_vanish deletes an object as another program would and returns the code for that, if faults.h has it vanish; else S_OK. */
HRESULT object_vanish(enum kind kind, const char *id);

/* object_attach keeps that an endpoint is attached to the host, until the host boots. */
HRESULT object_attach(const char *id, struct json *endpoint);

/* object_attached tells whether an endpoint is attached. */
int object_attached(const struct json *endpoint);

/* not_found is the code for an object of that kind that is not there. */
HRESULT not_found(enum kind kind);

#endif
