package keys

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/userdata"
)

// event is one Kubernetes event on the Secret with the private key, made by the constructors below and nowhere else.
type event struct {
	regarding, related        *corev1.Secret
	eventType, reason, action string
	message                   string
}

func (r *Reconciler) emit(e event) {
	if e.related == nil {
		r.Events.Eventf(e.regarding, nil, e.eventType, e.reason, e.action, "%s", e.message)
		return
	}
	r.Events.Eventf(e.regarding, e.related, e.eventType, e.reason, e.action, "%s", e.message)
}

func privateKeyInvalid(secret *corev1.Secret, err error) event {
	return event{secret, nil, corev1.EventTypeWarning, "PrivateKeyInvalid", "ReadPrivateKey",
		err.Error() + ". " + Remedy(secret.Namespace)}
}

func previousKeyInvalid(secret *corev1.Secret, err error) event {
	return event{secret, nil, corev1.EventTypeWarning, "PreviousPrivateKeyInvalid", "ReadPrivateKey",
		err.Error() + ". The operator cannot use the previous key to add the present key to hosts that refuse it. Correct key " + SecretPreviousKey + ", or remove it."}
}

func userDataCreated(secret, userData *corev1.Secret) event {
	return event{secret, userData, corev1.EventTypeNormal, "UserDataCreated", "KeepUserData",
		name(userData) + " was created: new Windows Machines with this user data accept the key."}
}

func userDataUpdated(secret, userData *corev1.Secret) event {
	return event{secret, userData, corev1.EventTypeNormal, "UserDataUpdated", "KeepUserData",
		name(userData) + " was updated: new Windows Machines accept the present key. Existing Machines are not changed by this."}
}

func userDataRestored(secret, userData *corev1.Secret, what string) event {
	return event{secret, userData, corev1.EventTypeWarning, "UserDataRestored", "KeepUserData",
		name(userData) + " was " + what +
			"; the operator restored it. For other user data, create a Secret with another name."}
}

func userDataRefused(secret, userData *corev1.Secret, err error) event {
	return event{secret, userData, corev1.EventTypeWarning, "UserDataRefused", "KeepUserData",
		name(userData) + " cannot be corrected: " + err.Error() + ". Delete the Secret; the operator creates it again."}
}

func name(userData *corev1.Secret) string {
	return "Key " + userdata.SecretKey + " of Secret " + userData.Namespace + "/" + userData.Name
}
