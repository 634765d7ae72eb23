package keys

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/controller/recorder"
	"github.com/windows-machine-config/wmco/internal/userdata"
)

// The Secrets are in namespaces of others, and one of these need not exist, so that a Role there could not be
// installed. The right to create is for one name as well, since a Secret that is made by an apply has its name in the
// URL.
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=windows-user-data,verbs=get;list;watch;create;patch

// ClusterAPINamespace is where Cluster API has its Machines, on clusters that have it.
const ClusterAPINamespace = "openshift-cluster-api"

// userDataNamespaces are where Machines look for their user data.
var userDataNamespaces = []string{v1alpha1.MachineNamespace, ClusterAPINamespace}

// isUserData reports whether an object is a Secret with the operator's user data.
func isUserData(o client.Object) bool {
	return o.GetName() == userdata.SecretName && slices.Contains(userDataNamespaces, o.GetNamespace())
}

// keptUserData is the user data of one namespace as it was written or found right. It may be lost: then a restored
// Secret is reported as a new one.
type keptUserData struct {
	script []byte
	// stale is the version that was corrected: while the cache has it, the correction is under way.
	stale string
	// refused is the version that cannot be corrected to refusedScript.
	refused       string
	refusedScript []byte
}

// keepUserData makes or corrects the Secret in a namespace, if there is such a namespace. It corrects the one key in
// place, so that the Secret keeps its UID and what others have put there.
func (r *Reconciler) keepUserData(ctx context.Context, secret *corev1.Secret, namespace string, script []byte) error {
	exists, err := r.exists(ctx, namespace)
	if err != nil {
		return err
	}
	if !exists {
		delete(r.kept, namespace)
		return nil
	}
	present := &corev1.Secret{}
	err = r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: userdata.SecretName}, present)
	if apierrors.IsNotFound(err) {
		return r.createUserData(ctx, secret, namespace, script)
	}
	if err != nil {
		return fmt.Errorf("read Secret %s/%s: %w", namespace, userdata.SecretName, err)
	}
	return r.correctUserData(ctx, secret, present, script)
}

func (r *Reconciler) createUserData(ctx context.Context, secret *corev1.Secret, namespace string, script []byte) error {
	made := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: userdata.SecretName,
			Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.OperatorName}},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{userdata.SecretKey: script},
	}
	apply, err := json.Marshal(made)
	if err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", namespace, userdata.SecretName, err)
	}
	err = r.Client.Patch(ctx, made, client.RawPatch(types.ApplyPatchType, apply), client.FieldOwner(v1alpha1.OperatorName))
	switch {
	case apierrors.IsConflict(err):
		// Somebody made it a moment ago, with other contents, and the cache has it not yet: its event brings the next look.
		return nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The namespace goes. If it comes again, that is an event too.
		return nil
	case err != nil:
		return fmt.Errorf("create Secret %s/%s: %w", namespace, userdata.SecretName, err)
	}
	before, known := r.kept[namespace]
	r.keep(namespace, keptUserData{script: script})
	if known && before.script != nil {
		recorder.Emit(r.Events, userDataRestored(secret, made, "deleted"))
	} else {
		recorder.Emit(r.Events, userDataCreated(secret, made))
	}
	return nil
}

func (r *Reconciler) correctUserData(ctx context.Context, secret, present *corev1.Secret, script []byte) error {
	kept := r.kept[present.Namespace]
	right := bytes.Equal(present.Data[userdata.SecretKey], script)
	if right && present.Labels[v1alpha1.LabelManagedBy] == v1alpha1.OperatorName {
		r.keep(present.Namespace, keptUserData{script: script})
		return nil
	}
	underWay, refused := kept.stale != "" && kept.stale == present.ResourceVersion, kept.refused != "" &&
		kept.refused == present.ResourceVersion
	if underWay || refused && bytes.Equal(script, kept.refusedScript) {
		return nil
	}
	corrected := present.DeepCopy()
	metav1.SetMetaDataLabel(&corrected.ObjectMeta, v1alpha1.LabelManagedBy, v1alpha1.OperatorName)
	if corrected.Data == nil {
		corrected.Data = map[string][]byte{}
	}
	corrected.Data[userdata.SecretKey] = script
	err := r.Client.Patch(ctx, corrected, client.MergeFrom(present))
	switch {
	case apierrors.IsNotFound(err):
		// Deleted just now: that is an event too.
		return nil
	case apierrors.IsInvalid(err):
		// It was made immutable.
		r.keep(present.Namespace, keptUserData{script: kept.script, refused: present.ResourceVersion, refusedScript: script})
		recorder.Emit(r.Events, userDataRefused(secret, present, err))
		return nil
	case err != nil:
		return fmt.Errorf("correct Secret %s/%s: %w", present.Namespace, present.Name, err)
	}
	r.keep(present.Namespace, keptUserData{script: script, stale: present.ResourceVersion})
	switch {
	case right: // only the label was missing
	case bytes.Equal(kept.script, script):
		recorder.Emit(r.Events, userDataRestored(secret, corrected, "edited"))
	default:
		recorder.Emit(r.Events, userDataUpdated(secret, corrected))
	}
	return nil
}

func (r *Reconciler) keep(namespace string, kept keptUserData) {
	if r.kept == nil {
		r.kept = map[string]keptUserData{}
	}
	r.kept[namespace] = kept
}
