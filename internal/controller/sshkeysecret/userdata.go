package sshkeysecret

import (
	"bytes"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/owned"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

// The Secrets are in foreign namespaces, and some of these may not exist, so that a Role could not be installed
// there. The create permission is also limited to one name, because an apply request contains the name in the URL.
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=windows-user-data,verbs=get;list;watch;create;patch

// ClusterAPINamespace is the namespace for the Machines of Cluster API, on clusters that have it.
const ClusterAPINamespace = "openshift-cluster-api"

// userDataNamespaces are the namespaces of Machines and their user data.
var userDataNamespaces = []string{v1alpha1.MachineNamespace, ClusterAPINamespace}

// isUserData reports whether an object is a Secret with the operator's user data.
func isUserData(o client.Object) bool {
	return o.GetName() == userdata.SecretName && slices.Contains(userDataNamespaces, o.GetNamespace())
}

// ensureUserData creates or corrects the Secret in a namespace, if the namespace exists. Only one data key is
// patched, so that the Secret keeps its UID and the data of other clients.
func (r *Reconciler) ensureUserData(ctx context.Context, secret *corev1.Secret, namespace string, script []byte) error {
	exists, err := r.exists(ctx, namespace)
	if err != nil {
		return err
	}
	if !exists {
		delete(r.userDataByNamespace, namespace)
		return nil
	}
	userData := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: userdata.SecretName}, Type: corev1.SecretTypeOpaque,
	}
	version, differs := "", false // of the current Secret
	state, err := owned.Keeper{Client: r.Client, Live: r.Client}.Keep(ctx, owned.Object{
		Identity: userData,
		Adopt:    func(client.Object) bool { return true },
		Fill: func(object client.Object) {
			if present, ok := object.(*corev1.Secret); ok {
				version, differs = present.ResourceVersion, !bytes.Equal(present.Data[userdata.SecretKey], script)
				if present.Data == nil {
					present.Data = map[string][]byte{}
				}
				present.Data[userdata.SecretKey] = script
			}
		},
	})
	switch {
	case apierrors.IsConflict(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the cache is outdated, or the namespace is being deleted: an event follows
	case apierrors.IsInvalid(err): // the Secret is immutable
		if r.refused.IsNew(namespace, version+string(script)) {
			recorder.Emit(r.Events, userDataRefused(secret, userData, err))
		}
		return nil
	case err != nil, state == owned.NotServed: // the namespace was deleted
		return err
	}
	before, known := r.userDataByNamespace[namespace]
	r.recordUserData(namespace, script)
	switch {
	case state == owned.Created && known:
		recorder.Emit(r.Events, userDataRestored(secret, userData, "deleted"))
	case state == owned.Created:
		recorder.Emit(r.Events, userDataCreated(secret, userData))
	case state == owned.Corrected && !differs: // only the label was missing
	case state == owned.Corrected && bytes.Equal(before, script):
		recorder.Emit(r.Events, userDataRestored(secret, userData, "edited"))
	case state == owned.Corrected:
		recorder.Emit(r.Events, userDataUpdated(secret, userData))
	}
	return nil
}

func (r *Reconciler) recordUserData(namespace string, script []byte) {
	if r.userDataByNamespace == nil {
		r.userDataByNamespace = map[string][]byte{}
	}
	r.userDataByNamespace[namespace] = script
}
