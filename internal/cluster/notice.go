package cluster

// Notice names a setting of the cluster that Windows nodes do not follow. They follow everything else, so it is not an
// error.
type Notice struct {
	Object  string // kind and name: "ImageDigestMirrorSet mirrors"
	Field   string // "spec.imageDigestMirrors[2].mirrors[0]"; empty when it is the object itself
	Message string // why, what that means, and what to do; without any secret

	// ResourceVersion is the object's version when it was read.
	ResourceVersion string
}

// String says it in one sentence.
func (n Notice) String() string {
	return (&Error{Object: n.Object, Field: n.Field, Message: n.Message}).Error()
}

// subject is an object that was read.
type subject struct {
	id, resourceVersion string
}

// error returns a fault of the object.
func (s subject) error(field, message string) error {
	return &Error{Object: s.id, Field: field, Message: message}
}

// notices are collected while the cluster is read.
type notices []Notice

func (n *notices) add(about subject, field, message string) {
	*n = append(*n, Notice{Object: about.id, Field: field, Message: message, ResourceVersion: about.resourceVersion})
}
