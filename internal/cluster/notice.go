package cluster

// Notice describes a setting of the cluster that Windows nodes do not follow. Because Windows nodes follow all
// other settings, a notice is not an error.
type Notice struct {
	Object  string // kind and name: "ImageDigestMirrorSet mirrors"
	Field   string // "spec.imageDigestMirrors[2].mirrors[0]"; empty for the object itself
	Message string // reason, consequence and remedy; without secrets

	// ResourceVersion is the version of the object when it was read.
	ResourceVersion string
}

// String returns the notice in one sentence.
func (n Notice) String() string {
	return (&Error{Object: n.Object, Field: n.Field, Message: n.Message}).Error()
}

type subject struct {
	id, resourceVersion string
}

func (s subject) error(field, message string) error {
	return &Error{Object: s.id, Field: field, Message: message}
}

// notices are collected while the cluster is read.
type notices []Notice

func (n *notices) addNotice(about subject, field, message string) {
	*n = append(*n, Notice{Object: about.id, Field: field, Message: message, ResourceVersion: about.resourceVersion})
}
